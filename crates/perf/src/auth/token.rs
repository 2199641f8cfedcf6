//! Longhaul's tokens: a shared secret that is never sent. The client signs its
//! cookie and the time with it (HMAC with SHA-256, RFC 2104).
//!
//! The signature admits one test. It covers neither the test's parameters nor
//! its data and results: whoever can change packets on the path can change them.

use super::replay::{Replay, ReplayCache};
use hmac::{Hmac, KeyInit, Mac};
use iperf3_proto::{Cookie, TokenProof};
use sha2::Sha256;
use std::{fmt, sync::Mutex};

/// Maximum clock difference in seconds, and so how long a captured signature could
/// be replayed if it were not remembered.
const SKEW_S: u64 = 300;

/// Signatures remembered per token: 27 tests a second over ten minutes.
const MAX_PER_TOKEN: usize = 16_384;

/// The tokens that admit a client.
pub struct Tokens {
    words: Vec<String>,
    used: Mutex<ReplayCache>,
}

/// Why a client is refused; for this server's log, never for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("without one of this server's tokens")]
    None,
    #[error("with a token whose timestamp differs from the server's clock by more than {SKEW_S} s")]
    Skew,
    #[error("with a token signature that was used before")]
    Used,
    #[error(
        "with a token that was used {MAX_PER_TOKEN} times within {} s; give each group of clients its own token",
        2 * SKEW_S
    )]
    Full,
}

impl Default for Tokens {
    fn default() -> Self {
        Tokens::read("")
    }
}

impl fmt::Debug for Tokens {
    /// Without the words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("count", &self.words.len()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// One token per line; empty lines and lines that begin with `#` are skipped.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let words = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Tokens {
            words: words.map(str::to_owned).collect(),
            used: Mutex::new(ReplayCache::new(MAX_PER_TOKEN)),
        }
    }

    /// The number of tokens.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// Admits a client whose signature is valid for one of the tokens, recent and
    /// not used before.
    pub(crate) fn admit(
        &self,
        proof: Option<&TokenProof>,
        cookie: &Cookie,
        unix_s: u64,
    ) -> Result<(), TokenError> {
        let proof = proof.ok_or(TokenError::None)?;
        let time = u64::try_from(proof.time).map_err(|_| TokenError::None)?;
        let bytes = proof.mac.as_deref().and_then(from_hex).ok_or(TokenError::None)?;
        // Every token is tried, each compared in constant time: the time does not
        // reveal which one matched.
        let mut owner = None;
        for (index, word) in self.words.iter().enumerate() {
            let signer = signer(word, cookie, time);
            if signer.is_some_and(|signer| signer.verify_slice(&bytes).is_ok()) {
                owner = owner.or(Some(index));
            }
        }
        let owner = owner.ok_or(TokenError::None)?;
        if time.abs_diff(unix_s) > SKEW_S {
            return Err(TokenError::Skew);
        }
        let mut used = host::lock::lock(&self.used);
        used.insert(owner, bytes, time + SKEW_S, unix_s).map_err(|replay| match replay {
            Replay::Used => TokenError::Used,
            Replay::Full => TokenError::Full,
        })
    }
}

/// The client's signature under its cookie.
pub(super) fn sign(word: &str, cookie: &Cookie, unix_s: u64) -> TokenProof {
    let mac = signer(word.trim(), cookie, unix_s).map(|signer| signer.finalize().into_bytes());
    let mac: String = mac.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    TokenProof { time: i64::try_from(unix_s).unwrap_or(i64::MAX), mac: Some(mac) }
}

fn signer(word: &str, cookie: &Cookie, unix_s: u64) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(word.as_bytes()).ok()?;
    mac.update(cookie.bytes());
    mac.update(&unix_s.to_be_bytes());
    Some(mac)
}

