//! The file that received data is written to (`-F`): a temporary file in the same
//! directory, renamed when the test completes. A failed test keeps an earlier file,
//! and two tests never write to the same file.

use host::disk;
use host::lock::lock;
use host::output_file::Replacement;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes between checks of the free space.
const CHECK_INTERVAL_BYTES: u64 = 16 << 20;

/// Space kept free: 1 GiB, or a twentieth of a small file system.
const MIN_FREE_BYTES: u64 = 1 << 30;
const MIN_FREE_FRACTION: u64 = 20;

/// Received data and its file.
#[derive(Debug)]
pub(super) struct Received {
    /// `None` once kept: a thread that still has data of the test writes no more.
    file: Mutex<Option<Replacement>>,
    /// Whether it is a file that [`Received::keep`] puts in its place, and no device or pipe.
    is_kept: bool,
    bytes: AtomicU64,
    /// Whether some data could not be written.
    is_short: AtomicBool,
}

impl Received {
    /// Creates a temporary file for `path`; a device or a pipe is opened directly.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = Replacement::begin(path)?;
        let is_kept = !file.is_direct();
        if is_kept {
            check_free_space(file.file())?;
        }
        let (bytes, is_short) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(Received { file: Mutex::new(Some(file)), is_kept, bytes, is_short })
    }

    /// Whether it is a file that [`Received::keep`] moves to its path.
    pub(super) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Appends data received on one of the streams.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        let before = self.bytes.fetch_add(length, Ordering::Relaxed);
        let is_due = before / CHECK_INTERVAL_BYTES != (before + length) / CHECK_INTERVAL_BYTES;
        let file = lock(&self.file);
        let Some(mut file) = file.as_ref().map(Replacement::file) else { return Ok(()) };
        let written = if is_due && self.is_kept() { check_free_space(file) } else { Ok(()) };
        written
            .and_then(|()| file.write_all(bytes))
            .inspect_err(|_| self.is_short.store(true, Ordering::Relaxed))
    }

    /// The test has completed: the received data, if any, replaces the file and
    /// keeps its permissions.
    pub(super) fn keep(&self) -> io::Result<()> {
        if !self.is_kept {
            return Ok(());
        }
        let Some(file) = lock(&self.file).take() else { return Ok(()) };
        if self.is_short.load(Ordering::Relaxed) {
            return Err(io::Error::other("some of the received data could not be written"));
        }
        if self.bytes.load(Ordering::Relaxed) == 0 { Ok(()) } else { file.keep() }
    }
}

/// Fails if the file system is nearly full.
fn check_free_space(file: &File) -> io::Result<()> {
    let space = disk::room(file)?;
    let least = MIN_FREE_BYTES.min(space.total / MIN_FREE_FRACTION);
    if space.free < least + CHECK_INTERVAL_BYTES {
        let text = "the file system is nearly full; free some space";
        return Err(io::Error::new(io::ErrorKind::StorageFull, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let name = format!("longhaul-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn a_test_replaces_the_file_only_when_it_is_kept() {
        let folder = folder("received");
        let path = folder.join("file");
        fs::write(&path, "earlier").unwrap();
        let text = || fs::read_to_string(&path).unwrap();
        let broken_off = Received::create(&path).unwrap();
        broken_off.write(b"half").unwrap();
        drop(broken_off);
        let empty = Received::create(&path).unwrap();
        empty.keep().unwrap();
        drop(empty);
        assert_eq!(text(), "earlier");
        let [one, other] = [(); 2].map(|()| Received::create(&path).unwrap());
        one.write(b"one").unwrap();
        other.write(b"other").unwrap();
        one.keep().unwrap();
        one.write(b"late").unwrap();
        assert_eq!(text(), "one");
        other.keep().unwrap();
        drop((one, other));
        assert_eq!(text(), "other");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_device_is_written_directly() {
        let null = Received::create(Path::new("/dev/null")).unwrap();
        null.write(b"x").unwrap();
        null.keep().unwrap();
        drop(null);
        assert!(Path::new("/dev/null").exists());
        assert!(Received::create(Path::new("/nonexistent/file")).is_err());
    }
}
