//! A temporary directory of this user alone, for reports, keys and plans of a verification.

use crate::{Fault, Problem};
use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use tempfile::TempDir;

/// The directory; removed when dropped.
pub(super) struct PrivateDirectory(TempDir);

impl PrivateDirectory {
    /// Makes it.
    ///
    /// # Errors
    /// The system error.
    pub(super) fn new() -> Result<Self, Problem> {
        let permissions = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().permissions(permissions).tempdir();
        let made = made.map_err(|error| {
            Problem::new(Fault::Host, format!("no temporary directory: {error}"))
        })?;
        Ok(PrivateDirectory(made))
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a new file, and returns its path.
    ///
    /// # Errors
    /// The system error.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Problem> {
        let path = self.file(name);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
            Problem::new(Fault::Host, format!("cannot write {}: {error}", path.display()))
        })?;
        Ok(path)
    }
}