/// 64 lower-case hexadecimal digits: other encodings of the same bytes are refused.
fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(byte: u8) -> Cookie {
        Cookie::from_wire([byte; 37])
    }

    #[test]
    fn a_signature_counts_once_and_for_its_cookie() {
        let tokens = Tokens::read("# words\n\n one \ntwo\n");
        assert_eq!(tokens.count(), 2);
        let [first, second] = [1, 2].map(cookie);
        let admit = |signed: &TokenProof, cookie, now| tokens.admit(Some(signed), cookie, now);
        let signed = sign("two", &first, 1000);
        assert_eq!(admit(&signed, &second, 1000), Err(TokenError::None), "another cookie");
        assert_eq!(admit(&signed, &first, 1301), Err(TokenError::Skew), "too late");
        assert_eq!(admit(&signed, &first, 699), Err(TokenError::Skew), "too early");
        assert_eq!(admit(&signed, &first, 1300), Ok(()));
        assert_eq!(admit(&signed, &first, 1300), Err(TokenError::Used));
        assert_eq!(admit(&sign("three", &first, 1000), &first, 1000), Err(TokenError::None));
        assert_eq!(admit(&sign("one\n", &second, 1000), &second, 1000), Ok(()));
    }

    #[test]
    fn a_signature_has_one_spelling() {
        let tokens = Tokens::read("word");
        // One with a byte below 16, which "+f" would spell too, and a letter.
        let (cookie, signed) = (0..=255)
            .map(|byte| (cookie(byte), sign("word", &cookie(byte), 1000)))
            .find(|(_, signed)| {
                let mac = signed.mac.as_deref().unwrap();
                mac.as_bytes().chunks(2).any(|pair| pair[0] == b'0') && mac.contains('a')
            })
            .unwrap();
        let mac = signed.mac.clone().unwrap();
        let low = mac.as_bytes().chunks(2).position(|pair| pair[0] == b'0').unwrap();
        let plus = format!("{}+{}", &mac[..2 * low], &mac[2 * low + 1..]);
        let upper = mac.to_ascii_uppercase();
        for spelling in [upper, plus, format!(" {mac}"), mac[..62].to_owned(), format!("{mac}00")] {
            let proof = TokenProof { mac: Some(spelling), ..signed.clone() };
            assert_eq!(
                tokens.admit(Some(&proof), &cookie, 1000),
                Err(TokenError::None),
                "{proof:?}"
            );
        }
        assert_eq!(tokens.admit(Some(&signed), &cookie, 1000), Ok(()));
    }

    #[test]
    fn a_full_replay_cache_share_refuses_its_own_token_until_expiry() {
        let mut tokens = Tokens::read("one\ntwo");
        tokens.used = Mutex::new(ReplayCache::new(2));
        let admit = |word: &str, byte: u8, signed: u64, now| {
            tokens.admit(Some(&sign(word, &cookie(byte), signed)), &cookie(byte), now)
        };
        assert_eq!(admit("one", 1, 1000, 1000), Ok(()));
        assert_eq!(admit("one", 2, 1100, 1000), Ok(()));
        assert_eq!(admit("one", 3, 1000, 1000), Err(TokenError::Full));
        assert_eq!(admit("two", 3, 1000, 1000), Ok(()));
        assert_eq!(admit("one", 3, 1300, 1300), Err(TokenError::Full));
        assert_eq!(admit("one", 3, 1301, 1301), Ok(()), "the first has expired");
        assert_eq!(admit("one", 2, 1100, 1400), Err(TokenError::Used), "the second has not");
    }

    #[test]
    fn anything_else_is_refused() {
        let tokens = Tokens::read("word");
        let proof = |time, mac: &str| TokenProof { time, mac: Some(mac.to_owned()) };
        for proof in [
            TokenProof::default(),
            TokenProof { time: 1000, mac: None },
            proof(-1, "00"),
            proof(1000, &"é".repeat(32)),
            proof(1000, &"0".repeat(64)),
            proof(i64::MAX, &"0".repeat(64)),
        ] {
            assert!(tokens.admit(Some(&proof), &cookie(1), 1000).is_err(), "{proof:?}");
        }
        assert!(tokens.admit(None, &cookie(1), 1000).is_err());
    }
}
