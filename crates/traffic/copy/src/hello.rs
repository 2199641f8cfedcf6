//! What both ends tell each other over ssh, or over TLS with a token's keys, before they
//! connect: a line of JSON each. Keys are made for one copy; the private ones stay where
//! they are.

use crate::CopyError;
use crate::protocol::VERSION;
use control::Algorithm;
use pinned_tls::{Identity, PublicKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;
use units::BitRate;

/// Lowest target rate: a block of 256 KiB must not take minutes.
pub const MIN_TARGET: BitRate = BitRate::from_bps(100_000);
/// Highest target rate.
pub const MAX_TARGET: BitRate = BitRate::from_bps(100_000_000_000);

/// Longest line.
pub(crate) const MAX_LINE: usize = 1_024;

/// Client: its key, and how the server is to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientHello {
    longhaul_copy: u32,
    key: String,
    /// Rate at which the server is to send over UDT; without: BBR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_bps: Option<BitRate>,
}

/// Server: its key, and where it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerHello {
    longhaul_copy: u32,
    key: String,
    /// `None`: it has no UDP.
    pub(crate) udp_port: Option<u16>,
    pub(crate) tcp_port: u16,
    /// The address at which ssh reached it: which of the host's addresses to try first.
    pub(crate) address: Option<IpAddr>,
}

/// Server: why it does not serve the client, instead of its hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerRefusal {
    refused: String,
}

impl ServerRefusal {
    pub(crate) fn new(reason: &str) -> Self {
        ServerRefusal { refused: reason.to_owned() }
    }
}

impl ClientHello {
    pub(crate) fn new(key: PublicKey, target_bps: Option<BitRate>) -> Self {
        ClientHello { longhaul_copy: VERSION, key: key.to_string(), target_bps }
    }

    /// Congestion control of what the server sends over UDT.
    pub(crate) fn algorithm(&self) -> Algorithm {
        let rate = |target: BitRate| target.clamp(MIN_TARGET, MAX_TARGET);
        self.target_bps.map(rate).map_or(Algorithm::Bbr3, Algorithm::FixedRate)
    }

    pub(crate) fn key(&self) -> Result<PublicKey, CopyError> {
        key(self.longhaul_copy, &self.key)
    }
}

impl ServerHello {
    pub(crate) fn new(
        key: PublicKey,
        udp_port: Option<u16>,
        tcp_port: u16,
        address: Option<IpAddr>,
    ) -> Self {
        ServerHello { longhaul_copy: VERSION, key: key.to_string(), udp_port, tcp_port, address }
    }

    pub(crate) fn key(&self) -> Result<PublicKey, CopyError> {
        key(self.longhaul_copy, &self.key)
    }
}

fn key(version: u32, text: &str) -> Result<PublicKey, CopyError> {
    if version != VERSION {
        return Err(CopyError::Protocol(format!(
            "it uses version {version} of the copy protocol, not {VERSION}"
        )));
    }
    PublicKey::parse(text).ok_or_else(|| CopyError::Protocol("its key is invalid".into()))
}

pub(crate) fn write<T: Serialize>(hello: &T) -> Result<String, CopyError> {
    serde_json::to_string(hello).map_err(|error| CopyError::Local(error.to_string()))
}

pub(crate) fn read<T: for<'a> Deserialize<'a>>(line: &str) -> Result<T, CopyError> {
    serde_json::from_str(line).map_err(|_| {
        if let Ok(ServerRefusal { refused }) = serde_json::from_str(line) {
            return CopyError::Refused(refused);
        }
        let line: String = line.chars().take(200).collect();
        CopyError::Protocol(format!("the far end answered \"{line}\" instead of its key"))
    })
}

/// A hello as a part of an agent's message.
pub(crate) fn to_value<T: Serialize>(hello: &T) -> Result<Value, CopyError> {
    serde_json::to_value(hello).map_err(|error| CopyError::Local(error.to_string()))
}

