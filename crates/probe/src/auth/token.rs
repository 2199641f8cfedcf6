//! Longhaul's own admittance: a word that both ends know. It never travels:
//! the client signs its cookie and the time with it (HMAC, RFC 2104).

use hmac::{Hmac, KeyInit, Mac};
use iperf3::Cookie;
use serde_json::{Value, json};
use sha2::Sha256;
use std::{collections::HashMap, fmt, sync::Mutex};

/// Furthest that a client's clock may be off, and so how long a signature that
/// was overheard could be used again if it were not remembered.
const SKEW_S: u64 = 300;

/// Signatures remembered; more clients than that do not come in the time.
const MOST_REMEMBERED: usize = 65_536;

/// The words that admit a client.
#[derive(Default)]
pub struct Tokens {
    words: Vec<String>,
    /// Signatures used, by when.
    used: Mutex<HashMap<String, u64>>,
}

impl fmt::Debug for Tokens {
    /// Without the words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("count", &self.words.len()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// One word a line; empty lines and lines that begin with `#` are left out.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let words = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Tokens { words: words.map(str::to_owned).collect(), used: Mutex::default() }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// Whether a client's signature is one of ours, fresh and not used before.
    pub(crate) fn admits(&self, signed: Option<&Value>, cookie: &Cookie, unix_s: u64) -> bool {
        let read = |signed: &Value| {
            Some((signed.get("time")?.as_u64()?, signed.get("mac")?.as_str()?.to_owned()))
        };
        let Some((time, mac)) = signed.and_then(read) else { return false };
        if time.abs_diff(unix_s) > SKEW_S {
            return false;
        }
        let Some(bytes) = from_hex(&mac) else { return false };
        let known = self.words.iter().any(|word| {
            signer(word, cookie, time).is_some_and(|signer| signer.verify_slice(&bytes).is_ok())
        });
        known && self.is_new(mac, unix_s)
    }

    fn is_new(&self, mac: String, unix_s: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if used.len() >= MOST_REMEMBERED {
            used.retain(|_, when| when.abs_diff(unix_s) <= 2 * SKEW_S);
        }
        used.len() < MOST_REMEMBERED && used.insert(mac, unix_s).is_none()
    }
}

/// The client's signature under its cookie.
pub(super) fn sign(word: &str, cookie: &Cookie, unix_s: u64) -> Value {
    let mac = signer(word.trim(), cookie, unix_s).map(|signer| signer.finalize().into_bytes());
    let mac: String = mac.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    json!({ "time": unix_s, "mac": mac })
}

fn signer(word: &str, cookie: &Cookie, unix_s: u64) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(word.as_bytes()).ok()?;
    mac.update(cookie.bytes());
    mac.update(&unix_s.to_be_bytes());
    Some(mac)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_counts_once_and_for_its_cookie() {
        let tokens = Tokens::read("# words\n\n one \ntwo\n");
        assert_eq!(tokens.count(), 2);
        let [first, second] = [1, 2].map(|byte| Cookie::from_wire([byte; 37]));
        let signed = sign("two", &first, 1000);
        assert!(!tokens.admits(Some(&signed), &second, 1000), "another cookie");
        assert!(!tokens.admits(Some(&signed), &first, 1301), "too late");
        assert!(tokens.admits(Some(&signed), &first, 1300));
        assert!(!tokens.admits(Some(&signed), &first, 1300), "used");
        assert!(!tokens.admits(Some(&sign("three", &first, 1000)), &first, 1000));
        assert!(tokens.admits(Some(&sign("one\n", &second, 1000)), &second, 1000));
    }

    #[test]
    fn anything_else_is_refused() {
        let tokens = Tokens::read("word");
        let cookie = Cookie::from_wire([1; 37]);
        for value in [
            json!(null),
            json!(7),
            json!({"time": 1000}),
            json!({"time": 1000, "mac": 7}),
            json!({"time": -1, "mac": "00"}),
            json!({"time": 1000, "mac": "é".repeat(32)}),
            json!({"time": 1000, "mac": "0".repeat(64)}),
        ] {
            assert!(!tokens.admits(Some(&value), &cookie, 1000), "{value}");
        }
        assert!(!tokens.admits(None, &cookie, 1000));
    }
}
