//! Longhaul's tokens: a shared secret that is never sent. The client makes a proof with it
//! (HMAC with SHA-256, RFC 2104).
//!
//! A proof admits one test with the parameters that it covers, at the server it was made
//! for: whoever receives it can use it neither elsewhere nor for another test. It covers
//! neither the data nor the results: whoever can change packets on the path can change them.

use super::{
    replay::{Replay, ReplayCache},
    token_name::TokenName,
};
use hmac::{Hmac, KeyInit, Mac};
use iperf3_proto::{Cookie, TOKEN_PROOF_VERSION, TokenProof, token_proof};
use problem::Field;
use sha2::Sha256;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Mutex,
};

/// Maximum clock difference in seconds, and so how long a captured proof could
/// be replayed if it were not remembered.
const SKEW_S: u64 = 300;

/// Proofs remembered per token: 27 tests a second over ten minutes.
const MAX_PER_TOKEN: usize = 16_384;

/// The beginning of what is signed: no other use of a token signs the same bytes.
const DOMAIN: &[u8] = b"longhaul token proof 2\n";

/// The tokens that admit a client.
pub struct Tokens {
    words: Vec<String>,
    names: Names,
    used: Mutex<ReplayCache>,
}

/// The servers whose proofs are accepted besides those for the address of the connection.
enum Names {
    Listed(Vec<TokenName>),
    Any,
}

/// Why a client is refused; for this server's log, never for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("without one of this server's tokens, or with a proof for other parameters")]
    None,
    #[error("with a token proof of an earlier version of longhaul; update the client")]
    Outdated,
    #[error(
        "with a token proof of version {0}; this server knows version {TOKEN_PROOF_VERSION}: update it"
    )]
    Newer(i64),
    #[error(
        "with a token proof for another server, {0}; if clients reach this server there, add \
         {field} {0}",
        field = Field::TokenName
    )]
    OtherServer(String),
    #[error("with a token whose timestamp differs from the server's clock by more than {SKEW_S} s")]
    Skew,
    #[error("with a token proof that was used before")]
    Used,
    #[error(
        "with a token that was used {MAX_PER_TOKEN} times within {} s; give each group of clients its own token",
        2 * SKEW_S
    )]
    Full,
}

/// A client's parameters as the server received them.
pub(crate) struct SignedParams<'a> {
    /// Their text.
    pub(crate) text: &'a [u8],
    /// Whether they have a proof of an earlier version.
    pub(crate) outdated_proof: bool,
    pub(crate) cookie: &'a Cookie,
    /// The address at which the server was reached.
    pub(crate) local: SocketAddr,
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
            names: Names::Listed(Vec::new()),
            used: Mutex::new(ReplayCache::new(MAX_PER_TOKEN)),
        }
    }

    /// Also accepts proofs that were made for these names of this server.
    #[must_use]
    pub fn with_names(self, names: Vec<TokenName>) -> Self {
        Tokens { names: Names::Listed(names), ..self }
    }

    /// Accepts proofs whatever server they were made for: for tokens that are used with
    /// this server alone.
    #[must_use]
    pub fn for_any_name(self) -> Self {
        Tokens { names: Names::Any, ..self }
    }

    /// The number of tokens.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// Admits a client whose proof is valid for one of the tokens, for this server and these
    /// parameters, recent and not used before.
    pub(crate) fn admit(&self, params: &SignedParams<'_>, unix_s: u64) -> Result<(), TokenError> {
        let Some((covered, proof)) = token_proof::split(params.text) else {
            return Err(if params.outdated_proof {
                TokenError::Outdated
            } else {
                TokenError::None
            });
        };
        if proof.version > TOKEN_PROOF_VERSION {
            return Err(TokenError::Newer(proof.version));
        }
        let claim = Claim::of(&proof).ok_or(TokenError::None)?;
        let mac = proof.mac.as_deref().and_then(from_hex).ok_or(TokenError::None)?;
        // Every token is tried, each compared in constant time: the time does not
        // reveal which one matched.
        let mut owner = None;
        for (index, word) in self.words.iter().enumerate() {
            let signer = signer(word, params.cookie, &claim, covered);
            if signer.is_some_and(|signer| signer.verify_slice(&mac).is_ok()) {
                owner = owner.or(Some(index));
            }
        }
        let owner = owner.ok_or(TokenError::None)?;
        if !self.is_here(&claim, params.local) {
            return Err(TokenError::OtherServer(claim.server()));
        }
        if claim.time.abs_diff(unix_s) > SKEW_S {
            return Err(TokenError::Skew);
        }
        let mut used = host::lock::lock(&self.used);
        used.insert(owner, mac, claim.time + SKEW_S, unix_s).map_err(|replay| match replay {
            Replay::Used => TokenError::Used,
            Replay::Full => TokenError::Full,
        })
    }

    /// Whether a proof was made for this server. A server that passes it on has another address.
    fn is_here(&self, claim: &Claim<'_>, local: SocketAddr) -> bool {
        let reached = (claim.address, claim.port) == (local.ip().to_canonical(), local.port());
        reached
            || match &self.names {
                Names::Any => true,
                Names::Listed(names) => {
                    let matches = |name: &TokenName| {
                        name.matches(claim.host, claim.address, claim.port, local.port())
                    };
                    names.iter().any(matches)
                }
            }
    }
}

