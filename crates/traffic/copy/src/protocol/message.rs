//! Messages, and how they are written: numbers little-endian, byte strings with a length of
//! two bytes before them, the last field of a message without one.

use crate::protocol::hash::Hash;
use crate::protocol::path::{RelativePath, WrongPath};
use crate::protocol::{BLOCK_BYTES, block_count};

/// Most hashes in one [`Message::Have`].
pub const MAX_HASHES: usize = 4_096;
/// Largest file: 16 TiB.
pub const MAX_FILE_BYTES: u64 = 1 << 44;
/// Longest text of an error, bytes.
const MAX_REASON: usize = 1_024;
/// Longest target of a symbolic link (`PATH_MAX`).
const MAX_TARGET: usize = 4_095;
/// Most sources of one request.
pub const MAX_SOURCES: usize = 1_024;
const HASH_BYTES: usize = 32;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The client sends: receive into this path.
    Receive {
        /// A directory that exists, or the name of the only source's copy.
        destination: Vec<u8>,
        /// Sources that the client sends.
        sources: u32,
    },
    /// The client receives: send these paths, which may have the wildcards `*`, `?` and
    /// `[…]` of glob(7).
    Send {
        /// Bits of file data a second at most; zero: no limit.
        limit_bps: u64,
        /// At least one.
        sources: Vec<Vec<u8>>,
    },
}

/// A file, directory or symbolic link that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number: one more than the entry's before it.
    pub id: u32,
    /// Its path below the directory of the copy.
    pub path: RelativePath,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits; only the lower nine are used.
    pub mode: u32,
    /// Last modification: seconds since 1970-01-01 UTC, and nanoseconds.
    pub modified: (i64, u32),
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file of that many bytes.
    File(u64),
    /// A directory; all entries below it follow, before any other.
    Directory,
    /// A symbolic link to that target.
    Symlink(Vec<u8>),
}

