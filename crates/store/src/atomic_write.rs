//! Atomic replacement of files.

use host::private_file;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

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

/// A file that is being written, and appears at its path when it is complete; until then it is
/// temporary, and disappears with the process. A device or a pipe is written to directly.
#[derive(Debug)]
pub struct PendingFile {
    /// As it was named.
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Direct(File),
    Temporary { file: NamedTempFile, path: PathBuf, permissions: Permissions },
}

impl PendingFile {
    /// Begins to write the file at `path`.
    ///
    /// # Errors
    /// [`WriteError`]: the path is a directory, or its directory cannot be written.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let target =
            Target::of(path).map_err(|source| WriteError { path: path.to_owned(), source })?;
        Ok(PendingFile { path: path.to_owned(), target })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// [`WriteError`]; the previous file is then unchanged.
    pub fn commit(self) -> Result<(), WriteError> {
        let put = || -> io::Result<()> {
            if let Target::Temporary { file, path, permissions } = self.target {
                file.as_file().set_permissions(permissions)?;
                file.as_file().sync_all()?;
                file.persist(&path).map_err(|error| error.error)?;
            }
            Ok(())
        };
        put().map_err(|source| WriteError { path: self.path, source })
    }
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Ok(existing) if existing.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(existing) if !existing.is_file() => {
                return Ok(Target::Direct(private_file::create(path)?));
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
        let file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(directory)?;
        Ok(Target::Temporary { file, path, permissions })
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Direct(file) => file.write(bytes),
            Target::Temporary { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
