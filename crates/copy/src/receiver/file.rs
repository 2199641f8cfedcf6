//! A file that is received. It grows beside the old one, under a name of its own, and takes
//! its place once its hash is verified.

use super::{SharedDirectory, permissions, times};
use crate::sender::Extents;
use crate::walk::PARTIAL;
use copy_proto::hash::{self, Hash, TreeHash};
use copy_proto::message::{Entry, EntryKind, MAX_HASHES};
use copy_proto::path::RelativePath;
use copy_proto::{BLOCK_BYTES, block_bytes, block_count};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, fchmod, flock, fstat, futimens};
use rustix::process::geteuid;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Longest name of a file (`NAME_MAX`).
const MAX_NAME: usize = 255;

/// What blocks that are kept are in.
#[derive(Debug)]
enum Basis {
    Nothing,
    /// The incomplete copy itself.
    Partial,
    /// The old file, which stays as it is until the new one is complete.
    Existing(File),
}

#[derive(Debug)]
pub(super) struct Incoming {
    entry: Entry,
    bytes: u64,
    parent: SharedDirectory,
    name: Vec<u8>,
    partial_name: Vec<u8>,
    basis: Basis,
    /// The incomplete copy, once there is one.
    partial: Option<File>,
    tree: TreeHash,
    /// Hashes of the blocks that the basis has.
    known: HashMap<u64, Hash>,
    /// Blocks of the old file that are kept, until there is an incomplete copy.
    kept: Vec<(u64, u64)>,
    /// The incomplete copy has the length of the whole.
    is_exact: bool,
    /// The sender's hash of the whole, once it has sent everything.
    expected: Option<Hash>,
}

/// The name of an incomplete copy. A name that would become too long is replaced by its hash.
pub(super) fn partial_name(name: &[u8]) -> Vec<u8> {
    let with_name = [&b"."[..], name, PARTIAL].concat();
    if with_name.len() <= MAX_NAME {
        return with_name;
    }
    let digest = blake3::hash(name).to_hex();
    [&b"."[..], digest.as_bytes(), PARTIAL].concat()
}

impl Incoming {
    /// Looks for an incomplete copy and for the old file, unless the directory is new.
    pub(super) fn open(parent: SharedDirectory, entry: Entry, is_new: bool) -> io::Result<Self> {
        let EntryKind::File(bytes) = entry.kind else {
            return Err(io::Error::other("not a file"));
        };
        let name = entry.path.split_last().1.to_vec();
        let partial_name = partial_name(&name);
        let partial = if is_new { None } else { open_partial(&parent, &partial_name)? };
        let basis = match &partial {
            _ if is_new => Basis::Nothing,
            Some(_) => Basis::Partial,
            None => match parent.read(&name, crate::directory::Links::Refuse) {
                Ok(file) => Basis::Existing(file),
                // Something else is there, or nothing.
                Err(_) => Basis::Nothing,
            },
        };
        Ok(Incoming {
            tree: TreeHash::new(bytes),
            known: HashMap::new(),
            kept: Vec::new(),
            is_exact: false,
            expected: None,
            entry,
            bytes,
            parent,
            name,
            partial_name,
            basis,
            partial,
        })
    }

    pub(super) fn path(&self) -> &RelativePath {
        &self.entry.path
    }

    /// Bytes of `count` blocks.
    pub(super) fn bytes_of(&self, first: u64, count: u64) -> u64 {
        let at = |block: u64| block.saturating_mul(BLOCK_BYTES as u64).min(self.bytes);
        at(first.saturating_add(count)) - at(first)
    }

    /// Passes on the hashes of what is there already. The outer error is that of `send`.
    pub(super) fn send_hashes<E>(
        &mut self,
        mut send: impl FnMut(u64, Vec<Hash>) -> Result<(), E>,
    ) -> Result<io::Result<()>, E> {
        let file = match (&self.basis, &self.partial) {
            (Basis::Existing(file), _) | (Basis::Partial, Some(file)) => file,
            _ => return Ok(Ok(())),
        };
        let present = match file.metadata() {
            Ok(metadata) => metadata.len(),
            Err(error) => return Ok(Err(error)),
        };
        let (mut extents, mut buffer) = (Extents::default(), vec![0; BLOCK_BYTES]);
        let (mut first, mut hashes) = (0, Vec::new());
        for index in 0..block_count(self.bytes) {
            let block = &mut buffer[..block_bytes(self.bytes, index)];
            let begin = index * BLOCK_BYTES as u64;
            let end = begin + block.len() as u64;
            let is_there = end <= present
                && !extents.is_hole(file, begin, end)
                && file.read_exact_at(block, begin).is_ok();
            if hashes.len() == MAX_HASHES || (!is_there && !hashes.is_empty()) {
                send(first, std::mem::take(&mut hashes))?;
            }
            if end > present {
                break;
            }
            if is_there {
                if hashes.is_empty() {
                    first = index;
                }
                let hash = hash::of_block(self.bytes, index, block);
                self.known.insert(index, hash);
                hashes.push(hash);
            }
        }
        if !hashes.is_empty() {
            send(first, hashes)?;
        }
        Ok(Ok(()))
    }

    /// The incomplete copy; the first call creates it, with the blocks that were kept.
    fn partial(&mut self) -> io::Result<&File> {
        if self.partial.is_none() {
            let file = self.parent.create(&self.partial_name)?;
            // A file of one block is complete at once.
            if self.bytes > BLOCK_BYTES as u64 {
                lock(&file)?;
            }
            for (first, count) in std::mem::take(&mut self.kept) {
                self.copy_kept(&file, first, count)?;
            }
            self.partial = Some(file);
        }
        self.partial.as_ref().ok_or_else(|| io::Error::other("no file"))
    }