/// A message of either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Client, once: what it asks for.
    Request(Request),
    /// Server: it does.
    Accepted,
    /// Server: it does not, with the reason. Either end: it gives up.
    Refused(String),
    /// Sender: what follows.
    Entry(Entry),
    /// Sender: no entry follows. How many there were.
    AllEntries(u32),
    /// Receiver: hashes of blocks of the file that it already has, in ascending order. After the
    /// last such message of a file, the sender begins to send it.
    Have {
        /// The entry.
        id: u32,
        /// The first block.
        first: u64,
        /// A hash for each block from there.
        hashes: Vec<Hash>,
        /// No more follow.
        is_last: bool,
    },
    /// Sender: a block.
    Data {
        /// The entry.
        id: u32,
        /// The block's number.
        block: u64,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Sender: blocks that are a hole in the file.
    Hole {
        /// The entry.
        id: u32,
        /// The first block.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Sender: blocks whose hashes in [`Message::Have`] are right.
    Kept {
        /// The entry.
        id: u32,
        /// The first block.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Sender: the hash of the whole file.
    End {
        /// The entry.
        id: u32,
        /// BLAKE3.
        hash: Hash,
    },
    /// Sender: an entry cannot be read, or changed while it was read.
    Unreadable {
        /// The entry.
        id: u32,
        /// Why.
        reason: String,
    },
    /// Sender: something has no entry: its path and why.
    Skipped(String),
    /// Receiver: an entry is as sent, and its hash was verified; of a directory, everything below
    /// it has its answer.
    Stored(u32),
    /// Receiver: an entry is not stored.
    NotStored {
        /// The entry.
        id: u32,
        /// Why.
        reason: String,
    },
    /// Receiver, each second: bytes that it wrote, and nanoseconds in which its disk kept the
    /// network waiting.
    Progress {
        /// Bytes of files.
        written: u64,
        /// Nanoseconds.
        waited: u64,
    },
    /// Receiver: every entry is answered; the copy is over.
    Finished,
    /// Receiver: which connections are to carry data from now on.
    CarryDataOver(Carrier),
}

/// Connections that can carry data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// That of UDT.
    Udt,
    /// Those of TCP.
    Tcp,
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongMessage {
    /// Longer than any message.
    #[error("a message is too long")]
    TooLong,
    /// It ends within a field, or goes on behind the last one.
    #[error("a message has the wrong length")]
    Length,
    /// No message begins like it.
    #[error("unknown message type {0}")]
    Kind(u8),
    /// A number is out of its range.
    #[error("a field of a message is out of range")]
    Range,
    /// A path that leads out of its directory.
    #[error("a path was refused: {0}")]
    Path(#[from] WrongPath),
}

impl Message {
    /// Appends the message, without its frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Request(Request::Receive { destination, sources }) => {
                out.push(1);
                out.extend(sources.to_le_bytes());
                out.extend(destination);
            }
            Message::Request(Request::Send { limit_bps, sources }) => {
                out.push(2);
                out.extend(limit_bps.to_le_bytes());
                sources.iter().for_each(|source| write_bytes(out, source));
            }
            Message::Accepted => out.push(3),
            Message::Refused(reason) => write_reason(out, 4, None, reason),
            Message::Entry(entry) => entry.write(out),
            Message::AllEntries(count) => write_id(out, 6, *count),
            Message::Have { id, first, hashes, is_last } => {
                write_id(out, 7, *id);
                out.push(u8::from(*is_last));
                out.extend(first.to_le_bytes());
                hashes.iter().for_each(|hash| out.extend(hash));
            }
            Message::Data { id, block, bytes } => {
                write_id(out, 8, *id);
                out.extend(block.to_le_bytes());
                out.extend(bytes);
            }
            Message::Hole { id, first, count } => write_blocks(out, 9, *id, [*first, *count]),
            Message::Kept { id, first, count } => write_blocks(out, 10, *id, [*first, *count]),
            Message::End { id, hash } => {
                write_id(out, 11, *id);
                out.extend(hash);
            }
            Message::Unreadable { id, reason } => write_reason(out, 12, Some(*id), reason),
            Message::Stored(id) => write_id(out, 13, *id),
            Message::NotStored { id, reason } => write_reason(out, 14, Some(*id), reason),
            Message::Progress { written, waited } => {
                out.push(15);
                out.extend(written.to_le_bytes());
                out.extend(waited.to_le_bytes());
            }
            Message::Finished => out.push(16),
            Message::Skipped(reason) => write_reason(out, 17, None, reason),
            Message::CarryDataOver(carrier) => out.extend([18, u8::from(*carrier == Carrier::Tcp)]),
        }
    }

    /// Reads a message, without its frame.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, WrongMessage> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            1 => Message::Request(Request::Receive {
                sources: fields.u32()?,
                destination: fields.rest(MAX_TARGET)?,
            }),
            2 => {
                let (limit_bps, mut sources) = (fields.u64()?, Vec::new());
                while !fields.0.is_empty() {
                    if sources.len() == MAX_SOURCES {
                        return Err(WrongMessage::Range);
                    }
                    sources.push(fields.bytes(MAX_TARGET)?);
                }
                Message::Request(Request::Send { limit_bps, sources })
            }
            3 => Message::Accepted,
            4 => Message::Refused(fields.reason()?),
            5 => Message::Entry(Entry::parse(&mut fields)?),
            6 => Message::AllEntries(fields.u32()?),
            7 => Message::Have {
                id: fields.u32()?,
                is_last: fields.u8()? != 0,
                first: fields.u64()?,
                hashes: fields.hashes()?,
            },
            8 => Message::Data {
                id: fields.u32()?,
                block: fields.u64()?,
                bytes: fields.rest(BLOCK_BYTES)?,
            },
            kind @ (9 | 10) => {
                let (id, first, count) = (fields.u32()?, fields.u64()?, fields.u64()?);
                let end = first.checked_add(count).ok_or(WrongMessage::Range)?;
                if end > block_count(MAX_FILE_BYTES) {
                    return Err(WrongMessage::Range);
                }
                match kind {
                    9 => Message::Hole { id, first, count },
                    _ => Message::Kept { id, first, count },
                }
            }
            11 => Message::End { id: fields.u32()?, hash: fields.array()? },
            12 => Message::Unreadable { id: fields.u32()?, reason: fields.reason()? },
            13 => Message::Stored(fields.u32()?),
            14 => Message::NotStored { id: fields.u32()?, reason: fields.reason()? },
            15 => Message::Progress { written: fields.u64()?, waited: fields.u64()? },
            16 => Message::Finished,
            17 => Message::Skipped(fields.reason()?),
            18 => Message::CarryDataOver(match fields.u8()? {
                0 => Carrier::Udt,
                1 => Carrier::Tcp,
                _ => return Err(WrongMessage::Range),
            }),
            kind => return Err(WrongMessage::Kind(kind)),
        };
        if fields.0.is_empty() { Ok(message) } else { Err(WrongMessage::Length) }
    }
}

