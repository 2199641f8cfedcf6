//! A file that is received. It grows beside the old one, under a name of its own, and takes
//! its place once its hash is verified.

use super::{Parents, SharedDirectory, permissions, times};
use crate::directory::Links;
use crate::sender::{CHECK_BLOCKS, Extents};
use crate::transport::Session;
use crate::walk::PARTIAL;
use copy_proto::hash::{self, Hash, TreeHash};
use copy_proto::message::{Entry, EntryKind, MAX_HASHES};
use copy_proto::path::RelativePath;
use copy_proto::{BLOCK_BYTES, block_bytes, block_count};
use host::clock;
use rustix::fs::{
    FallocateFlags, FileType, FlockOperation, Stat, fallocate, fchmod, flock, fstat, futimens,
};
use rustix::process::geteuid;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Longest name of a file (`NAME_MAX`).
const MAX_NAME: usize = 255;

/// Hashes in one message: at the end of each the copy may be found to be over.
const BATCH: usize = MAX_HASHES / 4;
/// What an earlier copy of the file may take to end.
const LOCK: Duration = Duration::from_secs(10);

/// What blocks that are kept are in.
#[derive(Debug)]
enum Basis {
    Nothing,
    /// The incomplete copy itself.
    Partial,
    /// The old file, which stays as it is until the new one is complete.
    Existing,
}