    /// Copies blocks from the old file, which may have changed since they were hashed.
    fn copy_kept(&self, partial: &File, first: u64, count: u64) -> io::Result<()> {
        let Basis::Existing(old) = &self.basis else { return Ok(()) };
        let mut buffer = vec![0; BLOCK_BYTES];
        for index in first..first.saturating_add(count) {
            let block = &mut buffer[..block_bytes(self.bytes, index)];
            let begin = index * BLOCK_BYTES as u64;
            old.read_exact_at(block, begin)?;
            if self.known.get(&index) != Some(&hash::of_block(self.bytes, index, block)) {
                return Err(io::Error::other("the old file changed meanwhile; copy it again"));
            }
            partial.write_all_at(block, begin)?;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, block: u64, bytes: &[u8]) -> io::Result<()> {
        if block >= block_count(self.bytes) || bytes.len() != block_bytes(self.bytes, block) {
            return Err(io::Error::other("a block has the wrong length"));
        }
        self.insert(block, hash::of_block(self.bytes, block, bytes))?;
        // All of a new file.
        self.is_exact = self.partial.is_none() && bytes.len() as u64 == self.bytes;
        self.partial()?.write_all_at(bytes, block * BLOCK_BYTES as u64)
    }

    fn insert(&mut self, block: u64, hash: Hash) -> io::Result<()> {
        self.tree.insert(block, hash).map_err(io::Error::other)
    }

    pub(super) fn hole(&mut self, first: u64, count: u64) -> io::Result<()> {
        // A new file is a hole where nothing is written.
        let is_fresh = self.partial.is_none();
        let (offset, length) =
            (first.saturating_mul(BLOCK_BYTES as u64), self.bytes_of(first, count));
        let partial = self.partial()?;
        if !is_fresh && length > 0 && partial.metadata()?.len() > offset {
            punch(partial, offset, length)?;
        }
        let zeros = vec![0; BLOCK_BYTES];
        for block in first..first.saturating_add(count) {
            let zeros = &zeros[..block_bytes(self.bytes, block)];
            self.insert(block, hash::of_block(self.bytes, block, zeros))?;
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, first: u64, count: u64) -> io::Result<()> {
        for block in first..first.saturating_add(count) {
            let known = self.known.get(&block).copied();
            let hash = known.ok_or_else(|| io::Error::other("a block to keep is not there"))?;
            self.insert(block, hash)?;
        }
        match &self.partial {
            Some(partial) => self.copy_kept(partial, first, count),
            None => {
                self.kept.push((first, count));
                Ok(())
            }
        }
    }

    /// The sender has sent all of it, and this is the hash of the whole.
    pub(super) fn expect(&mut self, hash: Hash) {
        self.expected = Some(hash);
    }

    /// Whether the sender has sent all of it.
    pub(super) const fn is_announced(&self) -> bool {
        self.expected.is_some()
    }

    /// Once everything is there, verifies the whole file and puts it in its place. Whether
    /// it did.
    pub(super) fn complete(&mut self) -> io::Result<bool> {
        let Some(expected) = self.expected.filter(|_| self.tree.is_whole()) else {
            return Ok(false);
        };
        self.finish(expected).map(|()| true)
    }

    fn finish(&mut self, expected: Hash) -> io::Result<()> {
        if self.tree.root() != Some(expected) {
            return Err(io::Error::other("its hash is not the sender's; copy it again"));
        }
        if let (Basis::Existing(old), None) = (&self.basis, &self.partial)
            && old.metadata()?.len() == self.bytes
        {
            // The old file is the same.
            return self.set_attributes(old);
        }
        let (bytes, is_whole) = (self.bytes, self.is_exact);
        let partial = self.partial()?;
        if !is_whole {
            partial.set_len(bytes)?;
        }
        if let Some(partial) = &self.partial {
            self.set_attributes(partial)?;
        }
        self.parent.rename(&self.partial_name, &self.name)
    }

    fn set_attributes(&self, file: &File) -> io::Result<()> {
        fchmod(file, permissions(self.entry.mode))?;
        Ok(futimens(file, &times(self.entry.modified))?)
    }
}

/// An incomplete copy of this user's that nobody else is writing. Anything else of that name
/// is removed.
fn open_partial(parent: &SharedDirectory, name: &[u8]) -> io::Result<Option<File>> {
    let file = match parent.open_existing(name) {
        Ok(None) => return Ok(None),
        Ok(Some(file)) => file,
        Err(_) => {
            parent.remove(name)?;
            return Ok(None);
        }
    };
    let stat = fstat(&file)?;
    // A hard link may be to somebody's file.
    let is_ours =
        file.metadata()?.is_file() && stat.st_nlink == 1 && stat.st_uid == geteuid().as_raw();
    if is_ours {
        lock(&file)?;
        return Ok(Some(file));
    }
    parent.remove(name)?;
    Ok(None)
}

fn lock(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK {
            io::Error::other("another copy is writing this file")
        } else {
            error.into()
        }
    })
}

/// Makes a range a hole, or zeros where the file system has no holes.
fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if fallocate(file, flags, offset, length).is_ok() {
        return Ok(());
    }
    let zeros = vec![0; BLOCK_BYTES];
    let mut at = offset;
    while at < offset + length {
        let count = usize::try_from(offset + length - at).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        file.write_all_at(&zeros[..count], at)?;
        at += count as u64;
    }
    Ok(())
}
