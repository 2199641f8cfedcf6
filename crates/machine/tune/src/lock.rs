//! Only one run at a time changes settings.

use host::directory::{Directory, Trust};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it.
    #[error("another longhaul is changing settings ({} is locked); wait until it ends", .0.display())]
    Held(PathBuf),
    /// The lock is unavailable.
    #[error("cannot lock {}: {source}; set LONGHAUL_STATE_DIR to a directory that only you can \
             write to", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The exclusive right to change settings. The kernel releases it when the
/// process ends, however it ends (flock(2)).
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory of journals; creates the directory.
    ///
    /// # Errors
    /// [`LockError`]; at once where another run holds it.
    pub fn take(folder: &Path, trust: Trust) -> Result<Self, LockError> {
        let path = folder.join("lock");
        let file =
            Directory::create(folder, trust).and_then(|folder| folder.open_or_create("lock"));
        let file = file.map_err(|source| LockError::Access { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held(path)),
            Err(TryLockError::Error(source)) => Err(LockError::Access { path, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap().join("deep/down");
        let first = Lock::take(&folder, Trust::Owner).unwrap();
        assert!(matches!(Lock::take(&folder, Trust::Owner), Err(LockError::Held(_))));
        drop(first);
        assert!(Lock::take(&folder, Trust::Owner).is_ok());
    }
}
