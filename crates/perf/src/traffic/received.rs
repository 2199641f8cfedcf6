//! The file that received data is written to (`-F`): a temporary file in the same
//! directory, renamed when the test completes. A failed test keeps an earlier file,
//! and two tests never write to the same file.

use host::lock::lock;
use host::{disk, private_file};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Maximum attempts at a unique name.
const ATTEMPTS: u32 = 16;

/// Bytes between checks of the free space.
const CHECK_INTERVAL_BYTES: u64 = 16 << 20;

/// Space kept free: 1 GiB, or a twentieth of a small file system.
const MIN_FREE_BYTES: u64 = 1 << 30;
const MIN_FREE_FRACTION: u64 = 20;

/// Received data and its file.
#[derive(Debug)]
pub(super) struct Received {
    /// `None` once kept: a thread that still has data of the test writes no more.
    file: Mutex<Option<File>>,
    /// Temporary and final path; `None` for a device or a pipe.
    paths: Option<(PathBuf, PathBuf)>,
    bytes: AtomicU64,
    /// Whether some data could not be written.
    is_short: AtomicBool,
}

impl Received {
    /// Creates a temporary file for `path`; a device or a pipe is opened directly.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let (bytes, is_short) = (AtomicU64::new(0), AtomicBool::new(false));
        match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                let file = private_file::create(path)?;
                return Ok(Received { file: Mutex::new(Some(file)), paths: None, bytes, is_short });
            }
            _ => {}
        }
        let path = private_file::resolve(path)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let mut attempt = 0;
        loop {
            let mut number = [0; 8];
            getrandom::fill(&mut number).map_err(io::Error::other)?;
            let number = u64::from_le_bytes(number);
            let temporary = path.with_file_name(format!(".{name:.100}.{number:016x}.part"));
            let created =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
            match created {
                Ok(file) => {
                    let checked = check_free_space(&file);
                    let paths = Some((temporary, path));
                    // Removes the file if it is dropped here.
                    let received =
                        Received { file: Mutex::new(Some(file)), paths, bytes, is_short };
                    return checked.map(|()| received);
                }
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether it is a file that [`Received::keep`] moves to its path.
    pub(super) const fn is_kept(&self) -> bool {
        self.paths.is_some()
    }

    /// Appends data received on one of the streams.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        let before = self.bytes.fetch_add(length, Ordering::Relaxed);
        let is_due = before / CHECK_INTERVAL_BYTES != (before + length) / CHECK_INTERVAL_BYTES;
        let mut file = lock(&self.file);
        let Some(file) = file.as_mut() else { return Ok(()) };
        let written = if is_due && self.is_kept() { check_free_space(file) } else { Ok(()) };
        written
            .and_then(|()| file.write_all(bytes))
            .inspect_err(|_| self.is_short.store(true, Ordering::Relaxed))
    }

    /// The test has completed: the received data, if any, replaces the file and
    /// keeps its permissions.
    pub(super) fn keep(&self) -> io::Result<()> {
        let Some((temporary, path)) = &self.paths else { return Ok(()) };
        let Some(file) = lock(&self.file).take() else { return Ok(()) };
        if self.is_short.load(Ordering::Relaxed) {
            return Err(io::Error::other("some of the received data could not be written"));
        }
        if self.bytes.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        file.set_permissions(private_file::permissions(path))?;
        std::fs::rename(temporary, path)
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

impl Drop for Received {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.paths {
            // After a rename there is nothing to remove.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