/// A hello out of an agent's message.
pub(crate) fn from_value<T: for<'a> Deserialize<'a>>(value: Value) -> Result<T, CopyError> {
    serde_json::from_value(value).map_err(|error| CopyError::Protocol(error.to_string()))
}

/// A key pair for one copy.
pub(crate) fn fresh_identity() -> Result<Identity, CopyError> {
    identity(&host::random::secret().map_err(|error| CopyError::Local(error.to_string()))?)
}

/// The key pairs of the client and of the server that both derive from a token.
pub(crate) fn token_identities(token: &str) -> Result<[Identity; 2], CopyError> {
    let derive = |context| blake3::derive_key(context, token.as_bytes());
    Ok([
        identity(&derive("longhaul copy 1: key of a token's client"))?,
        identity(&derive("longhaul copy 1: key of a token's server"))?,
    ])
}

fn identity(seed: &[u8; 32]) -> Result<Identity, CopyError> {
    Identity::new(seed).map_err(|error| CopyError::Local(error.to_string()))
}

/// What a TCP connection begins with: which key its client will show. It is public.
pub(crate) const PREAMBLE_BYTES: usize = 40;
const MAGIC: [u8; 8] = *b"LHCOPY\x00\x01";

pub(crate) fn preamble(client: PublicKey) -> [u8; PREAMBLE_BYTES] {
    let mut preamble = [0; PREAMBLE_BYTES];
    preamble[..8].copy_from_slice(&MAGIC);
    preamble[8..].copy_from_slice(&key_id(client));
    preamble
}

/// The key's ID in a preamble; `None` for anything else.
pub(crate) fn parse_preamble(preamble: &[u8; PREAMBLE_BYTES]) -> Option<[u8; 32]> {
    preamble.strip_prefix(&MAGIC)?.try_into().ok()
}

pub(crate) fn key_id(client: PublicKey) -> [u8; 32] {
    *blake3::hash(client.to_string().as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_are_read_as_written() {
        let key = fresh_identity().unwrap().public_key();
        let hello = ClientHello::new(key, None);
        let found: ClientHello = read(&write(&hello).unwrap()).unwrap();
        assert_eq!((found.key(), &found), (Ok(key), &hello));
        let address = Some(IpAddr::from([192, 0, 2, 1]));
        let hello = ServerHello::new(key, Some(1), 2, address);
        let found: ServerHello = read(&write(&hello).unwrap()).unwrap();
        assert_eq!(found, hello);
        for wrong in ["", "{}", "command not found", r#"{"longhaul_copy":1}"#] {
            assert!(read::<ClientHello>(wrong).is_err(), "{wrong}");
        }
        let later = ClientHello { longhaul_copy: 2, ..ClientHello::new(key, None) };
        assert!(later.key().is_err());
        let wrong = ClientHello { key: "x".into(), ..ClientHello::new(key, None) };
        assert!(wrong.key().is_err());
    }

    #[test]
    fn targets_are_bounded() {
        let key = fresh_identity().unwrap().public_key();
        let of = |bps| ClientHello::new(key, Some(BitRate::from_bps(bps))).algorithm();
        assert_eq!(of(0), Algorithm::FixedRate(MIN_TARGET));
        assert_eq!(of(1_000_000), Algorithm::FixedRate(BitRate::from_bps(1_000_000)));
        assert_eq!(of(u64::MAX), Algorithm::FixedRate(MAX_TARGET));
        assert_eq!(ClientHello::new(key, None).algorithm(), Algorithm::Bbr3);
    }

    #[test]
    fn a_token_gives_both_ends_the_same_keys() {
        let keys = |token| token_identities(token).unwrap().map(|pair| pair.public_key());
        assert_eq!(keys("secret"), keys("secret"));
        assert_ne!(keys("secret"), keys("other"));
        assert_ne!(keys("secret")[0], keys("secret")[1]);
        let id = parse_preamble(&preamble(keys("secret")[0]));
        assert_eq!(id, Some(key_id(keys("secret")[0])));
        assert_eq!(parse_preamble(&[0; PREAMBLE_BYTES]), None);
    }
}
