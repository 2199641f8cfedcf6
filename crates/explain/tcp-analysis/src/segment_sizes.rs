//! The sizes of segments that arrive, and of those that are retransmitted and never do: what tells
//! a path MTU black hole from an outage (RFC 4821, section 7.6.2).

use record::SegmentSizes;
use std::collections::VecDeque;

/// Outstanding segments that are followed; with more, the oldest are forgotten.
const MAX: usize = 512;

/// Payload up to which no path loses segments because of their size, in bytes: every host takes
/// packets of 576 bytes (RFC 791, section 3.1).
const ALWAYS_FITS: u32 = 536;

/// A segment that is not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Outstanding {
    start: u64,
    end: u64,
    is_repeated: bool,
}

/// Follows one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct SizeTracker {
    outstanding: VecDeque<Outstanding>,
    largest: u32,
}

impl SizeTracker {
    pub(crate) fn send(&mut self, start: u64, end: u64) {
        if self.outstanding.len() >= MAX {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Outstanding { start, end, is_repeated: false });
    }

    pub(crate) fn repeat(&mut self, start: u64, end: u64) {
        let first = self.outstanding.partition_point(|it| it.end <= start);
        for segment in self.outstanding.iter_mut().skip(first).take_while(|it| it.start < end) {
            segment.is_repeated = true;
        }
    }

    /// `mss` bounds what a super-segment is on the path.
    pub(crate) fn acknowledge(&mut self, ack: u64, mss: u32) {
        while let Some(segment) = self.outstanding.front()
            && segment.end <= ack
        {
            self.largest = self.largest.max(length(segment).min(mss));
            self.outstanding.pop_front();
        }
    }

    pub(crate) fn sack(&mut self, left: u64, right: u64, mss: u32) {
        let at = self.outstanding.partition_point(|it| it.start < left);
        while let Some(segment) = self.outstanding.get(at)
            && segment.end <= right
        {
            self.largest = self.largest.max(length(segment).min(mss));
            self.outstanding.remove(at);
        }
    }

    /// The sizes; `None` where nothing was lost for good, or it is too small for size to matter.
    pub(crate) fn finish(&self, mss: u32) -> Option<SegmentSizes> {
        let lost = self.outstanding.iter().filter(|segment| segment.is_repeated);
        let smallest = lost.map(|segment| length(segment).min(mss)).min()?;
        (smallest > ALWAYS_FITS).then_some(SegmentSizes {
            largest_delivered_bytes: self.largest,
            smallest_lost_bytes: smallest,
            path_mtu_bytes: None,
        })
    }
}

fn length(segment: &Outstanding) -> u32 {
    u32::try_from(segment.end - segment.start).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    #[test]
    fn size_decides_where_all_that_is_lost_is_larger() {
        let mut sizes = SizeTracker::default();
        sizes.send(0, 600);
        sizes.acknowledge(600, MSS);
        sizes.send(600, 600 + 1448);
        sizes.send(2048, 2048 + 1448);
        assert_eq!(sizes.finish(MSS), None, "under way");
        sizes.repeat(600, 2048);
        let found = sizes.finish(MSS).unwrap();
        assert_eq!((found.largest_delivered_bytes, found.smallest_lost_bytes), (600, 1448));
        assert!(found.is_black_hole());
        // The second one arrives.
        sizes.sack(2048, 3496, MSS);
        assert!(!sizes.finish(MSS).unwrap().is_black_hole());
        sizes.acknowledge(3496, MSS);
        assert_eq!(sizes.finish(MSS), None);
    }

    #[test]
    fn small_segments_fit_every_path() {
        for (length, expected) in [(536, false), (537, true)] {
            let mut sizes = SizeTracker::default();
            sizes.send(0, length);
            sizes.repeat(0, length);
            assert_eq!(sizes.finish(MSS).is_some(), expected, "{length}");
        }
    }
}
