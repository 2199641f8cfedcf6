//! Requests of the kernel and the answers to them (linux/fuse.h, version 7.31): a directory with
//! one file that can be read.

use std::borrow::Cow;

/// The name of the only file.
pub(super) const FILE: &str = "file";

/// Its length, in bytes: more than any transfer takes.
const LENGTH: u64 = 1 << 50;

/// The nodes: the kernel's root, and the file.
const ROOT: u64 = 1;
const FILE_NODE: u64 = 2;

/// The protocol's version that is answered.
const VERSION: [u32; 2] = [7, 31];

/// How long names and attributes stay true, in seconds.
const VALID_S: u64 = 3600;

/// What the kernel reads ahead at most, in bytes: its default for disks.
const MAX_READAHEAD: u32 = 128 * 1024;

/// The longest read that is asked for, in bytes: 256 pages.
const MAX_READ: u32 = 1 << 20;

/// Bytes of the header of a request, and of a reply.
const REQUEST_HEADER: usize = 40;
const REPLY_HEADER: usize = 16;

/// Operations.
mod operation {
    pub(super) const LOOKUP: u32 = 1;
    pub(super) const FORGET: u32 = 2;
    pub(super) const GETATTR: u32 = 3;
    pub(super) const OPEN: u32 = 14;
    pub(super) const READ: u32 = 15;
    pub(super) const RELEASE: u32 = 18;
    pub(super) const FLUSH: u32 = 25;
    pub(super) const INIT: u32 = 26;
    pub(super) const INTERRUPT: u32 = 36;
    pub(super) const DESTROY: u32 = 38;
    pub(super) const BATCH_FORGET: u32 = 42;
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    operation: u32,
    unique: u64,
    node: u64,
    body: &'a [u8],
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The request has no answer.
    Nothing,
    /// An error number.
    Error(i32),
    Bytes(Vec<u8>),
    /// That many bytes of the file.
    Zeros(u32),
}

impl<'a> Request<'a> {
    /// `None`: it is none.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(REQUEST_HEADER)?;
        Some(Request {
            operation: word(header, 4)?,
            unique: long(header, 8)?,
            node: long(header, 16)?,
            body,
        })
    }

    pub(super) fn answer(&self) -> Answer {
        match self.operation {
            operation::INIT => Answer::Bytes(init(self.body)),
            operation::FORGET | operation::BATCH_FORGET | operation::INTERRUPT => Answer::Nothing,
            operation::LOOKUP if self.node == ROOT => {
                let name = self.body.split(|byte| *byte == 0).next().unwrap_or_default();
                if name == FILE.as_bytes() {
                    Answer::Bytes(entry())
                } else {
                    Answer::Error(libc::ENOENT)
                }
            }
            operation::GETATTR => {
                let mut bytes = longs(&[VALID_S, 0]);
                bytes.extend(attributes(self.node));
                Answer::Bytes(bytes)
            }
            operation::OPEN if self.node == FILE_NODE => Answer::Bytes(longs(&[0, 0])),
            operation::READ if self.node == FILE_NODE => {
                match (long(self.body, 8), word(self.body, 16)) {
                    (Some(offset), Some(size)) => {
                        let left = u32::try_from(LENGTH.saturating_sub(offset)).unwrap_or(u32::MAX);
                        Answer::Zeros(size.min(left).min(MAX_READ))
                    }
                    _ => Answer::Error(libc::EINVAL),
                }
            }
            operation::FLUSH | operation::RELEASE | operation::DESTROY => Answer::Bytes(Vec::new()),
            _ => Answer::Error(libc::ENOSYS),
        }
    }

    /// The reply with an answer; `None` if there is none.
    pub(super) fn reply(&self, answer: &Answer) -> Option<Vec<u8>> {
        let (error, body) = match answer {
            Answer::Nothing => return None,
            Answer::Error(number) => (-number, Cow::default()),
            Answer::Bytes(bytes) => (0, Cow::Borrowed(&bytes[..])),
            Answer::Zeros(count) => (0, Cow::Owned(vec![0; *count as usize])),
        };
        let length = u32::try_from(REPLY_HEADER + body.len()).ok()?;
        let mut reply = Vec::with_capacity(REPLY_HEADER + body.len());
        reply.extend(length.to_ne_bytes());
        reply.extend(error.to_ne_bytes());
        reply.extend(self.unique.to_ne_bytes());
        reply.extend_from_slice(&body);
        Some(reply)
    }
}

