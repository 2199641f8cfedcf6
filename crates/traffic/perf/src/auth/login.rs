//! iperf3's login: user, password and time, encrypted with the server's public
//! RSA key (RFC 8017), and on the server a file of users with salted hashes.

use super::{
    login_slots::LoginSlots,
    replay::{self, Replay, ReplayCache},
};
use crate::PerfError;
use base64::{Engine, prelude::BASE64_STANDARD};
use getrandom::SysRng;
use host::clock;
use rand_core::UnwrapErr;
use rsa::{
    Oaep, Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey,
    pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey},
    pkcs8::{DecodePrivateKey, DecodePublicKey},
    traits::PublicKeyParts,
};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};

/// Time of a reply to a login, valid or not: well above the time of decryption.
const REPLY_TIME: Duration = Duration::from_millis(300);
/// Timeout for a private-key operation's slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(2);
/// Logins remembered per user within the allowed clock difference.
const MAX_PER_USER: usize = 16_384;
/// Refused logins remembered, so that repeating one costs no decryption.
const MAX_REFUSED: usize = 1024;

/// Padding of an encrypted login.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Padding {
    /// OAEP with SHA-1 (RFC 8017 section 7.1), as iperf3 does since 3.17.
    #[default]
    Oaep,
    /// PKCS #1 v1.5 (section 7.2), as before 3.17.
    Pkcs1,
}

/// A client's login.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// The password.
    pub password: String,
    /// The server's public key, PEM.
    pub public_key_pem: String,
    /// Padding.
    pub padding: Padding,
}

impl fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The token to send.
    ///
    /// # Errors
    /// [`PerfError::Login`] if the key is invalid, or too short for the login.
    pub(crate) fn sealed(&self, unix_s: u64) -> Result<String, PerfError> {
        let wrong = |what: String| PerfError::Login(what);
        let key = RsaPublicKey::from_public_key_pem(&self.public_key_pem)
            .or_else(|_| RsaPublicKey::from_pkcs1_pem(&self.public_key_pem))
            .map_err(|error| {
                wrong(format!(
                    "cannot read the public key: {error}; give a PEM file: openssl rsa -in private.pem -pubout"
                ))
            })?;
        let text = format!("user: {}\npwd:  {}\nts:   {unix_s}", self.user, self.password);
        let random = &mut UnwrapErr(SysRng);
        let sealed = match self.padding {
            Padding::Oaep => key.encrypt(random, Oaep::<Sha1>::new(), text.as_bytes()),
            Padding::Pkcs1 => key.encrypt(random, Pkcs1v15Encrypt, text.as_bytes()),
        };
        sealed.map(|bytes| BASE64_STANDARD.encode(bytes)).map_err(|error| {
            wrong(format!(
                "cannot encrypt the login with a key of {} bits: {error}; use a key of 2048 bits or more, or a shorter password",
                key.size() * 8
            ))
        })
    }
}

/// Users of a server, and the key that decrypts their logins.
#[derive(Clone)]
pub struct Users {
    key: RsaPrivateKey,
    padding: Padding,
    /// By user, the number of the line and the SHA-256 of "{user}password" in hexadecimal.
    hashes: HashMap<String, (usize, String)>,
    /// Maximum clock difference.
    skew: Duration,
    shared: Arc<Shared>,
}

/// State shared by a server's sessions.
struct Shared {
    slots: LoginSlots,
    seen: Mutex<KnownLogins>,
}

/// Logins that were processed before.
struct KnownLogins {
    accepted: ReplayCache,
    /// The latest refused logins, oldest first.
    refused: VecDeque<replay::Digest>,
}

impl Default for Shared {
    fn default() -> Self {
        let accepted = ReplayCache::new(MAX_PER_USER);
        let seen = KnownLogins { accepted, refused: VecDeque::new() };
        Shared { slots: LoginSlots::for_cores(), seen: Mutex::new(seen) }
    }
}

impl fmt::Debug for Users {
    /// Without key and hashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("count", &self.hashes.len()).finish_non_exhaustive()
    }
}

impl PartialEq for Users {
    fn eq(&self, other: &Self) -> bool {
        self.hashes == other.hashes && self.padding == other.padding && self.skew == other.skew
    }
}

impl Eq for Users {}

