//! What the tokens of a server are.

use crate::console::Console;
use crate::failure::Failure;
use host::file::{ReadError, open_regular, read_open};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use units::ByteCount;

/// TCP port of servers for copies.
pub(crate) const PORT: u16 = 5203;

/// The tokens in a file: one a line.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The text of a file that only its owner should read.
pub(crate) fn secret_text(
    file: &Path,
    limit: ByteCount,
    console: &mut Console,
) -> Result<String, Failure> {
    let read = || -> Result<(String, u32), ReadError> {
        let opened = open_regular(file)?;
        let mode = opened.metadata()?.permissions().mode();
        let text = String::from_utf8(read_open(opened, limit)?);
        Ok((text.map_err(|_| ReadError::NotText)?, mode))
    };
    let (text, mode) = read().map_err(|reason| {
        Failure::usage(format!(
            "cannot read the token in {}: {reason}; check the path and its permissions",
            file.display()
        ))
    })?;
    if mode & 0o077 != 0 {
        console
            .say(&format!("warning: other users can read {0}; run chmod 600 {0}", file.display()));
    }
    Ok(text)
}