/// What a proof says besides its HMAC.
struct Claim<'a> {
    /// Seconds since 1970-01-01 UTC.
    time: u64,
    /// The server's host as the user typed it.
    host: &'a str,
    /// The address that the client connected to, IPv4-mapped ones as IPv4.
    address: IpAddr,
    port: u16,
}

impl<'a> Claim<'a> {
    fn of(proof: &'a TokenProof) -> Option<Self> {
        Some(Claim {
            time: u64::try_from(proof.time).ok()?,
            host: proof.host.as_deref()?,
            address: proof.address.as_deref()?.parse::<IpAddr>().ok()?.to_canonical(),
            port: u16::try_from(proof.port).ok()?,
        })
    }

    /// The server as the client knows it, in the form of `--token-name`.
    fn server(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::from((address, self.port)).to_string(),
            Err(_) => format!("{}:{}", self.host, self.port),
        }
    }
}

/// The client's parameters with the proof that it knows a token, as a message.
pub(super) fn signed_params(
    params: &iperf3_proto::Params,
    word: &str,
    cookie: &Cookie,
    host: &str,
    server: SocketAddr,
    unix_s: u64,
) -> Result<Vec<u8>, iperf3_proto::FrameError> {
    let address = server.ip().to_canonical();
    let claim = Claim { time: unix_s, host, address, port: server.port() };
    token_proof::encode(params, |covered| {
        let signer = signer(word.trim(), cookie, &claim, covered);
        let mac = signer.map(|signer| signer.finalize().into_bytes());
        TokenProof {
            version: TOKEN_PROOF_VERSION,
            time: i64::try_from(unix_s).unwrap_or(i64::MAX),
            host: Some(host.to_owned()),
            address: Some(address.to_string()),
            port: server.port().into(),
            mac: Some(mac.iter().flatten().map(|byte| format!("{byte:02x}")).collect()),
        }
    })
}

