//! A file that is received. It grows beside the old one, under a name of its own, and takes
//! its place once its hash is verified.

use super::partial::{self, Identity, Partial, is_file, partial_name};
use super::{KNOWN_BYTES, Parents, permissions, times};
use crate::block_hashes::BlockHashes;
use crate::budget::{Budget, Share};
use crate::directory::Links;
use crate::protocol::hash::{self, Hash, TreeHash};
use crate::protocol::message::{Entry, EntryKind, MAX_HASHES};
use crate::protocol::path::RelativePath;
use crate::protocol::{BLOCK_BYTES, block_bytes, block_count};
use crate::sender::{CHECK_BLOCKS, Extents};
use crate::transport::Session;
use rustix::fs::{fchmod, fstat, futimens};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Hashes in one message: at the end of each the copy may be found to be over.
const BATCH: usize = MAX_HASHES / 4;
/// Memory of a block's hash that waits for an earlier block's: a part of a node of a B-tree
/// that is half full.
const EARLY_BYTES: usize = 96;

/// The file that holds the blocks that are kept.
#[derive(Debug)]
enum Basis {
    Nothing,
    /// The incomplete copy itself.
    Partial,
    /// The old file, which stays as it is until the new one is complete; as it was when it was
    /// hashed.
    Existing(Option<Identity>),
}

#[derive(Debug)]
pub(super) struct Incoming {
    entry: Entry,
    bytes: u64,
    basis: Basis,
    /// The incomplete copy, once there is one.
    partial: Partial,
    tree: TreeHash,
    /// Hashes of the blocks that the basis has, as many as there is memory for.
    known: BlockHashes<Hash>,
    /// There are more; those are hashed again.
    is_partly_known: bool,
    /// Blocks of the old file that are kept, until there is an incomplete copy.
    kept: Vec<(u64, u64)>,
    /// Memory of `tree` and `kept`.
    held: Share,
    /// The incomplete copy has the length of the whole.
    is_exact: bool,
    /// The sender's hash of the whole, once it has sent everything.
    expected: Option<Hash>,
}

impl Incoming {
    /// Looks for an incomplete copy and for the old file, unless the directory is new.
    pub(super) fn open(
        session: &Session,
        parents: &mut Parents<'_>,
        held: &Arc<Budget>,
        entry: Entry,
        is_new: bool,
    ) -> io::Result<Self> {
        let EntryKind::File(bytes) = entry.kind else {
            return Err(io::Error::other("not a file"));
        };
        let (mut partial, mut basis) = (Partial::None, Basis::Nothing);
        if !is_new {
            let (parent, name) = (parents.of(&entry.path)?, entry.path.split_last().1);
            match partial::find(session, &parent, &partial_name(name))? {
                Some(file) => (partial, basis) = (Partial::Open(file), Basis::Partial),
                // Else something different is there, or nothing.
                None if parent.stat(name).is_ok_and(|stat| is_file(&stat)) => {
                    basis = Basis::Existing(None);
                }
                None => {}
            }
        }
        let share = || held.take(0).ok_or_else(|| io::Error::other("no memory is left"));
        Ok(Incoming {
            tree: TreeHash::new(bytes),
            known: BlockHashes::new(share()?, KNOWN_BYTES),
            is_partly_known: false,
            kept: Vec::new(),
            held: share()?,
            is_exact: false,
            expected: None,
            entry,
            bytes,
            basis,
            partial,
        })
    }

    pub(super) fn path(&self) -> &RelativePath {
        &self.entry.path
    }

    fn name(&self) -> &[u8] {
        self.entry.path.split_last().1
    }

    /// Returns true if it has a descriptor.
    pub(super) const fn is_open(&self) -> bool {
        self.partial.is_open()
    }

