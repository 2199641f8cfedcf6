//! Bytes of the peer that have arrived before earlier ones, which another connection carries.
//!
//! ```text
//!   received                                             received + AHEAD_LIMIT
//!      ├─────────┬──────────┬───────┬────────────┬──────────────┤
//!      │ missing │ held     │       │ held       │              │
//!      └─────────┴──────────┴───────┴────────────┴──────────────┘
//! ```
//!
//! They are held in pages with a bit for each byte that is there, so what a peer can make this end
//! hold does not depend on how many gaps it leaves: at most 9/8 of [`AHEAD_LIMIT`], and two pages.

use crate::REPLAY_LIMIT;
use crate::chunk::Piece;
use crate::session::{CONTROL_LIMIT, MuxError};
use std::collections::VecDeque;

/// Bytes beyond those that were received without a gap: what a peer keeps for retransmission.
pub const AHEAD_LIMIT: u64 = (REPLAY_LIMIT + CONTROL_LIMIT) as u64;

/// Bytes of a page.
const PAGE: usize = 64 << 10;
/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// A page of the session's bytes.
#[derive(Debug)]
struct Page {
    bytes: Vec<u8>,
    /// A bit for each byte that is there, the lowest one first.
    present: Vec<u64>,
}

impl Page {
    fn new() -> Self {
        Page { bytes: vec![0; PAGE], present: vec![0; PAGE / WORD] }
    }

    /// Writes bytes, all of which lie in the page.
    fn write(&mut self, from: usize, bytes: &[u8]) {
        let to = from + bytes.len();
        if let Some(place) = self.bytes.get_mut(from..to) {
            place.copy_from_slice(bytes);
        }
        let words = self.present.iter_mut().enumerate();
        for (index, word) in words.take(to.div_ceil(WORD)).skip(from / WORD) {
            let start = from.saturating_sub(index * WORD);
            let end = (to - index * WORD).min(WORD);
            *word |= (u64::MAX << start) & (u64::MAX >> (WORD - end));
        }
    }

    /// The number of bytes from `from` on that are there.
    fn run(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(word) = self.present.get(at / WORD) {
            let count = (word >> (at % WORD)).trailing_ones() as usize;
            at += count;
            if count == 0 || !at.is_multiple_of(WORD) {
                break;
            }
        }
        at - from
    }
}

/// What one direction of a session holds beyond a gap.
#[derive(Debug, Default)]
pub struct Reassembly {
    /// Number of the first page.
    first: u64,
    pages: VecDeque<Option<Page>>,
}

/// The page of an offset, and the place in it.
const fn place(offset: u64) -> (u64, usize) {
    (offset / PAGE as u64, (offset % PAGE as u64) as usize)
}

