//! The keys of a pair: each box has a key pair of its own and the public key of the other one.
//!
//! The text of a key, a line in a file that only its owner can read: `near:SEED:PEER`, with 64
//! hexadecimal digits each; the seed is secret.

use lane::Role;
use pinned_tls::{Identity, IdentityError, PublicKey};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::collections::HashMap;
use std::fmt;

/// The protocol that TLS agrees on (RFC 7301).
const PROTOCOL: &[u8] = b"longhaul-lane/1";
/// The first bytes of a connection with TLS; the ID of near's key follows.
const MAGIC: [u8; 8] = *b"LHBOOST\x01";
/// Length of the bytes before TLS.
pub(crate) const PREAMBLE_BYTES: usize = 40;
/// The ID of a key: a hash, as whoever watches the path reads it.
pub(crate) type KeyId = [u8; 32];

/// Why keys cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not the text of a key.
    #[error("not a key of longhaul boost; make a pair with: longhaul boost pair")]
    Malformed,
    /// The key of the other box.
    #[error("this is the key of the {0} box; each box has a key file of its own")]
    OtherBox(&'static str),
    /// Two keys of far are for the same near box.
    #[error("two key files are for the same near box; give each once")]
    Twice,
    /// TLS or the system's random numbers.
    #[error("{0}")]
    Library(String),
}

impl From<IdentityError> for KeyError {
    fn from(error: IdentityError) -> Self {
        KeyError::Library(error.to_string())
    }
}

/// The key of one box, and the public key of the other.
#[derive(Clone)]
pub struct PairKey {
    role: Role,
    identity: Identity,
    peer: PublicKey,
}

impl fmt::Debug for PairKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PairKey({:?}, {:?})", self.role, self.identity.public_key())
    }
}

const fn name(role: Role) -> &'static str {
    match role {
        Role::Near => "near",
        Role::Far => "far",
    }
}

/// Makes the keys of a pair: the texts for near and for far.
///
/// # Errors
/// The system gives no random numbers.
pub fn generate() -> Result<[String; 2], KeyError> {
    let secret =
        || host::random::secret::<32>().map_err(|error| KeyError::Library(error.to_string()));
    let seeds = [secret()?, secret()?];
    let [near, far] = [Identity::new(&seeds[0])?, Identity::new(&seeds[1])?];
    let text = |role, seed: &[u8; 32], peer: &Identity| {
        let seed: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}:{seed}:{}", name(role), peer.public_key())
    };
    Ok([text(Role::Near, &seeds[0], &far), text(Role::Far, &seeds[1], &near)])
}

impl PairKey {
    /// The key of near.
    ///
    /// # Errors
    /// Another text.
    pub fn of_near(text: &str) -> Result<Self, KeyError> {
        PairKey::parse(text, Role::Near)
    }

    /// A key of far.
    ///
    /// # Errors
    /// Another text.
    pub fn of_far(text: &str) -> Result<Self, KeyError> {
        PairKey::parse(text, Role::Far)
    }

    fn parse(text: &str, wanted: Role) -> Result<Self, KeyError> {
        let mut parts = text.trim().split(':');
        let (Some(role), Some(seed), Some(peer), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(KeyError::Malformed);
        };
        let role = match role {
            "near" => Role::Near,
            "far" => Role::Far,
            _ => return Err(KeyError::Malformed),
        };
        if role != wanted {
            return Err(KeyError::OtherBox(name(role)));
        }
        let identity = Identity::new(&parse_seed(seed).ok_or(KeyError::Malformed)?)?;
        let peer = PublicKey::parse(peer).ok_or(KeyError::Malformed)?;
        Ok(PairKey { role, identity, peer })
    }

    /// Near: what begins a connection, before TLS.
    pub(crate) fn preamble(&self) -> Vec<u8> {
        [&MAGIC[..], &key_id(self.identity.public_key())].concat()
    }

    /// Near: TLS with far.
    pub(crate) fn client(&self) -> Result<Connection, KeyError> {
        let library = |error: rustls::Error| KeyError::Library(error.to_string());
        let name = ServerName::try_from("longhaul.invalid")
            .map_err(|error| KeyError::Library(error.to_string()))?;
        let config = self.identity.client(self.peer, PROTOCOL)?;
        let mut connection = ClientConnection::new(config, name).map_err(library)?;
        connection.set_buffer_limit(None);
        Ok(Connection::Client(connection))
    }
}

/// The keys of far, by the IDs of the near boxes.
#[derive(Debug, Clone, Default)]
pub struct FarKeys(HashMap<KeyId, PairKey>);

impl FarKeys {
    /// One for each near box.
    ///
    /// # Errors
    /// Two for the same near box.
    pub fn new(keys: Vec<PairKey>) -> Result<Self, KeyError> {
        let count = keys.len();
        let keys: HashMap<_, _> = keys.into_iter().map(|key| (key_id(key.peer), key)).collect();
        if keys.len() == count { Ok(FarKeys(keys)) } else { Err(KeyError::Twice) }
    }

    /// TLS with the near box that a preamble names; `None` if it is unknown.
    pub(crate) fn server(&self, id: &KeyId) -> Option<Result<ServerConnection, KeyError>> {
        let key = self.0.get(id)?;
        let make = || {
            let config = key.identity.server(key.peer, PROTOCOL)?;
            let mut connection = ServerConnection::new(config)
                .map_err(|error| KeyError::Library(error.to_string()))?;
            connection.set_buffer_limit(None);
            Ok(connection)
        };
        Some(make())
    }
}

/// The key's ID in a preamble; `None` for anything else.
pub(crate) fn parse_preamble(bytes: &[u8; PREAMBLE_BYTES]) -> Option<KeyId> {
    bytes.strip_prefix(&MAGIC)?.try_into().ok()
}

/// True for the first bytes of a preamble.
pub(crate) fn begins_preamble(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

fn key_id(key: PublicKey) -> KeyId {
    *blake3::hash(key.to_string().as_bytes()).as_bytes()
}

fn parse_seed(text: &str) -> Option<[u8; 32]> {
    let mut seed = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in seed.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_pair_belong_together() {
        let [near, far] = generate().unwrap();
        let (near_key, far_key) =
            (PairKey::of_near(&near).unwrap(), PairKey::of_far(&far).unwrap());
        assert_eq!(near_key.peer, far_key.identity.public_key());
        assert_eq!(far_key.peer, near_key.identity.public_key());
        assert!(!format!("{near_key:?}").contains(near.split(':').nth(1).unwrap()));
        assert_eq!(PairKey::of_near(&far).unwrap_err(), KeyError::OtherBox("far"));
        let preamble: [u8; PREAMBLE_BYTES] = near_key.preamble().try_into().unwrap();
        let keys = FarKeys::new(vec![far_key.clone()]).unwrap();
        assert!(keys.server(&parse_preamble(&preamble).unwrap()).unwrap().is_ok());
        assert!(keys.server(&[0; 32]).is_none());
        assert_eq!(FarKeys::new(vec![far_key.clone(), far_key]).unwrap_err(), KeyError::Twice);
        let short = near.get(..near.len() - 1).unwrap();
        let foreign = near.replacen(':', ":é", 1);
        for wrong in ["", "near", "near:a:b", short, &format!("{near}:"), &foreign, "x:y:z"] {
            assert_eq!(PairKey::of_near(wrong).unwrap_err(), KeyError::Malformed, "{wrong}");
        }
    }
}