impl Entry {
    fn write(&self, out: &mut Vec<u8>) {
        write_id(out, 5, self.id);
        out.extend(self.mode.to_le_bytes());
        out.extend(self.modified.0.to_le_bytes());
        out.extend(self.modified.1.to_le_bytes());
        write_bytes(out, self.path.bytes());
        match &self.kind {
            EntryKind::File(bytes) => {
                out.push(0);
                out.extend(bytes.to_le_bytes());
            }
            EntryKind::Directory => out.push(1),
            EntryKind::Symlink(target) => {
                out.push(2);
                out.extend(target);
            }
        }
    }

    fn parse(fields: &mut Fields<'_>) -> Result<Self, WrongMessage> {
        let (id, mode) = (fields.u32()?, fields.u32()?);
        let modified = (fields.i64()?, fields.u32()?);
        if modified.1 >= 1_000_000_000 {
            return Err(WrongMessage::Range);
        }
        let path = RelativePath::new(fields.bytes(MAX_TARGET)?)?;
        let kind = match fields.u8()? {
            0 => EntryKind::File(fields.u64()?),
            1 => EntryKind::Directory,
            2 => EntryKind::Symlink(fields.rest(MAX_TARGET)?),
            _ => return Err(WrongMessage::Range),
        };
        match kind {
            EntryKind::File(bytes) if bytes > MAX_FILE_BYTES => Err(WrongMessage::Range),
            kind => Ok(Entry { id, path, kind, mode, modified }),
        }
    }
}

fn write_id(out: &mut Vec<u8>, kind: u8, id: u32) {
    out.push(kind);
    out.extend(id.to_le_bytes());
}

fn write_blocks(out: &mut Vec<u8>, kind: u8, id: u32, numbers: [u64; 2]) {
    write_id(out, kind, id);
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend(length.to_le_bytes());
    out.extend(&bytes[..usize::from(length)]);
}

fn write_reason(out: &mut Vec<u8>, kind: u8, id: Option<u32>, reason: &str) {
    out.push(kind);
    out.extend(id.iter().flat_map(|id| id.to_le_bytes()));
    out.extend(&reason.as_bytes()[..reason.floor_char_boundary(MAX_REASON)]);
}

/// The fields of a message that are not read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WrongMessage> {
        let (first, rest) = self.0.split_first_chunk().ok_or(WrongMessage::Length)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u8(&mut self) -> Result<u8, WrongMessage> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, WrongMessage> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WrongMessage> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Result<i64, WrongMessage> {
        self.array().map(i64::from_le_bytes)
    }

    fn bytes(&mut self, most: usize) -> Result<Vec<u8>, WrongMessage> {
        let length = usize::from(self.array().map(u16::from_le_bytes)?);
        if length > most {
            return Err(WrongMessage::Range);
        }
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(WrongMessage::Length)?;
        self.0 = rest;
        Ok(bytes.to_vec())
    }

    fn rest(&mut self, most: usize) -> Result<Vec<u8>, WrongMessage> {
        if self.0.len() > most {
            return Err(WrongMessage::Range);
        }
        Ok(std::mem::take(&mut self.0).to_vec())
    }

    fn reason(&mut self) -> Result<String, WrongMessage> {
        let mut reason = String::from_utf8_lossy(&self.rest(MAX_REASON)?).into_owned();
        // Replacement characters are longer than what they replace.
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        Ok(reason)
    }

    fn hashes(&mut self) -> Result<Vec<Hash>, WrongMessage> {
        let (hashes, rest) = self.0.as_chunks::<HASH_BYTES>();
        if !rest.is_empty() {
            return Err(WrongMessage::Length);
        }
        if hashes.len() > MAX_HASHES {
            return Err(WrongMessage::Range);
        }
        self.0 = rest;
        Ok(hashes.to_vec())
    }
}