fn signer(word: &str, cookie: &Cookie, claim: &Claim<'_>, covered: &[u8]) -> Option<Hmac<Sha256>> {
    let address = match claim.address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(word.as_bytes()).ok()?;
    mac.update(DOMAIN);
    mac.update(cookie.bytes());
    mac.update(&claim.time.to_be_bytes());
    mac.update(&address.octets());
    mac.update(&claim.port.to_be_bytes());
    // Its length, so that it cannot be mistaken for a part of what follows.
    mac.update(&(claim.host.len() as u64).to_be_bytes());
    mac.update(claim.host.as_bytes());
    mac.update(covered);
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
    use iperf3_proto::Params;

    const HERE: &str = "192.0.2.1:5201";

    fn cookie(byte: u8) -> Cookie {
        Cookie::from_wire([byte; 37])
    }

    /// The text of parameters with a proof.
    fn signed(word: &str, cookie: &Cookie, host: &str, server: &str, unix_s: u64) -> String {
        let params = Params { tcp: true, time: 10, ..Params::default() };
        let server = server.parse().unwrap();
        let wire = signed_params(&params, word, cookie, host, server, unix_s).unwrap();
        String::from_utf8(wire[4..].to_vec()).unwrap()
    }

    fn admit_at(
        tokens: &Tokens,
        text: &str,
        cookie: &Cookie,
        local: &str,
        unix_s: u64,
    ) -> Result<(), TokenError> {
        let local = local.parse().unwrap();
        let outdated_proof = text.contains("\"token\":");
        let params = SignedParams { text: text.as_bytes(), outdated_proof, cookie, local };
        tokens.admit(&params, unix_s)
    }

    fn sign(word: &str, cookie: &Cookie, unix_s: u64) -> String {
        signed(word, cookie, "192.0.2.1", HERE, unix_s)
    }

    fn admit(tokens: &Tokens, text: &str, cookie: &Cookie, now: u64) -> Result<(), TokenError> {
        admit_at(tokens, text, cookie, HERE, now)
    }

    #[test]
    fn a_proof_counts_once_and_for_its_cookie() {
        let tokens = Tokens::read("# words\n\n one \ntwo\n");
        assert_eq!(tokens.count(), 2);
        let [first, second] = [1, 2].map(cookie);
        let good = sign("two", &first, 1000);
        assert_eq!(admit(&tokens, &good, &second, 1000), Err(TokenError::None), "another cookie");
        assert_eq!(admit(&tokens, &good, &first, 1301), Err(TokenError::Skew), "too late");
        assert_eq!(admit(&tokens, &good, &first, 699), Err(TokenError::Skew), "too early");
        assert_eq!(admit(&tokens, &good, &first, 1300), Ok(()));
        assert_eq!(admit(&tokens, &good, &first, 1300), Err(TokenError::Used));
        let unknown = sign("three", &first, 1000);
        assert_eq!(admit(&tokens, &unknown, &first, 1000), Err(TokenError::None));
        assert_eq!(admit(&tokens, &sign("one\n", &second, 1000), &second, 1000), Ok(()));
    }

    #[test]
    fn a_proof_counts_for_its_server() {
        let tokens = Tokens::read("word");
        let at = |tokens: &Tokens, host: &str, server: &str, local: &str| {
            let cookie = &cookie(1);
            admit_at(tokens, &signed("word", cookie, host, server, 1000), cookie, local, 1000)
        };
        let elsewhere = |server: &str| Err(TokenError::OtherServer(server.to_owned()));
        // The rogue server's address and name, passed on to the one that listens here.
        let relayed = at(&tokens, "rogue.example", "198.51.100.9:5201", HERE);
        assert_eq!(relayed, elsewhere("rogue.example:5201"));
        let port = at(&tokens, "192.0.2.1", "192.0.2.1:5202", HERE);
        assert_eq!(port, elsewhere("192.0.2.1:5202"), "another port of the same host");
        assert_eq!(at(&tokens, "a.example", HERE, HERE), Ok(()), "reached by a name");
        // IPv6, and IPv4 as a dual-stack socket reports it.
        let v6 = "[2001:db8::1]:5201";
        let other = at(&tokens, "2001:db8::2", "[2001:db8::2]:5201", v6);
        assert_eq!(other, elsewhere("[2001:db8::2]:5201"));
        assert_eq!(at(&tokens, "2001:db8::1", v6, "[2001:DB8:0::1]:5201"), Ok(()));
        let tokens = Tokens::read("word");
        assert_eq!(at(&tokens, "192.0.2.1", HERE, "[::ffff:192.0.2.1]:5201"), Ok(()));
        let tokens = Tokens::read("word");
        assert_eq!(at(&tokens, "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:5201", HERE), Ok(()));
    }

    #[test]
    fn names_are_those_that_the_server_was_given() {
        let (public, private) = ("203.0.113.5:5201", "10.0.0.2:5201");
        let with = |names: &[&str]| {
            let names = names.iter().map(|name| name.parse().unwrap()).collect();
            let tokens = Tokens::read("word").with_names(names);
            let cookie = &cookie(1);
            let text = signed("word", cookie, "Lab.Example.", public, 1000);
            admit_at(&tokens, &text, cookie, private, 1000).is_ok()
        };
        for names in
            [&["lab.example"][..], &["x", "LAB.example."], &["203.0.113.5"], &["lab.example:5201"]]
        {
            assert!(with(names), "{names:?}");
        }
        for names in [&[][..], &["example"], &["10.0.0.2"], &["lab.example:5202"]] {
            assert!(!with(names), "{names:?}");
        }
        let (tokens, cookie) = (Tokens::read("word").for_any_name(), &cookie(1));
        let text = signed("word", cookie, "x", public, 1000);
        assert_eq!(admit_at(&tokens, &text, cookie, private, 1000), Ok(()));
    }

    #[test]
    fn a_proof_counts_for_its_parameters() {
        let (tokens, cookie) = (Tokens::read("word"), &cookie(1));
        let good = sign("word", cookie, 1000);
        let changed = [
            good.replace("\"time\":10", "\"time\":3600"),
            good.replace("{\"tcp\":true", "{\"parallel\":16,\"tcp\":true"),
            good.replace(",\"longhaul_token", ",\"parallel\":16,\"longhaul_token"),
            good.replace("{\"tcp\":true", "{\"tcp\": true"),
            format!("{},\"reverse\":true}}", &good[..good.len() - 1]),
            good.replace("\"host\":\"192.0.2.1\"", "\"host\":\"a\""),
            good.replace("\"address\":\"192.0.2.1\"", "\"address\":\"192.0.2.2\""),
            good.replace("\"port\":5201", "\"port\":5202"),
            good.replace("\"time\":1000", "\"time\":1001"),
        ];
        for text in changed {
            assert_ne!(text, good);
            assert_eq!(admit(&tokens, &text, cookie, 1000), Err(TokenError::None), "{text}");
        }
        assert_eq!(admit(&tokens, &good, cookie, 1000), Ok(()));
    }

    #[test]
    fn other_versions_are_refused_with_the_remedy() {
        let (tokens, cookie) = (Tokens::read("word"), &cookie(1));
        let old = "{\"time\":1,\"longhaul\":{\"token\":{\"time\":1000,\"mac\":\"00\"}}}";
        assert_eq!(admit(&tokens, old, cookie, 1000), Err(TokenError::Outdated));
        let new = sign("word", cookie, 1000).replace("\"version\":2", "\"version\":3");
        assert_eq!(admit(&tokens, &new, cookie, 1000), Err(TokenError::Newer(3)));
    }

    #[test]
    fn a_proof_has_one_spelling() {
        let tokens = Tokens::read("word");
        let mac = |text: &str| token_proof::split(text.as_bytes()).unwrap().1.mac.unwrap();
        // One with a byte below 16, which "+f" would spell too, and a letter.
        let (cookie, signed) = (0..=255)
            .map(|byte| (cookie(byte), sign("word", &cookie(byte), 1000)))
            .find(|(_, signed)| {
                let mac = mac(signed);
                mac.as_bytes().chunks(2).any(|pair| pair[0] == b'0') && mac.contains('a')
            })
            .unwrap();
        let mac = mac(&signed);
        let low = mac.as_bytes().chunks(2).position(|pair| pair[0] == b'0').unwrap();
        let plus = format!("{}+{}", &mac[..2 * low], &mac[2 * low + 1..]);
        let upper = mac.to_ascii_uppercase();
        for spelling in [upper, plus, format!(" {mac}"), mac[..62].to_owned(), format!("{mac}00")] {
            let text = signed.replace(&mac, &spelling);
            assert_eq!(admit(&tokens, &text, &cookie, 1000), Err(TokenError::None), "{text}");
        }
        assert_eq!(admit(&tokens, &signed, &cookie, 1000), Ok(()));
    }

    #[test]
    fn a_full_replay_cache_share_refuses_its_own_token_until_expiry() {
        let mut tokens = Tokens::read("one\ntwo");
        tokens.used = Mutex::new(ReplayCache::new(2));
        let admit = |word: &str, byte: u8, signed: u64, now| {
            admit(&tokens, &sign(word, &cookie(byte), signed), &cookie(byte), now)
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
        let (tokens, cookie) = (Tokens::read("word"), &cookie(1));
        let good = sign("word", cookie, 1000);
        let replaced = [
            ("\"time\":1000", "\"time\":-1"),
            ("\"port\":5201", "\"port\":70000"),
            ("\"address\":\"192.0.2.1\"", "\"address\":\"host\""),
            ("\"mac\":", "\"mak\":"),
        ];
        let texts = replaced.map(|(from, to)| good.replace(from, to));
        for text in
            texts.iter().map(String::as_str).chain(["", "{}", "{\"a\":1,\"longhaul_token\":{}}"])
        {
            assert_ne!(text, good);
            assert!(admit(&tokens, text, cookie, 1000).is_err(), "{text}");
        }
    }
}