impl Reassembly {
    /// Drops pages before an offset.
    fn advance(&mut self, received: u64) {
        let (page, _) = place(received);
        let passed = usize::try_from(page.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.pages.drain(..passed.min(self.pages.len()));
        self.first = page;
    }

    /// Holds a piece, of which what is before `received` is dropped.
    ///
    /// # Errors
    /// [`MuxError::Ahead`]: it is further ahead than a peer keeps bytes.
    pub fn hold(&mut self, received: u64, piece: Piece<'_>) -> Result<(), MuxError> {
        let Piece { mut offset, mut bytes } = piece;
        let end = offset.saturating_add(bytes.len() as u64);
        if end.saturating_sub(received) > AHEAD_LIMIT {
            return Err(MuxError::Ahead);
        }
        let known = usize::try_from(received.saturating_sub(offset)).unwrap_or(usize::MAX);
        bytes = bytes.get(known..).unwrap_or_default();
        offset = offset.max(received);
        self.advance(received);
        while !bytes.is_empty() {
            let (number, from) = place(offset);
            let (part, rest) = bytes.split_at(bytes.len().min(PAGE - from));
            // At most AHEAD_LIMIT / PAGE + 1.
            let index = usize::try_from(number - self.first).map_err(|_| MuxError::Ahead)?;
            if self.pages.len() <= index {
                self.pages.resize_with(index + 1, || None);
            }
            if let Some(page) = self.pages.get_mut(index) {
                page.get_or_insert_with(Page::new).write(from, part);
            }
            offset += part.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Takes bytes that follow at `received` without a gap; `None` if there is none.
    pub fn take(&mut self, received: u64) -> Option<Vec<u8>> {
        self.advance(received);
        let (_, from) = place(received);
        let first = self.pages.front_mut()?;
        let to = from + first.as_ref()?.run(from);
        if to == PAGE {
            let mut bytes = first.take()?.bytes;
            bytes.drain(..from);
            return Some(bytes);
        }
        let bytes = first.as_ref()?.bytes.get(from..to)?;
        (!bytes.is_empty()).then(|| bytes.to_vec())
    }

    /// Bytes of memory that pages have.
    #[cfg(test)]
    fn memory(&self) -> usize {
        self.pages.iter().flatten().count() * (PAGE + PAGE / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn byte(offset: u64) -> u8 {
        (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
    }

    fn bytes(from: u64, count: u64) -> Vec<u8> {
        (from..from + count).map(byte).collect()
    }

    /// One direction of a session: takes pieces, and checks what it gets in order.
    #[derive(Default)]
    struct Receiver {
        held: Reassembly,
        received: u64,
    }

    impl Receiver {
        fn from(received: u64) -> Self {
            Receiver { received, ..Receiver::default() }
        }

        fn take(&mut self, offset: u64, count: u64) -> Result<(), MuxError> {
            let bytes = bytes(offset, count);
            self.held.hold(self.received, Piece { offset, bytes: &bytes })?;
            while let Some(next) = self.held.take(self.received) {
                for value in next {
                    assert_eq!(value, byte(self.received), "at {}", self.received);
                    self.received += 1;
                }
            }
            Ok(())
        }
    }

    /// All orders of some chunks.
    fn permutations(left: &[(u64, u64)]) -> Vec<Vec<(u64, u64)>> {
        if left.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for index in 0..left.len() {
            let mut rest = left.to_vec();
            let one = rest.remove(index);
            all.extend(permutations(&rest).into_iter().map(|order| [&[one][..], &order].concat()));
        }
        all
    }

    #[test]
    fn every_order_of_chunks_leads_to_the_same_bytes() {
        let page = PAGE as u64;
        for begin in [0, 1, 63, page - 2, 3 * page + 65, u64::MAX - 4 * page] {
            // The last one overlaps the others.
            let chunks = [
                (begin, 1),
                (begin + 1, 64),
                (begin + 65, page),
                (begin + 65 + page, page + 7),
                (begin + 30, page),
            ];
            for order in permutations(&chunks) {
                let mut receiver = Receiver::from(begin);
                for (offset, count) in &order {
                    receiver.take(*offset, *count).unwrap();
                }
                assert_eq!(receiver.received - begin, 72 + 2 * page, "{order:?}");
                assert!(receiver.held.memory() <= 2 * (PAGE + PAGE / 8));
            }
        }
    }

    #[test]
    fn a_gap_is_waited_for_and_duplicates_are_dropped() {
        let mut receiver = Receiver::default();
        receiver.take(10, 10).unwrap();
        receiver.take(10, 10).unwrap();
        receiver.take(12, 20).unwrap();
        assert_eq!(receiver.received, 0);
        receiver.take(0, 9).unwrap();
        assert_eq!(receiver.received, 9);
        receiver.take(9, 1).unwrap();
        assert_eq!(receiver.received, 32);
        receiver.take(0, 32).unwrap();
        receiver.take(20, 13).unwrap();
        assert_eq!(receiver.received, 33);
    }

    #[test]
    fn what_is_too_far_ahead_is_refused() {
        let mut receiver = Receiver::from(5);
        assert_eq!(receiver.take(5 + AHEAD_LIMIT, 1), Err(MuxError::Ahead));
        assert_eq!(receiver.take(u64::MAX - 1, 1), Err(MuxError::Ahead));
        assert_eq!(receiver.take(4 + AHEAD_LIMIT, 2), Err(MuxError::Ahead));
        assert_eq!(receiver.held.memory(), 0);
        receiver.take(4 + AHEAD_LIMIT, 1).unwrap();
        assert_eq!(receiver.held.memory(), PAGE + PAGE / 8);
    }

    #[test]
    fn one_byte_pieces_with_gaps_hold_a_bounded_amount() {
        let mut receiver = Receiver::default();
        // In every page, and in one page as many gaps as there is room for.
        for offset in (1..AHEAD_LIMIT).step_by(PAGE / 2).chain((1..PAGE as u64).step_by(2)) {
            receiver.take(offset, 1).unwrap();
        }
        let most = usize::try_from(AHEAD_LIMIT).unwrap() / 8 * 9 + 2 * PAGE;
        assert!(receiver.held.memory() <= most, "{}", receiver.held.memory());
        assert_eq!(receiver.received, 0);
        for offset in (0..PAGE as u64).step_by(2) {
            receiver.take(offset, 1).unwrap();
        }
        assert_eq!(receiver.received, PAGE as u64);
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_are_all_received(
            sizes in prop::collection::vec(1_u64..100_000, 1..20),
            order in prop::collection::vec(any::<prop::sample::Index>(), 60),
        ) {
            let mut receiver = Receiver::from(77);
            let mut chunks = Vec::new();
            let mut at = 77;
            for size in sizes {
                chunks.push((at, size));
                at += size;
            }
            for index in order {
                let (offset, count) = *index.get(&chunks);
                receiver.take(offset, count).unwrap();
            }
            for (offset, count) in chunks {
                receiver.take(offset, count).unwrap();
            }
            prop_assert_eq!(receiver.received, at);
            prop_assert!(receiver.held.memory() <= PAGE + PAGE / 8);
        }
    }
}
