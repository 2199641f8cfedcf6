//! BLAKE3 of a file whose blocks arrive in any order: the hash that `b3sum` prints, made of
//! the subtrees of its blocks (BLAKE3 paper section 2.1).

use crate::protocol::{BLOCK_BYTES, block_count};
use blake3::hazmat::{self, HasherExt, Mode};
use std::collections::BTreeMap;

/// Hash of a block or of a file.
pub type Hash = [u8; 32];

/// Blocks that may arrive before an earlier one, of one file.
const MAX_EARLY: usize = 1 << 16;

/// Hash of block `index` of a file of `file_bytes`: the chaining value of its subtree, or the
/// file's hash if it is the only one. An empty block is none of a file with several.
#[must_use]
pub fn of_block(file_bytes: u64, index: u64, block: &[u8]) -> Hash {
    if block_count(file_bytes) <= 1 || block.is_empty() {
        return *blake3::hash(block).as_bytes();
    }
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(index.saturating_mul(BLOCK_BYTES as u64));
    hasher.update(block);
    hasher.finalize_non_root()
}

/// The hash of a file, block by block.
#[derive(Debug)]
pub struct TreeHash {
    total: u64,
    /// Blocks that are merged into `subtrees`: all before it.
    next: u64,
    /// Whole subtrees, the largest first: one for each bit of `next`, before the last merges.
    subtrees: Vec<Hash>,
    early: BTreeMap<u64, Hash>,
}

/// The reason a block's hash was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongBlock {
    /// It is behind the end of the file.
    #[error("block {0} is beyond the end of the file")]
    BehindEnd(u64),
    /// It was there already.
    #[error("block {0} arrived twice")]
    Repeated(u64),
    /// Too many came before an earlier one.
    #[error("block {0} arrived far too early")]
    TooEarly(u64),
}

impl TreeHash {
    /// Of a file of `bytes`, of which no block is known.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        TreeHash {
            total: block_count(bytes),
            next: 0,
            subtrees: Vec::new(),
            early: BTreeMap::new(),
        }
    }

    /// Adds the hash of a block.
    ///
    /// # Errors
    /// The block cannot be one of the file, or not now.
    pub fn insert(&mut self, index: u64, hash: Hash) -> Result<(), WrongBlock> {
        if index >= self.total {
            return Err(WrongBlock::BehindEnd(index));
        }
        if index < self.next || self.early.contains_key(&index) {
            return Err(WrongBlock::Repeated(index));
        }
        if index > self.next {
            if self.early.len() >= MAX_EARLY {
                return Err(WrongBlock::TooEarly(index));
            }
            self.early.insert(index, hash);
            return Ok(());
        }
        self.push(hash);
        while let Some(hash) = self.early.remove(&self.next) {
            self.push(hash);
        }
        Ok(())
    }

    /// Subtrees are merged when the next block comes, because the last merge, which gives
    /// the root, differs from the others.
    fn push(&mut self, hash: Hash) {
        while self.subtrees.len() > self.next.count_ones() as usize {
            self.merge();
        }
        self.subtrees.push(hash);
        self.next += 1;
    }

    fn merge(&mut self) {
        if let (Some(right), Some(left)) = (self.subtrees.pop(), self.subtrees.pop()) {
            self.subtrees.push(hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
    }

    /// Blocks whose hashes wait for that of an earlier one.
    #[must_use]
    pub fn early_count(&self) -> usize {
        self.early.len()
    }

    /// Returns true if the hash of each block is known.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.next == self.total
    }

    /// The file's hash, once the hash of each block is known.
    #[must_use]
    pub fn root(&mut self) -> Option<Hash> {
        if !self.is_whole() {
            return None;
        }
        while self.subtrees.len() > 2 {
            self.merge();
        }
        match self.subtrees[..] {
            [] => Some(*blake3::hash(&[]).as_bytes()),
            [only] => Some(only),
            [left, right, ..] => {
                Some(*hazmat::merge_subtrees_root(&left, &right, Mode::Hash).as_bytes())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::block_bytes;

    fn hashed(bytes: &[u8], order: impl Iterator<Item = u64>) -> Option<Hash> {
        let size = bytes.len() as u64;
        let mut tree = TreeHash::new(size);
        for index in order {
            let begin = index as usize * BLOCK_BYTES;
            let block = &bytes[begin..begin + block_bytes(size, index)];
            tree.insert(index, of_block(size, index, block)).unwrap();
        }
        tree.root()
    }

    #[test]
    fn the_hash_is_that_of_the_whole_in_any_order() {
        let bytes: Vec<u8> = (0..13 * BLOCK_BYTES as u32 + 77)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let lengths = [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES];
        let more = (3..=13).flat_map(|n| [n * BLOCK_BYTES, n * BLOCK_BYTES + 77]);
        for length in lengths.into_iter().chain(more) {
            let bytes = &bytes[..length];
            let count = block_count(length as u64);
            let whole = Some(*blake3::hash(bytes).as_bytes());
            assert_eq!(hashed(bytes, 0..count), whole, "{length}");
            assert_eq!(hashed(bytes, (0..count).rev()), whole, "{length}");
            if count > 0 {
                assert_eq!(hashed(bytes, 1..count), None, "{length}");
            }
        }
    }

    #[test]
    fn wrong_blocks_are_refused() {
        // There is no subtree without data.
        let _ = of_block(3 * BLOCK_BYTES as u64, 3, &[]);
        let mut tree = TreeHash::new(3 * BLOCK_BYTES as u64);
        assert_eq!(tree.insert(3, [0; 32]), Err(WrongBlock::BehindEnd(3)));
        assert_eq!(tree.insert(1, [0; 32]), Ok(()));
        assert_eq!(tree.insert(1, [0; 32]), Err(WrongBlock::Repeated(1)));
        assert_eq!(tree.insert(0, [0; 32]), Ok(()));
        assert_eq!(tree.insert(1, [0; 32]), Err(WrongBlock::Repeated(1)));
        let mut tree = TreeHash::new(u64::MAX);
        for index in 1..=MAX_EARLY as u64 {
            assert_eq!(tree.insert(index, [0; 32]), Ok(()));
        }
        let last = MAX_EARLY as u64 + 1;
        assert_eq!(tree.insert(last, [0; 32]), Err(WrongBlock::TooEarly(last)));
    }
}