#[derive(Debug)]
pub(super) struct Incoming {
    entry: Entry,
    bytes: u64,
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
    pub(super) fn open(
        session: &Session,
        parents: &mut Parents<'_>,
        entry: Entry,
        is_new: bool,
    ) -> io::Result<Self> {
        let EntryKind::File(bytes) = entry.kind else {
            return Err(io::Error::other("not a file"));
        };
        let name = entry.path.split_last().1.to_vec();
        let partial_name = partial_name(&name);
        let (mut partial, mut basis) = (None, Basis::Nothing);
        if !is_new {
            let parent = parents.of(&entry.path)?;
            partial = open_partial(session, &parent, &partial_name)?;
            basis = match &partial {
                Some(_) => Basis::Partial,
                None => match parent.stat(&name) {
                    Ok(stat) if is_file(&stat) => Basis::Existing,
                    // Something else is there, or nothing.
                    _ => Basis::Nothing,
                },
            };
        }
        Ok(Incoming {
            tree: TreeHash::new(bytes),
            known: HashMap::new(),
            kept: Vec::new(),
            is_exact: false,
            expected: None,
            entry,
            bytes,
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

    /// Passes on the hashes of what is there already, as far as it can be read.
    pub(super) fn send_hashes<E>(
        &mut self,
        parents: &mut Parents<'_>,
        mut send: impl FnMut(u64, Vec<Hash>) -> Result<(), E>,
    ) -> Result<(), E> {
        let old = match self.basis {
            Basis::Existing => self.open_old(parents).ok(),
            Basis::Partial | Basis::Nothing => None,
        };
        let Some(file) = old.as_ref().or(self.partial.as_ref()) else { return Ok(()) };
        let Ok(metadata) = file.metadata() else { return Ok(()) };
        let present = metadata.len();
        let (mut extents, mut buffer) = (Extents::default(), vec![0; BLOCK_BYTES]);
        let (mut first, mut hashes) = (0, Vec::new());
        for index in 0..block_count(self.bytes) {
            let block = &mut buffer[..block_bytes(self.bytes, index)];
            let begin = index * BLOCK_BYTES as u64;
            let end = begin + block.len() as u64;
            let is_there = end <= present
                && !extents.is_hole(file, begin, end)
                && file.read_exact_at(block, begin).is_ok();
            if hashes.len() == BATCH || (!is_there && !hashes.is_empty()) {
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
        Ok(())
    }

    fn open_old(&self, parents: &mut Parents<'_>) -> io::Result<File> {
        parents.of(&self.entry.path)?.read(&self.name, Links::Refuse)
    }

    /// The incomplete copy; the first call creates it, with the blocks that were kept.
    fn partial(&mut self, session: &Session, parents: &mut Parents<'_>) -> io::Result<&File> {
        if self.partial.is_none() {
            let file = parents.of(&self.entry.path)?.create(&self.partial_name)?;
            // A file of one block is complete at once.
            if self.bytes > BLOCK_BYTES as u64 {
                try_lock(&file)?;
            }
            for (first, count) in std::mem::take(&mut self.kept) {
                self.copy_kept(session, parents, &file, first, count)?;
            }
            self.partial = Some(file);
        }
        self.partial.as_ref().ok_or_else(|| io::Error::other("no file"))
    }

    /// Copies blocks from the old file, which may have changed since they were hashed.
    fn copy_kept(
        &self,
        session: &Session,
        parents: &mut Parents<'_>,
        partial: &File,
        first: u64,
        count: u64,
    ) -> io::Result<()> {
        if !matches!(self.basis, Basis::Existing) {
            return Ok(());
        }
        let old = self.open_old(parents)?;
        let mut buffer = vec![0; BLOCK_BYTES];
        for index in first..first.saturating_add(count) {
            check(session, index)?;
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

    pub(super) fn write(
        &mut self,
        session: &Session,
        parents: &mut Parents<'_>,
        block: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        if block >= block_count(self.bytes) || bytes.len() != block_bytes(self.bytes, block) {
            return Err(io::Error::other("a block has the wrong length"));
        }
        self.insert(block, hash::of_block(self.bytes, block, bytes))?;
        // All of a new file.
        self.is_exact = self.partial.is_none() && bytes.len() as u64 == self.bytes;
        self.partial(session, parents)?.write_all_at(bytes, block * BLOCK_BYTES as u64)
    }

    fn insert(&mut self, block: u64, hash: Hash) -> io::Result<()> {
        self.tree.insert(block, hash).map_err(io::Error::other)
    }

    pub(super) fn hole(
        &mut self,
        session: &Session,
        parents: &mut Parents<'_>,
        first: u64,
        count: u64,
    ) -> io::Result<()> {
        // A new file is a hole where nothing is written.
        let is_fresh = self.partial.is_none();
        let (offset, length) =
            (first.saturating_mul(BLOCK_BYTES as u64), self.bytes_of(first, count));
        let partial = self.partial(session, parents)?;
        if !is_fresh && length > 0 && partial.metadata()?.len() > offset {
            punch(partial, offset, length)?;
        }
        let zeros = vec![0; BLOCK_BYTES];
        for block in first..first.saturating_add(count) {
            check(session, block)?;
            let zeros = &zeros[..block_bytes(self.bytes, block)];
            self.insert(block, hash::of_block(self.bytes, block, zeros))?;
        }
        Ok(())
    }

    pub(super) fn keep(
        &mut self,
        session: &Session,
        parents: &mut Parents<'_>,
        first: u64,
        count: u64,
    ) -> io::Result<()> {
        for block in first..first.saturating_add(count) {
            check(session, block)?;
            let known = self.known.get(&block).copied();
            let hash = known.ok_or_else(|| io::Error::other("a block to keep is not there"))?;
            self.insert(block, hash)?;
        }
        match &self.partial {
            Some(partial) => self.copy_kept(session, parents, partial, first, count),
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
    pub(super) fn complete(
        &mut self,
        session: &Session,
        parents: &mut Parents<'_>,
    ) -> io::Result<bool> {
        let Some(expected) = self.expected.filter(|_| self.tree.is_whole()) else {
            return Ok(false);
        };
        self.finish(session, parents, expected).map(|()| true)
    }

    fn finish(
        &mut self,
        session: &Session,
        parents: &mut Parents<'_>,
        expected: Hash,
    ) -> io::Result<()> {
        if self.tree.root() != Some(expected) {
            return Err(io::Error::other("its hash is not the sender's; copy it again"));
        }
        if let (Basis::Existing, None) = (&self.basis, &self.partial) {
            let old = self.open_old(parents)?;
            if old.metadata()?.len() == self.bytes && !self.known.is_empty() {
                // The old file is the same.
                return self.set_attributes(&old);
            }
        }
        let (bytes, is_whole) = (self.bytes, self.is_exact);
        let partial = self.partial(session, parents)?;
        if !is_whole {
            partial.set_len(bytes)?;
        }
        if let Some(partial) = &self.partial {
            self.set_attributes(partial)?;
        }
        parents.of(&self.entry.path)?.rename(&self.partial_name, &self.name)
    }

    fn set_attributes(&self, file: &File) -> io::Result<()> {
        fchmod(file, permissions(self.entry.mode))?;
        Ok(futimens(file, &times(self.entry.modified))?)
    }
}

/// Whether the copy goes on, asked at every 64th block.
fn check(session: &Session, block: u64) -> io::Result<()> {
    if block.is_multiple_of(CHECK_BLOCKS) {
        session.check().map_err(io::Error::other)?;
    }
    Ok(())
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// An incomplete copy of this user's that nobody else is writing. Anything else of that name
/// is removed.
fn open_partial(
    session: &Session,
    parent: &SharedDirectory,
    name: &[u8],
) -> io::Result<Option<File>> {
    let until = clock::now() + LOCK;
    loop {
        let stat = match parent.stat(name) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A hard link may be to somebody's file.
        let is_ours = is_file(&stat) && stat.st_nlink == 1 && stat.st_uid == geteuid().as_raw();
        if !is_ours {
            parent.remove(name)?;
            return Ok(None);
        }
        let Some(file) = parent.open_existing(name)? else { continue };
        match try_lock(&file) {
            Ok(()) => {}
            // The far end of a copy that was interrupted may not know it yet.
            Err(_) if clock::now() < until => {
                session.check().map_err(io::Error::other)?;
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            Err(error) => return Err(error),
        }
        // Meanwhile another copy may have completed the file and given it its name.
        let opened = fstat(&file)?;
        let is_same = parent.stat(name).is_ok_and(|named| {
            (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
                && opened.st_nlink == 1
                && opened.st_uid == stat.st_uid
                && is_file(&opened)
        });
        if is_same {
            return Ok(Some(file));
        }
    }
}

fn try_lock(file: &File) -> io::Result<()> {
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
