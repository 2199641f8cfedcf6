//! One run at a time.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why a run may not begin.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run is at work.
    #[error("another longhaul is changing settings now ({} is locked); wait for its end", .0.display())]
    Taken(PathBuf),
    /// The lock cannot be had.
    #[error("cannot lock {}: {source}; set LONGHAUL_STATE_DIR to a folder that you may write to", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The right to change settings, until it is dropped or the process ends: the
/// kernel gives it back, however it ends (flock(2)).
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder of journals; makes the folder.
    ///
    /// # Errors
    /// [`LockError`]; at once where another run holds it.
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        let path = folder.join("lock");
        let file =
            DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| {
                OpenOptions::new().create(true).append(true).mode(0o600).open(&path)
            });
        let file = file.map_err(|source| LockError::Access { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Taken(path)),
            Err(TryLockError::Error(source)) => Err(LockError::Access { path, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/down");
        let first = Lock::take(&folder).unwrap();
        assert!(matches!(Lock::take(&folder), Err(LockError::Taken(_))));
        drop(first);
        assert!(Lock::take(&folder).is_ok());
    }
}
