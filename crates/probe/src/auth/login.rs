//! iperf3's login: user, password and time, sealed with the server's public
//! RSA key (RFC 8017), and on the server a file of users with salted hashes.

use crate::ProbeError;
use base64::{Engine, prelude::BASE64_STANDARD};
use getrandom::SysRng;
use rand_core::UnwrapErr;
use rsa::{
    Oaep, Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey,
    pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey},
    pkcs8::{DecodePrivateKey, DecodePublicKey},
    traits::PublicKeyParts,
};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::{collections::HashMap, fmt, time::Duration};

/// How a login is padded before it is sealed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Padding {
    /// OAEP with SHA-1 (RFC 8017 section 7.1), as iperf3 does since 3.17.
    #[default]
    Oaep,
    /// PKCS #1 v1.5 (section 7.2), as before.
    Pkcs1,
}

/// A login, at the client.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Who.
    pub user: String,
    /// The password.
    pub password: String,
    /// The server's public key, PEM.
    pub public_key_pem: String,
    /// How it is padded.
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
    /// [`ProbeError::Login`] where the key is none, or too short for the login.
    pub(crate) fn sealed(&self, unix_s: u64) -> Result<String, ProbeError> {
        let wrong = |what: String| ProbeError::Login(what);
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
                "cannot seal the login with a key of {} bits: {error}; use a key of 2048 bits or more, or a shorter password",
                key.size() * 8
            ))
        })
    }
}

/// Who may use a server, and how their logins are opened.
#[derive(Clone)]
pub struct Users {
    key: RsaPrivateKey,
    padding: Padding,
    /// SHA-256 of "{user}password", by user, in hexadecimal.
    hashes: HashMap<String, String>,
    /// Furthest that a client's clock may be off.
    skew: Duration,
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
    /// [`ProbeError::Login`]: what is wrong with either.
    pub fn new(
        private_key_pem: &str,
        users: &str,
        padding: Padding,
        skew: Duration,
    ) -> Result<Self, ProbeError> {
        let wrong = |what: String| ProbeError::Login(what);
        let key = RsaPrivateKey::from_pkcs8_pem(private_key_pem)
            .or_else(|_| RsaPrivateKey::from_pkcs1_pem(private_key_pem))
            .map_err(|error| {
                wrong(format!(
                    "cannot read the private key: {error}; give a PEM file without a passphrase: openssl genrsa -out private.pem 2048"
                ))
            })?;
        let mut hashes = HashMap::new();
        for (number, line) in (1..).zip(users.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = line.split_once(',').map(|(user, hash)| (user.trim(), hash.trim()));
            match entry {
                Some((user, hash))
                    if hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()) =>
                {
                    hashes.insert(user.to_owned(), hash.to_ascii_lowercase());
                }
                _ => {
                    return Err(wrong(format!(
                        "line {number} of the users is not 'user,hash'; the hash is the SHA-256 of {{user}}password, 64 hexadecimal digits"
                    )));
                }
            }
        }
        Ok(Users { key, padding, hashes, skew })
    }

    /// Opens a client's token; the user's name where all of it is right. Why
    /// not is for this server's own log, never for the client.
    pub(crate) fn admit(&self, token: &str, unix_s: u64) -> Result<String, &'static str> {
        let sealed = BASE64_STANDARD.decode(token.trim()).map_err(|_| "it is not base64")?;
        let opened = match self.padding {
            Padding::Oaep => self.key.decrypt(Oaep::<Sha1>::new(), &sealed),
            Padding::Pkcs1 => self.key.decrypt(Pkcs1v15Encrypt, &sealed),
        };
        let opened = opened.map_err(|_| "it was not sealed with our key and padding")?;
        let text = String::from_utf8(opened).map_err(|_| "it is not text")?;
        let (user, rest) = text
            .strip_prefix("user: ")
            .and_then(|rest| rest.split_once("\npwd:  "))
            .ok_or("it has no user")?;
        let (password, stamp) = rest.rsplit_once("\nts:   ").ok_or("it has no time")?;
        let stamp: u64 = stamp.trim().parse().map_err(|_| "its time is no number")?;
        if stamp.abs_diff(unix_s) > self.skew.as_secs() {
            return Err("the two clocks differ by more than allowed");
        }
        let hash = Sha256::digest(format!("{{{user}}}{password}"));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        // A user that is not there costs the same comparison.
        let nobody = String::new();
        let kept = self.hashes.get(user).unwrap_or(&nobody);
        let same = kept.len() == hash.len()
            && kept.bytes().zip(hash.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0;
        if same { Ok(user.to_owned()) } else { Err("user and password do not match") }
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
            assert!(users.admit(&token, 1011).is_err() && users.admit(&token, 989).is_err());
            let wrong = login(&public, "verdi", padding).sealed(1000).unwrap();
            assert_eq!(users.admit(&wrong, 1000), Err("user and password do not match"));
            for garbage in ["", "!!", "aGVsbG8=", &token[4..]] {
                assert!(users.admit(garbage, 1000).is_err());
            }
        }
    }

    #[test]
    fn wrong_files_are_named() {
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
