//! Super-segments cut into what the other capture has of them.
//!
//! GSO, TSO and GRO show up to 64 KiB (with BIG TCP up to 512) as one packet, where the
//! other capture has segments. Cut at each other's boundaries, both have the same ranges.

use std::ops::Bound;

/// A packet, or a range of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// The packet's place in the slice.
    pub(crate) packet: u32,
    /// First sequence number as A has it.
    pub(crate) seq: u32,
    /// Bytes.
    pub(crate) length: u32,
}

/// Ranges that a few packets may be cut into: the segments of a super-segment.
const MAX: usize = 64;

/// Cuts the ranges of both captures at the boundaries of the other's.
pub(crate) fn cut(a: &[Range], b: &[Range]) -> [Vec<Range>; 2] {
    let (of_a, of_b) = (boundaries(a), boundaries(b));
    // What one capture has in fewer and longer packets is as many ranges as the other has
    // packets, several times over where they were retransmitted.
    let most = (a.len() + b.len()).saturating_mul(2).saturating_add(MAX);
    [cut_at(a, &of_b, most), cut_at(b, &of_a, most)]
}

/// First and last sequence numbers of all ranges, sorted.
fn boundaries(ranges: &[Range]) -> Vec<u32> {
    let mut all: Vec<u32> =
        ranges.iter().flat_map(|it| [it.seq, it.seq.wrapping_add(it.length)]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn cut_at(ranges: &[Range], boundaries: &[u32], most: usize) -> Vec<Range> {
    let mut cut = Vec::with_capacity(ranges.len());
    let mut rest = ranges.len();
    for range in ranges {
        rest -= 1;
        let mut from = *range;
        for at in inside(boundaries, range) {
            if cut.len() + rest + 1 >= most {
                break;
            }
            let length = at.wrapping_sub(from.seq);
            cut.push(Range { length, ..from });
            from = Range { seq: *at, length: from.length - length, ..from };
        }
        cut.push(from);
    }
    cut
}

/// The boundaries that are within a range, in its order, modulo 2^32.
fn inside<'a>(boundaries: &'a [u32], range: &Range) -> impl Iterator<Item = &'a u32> + use<'a> {
    let end = range.seq.wrapping_add(range.length);
    let wraps = end < range.seq;
    let of = |from: Bound<u32>, to: Bound<u32>| {
        let start = match from {
            Bound::Excluded(from) => boundaries.partition_point(|it| *it <= from),
            _ => 0,
        };
        let stop = match to {
            Bound::Excluded(to) => boundaries.partition_point(|it| *it < to),
            _ => boundaries.len(),
        };
        boundaries.get(start..stop).unwrap_or_default()
    };
    let (first, second) = if range.length == 0 {
        (&[][..], &[][..])
    } else if wraps {
        (
            of(Bound::Excluded(range.seq), Bound::Unbounded),
            of(Bound::Unbounded, Bound::Excluded(end)),
        )
    } else {
        (of(Bound::Excluded(range.seq), Bound::Excluded(end)), &[][..])
    };
    first.iter().chain(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(list: &[(u32, u32)]) -> Vec<Range> {
        (0..)
            .zip(list)
            .map(|(packet, (seq, length))| Range { packet, seq: *seq, length: *length })
            .collect()
    }

    fn texts(list: &[Range]) -> Vec<(u32, u32, u32)> {
        list.iter().map(|it| (it.packet, it.seq, it.length)).collect()
    }

    #[test]
    fn a_super_segment_is_cut_into_the_segments() {
        let a = ranges(&[(1000, 3000)]);
        let b = ranges(&[(1000, 1000), (3000, 1000)]);
        let [a, b] = cut(&a, &b);
        // The middle one, which is lost, is between two that are not.
        assert_eq!(texts(&a), [(0, 1000, 1000), (0, 2000, 1000), (0, 3000, 1000)]);
        assert_eq!(texts(&b), [(0, 1000, 1000), (1, 3000, 1000)]);
    }

    #[test]
    fn numbers_wrap_and_acknowledgements_stay_whole() {
        let a = ranges(&[(u32::MAX - 499, 1000), (7, 0)]);
        let b = ranges(&[(u32::MAX - 499, 400), (u32::MAX - 99, 300), (200, 300)]);
        let [a, _] = cut(&a, &b);
        assert_eq!(
            texts(&a),
            [(0, u32::MAX - 499, 400), (0, u32::MAX - 99, 300), (0, 200, 300), (1, 7, 0)]
        );
    }

    #[test]
    fn packets_that_overlap_cost_no_more_than_the_budget() {
        let long = ranges(&vec![(0, 60_000); 2000]);
        let short = ranges(&(0..2000).map(|i| (i * 30, 30)).collect::<Vec<_>>());
        let [a, b] = cut(&long, &short);
        assert!(a.len() <= 2 * 4000 + MAX && b.len() == 2000, "{} {}", a.len(), b.len());
        // Nothing is lost by it: each packet keeps all of its bytes.
        let bytes: u64 = a.iter().map(|it| u64::from(it.length)).sum();
        assert_eq!(bytes, 60_000 * 2000);
    }
}
