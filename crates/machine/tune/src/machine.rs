//! The operations of a tuner on a machine, one by one: a test counts them and
//! simulates a crash after each.

use crate::{journal, persist};
use host::directory::{Directory, Trust};
use std::io;
use std::path::{Path, PathBuf};

/// The kernel's settings, by their names with dots.
pub trait Settings {
    /// The value, with whitespace collapsed to single spaces.
    ///
    /// # Errors
    /// The system's; `NotFound` where it is not visible here.
    fn read(&self, key: &str) -> io::Result<String>;

    /// Sets the value.
    ///
    /// # Errors
    /// The system's. Of several numbers the kernel may have accepted some.
    fn write(&self, key: &str, value: &str) -> io::Result<()>;

    /// Checks whether the value may be set; sets nothing.
    ///
    /// # Errors
    /// The system's, where it may not.
    fn may_write(&self, key: &str) -> io::Result<()>;
}

/// Persistent files.
pub trait Disk {
    /// A file's bytes.
    ///
    /// # Errors
    /// The system's.
    fn load(&self, file: &Path) -> io::Result<Vec<u8>>;

    /// The names in a directory, unordered; none where it does not exist.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Creates a directory and its parents, accessible to the owner only.
    ///
    /// # Errors
    /// The system's.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// Writes a new file and syncs it to disk.
    ///
    /// # Errors
    /// The system's; the file may then be incomplete.
    fn store(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Appends to a file and syncs it to disk.
    ///
    /// # Errors
    /// The system's; a part may have been appended.
    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Renames a file within its directory, replacing any file of that name, and
    /// syncs the directory.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file and syncs the directory. A missing file is not an error.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, file: &Path) -> io::Result<()>;
}

/// The settings of this host: `/proc/sys`, in the network namespace of the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisHost;

impl Settings for ThisHost {
    fn read(&self, key: &str) -> io::Result<String> {
        host::sysctl::read(key)
    }

    fn write(&self, key: &str, value: &str) -> io::Result<()> {
        host::sysctl::write(key, value)
    }

    fn may_write(&self, key: &str) -> io::Result<()> {
        host::sysctl::may_write(key)
    }
}

/// The directory of journals and that of the boot file, opened for each
/// operation, component by component, without following links.
#[derive(Debug, Clone)]
pub struct HostDisk {
    /// The directory of journals.
    pub journals: PathBuf,
    /// The trust required of its path.
    pub trust: Trust,
}

impl HostDisk {
    /// The trust required of a directory's path, and the mode of new files there.
    fn rules(&self, folder: &Path) -> (Trust, u32) {
        match folder == self.journals {
            true => (self.trust, 0o600),
            // The boot file is readable by all and written by root.
            false if host::identity::is_root() => (Trust::RootOnly, 0o644),
            false => (Trust::NoSymlinks, 0o644),
        }
    }

    fn open(&self, folder: &Path) -> io::Result<Directory> {
        Directory::open(folder, self.rules(folder).0)
    }
}

/// A file's directory and name.
fn split(file: &Path) -> io::Result<(&Path, &str)> {
    let name = file.file_name().and_then(|name| name.to_str());
    file.parent().zip(name).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

impl Disk for HostDisk {
    fn load(&self, file: &Path) -> io::Result<Vec<u8>> {
        let (folder, name) = split(file)?;
        let directory = self.open(folder)?;
        if folder == self.journals {
            directory.read_own(name, journal::MAX_BYTES)
        } else {
            // Debian's 99-sysctl.conf is a link.
            directory.read_linked(name, persist::MAX_BYTES)
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        match self.open(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            directory => directory?.names(),
        }
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        Directory::create(folder, self.rules(folder).0).map(drop)
    }

    fn store(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = split(file)?;
        self.open(folder)?.store(name, self.rules(folder).1, bytes)
    }

    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = split(file)?;
        self.open(folder)?.append(name, bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let ((folder, from), (other, to)) = (split(from)?, split(to)?);
        if folder != other {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        self.open(folder)?.rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let (folder, name) = split(file)?;
        match self.open(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            directory => directory?.remove(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Symbolic links planted under every name that is written: their targets stay unchanged.
    #[test]
    fn planted_links_are_replaced_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (journals, precious) = (folder.join("tune"), folder.join("precious"));
        fs::write(&precious, "precious").unwrap();
        let disk = HostDisk { journals: journals.clone(), trust: Trust::Owner };
        disk.make_folder(&journals).unwrap();
        let [unfinished, journal] = ["unfinished", "000001.journal"].map(|n| journals.join(n));
        symlink(&precious, &unfinished).unwrap();
        symlink(&precious, &journal).unwrap();
        assert!(disk.load(&journal).is_err());
        assert!(disk.append(&journal, b"x").is_err());
        disk.store(&unfinished, b"journal").unwrap();
        disk.rename(&unfinished, &journal).unwrap();
        assert_eq!(disk.load(&journal).unwrap(), b"journal");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        // The directory itself, too.
        fs::rename(&journals, folder.join("aside")).unwrap();
        symlink(folder.join("aside"), &journals).unwrap();
        assert!(disk.load(&journal).is_err() && disk.list(&journals).is_err());
        assert!(disk.remove(&journal).is_err() && folder.join("aside/000001.journal").exists());
    }
}
