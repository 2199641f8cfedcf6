//! Files that hold tokens, keys and users.

use crate::{Fault, Problem};
use host::file::{ReadError, open_regular, read_open};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use units::ByteCount;

/// Maximum size of a PEM key.
pub(crate) const MAX_KEY: ByteCount = ByteCount::from_bytes(64 << 10);

/// Maximum size of a list of tokens or of users: ten thousand entries.
pub const MAX_LIST: ByteCount = ByteCount::from_bytes(1 << 20);

/// The text of a file.
#[derive(Debug)]
pub struct SecretText {
    /// The text.
    pub text: String,
    /// Users other than its owner can read or write the file.
    pub is_shared: bool,
}

/// Reads a file that only its owner should read. `what` is in it, as in "the token".
///
/// # Errors
/// A file that cannot be read, is too large or is not text.
pub fn read(file: &Path, what: &str, limit: ByteCount) -> Result<SecretText, Problem> {
    let read = || -> Result<SecretText, ReadError> {
        let opened = open_regular(file)?;
        let is_shared = opened.metadata()?.permissions().mode() & 0o077 != 0;
        let text = String::from_utf8(read_open(opened, limit)?);
        Ok(SecretText { text: text.map_err(|_| ReadError::NotText)?, is_shared })
    };
    read().map_err(|reason| {
        let file = file.display();
        Problem::new(
            Fault::Request,
            format!(
                "cannot read the {what} in {file}: {reason}; check the path and its permissions"
            ),
        )
    })
}

/// The tokens in a text: one a line, without comments (`#`).
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
