//! What a ledger does to a machine, one operation at a time: a test counts
//! them and ends the world after any of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The kernel's settings, by their names with dots.
pub trait Settings {
    /// The value, its blanks made single spaces.
    ///
    /// # Errors
    /// The system's own; `NotFound` where it is not to be seen from here.
    fn read(&self, key: &str) -> io::Result<String>;

    /// Sets the value.
    ///
    /// # Errors
    /// The system's own. Of several numbers the kernel may have taken some.
    fn write(&self, key: &str, value: &str) -> io::Result<()>;

    /// Whether the value may be set from here; sets nothing.
    ///
    /// # Errors
    /// The system's own, where it may not.
    fn may_write(&self, key: &str) -> io::Result<()>;
}

/// Files that must outlive the process.
pub trait Disk {
    /// A file's bytes.
    ///
    /// # Errors
    /// The system's own.
    fn load(&self, file: &Path) -> io::Result<Vec<u8>>;

    /// The names in a folder, in no order; none where it does not exist.
    ///
    /// # Errors
    /// The system's own.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes a folder and those above it, for its owner alone.
    ///
    /// # Errors
    /// The system's own.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// Writes a file anew and waits until the disk has it.
    ///
    /// # Errors
    /// The system's own; the file may hold a part then.
    fn store(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Adds to a file's end and waits until the disk has it.
    ///
    /// # Errors
    /// The system's own; a part may have been added.
    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Gives a file another name in the same folder, in the place of what had
    /// it, and waits until the disk has that.
    ///
    /// # Errors
    /// The system's own.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file and waits until the disk has that. None there is no error.
    ///
    /// # Errors
    /// The system's own.
    fn remove(&self, file: &Path) -> io::Result<()>;
}

/// The host we run on: `/proc/sys`, in the network namespace of the calling
/// thread, and its files.
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

impl Disk for ThisHost {
    fn load(&self, file: &Path) -> io::Result<Vec<u8>> {
        fs::read(file)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    fn store(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(file)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(file)?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        sync_folder_of(to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        match fs::remove_file(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| sync_folder_of(file)),
        }
    }
}

/// A name is on disk once its folder is (fsync(2)).
fn sync_folder_of(file: &Path) -> io::Result<()> {
    File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all()
}
