//! Hashes of some of a file's blocks, as one end tells them the other: runs in ascending
//! order.

use crate::budget::Share;

/// Memory of a run besides its hashes, bytes.
const RUN_BYTES: usize = 128;

/// Runs of hashes, within a share of a budget.
#[derive(Debug)]
pub(crate) struct BlockHashes<H> {
    runs: Vec<(u64, Box<[H]>)>,
    share: Share,
    /// Most of the budget that may be held with them.
    most: usize,
}

impl<H: Copy> BlockHashes<H> {
    /// None yet. They are counted in `share`, as long as no more than `most` of its budget is
    /// held.
    pub(crate) const fn new(share: Share, most: usize) -> Self {
        BlockHashes { runs: Vec::new(), share, most }
    }

    /// The first block that may come next.
    pub(crate) fn end(&self) -> u64 {
        self.runs.last().map_or(0, |(first, hashes)| first + hashes.len() as u64)
    }

    /// Adds the hashes of the blocks from `first` on, which is not before the end. False, and
    /// they are not kept, where the budget has no room for them.
    pub(crate) fn push(&mut self, first: u64, hashes: Box<[H]>) -> bool {
        if hashes.is_empty() {
            return true;
        }
        let is_kept = self.share.add_within(RUN_BYTES + size_of_val(&*hashes), self.most);
        if is_kept {
            self.runs.push((first, hashes));
        }
        is_kept
    }

    /// The hash of a block.
    pub(crate) fn get(&self, block: u64) -> Option<H> {
        let behind = self.runs.partition_point(|(first, _)| *first <= block);
        let (first, hashes) = self.runs.get(behind.checked_sub(1)?)?;
        hashes.get(usize::try_from(block - first).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn runs_are_found_and_bounded() {
        let budget = Budget::new(10_000);
        let mut hashes = BlockHashes::new(budget.take(0).unwrap(), 2 * RUN_BYTES + 5);
        assert_eq!((hashes.end(), hashes.get(0)), (0, None));
        assert!(hashes.push(3, [1, 2].into()) && hashes.push(5, [].into()));
        assert!(hashes.push(7, [3_u8, 4, 5].into()));
        let found: Vec<_> = (0..11).map(|block| hashes.get(block)).collect();
        let expected =
            [None, None, None, Some(1), Some(2), None, None, Some(3), Some(4), Some(5), None];
        assert_eq!((found, hashes.end()), (expected.to_vec(), 10));
        assert!(!hashes.push(10, [6].into()));
        assert_eq!((hashes.end(), hashes.get(10)), (10, None));
    }
}