impl Users {
    /// Reads a private key (PEM, without a passphrase) and a list of users:
    /// lines of `user,hash`, where hash is the SHA-256 of `{user}password` in
    /// hexadecimal; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// [`PerfError::Login`] if either is invalid.
    pub fn new(
        private_key_pem: &str,
        users: &str,
        padding: Padding,
        skew: Duration,
    ) -> Result<Self, PerfError> {
        let wrong = |what: String| PerfError::Login(what);
        let key = RsaPrivateKey::from_pkcs8_pem(private_key_pem)
            .or_else(|_| RsaPrivateKey::from_pkcs1_pem(private_key_pem))
            .map_err(|error| {
                wrong(format!(
                    "cannot read the private key: {error}; give a PEM file without a passphrase: openssl genrsa -out private.pem 2048"
                ))
            })?;
        let mut hashes = HashMap::new();
        for (number, line) in (1usize..).zip(users.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = line.split_once(',').map(|(user, hash)| (user.trim(), hash.trim()));
            match entry {
                Some((user, hash))
                    if hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()) =>
                {
                    hashes.insert(user.to_owned(), (number, hash.to_ascii_lowercase()));
                }
                _ => {
                    return Err(wrong(format!(
                        "line {number} of the users file is not 'user,hash'; the hash is the SHA-256 of {{user}}password, 64 hexadecimal digits"
                    )));
                }
            }
        }
        Ok(Users { key, padding, hashes, skew, shared: Arc::default() })
    }

    /// Checks a client's login, in the same time whether it is valid or not: the
    /// time of decryption depends on the message, and Bleichenbacher's attack on
    /// PKCS #1 v1.5 exploits it.
    pub(crate) fn authenticate(
        &self,
        token: &str,
        from: IpAddr,
        unix_s: u64,
    ) -> Result<String, &'static str> {
        // The wait for a slot depends on other clients only and is not included.
        let slot = self.shared.slots.take(from, SLOT_TIMEOUT);
        let began = clock::now();
        let result = match &slot {
            Some(_) => self.admit(token, unix_s),
            None => Err("too many concurrent logins"),
        };
        drop(slot);
        thread::sleep(REPLY_TIME.saturating_sub(clock::now() - began));
        result
    }

    /// Decrypts and checks a login, once; the user's name if it is valid. The
    /// error is for the server's log, never for the client.
    fn admit(&self, token: &str, unix_s: u64) -> Result<String, &'static str> {
        let size = self.key.size();
        // Four characters stand for three bytes (RFC 4648 section 4).
        if token.trim().len() != size.div_ceil(3) * 4 {
            return Err("its length is not that of the server's key");
        }
        let sealed = BASE64_STANDARD.decode(token.trim()).map_err(|_| "it is not base64")?;
        if sealed.len() != size {
            return Err("its length is not that of the server's key");
        }
        let digest: replay::Digest = Sha256::digest(&sealed).into();
        {
            let seen = self.seen();
            if seen.accepted.contains(&digest) || seen.refused.contains(&digest) {
                return Err("it was used before");
            }
        }
        let admitted = self.open(&sealed).and_then(|login| self.check(&login, unix_s));
        let mut seen = self.seen();
        match admitted {
            Ok((user, number, expires)) => {
                // Another session may have accepted the same login meanwhile.
                seen.accepted.insert(number, digest, expires, unix_s).map_err(|why| match why {
                    Replay::Used => "it was used before",
                    Replay::Full => "this user logs in too often",
                })?;
                Ok(user)
            }
            Err(why) => {
                if seen.refused.len() >= MAX_REFUSED {
                    seen.refused.pop_front();
                }
                seen.refused.push_back(digest);
                Err(why)
            }
        }
    }

    fn seen(&self) -> MutexGuard<'_, KnownLogins> {
        host::lock::lock(&self.shared.seen)
    }

    fn open(&self, sealed: &[u8]) -> Result<String, &'static str> {
        let random = &mut UnwrapErr(SysRng);
        let opened = match self.padding {
            Padding::Oaep => self.key.decrypt_blinded(random, Oaep::<Sha1>::new(), sealed),
            Padding::Pkcs1 => self.key.decrypt_blinded(random, Pkcs1v15Encrypt, sealed),
        };
        let opened =
            opened.map_err(|_| "it was not encrypted with the server's key and padding")?;
        String::from_utf8(opened).map_err(|_| "it is not text")
    }

    /// The user, the number of its line, and the last second at which the login
    /// is accepted.
    fn check(&self, login: &str, unix_s: u64) -> Result<(String, usize, u64), &'static str> {
        let (user, rest) = login
            .strip_prefix("user: ")
            .and_then(|rest| rest.split_once("\npwd:  "))
            .ok_or("it has no user")?;
        let (password, stamp) = rest.rsplit_once("\nts:   ").ok_or("it has no timestamp")?;
        let stamp: u64 = stamp.trim().parse().map_err(|_| "its timestamp is not a number")?;
        if stamp.abs_diff(unix_s) > self.skew.as_secs() {
            return Err("its timestamp differs from the server's clock by more than allowed");
        }
        let hash = Sha256::digest(format!("{{{user}}}{password}"));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        // An unknown user costs the same comparison.
        let nobody = (0, "0".repeat(64));
        let kept = self.hashes.get(user);
        let (number, expected) = kept.unwrap_or(&nobody);
        let same = expected.len() == hash.len()
            && expected.bytes().zip(hash.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0;
        if same && kept.is_some() {
            Ok((user.to_owned(), *number, stamp.saturating_add(self.skew.as_secs())))
        } else {
            Err("user and password do not match")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};

    /// iperf3's own example: SHA-256 of "{mario}rossi".
    const USERS: &str =
        "# who may\n\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

    fn keys() -> (String, String) {
        let key = RsaPrivateKey::new(&mut UnwrapErr(SysRng), 1024).unwrap();
        let public = key.to_public_key().to_public_key_pem(LineEnding::LF).unwrap();
        (key.to_pkcs8_pem(LineEnding::LF).unwrap().to_string(), public)
    }

    fn login(public: &str, password: &str, padding: Padding) -> Credentials {
        Credentials {
            user: "mario".into(),
            password: password.into(),
            public_key_pem: public.into(),
            padding,
        }
    }

    #[test]
    fn the_right_login_is_admitted_and_no_other() {
        let (private, public) = keys();
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let users = Users::new(&private, USERS, padding, Duration::from_secs(10)).unwrap();
            let token = login(&public, "rossi", padding).sealed(1000).unwrap();
            assert_eq!(users.admit(&token, 1010), Ok("mario".to_owned()));
            assert_eq!(users.admit(&token, 1010), Err("it was used before"));
            for off in [1011, 989] {
                let token = login(&public, "rossi", padding).sealed(1000).unwrap();
                let skewed =
                    Err("its timestamp differs from the server's clock by more than allowed");
                assert_eq!(users.admit(&token, off), skewed);
                assert_eq!(users.admit(&token, 1000), Err("it was used before"));
            }
            let wrong = login(&public, "verdi", padding).sealed(1000).unwrap();
            assert_eq!(users.admit(&wrong, 1000), Err("user and password do not match"));
            for garbage in ["", "!!", "aGVsbG8=", &token[4..], &token.replace('=', "A")] {
                assert!(users.admit(garbage, 1000).is_err());
            }
            let other = Users::new(&keys().0, USERS, padding, Duration::from_secs(10)).unwrap();
            assert!(other.admit(&token, 1000).is_err(), "sealed for another key");
        }
    }

    #[test]
    fn copies_of_a_configuration_share_the_replay_cache() {
        let (private, public) = keys();
        let users = Users::new(&private, USERS, Padding::Oaep, Duration::from_secs(10)).unwrap();
        let token = login(&public, "rossi", Padding::Oaep).sealed(1000).unwrap();
        assert!(users.clone().admit(&token, 1000).is_ok());
        assert_eq!(users.admit(&token, 1000), Err("it was used before"));
        // Many at once: one of them is admitted.
        let token = login(&public, "rossi", Padding::Oaep).sealed(1000).unwrap();
        let admitted = thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(|| users.admit(&token, 1000))).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(Result::is_ok).count()
        });
        assert_eq!(admitted, 1);
    }

    #[test]
    fn refused_logins_are_remembered_in_a_bounded_number() {
        let (private, _) = keys();
        let users = Users::new(&private, USERS, Padding::Oaep, Duration::from_secs(10)).unwrap();
        {
            let mut seen = users.seen();
            seen.refused.extend((0..MAX_REFUSED).map(|_| [0; 32]));
        }
        let garbage = BASE64_STANDARD.encode([7; 128]);
        assert_eq!(
            users.admit(&garbage, 0),
            Err("it was not encrypted with the server's key and padding")
        );
        assert_eq!(users.admit(&garbage, 0), Err("it was used before"));
        assert_eq!(users.seen().refused.len(), MAX_REFUSED);
    }

    #[test]
    fn invalid_files_are_named() {
        let (private, public) = keys();
        let skew = Duration::from_secs(10);
        for (key, users) in [("no key", USERS), (&private[..], "mario"), (&private[..], "a,b")] {
            let error = Users::new(key, users, Padding::Oaep, skew).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
        }
        let error = login("nothing", "x", Padding::Oaep).sealed(0).unwrap_err().to_string();
        assert!(error.contains("openssl"), "{error}");
        let long = login(&public, &"x".repeat(200), Padding::Oaep).sealed(0).unwrap_err();
        assert!(long.to_string().contains("1024 bits"), "{long}");
        assert!(!format!("{:?}", login(&public, "secret", Padding::Oaep)).contains("secret"));
    }
}
