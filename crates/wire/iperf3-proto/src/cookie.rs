//! The cookie: which connections belong to one test.

use std::fmt::{self, Write};

/// Bytes on the wire: 36 characters and a NUL.
pub const COOKIE_LEN: usize = 37;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A test's name, sent first on its control connection and on each of its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_LEN]);

impl Cookie {
    /// A cookie from 36 random bytes; five bits of each are used (180 in all),
    /// so cookies are unique and cannot be guessed.
    #[must_use]
    pub fn from_random(random: [u8; COOKIE_LEN - 1]) -> Self {
        let mut bytes = [0; COOKIE_LEN];
        for (byte, random) in bytes.iter_mut().zip(random) {
            *byte = ALPHABET[usize::from(random % 32)];
        }
        Cookie(bytes)
    }

    /// A cookie as received; as in iperf3, the alphabet is not checked.
    #[must_use]
    pub const fn from_wire(bytes: [u8; COOKIE_LEN]) -> Self {
        Cookie(bytes)
    }

    /// The bytes to send.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; COOKIE_LEN] {
        &self.0
    }
}

impl fmt::Display for Cookie {
    /// Its characters; others than a cookie's are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = self.0.iter().copied().filter(u8::is_ascii_alphanumeric);
        printable.map(char::from).try_for_each(|letter| f.write_char(letter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_36_letters_and_a_nul() {
        let cookie = Cookie::from_random(std::array::from_fn(|i| u8::try_from(i * 7).unwrap()));
        let (nul, letters) = cookie.bytes().split_last().unwrap();
        assert_eq!(*nul, 0);
        assert!(letters.iter().all(|byte| ALPHABET.contains(byte)));
        assert_eq!(Cookie::from_wire(*cookie.bytes()), cookie);
        assert_eq!(cookie.to_string().as_bytes(), letters);
        let mut strange = [0x1b; COOKIE_LEN];
        strange[0] = b'a';
        assert_eq!(Cookie::from_wire(strange).to_string(), "a");
    }
}
