//! Atomic replacement of files.

use host::private_file;
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
    let put = || -> io::Result<()> {
        match std::fs::metadata(path) {
            Ok(existing) if existing.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(existing) if !existing.is_file() => {
                return private_file::create(path)?.write_all(bytes);
            }
            _ => {}
        }
        // A symbolic link is followed only if no other user can have created it.
        let path = private_file::resolve(path)?;
        let permissions = private_file::permissions(&path);
        let directory = match path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        let mut file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(directory)?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(permissions)?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    put().map_err(|source| WriteError { path: path.to_owned(), source })
}
