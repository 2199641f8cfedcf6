//! A lock of a network namespace, for what exists once in it, such as rules of routing.
//!
//! It is a file with the namespace's inode in its name, in a directory that root alone can open, so
//! that no other user can hold it. The kernel frees it with the process, however that ends (flock(2)).

use crate::directory::{Directory, Trust};
use crate::netns::NetNs;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where the files are (Filesystem Hierarchy Standard 3.0, section 3.15).
const DIRECTORY: &str = "/run/longhaul";

/// A lock that is held as long as this value.
#[derive(Debug)]
pub struct NamespaceLock {
    directory: Directory,
    name: String,
    #[expect(dead_code, reason = "holding it is the use")]
    file: File,
}

impl NamespaceLock {
    /// Takes the lock `name` in the calling thread's network namespace; `None` if it is held.
    ///
    /// # Errors
    /// The system error: `PermissionDenied` for users other than root;
    /// [`UnsafePath`](crate::directory::UnsafePath) where others can write to the directory.
    pub fn take(name: &str) -> io::Result<Option<Self>> {
        let namespace = File::from(NetNs::current()?.as_fd().try_clone_to_owned()?);
        let name = format!("{name}.{}.lock", namespace.metadata()?.ino());
        take_at(Path::new(DIRECTORY), Trust::RootOnly, &name)
    }
}

fn take_at(directory: &Path, trust: Trust, name: &str) -> io::Result<Option<NamespaceLock>> {
    let directory = Directory::create(directory, trust)?;
    loop {
        let file = directory.open_or_create(name)?;
        match file.try_lock() {
            // Whoever held it has removed the file meanwhile.
            Ok(()) if file.metadata()?.nlink() == 0 => {}
            Ok(()) => return Ok(Some(NamespaceLock { directory, name: name.to_owned(), file })),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

impl Drop for NamespaceLock {
    fn drop(&mut self) {
        // One that stays behind is as good as none.
        let _ = self.directory.remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_holds_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("locks");
        let take = |name| take_at(&path, Trust::Owner, name).unwrap();
        let held = take("a");
        assert!(held.is_some());
        assert!(take("a").is_none());
        assert!(take("b").is_some());
        drop(held);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert!(take("a").is_some());
    }

    #[test]
    fn nobody_else_can_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("locks");
        assert!(take_at(&path, Trust::Owner, "a").unwrap().is_some());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o077, 0);
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        let error = take_at(&path, Trust::Owner, "a").unwrap_err();
        assert!(crate::directory::is_unsafe(&error), "{error}");
        // As root's own, below a directory of everybody's.
        let error = take_at(&path, Trust::RootOnly, "a").unwrap_err();
        assert!(crate::directory::is_unsafe(&error), "{error}");
    }
}
