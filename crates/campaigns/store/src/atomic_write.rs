//! Atomic replacement of files.

use host::output_file::Replacement;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}{}", path.display(), remedy(source))]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; create its directory first",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a directory that you may write to"
        }
        io::ErrorKind::IsADirectory => "; name a file in it",
        _ => "",
    }
}

/// Writes `bytes` to the file at `path`, completely or not at all. Only the owner can
/// read a new file; a replaced file keeps its permissions. A device or a pipe is
/// written to directly.
///
/// # Errors
/// [`WriteError`]; the previous file is then unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let failed = |source| WriteError { path: path.to_owned(), source };
    let mut file = PendingFile::create(path)?;
    file.write_all(bytes).map_err(failed)?;
    file.commit()
}

/// Checks that the file at `path` can be written, before the work whose result it is to have.
///
/// # Errors
/// [`WriteError`].
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    // A pipe is not opened twice: its reader could take the first end for the last.
    if path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    PendingFile::create(path).map(drop)
}

/// A file that is being written, and appears at its path when it is complete; until then it is
/// temporary, and removed when dropped. A device or a pipe is written to directly.
#[derive(Debug)]
pub struct PendingFile {
    /// As it was named.
    path: PathBuf,
    file: Replacement,
}

impl PendingFile {
    /// Begins to write the file at `path`.
    ///
    /// # Errors
    /// [`WriteError`]: the path is a directory, or its directory cannot be written.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        match Replacement::begin(path) {
            Ok(file) => Ok(PendingFile { path: path.to_owned(), file }),
            Err(source) => Err(WriteError { path: path.to_owned(), source }),
        }
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// [`WriteError`]; the previous file is then unchanged.
    pub fn commit(self) -> Result<(), WriteError> {
        let put = || -> io::Result<()> {
            if !self.file.is_direct() {
                self.file.file().sync_all()?;
            }
            self.file.keep()
        };
        put().map_err(|source| WriteError { path: self.path, source })
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
