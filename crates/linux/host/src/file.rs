//! Reads files of unknown origin: up to a size limit, and regular files only.

use crate::identity;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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
    NotAFile(FileKind),
    /// Root was to follow a symbolic link of another user's.
    #[error("it is a symbolic link of uid {0}, which root does not follow; name the file itself")]
    PlantedLink(u32),
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
pub enum FileKind {
    /// A directory.
    Directory,
    /// A character or block device.
    Device,
    /// A FIFO or a pipe.
    Fifo,
    /// Anything else.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Directory => "a directory",
            FileKind::Device => "a device",
            FileKind::Fifo => "a FIFO or a pipe",
            FileKind::Other => "a special file",
        })
    }
}

impl FileKind {
    fn of(kind: std::fs::FileType) -> Self {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_dir() {
            FileKind::Directory
        } else if kind.is_char_device() || kind.is_block_device() {
            FileKind::Device
        } else if kind.is_fifo() {
            FileKind::Fifo
        } else {
            FileKind::Other
        }
    }
}

/// Opens a regular file for reading. A FIFO without a writer is refused without
/// waiting. For root, a symbolic link of another user's is refused: it may lead to a file
/// whose contents that user may not see.
///
/// # Errors
/// [`ReadError::NotAFile`], [`ReadError::PlantedLink`]; otherwise the system error.
pub fn open_regular(path: &Path) -> Result<File, ReadError> {
    // O_NONBLOCK: opening a FIFO would wait for a writer; no effect on regular files
    // (open(2)). O_NOCTTY: a terminal does not become the controlling one.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let open = |more| OpenOptions::new().read(true).custom_flags(flags | more).open(path);
    let file = if identity::is_root() {
        match open(libc::O_NOFOLLOW) {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                let link = path.symlink_metadata()?;
                if link.is_symlink() && link.uid() != 0 {
                    return Err(ReadError::PlantedLink(link.uid()));
                }
                open(0)?
            }
            other => other?,
        }
    } else {
        open(0)?
    };
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(ReadError::NotAFile(FileKind::of(kind))) }
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
    fn root_follows_no_link_of_another_user() {
        use std::os::unix::fs::{lchown, symlink};
        let file = Scratch::new("linked", b"secret");
        let link = Scratch(file.0.with_extension("link"));
        symlink(&file.0, &link.0).unwrap();
        let limit = ByteCount::from_bytes(100);
        assert_eq!(read_bounded(&link.0, limit).unwrap(), b"secret", "an own link");
        if identity::is_root() {
            lchown(&link.0, Some(12_345), None).unwrap();
            let error = read_bounded(&link.0, limit).unwrap_err().to_string();
            assert!(error.contains("a symbolic link of uid 12345"), "{error}");
        }
    }

    #[test]
    fn proc_files_and_text_are_read() {
        let limit = ByteCount::from_bytes(1 << 20);
        assert!(!read_text_bounded(Path::new("/proc/self/status"), limit).unwrap().is_empty());
        let file = Scratch::new("text", b"\xff\xfe");
        assert!(matches!(read_text_bounded(&file.0, limit), Err(ReadError::NotText)));
    }
}