    /// Gives back its descriptor, until more comes.
    pub(super) fn close(&mut self) {
        self.partial.close();
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
            Basis::Existing(_) => self.open_old(parents).ok(),
            Basis::Partial | Basis::Nothing => None,
        };
        let file = match (&old, &self.partial) {
            (Some(file), _) | (None, Partial::Open(file)) => file,
            _ => return Ok(()),
        };
        let Ok(stat) = fstat(file) else { return Ok(()) };
        if let Basis::Existing(identity) = &mut self.basis {
            *identity = Some(Identity::of(&stat));
        }
        let (known, is_partly_known) = (&mut self.known, &mut self.is_partly_known);
        let mut pass_on = |first, hashes: Vec<Hash>| {
            *is_partly_known |= !known.push(first, hashes[..].into());
            send(first, hashes)
        };
        let present = u64::try_from(stat.st_size).unwrap_or_default();
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
                pass_on(first, std::mem::take(&mut hashes))?;
            }
            if end > present {
                break;
            }
            if is_there {
                if hashes.is_empty() {
                    first = index;
                }
                hashes.push(hash::of_block(self.bytes, index, block));
            }
        }
        if !hashes.is_empty() {
            pass_on(first, hashes)?;
        }
        Ok(())
    }

    fn open_old(&self, parents: &mut Parents<'_>) -> io::Result<File> {
        parents.of(&self.entry.path)?.read(self.name(), Links::Refuse)
    }

    /// The incomplete copy; the first call creates it, with the blocks that were kept.
    fn partial(&mut self, session: &Session, parents: &mut Parents<'_>) -> io::Result<&File> {
        if !self.partial.is_open() {
            let (parent, name) = (parents.of(&self.entry.path)?, partial_name(self.name()));
            let file = match &self.partial {
                Partial::Closed(identity) => partial::reopen(&parent, &name, identity)?,
                Partial::Open(_) | Partial::None => {
                    let file = parent.create(&name)?;
                    // A file of one block is complete at once.
                    if self.bytes > BLOCK_BYTES as u64 {
                        partial::try_lock(&file)?;
                    }
                    for (first, count) in std::mem::take(&mut self.kept) {
                        self.copy_kept(session, parents, &file, first, count)?;
                    }
                    file
                }
            };
            self.partial = Partial::Open(file);
        }
        match &self.partial {
            Partial::Open(file) => Ok(file),
            Partial::Closed(_) | Partial::None => Err(io::Error::other("no file")),
        }
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
        let Basis::Existing(identity) = &self.basis else { return Ok(()) };
        let changed = || io::Error::other("the old file changed meanwhile; copy it again");
        let old = self.open_old(parents)?;
        let mut buffer = vec![0; BLOCK_BYTES];
        for index in first..first + count {
            check(session, index)?;
            let block = &mut buffer[..block_bytes(self.bytes, index)];
            let begin = index * BLOCK_BYTES as u64;
            old.read_exact_at(block, begin)?;
            let known = self.known.get(index);
            if known.is_some_and(|known| known != hash::of_block(self.bytes, index, block)) {
                return Err(changed());
            }
            partial.write_all_at(block, begin)?;
        }
        // Of blocks whose hashes are not held, nothing else says so.
        let is_same = !self.is_partly_known || *identity == Some(Identity::of(&fstat(&old)?));
        if is_same { Ok(()) } else { Err(changed()) }
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
        let is_new = matches!(self.partial, Partial::None);
        self.is_exact = is_new && bytes.len() as u64 == self.bytes;
        self.partial(session, parents)?.write_all_at(bytes, block * BLOCK_BYTES as u64)
    }

    /// Blocks in a row are some, which could otherwise be repeated without end, and the file's.
    fn check_range(&self, first: u64, count: u64) -> io::Result<()> {
        let end = first.checked_add(count).filter(|end| *end <= block_count(self.bytes));
        match end {
            Some(_) if count > 0 => Ok(()),
            Some(_) => Err(io::Error::other("a range of blocks is empty")),
            None => Err(io::Error::other("a range of blocks is beyond the end of the file")),
        }
    }

    fn insert(&mut self, block: u64, hash: Hash) -> io::Result<()> {
        self.tree.insert(block, hash).map_err(io::Error::other)?;
        let kept = self.kept.capacity() * size_of::<(u64, u64)>();
        if self.held.resize(self.tree.early_count() * EARLY_BYTES + kept) {
            return Ok(());
        }
        Err(io::Error::other("too many blocks of the copy's files arrived before earlier ones"))
    }

    pub(super) fn hole(
        &mut self,
        session: &Session,
        parents: &mut Parents<'_>,
        first: u64,
        count: u64,
    ) -> io::Result<()> {
        self.check_range(first, count)?;
        // A new file is a hole where nothing is written.
        let is_fresh = matches!(self.partial, Partial::None);
        let (offset, length) =
            (first.saturating_mul(BLOCK_BYTES as u64), self.bytes_of(first, count));
        let partial = self.partial(session, parents)?;
        if !is_fresh && length > 0 && partial.metadata()?.len() > offset {
            partial::punch(partial, offset, length)?;
        }
        let zeros = vec![0; BLOCK_BYTES];
        for block in first..first + count {
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
        self.check_range(first, count)?;
        let mut again = None;
        for block in first..first + count {
            check(session, block)?;
            let hash = match self.known.get(block) {
                Some(known) => known,
                None if self.is_partly_known => {
                    self.hash_again(session, parents, block, &mut again)?
                }
                None => return Err(io::Error::other("a block to keep is missing")),
            };
            self.insert(block, hash)?;
        }
        if !matches!(self.basis, Basis::Existing(_)) {
            return Ok(());
        }
        if matches!(self.partial, Partial::None) {
            match self.kept.last_mut() {
                Some((last, so_far)) if *last + *so_far == first => *so_far += count,
                _ => self.kept.push((first, count)),
            }
            return Ok(());
        }
        self.partial(session, parents)?;
        let Partial::Open(partial) = &self.partial else { return Ok(()) };
        self.copy_kept(session, parents, partial, first, count)
    }

    /// The hash of a block of the basis whose hash is not held. `again` is the basis, opened by
    /// the first call.
    fn hash_again(
        &mut self,
        session: &Session,
        parents: &mut Parents<'_>,
        block: u64,
        again: &mut Option<(File, Vec<u8>)>,
    ) -> io::Result<Hash> {
        if again.is_none() {
            let file = match self.basis {
                Basis::Existing(_) => self.open_old(parents)?,
                Basis::Partial => self.partial(session, parents)?.try_clone()?,
                Basis::Nothing => return Err(io::Error::other("a block to keep is missing")),
            };
            *again = Some((file, vec![0; BLOCK_BYTES]));
        }
        let Some((file, buffer)) = again else { return Err(io::Error::other("no file")) };
        let buffer = &mut buffer[..block_bytes(self.bytes, block)];
        file.read_exact_at(buffer, block.saturating_mul(BLOCK_BYTES as u64))?;
        Ok(hash::of_block(self.bytes, block, buffer))
    }

    /// The sender has sent all of it, and this is the hash of the whole.
    pub(super) fn expect(&mut self, hash: Hash) {
        self.expected = Some(hash);
    }

    /// Returns true if the sender has sent all of it.
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
        if let (Basis::Existing(_), Partial::None) = (&self.basis, &self.partial) {
            let old = self.open_old(parents)?;
            if old.metadata()?.len() == self.bytes && self.bytes > 0 {
                // The old file is the same.
                return self.set_attributes(&old);
            }
        }
        let (bytes, is_whole) = (self.bytes, self.is_exact);
        let partial = self.partial(session, parents)?;
        if !is_whole {
            partial.set_len(bytes)?;
        }
        if let Partial::Open(partial) = &self.partial {
            self.set_attributes(partial)?;
        }
        parents.of(&self.entry.path)?.rename(&partial_name(self.name()), self.name())
    }

    fn set_attributes(&self, file: &File) -> io::Result<()> {
        fchmod(file, permissions(self.entry.mode))?;
        Ok(futimens(file, &times(self.entry.modified))?)
    }
}

/// Checks, at every 64th block, that the copy goes on.
fn check(session: &Session, block: u64) -> io::Result<()> {
    if block.is_multiple_of(CHECK_BLOCKS) {
        session.check().map_err(io::Error::other)?;
    }
    Ok(())
}
