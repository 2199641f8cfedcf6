//! Reads files of unknown origin: up to a size limit, and regular files only.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use units::ByteCount;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A directory, device, FIFO or socket: it may be endless, or block.
    #[error("it is {0}, not a regular file")]
    NotAFile(Kind),
    /// It is larger than the limit.
    #[error("it is larger than the limit of {limit}")]
    TooLarge {
        /// The limit.
        limit: ByteCount,
    },
    /// It is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        }
    }
}

/// Type of a file that is not regular (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A character or block device.
    Device,
    /// A FIFO or a pipe.
    Fifo,
    /// Anything else.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Directory => "a directory",
            Kind::Device => "a device",
            Kind::Fifo => "a FIFO or a pipe",
            Kind::Other => "a special file",
        })
    }
}

impl Kind {
    fn of(kind: std::fs::FileType) -> Self {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_dir() {
            Kind::Directory
        } else if kind.is_char_device() || kind.is_block_device() {
            Kind::Device
        } else if kind.is_fifo() {
            Kind::Fifo
        } else {
            Kind::Other
        }
    }
}

/// Opens a regular file for reading. A FIFO without a writer is refused without
/// waiting.
///
/// # Errors
/// [`ReadError::NotAFile`]; otherwise the system error.
pub fn open_regular(path: &Path) -> Result<File, ReadError> {
    // O_NONBLOCK: opening a FIFO would wait for a writer; no effect on regular files
    // (open(2)). O_NOCTTY: a terminal does not become the controlling one.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(ReadError::NotAFile(Kind::of(kind))) }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// [`ReadError`].
pub fn read_bounded(path: &Path, limit: ByteCount) -> Result<Vec<u8>, ReadError> {
    read_open(open_regular(path)?, limit)
}

/// As [`read_bounded`], for UTF-8 text.
///
/// # Errors
/// [`ReadError`].
pub fn read_text_bounded(path: &Path, limit: ByteCount) -> Result<String, ReadError> {
    String::from_utf8(read_bounded(path, limit)?).map_err(|_| ReadError::NotText)
}

/// Reads an open file, up to `limit` bytes regardless of its reported size: a
/// file may grow, and files in /proc report a size of zero.
///
/// # Errors
/// [`ReadError`].
pub fn read_open(file: File, limit: ByteCount) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    file.take(limit.bytes().saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit.bytes() {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file of this test's own, removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("lh-{}-{name}", std::process::id()));
            std::fs::write(&path, bytes).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_at_its_limit_is_read_and_one_byte_more_is_not() {
        let file = Scratch::new("limit", b"12345678");
        let read = |limit| read_bounded(&file.0, ByteCount::from_bytes(limit));
        assert_eq!(read(8).unwrap(), b"12345678");
        let error = read(7).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { .. }));
        assert!(error.to_string().contains("7 "), "{error}");
    }

    #[test]
    fn special_files_are_refused_at_once() {
        let limit = ByteCount::from_bytes(1 << 20);
        let of = |path: &str| read_bounded(Path::new(path), limit).unwrap_err().to_string();
        assert!(of("/dev/zero").contains("a device"));
        assert!(of("/").contains("a directory"));
        assert!(of("/nonexistent").contains("No such file"));
        let fifo = std::env::temp_dir().join(format!("lh-{}-fifo", std::process::id()));
        let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
        // No program is run for it: it would inherit the sockets of the tests beside this one.
        // SAFETY: the name ends in a zero byte and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let refused = of(fifo.to_str().unwrap());
        std::fs::remove_file(&fifo).unwrap();
        assert!(refused.contains("a FIFO"), "{refused}");
    }

    #[test]
    fn proc_files_and_text_are_read() {
        let limit = ByteCount::from_bytes(1 << 20);
        assert!(!read_text_bounded(Path::new("/proc/self/status"), limit).unwrap().is_empty());
        let file = Scratch::new("text", b"\xff\xfe");
        assert!(matches!(read_text_bounded(&file.0, limit), Err(ReadError::NotText)));
    }
}
