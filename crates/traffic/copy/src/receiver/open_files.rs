//! Which files of a thread may be open: those that something came for last.

use crate::budget::{Budget, Share};
use std::collections::VecDeque;
use std::sync::Arc;

/// Files of one thread that are open at a time. With their directories and old files, the
/// threads of a copy have less than 64 descriptors.
const MAX_OPEN: usize = 24;

/// The open files of one thread, by their numbers. One is always allowed; each other one takes
/// from a budget that all copies of a server share.
#[derive(Debug)]
pub(super) struct OpenFiles {
    budget: Arc<Budget>,
    /// One less than there are files.
    shares: Vec<Share>,
    /// The one that was used last comes last.
    files: VecDeque<u32>,
}

impl OpenFiles {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        OpenFiles { budget: Arc::clone(budget), shares: Vec::new(), files: VecDeque::new() }
    }

    /// A file was used, and is open or not. Gives those that are to be closed instead.
    pub(super) fn used(&mut self, id: u32, is_open: bool) -> Vec<u32> {
        self.files.retain(|other| *other != id);
        if is_open {
            self.files.push_back(id);
        }
        let mut to_close = Vec::new();
        while self.files.len() > self.shares.len() + 1 {
            let share = (self.files.len() <= MAX_OPEN).then(|| self.budget.take(1)).flatten();
            match share {
                Some(share) => self.shares.push(share),
                None => to_close.extend(self.files.pop_front()),
            }
        }
        self.shares.truncate(self.files.len().saturating_sub(1));
        to_close
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_was_not_used_for_longest_is_closed() {
        let budget = Budget::new(100);
        let mut open = OpenFiles::new(&budget);
        let most = MAX_OPEN as u32;
        for id in 0..most {
            assert_eq!(open.used(id, true), [0; 0]);
        }
        assert_eq!(open.used(0, true), [0; 0]);
        assert_eq!(open.used(most, true), [1]);
        assert_eq!(open.used(2, false), [0; 0]);
        assert_eq!(open.used(most + 1, true), [0; 0]);
        assert_eq!(open.used(most + 2, true), [3]);
        assert_eq!(budget.peak(), MAX_OPEN - 1);
    }

    #[test]
    fn copies_share_what_there_is_and_each_has_one() {
        let budget = Budget::new(2);
        let (mut one, mut other) = (OpenFiles::new(&budget), OpenFiles::new(&budget));
        assert_eq!((1..=3).flat_map(|id| one.used(id, true)).count(), 0);
        assert_eq!(other.used(1, true), [0; 0]);
        assert_eq!(other.used(2, true), [1]);
        assert_eq!(one.used(3, false), [0; 0]);
        assert_eq!(other.used(3, true), [0; 0]);
        drop(one);
        assert_eq!(other.used(4, true), [0; 0]);
        assert_eq!(other.used(5, true), [2]);
    }
}
