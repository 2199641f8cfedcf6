//! A longhaul client's proof that it knows one of the server's tokens.
//!
//! The proof is the last member of the parameters, so the bytes before it are what it
//! covers: no second serialisation has to agree with the first, whatever the versions.
//!
//! ```text
//! {"tcp":true,"time":10,…,"longhaul":{…},"longhaul_token":{"version":2,…,"mac":"…"}}
//! └────────────── covered ──────────────┘
//! ```

use crate::{FrameError, Params, framing, lenient};
use serde::{Deserialize, Serialize};

/// The version of proofs. Version 1, at another place, covered the cookie and the time only.
pub const TOKEN_PROOF_VERSION: i64 = 2;

/// Where the proof begins. No JSON string contains this text, as its quotes would be escaped.
const MEMBER: &[u8] = b",\"longhaul_token\":";

/// Maximum characters kept of an HMAC: one more than valid, so that a longer one
/// is not accepted truncated.
const MAC: usize = 65;

/// The same of a host: one more than a domain name has (RFC 1035, section 2.3.4).
const HOST: usize = 254;

/// Proof of knowing a token: an HMAC over the cookie, the parameters and the other fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenProof {
    /// [`TOKEN_PROOF_VERSION`].
    #[serde(deserialize_with = "lenient::int")]
    pub version: i64,
    /// When it was made, in seconds since 1970-01-01 UTC.
    #[serde(deserialize_with = "lenient::int")]
    pub time: i64,
    /// The server's host as the user typed it.
    #[serde(deserialize_with = "lenient::short_text::<HOST, _>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The address that the client is connected to.
    #[serde(deserialize_with = "lenient::short_text::<64, _>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its port.
    #[serde(deserialize_with = "lenient::int")]
    pub port: i64,
    /// The HMAC: 64 lower-case hexadecimal digits.
    #[serde(deserialize_with = "lenient::short_text::<MAC, _>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

/// Encodes parameters with a proof, which `sign` makes of the bytes that it covers.
///
/// # Errors
/// The parameters have no JSON.
pub fn encode(
    params: &Params,
    sign: impl FnOnce(&[u8]) -> TokenProof,
) -> Result<Vec<u8>, FrameError> {
    let mut text = serde_json::to_vec(params)?;
    // The brace that closes them.
    text.pop();
    let proof = sign(&text);
    text.extend_from_slice(MEMBER);
    serde_json::to_writer(&mut text, &proof)?;
    text.push(b'}');
    framing::frame(&text)
}

/// Splits the text of parameters into the bytes that its proof covers, and the proof.
/// `None` if there is none, or if it is not the last member: what follows it would not be
/// covered.
#[must_use]
pub fn split(text: &[u8]) -> Option<(&[u8], TokenProof)> {
    let at = text.windows(MEMBER.len()).rposition(|part| part == MEMBER)?;
    let rest = &text[at + MEMBER.len()..];
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<TokenProof>();
    let proof = values.next()?.ok()?;
    (&rest[values.byte_offset()..] == b"}").then_some((&text[..at], proof))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;

    fn proof() -> TokenProof {
        TokenProof {
            version: TOKEN_PROOF_VERSION,
            time: 7,
            host: Some("a\"b".to_owned()),
            address: Some("192.0.2.1".to_owned()),
            port: 5201,
            mac: Some("00".repeat(32)),
        }
    }

    #[test]
    fn a_proof_covers_every_byte_before_it() {
        let title = Some(String::from_utf8(MEMBER.to_vec()).unwrap());
        let params = Params { tcp: true, time: 5, title, ..Params::default() };
        let mut signed = Vec::new();
        let wire = encode(&params, |text| {
            signed = text.to_vec();
            proof()
        })
        .unwrap();
        let mut decoder = Decoder::new(framing::PARAMS_LIMIT);
        decoder.take(&wire).unwrap();
        assert_eq!(decoder.finish::<Params>().unwrap(), params, "iperf3 ignores the proof");
        assert_eq!(split(decoder.text()), Some((&signed[..], proof())));
        let mut plain = serde_json::to_vec(&params).unwrap();
        assert_eq!(plain.pop(), Some(b'}'));
        assert_eq!(plain, signed);
    }

    #[test]
    fn nothing_follows_a_proof() {
        let member = String::from_utf8(MEMBER.to_vec()).unwrap();
        let text = |after: &str| format!("{{\"time\":1{member}{{\"time\":2}}{after}");
        assert!(split(text("}").as_bytes()).is_some());
        for after in ["", "}}", ",\"reverse\":true}", "} ", "}\0", " }"] {
            assert_eq!(split(text(after).as_bytes()), None, "{after}");
        }
        for text in ["", "{}", "{\"longhaul_token\":{}}", "{\"a\":1,\"longhaul_token\":7}"] {
            assert_eq!(split(text.as_bytes()), None, "{text}");
        }
        // The last of two counts, and it covers the first.
        let twice = format!("{{\"a\":1{member}{{}}{member}{{\"time\":3}}}}");
        let (covered, proof) = split(twice.as_bytes()).unwrap();
        assert!(covered.ends_with(b"{}"));
        assert_eq!(proof.time, 3);
    }
}
