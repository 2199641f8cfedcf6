//! The receiver of a copy as a state machine: what a sender does, in any order, and what the
//! receiver holds, opens and creates meanwhile.

use copy::in_memory::{Limits, Peer, links_that_lead_out, receive};
use copy::protocol::BLOCK_BYTES;
use copy::protocol::message::{Entry, EntryKind, Message};
use copy::protocol::path::RelativePath;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Most steps of one input.
const MAX_STEPS: usize = 300;
/// Memory of a copy here, bytes; and its open files, besides one of each thread.
const HELD_BYTES: usize = 64 << 10;
const OPEN_FILES: usize = 6;
/// Descriptors of a copy, directories included.
const MAX_DESCRIPTORS: usize = 64;
/// What the receiver may take for its last answers.
const ANSWER: Duration = Duration::from_secs(10);
const BLOCK: u64 = BLOCK_BYTES as u64;
const LENGTHS: [u64; 6] = [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK, 1 << 40];
const NAMES: [&str; 4] = ["a", "b", "c", ".a.longhaul-part"];
const TARGETS: [&str; 8] = ["..", ".", "a", "b", "c", "", "..", "/etc"];

/// Copies into one directory, one after the other: each byte is a step, with the bytes behind
/// it.
pub(crate) fn copies(input: &[u8]) {
    let Ok(root) = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()) else {
        return;
    };
    let mut steps = Steps { rest: input.iter().copied(), left: MAX_STEPS };
    while steps.left > 0 && steps.rest.len() > 0 {
        let limits = Limits::new(HELD_BYTES, OPEN_FILES);
        let outcome = receive(root.path(), &limits, |peer| copy(peer, &mut steps, root.path()));
        assert!(outcome.is_ok());
        assert!(limits.peak_bytes() <= HELD_BYTES);
        assert!(limits.peak_open_files() <= OPEN_FILES);
        assert_eq!(descriptors(root.path()), 0);
        assert!(links_that_lead_out(root.path()).is_ok_and(|found| found.is_empty()));
    }
}

struct Steps<'a> {
    rest: std::iter::Copied<std::slice::Iter<'a, u8>>,
    left: usize,
}

impl Steps<'_> {
    fn byte(&mut self) -> u8 {
        self.rest.next().unwrap_or_default()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let at = usize::from(self.byte()) % all.len().max(1);
        all.get(at).copied()
    }

    /// One to three names.
    fn path(&mut self) -> Option<RelativePath> {
        let depth = 1 + usize::from(self.byte() % 3);
        let names: Option<Vec<&str>> = (0..depth).map(|_| self.one_of(&NAMES)).collect();
        RelativePath::new(names?.join("/").into_bytes()).ok()
    }

    fn kind(&mut self, code: u8) -> Option<EntryKind> {
        Some(match code {
            0 | 1 => EntryKind::Directory,
            2 | 3 => EntryKind::File(self.one_of(&LENGTHS)?),
            _ => {
                let count = 1 + usize::from(self.byte() % 6);
                let names: Option<Vec<&str>> = (0..count).map(|_| self.one_of(&TARGETS)).collect();
                EntryKind::Symlink(names?.join("/").into_bytes())
            }
        })
    }
}

/// What a sender knows of its own copy.
#[derive(Default)]
struct Sent {
    next_id: u32,
    /// Lengths of files that may have no answer.
    files: HashMap<u32, u64>,
}

/// Descriptors of this process below a directory.
fn descriptors(root: &Path) -> usize {
    let Ok(all) = fs::read_dir("/proc/self/fd") else { return 0 };
    all.flatten().filter(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(root))).count()
}

fn copy(peer: &Peer<'_>, steps: &mut Steps<'_>, root: &Path) {
    let mut sent = Sent::default();
    while steps.left > 0 && steps.rest.len() > 0 {
        steps.left -= 1;
        let code = steps.byte() % 16;
        if code == 15 {
            break;
        }
        if code == 14 {
            assert!(descriptors(root) <= MAX_DESCRIPTORS);
            continue;
        }
        let Some(message) = message(code, steps, &mut sent) else { continue };
        if !peer.send(&message) {
            return;
        }
    }
    if end(peer, &mut sent).is_none() {
        peer.close();
    }
    assert!(descriptors(root) <= MAX_DESCRIPTORS);
}

fn message(code: u8, steps: &mut Steps<'_>, sent: &mut Sent) -> Option<Message> {
    let entry = |id, steps: &mut Steps<'_>| -> Option<Entry> {
        let (path, kind) = (steps.path()?, steps.kind(code)?);
        let mode = u32::from(steps.byte()) | 0o700;
        Some(Entry { id, path, kind, mode, modified: (1, 0) })
    };
    if code < 6 {
        let entry = entry(sent.next_id, steps)?;
        if let EntryKind::File(bytes) = entry.kind {
            sent.files.insert(entry.id, bytes);
        }
        sent.next_id += 1;
        return Some(Message::Entry(entry));
    }
    let id = u32::from(steps.byte()) % sent.next_id.max(1);
    let bytes = sent.files.get(&id).copied().unwrap_or(1);
    let first = u64::from(steps.byte() % 5);
    Some(match code {
        6 | 7 => {
            let length = copy::protocol::block_bytes(bytes, first).max(usize::from(code == 7));
            Message::Data { id, block: first, bytes: vec![0; length] }
        }
        8 => Message::Hole { id, first, count: u64::from(steps.byte() % 8) },
        9 => Message::Kept { id, first, count: u64::from(steps.byte() % 8) },
        10 => Message::End { id, hash: *blake3::hash(&vec![0; whole(bytes)]).as_bytes() },
        11 => Message::End { id, hash: [7; 32] },
        12 => Message::Unreadable { id, reason: "gone".to_owned() },
        _ => match first {
            0 => Message::AllEntries(u32::from(steps.byte())),
            1 => Message::Entry(entry(sent.next_id + 1, steps)?),
            2 => Message::Skipped("gone".to_owned()),
            3 => Message::Progress { written: 1, waited: 1 },
            _ => Message::Stored(id),
        },
    })
}

/// Length of a file of zeros, if it is short.
fn whole(bytes: u64) -> usize {
    usize::try_from(bytes.min(4 * BLOCK)).unwrap_or_default()
}

/// Ends the copy as a sender does whose files are all gone; `None` if it was refused.
fn end(peer: &Peer<'_>, sent: &mut Sent) -> Option<()> {
    let mut waiting: Vec<u32> = sent.files.keys().copied().collect();
    while !waiting.is_empty() {
        let (id, is_over) = match peer.receive(ANSWER)? {
            Message::Have { id, is_last: true, .. } => (id, false),
            Message::Stored(id) | Message::NotStored { id, .. } => (id, true),
            Message::Refused(_) => return None,
            _ => continue,
        };
        waiting.retain(|other| *other != id);
        if is_over {
            sent.files.remove(&id);
        }
    }
    for id in sent.files.keys() {
        let reason = "gone".to_owned();
        peer.send(&Message::Unreadable { id: *id, reason }).then_some(())?;
    }
    peer.send(&Message::AllEntries(sent.next_id)).then_some(())
}