/// `fuse_init_out`: no more features than version 7.31 has without flags.
fn init(body: &[u8]) -> Vec<u8> {
    let readahead = word(body, 8).unwrap_or(0).min(MAX_READAHEAD);
    // major, minor, max_readahead, flags; max_background and congestion_threshold as the kernel
    // has them; max_write, the least there is; time_gran.
    let words = [VERSION[0], VERSION[1], readahead, 0, 0, 4096, 1, 0];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(64, 0);
    bytes
}

/// `fuse_entry_out` of the file.
fn entry() -> Vec<u8> {
    // nodeid, generation, entry_valid, attr_valid, both nanoseconds.
    let mut bytes = longs(&[FILE_NODE, 0, VALID_S, VALID_S, 0]);
    bytes.extend(attributes(FILE_NODE));
    bytes
}

/// `fuse_attr` of a node.
fn attributes(node: u64) -> Vec<u8> {
    let (length, mode) = match node {
        FILE_NODE => (LENGTH, libc::S_IFREG | 0o444),
        _ => (0, libc::S_IFDIR | 0o555),
    };
    // ino, size, blocks, atime, mtime, ctime.
    let mut bytes = longs(&[node, length, 0, 0, 0, 0]);
    // Three nanoseconds, mode, nlink, uid, gid, rdev, blksize, flags.
    let words = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0];
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

fn longs(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [0, operation].iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(longs(&[7, node, 0, 0]));
        bytes.extend_from_slice(body);
        bytes
    }

    fn answer(operation: u32, node: u64, body: &[u8]) -> Answer {
        Request::parse(&request(operation, node, body)).unwrap().answer()
    }

    #[test]
    fn structures_have_the_lengths_of_the_kernel_s() {
        let length = |answer: Answer| match answer {
            Answer::Bytes(bytes) => bytes.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(length(answer(operation::INIT, 0, &[0; 16])), 64);
        assert_eq!(length(answer(operation::LOOKUP, ROOT, b"file\0")), 128);
        assert_eq!(length(answer(operation::GETATTR, FILE_NODE, &[])), 104);
        assert_eq!(length(answer(operation::OPEN, FILE_NODE, &[])), 16);
        let bytes = request(operation::GETATTR, ROOT, &[]);
        let request = Request::parse(&bytes).unwrap();
        let reply = request.reply(&request.answer()).unwrap();
        assert_eq!((word(&reply, 0), long(&reply, 8)), (Some(120), Some(7)));
    }

    #[test]
    fn there_is_one_file_and_it_can_be_read() {
        assert_eq!(answer(operation::LOOKUP, ROOT, b"other\0"), Answer::Error(libc::ENOENT));
        let read = |offset: u64, size: u32| {
            let mut body = longs(&[0, offset]);
            body.extend(size.to_ne_bytes());
            answer(operation::READ, FILE_NODE, &body)
        };
        assert_eq!(read(0, 4096), Answer::Zeros(4096));
        assert_eq!(read(LENGTH - 5, 4096), Answer::Zeros(5));
        assert_eq!(read(u64::MAX, 4096), Answer::Zeros(0));
        assert_eq!(answer(operation::READ, FILE_NODE, &[0; 12]), Answer::Error(libc::EINVAL));
        assert_eq!(answer(operation::READ, ROOT, &[0; 40]), Answer::Error(libc::ENOSYS));
        assert_eq!(answer(16, FILE_NODE, &[]), Answer::Error(libc::ENOSYS), "it is not written");
        assert_eq!(answer(operation::FORGET, FILE_NODE, &[]), Answer::Nothing);
        assert!(Request::parse(&[0; 39]).is_none());
    }
}
