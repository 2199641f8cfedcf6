//! Messages of a sender.

use copy::protocol::BLOCK_BYTES;
use copy::protocol::message::{Entry, EntryKind, Message};
use copy::protocol::path::RelativePath;

pub(crate) const BLOCK: u64 = BLOCK_BYTES as u64;

pub(crate) fn entry(id: u32, path: &str, kind: EntryKind) -> Message {
    let path = RelativePath::new(path.as_bytes().to_vec()).unwrap();
    Message::Entry(Entry { id, path, kind, mode: 0o644, modified: (1, 0) })
}

pub(crate) fn file(id: u32, path: &str, bytes: u64) -> Message {
    entry(id, path, EntryKind::File(bytes))
}

pub(crate) fn directory(id: u32, path: &str) -> Message {
    let Message::Entry(entry) = entry(id, path, EntryKind::Directory) else { unreachable!() };
    Message::Entry(Entry { mode: 0o755, ..entry })
}

pub(crate) fn link(id: u32, path: &str, target: &str) -> Message {
    entry(id, path, EntryKind::Symlink(target.as_bytes().to_vec()))
}

pub(crate) fn data(id: u32, block: u64, bytes: &[u8]) -> Message {
    Message::Data { id, block, bytes: bytes.to_vec() }
}

pub(crate) fn end(id: u32, whole: &[u8]) -> Message {
    Message::End { id, hash: *blake3::hash(whole).as_bytes() }
}
