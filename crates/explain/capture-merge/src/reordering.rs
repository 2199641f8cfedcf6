//! Reordering by RFC 4737: a packet is reordered if one that was sent after it arrived
//! before it.

/// How much of a flow was reordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reordering {
    /// Packets that arrived later than one that was sent after them (section 3.3).
    pub packets: u64,
    /// The largest reordering extent: arrivals since the first one that overtook it
    /// (section 4.2.1).
    pub max_extent: u64,
    /// The largest late time: since the arrival of that one, in ns (section 4.2.2).
    pub max_late_ns: i64,
}

impl Reordering {
    /// Adds the packets of a flow in one direction, in the order they were sent: the time
    /// of each at the second capture, and its number there, which orders equal times.
    /// Returns the places of those that were reordered.
    pub(crate) fn add(&mut self, sent: &[(i64, u32)]) -> Vec<usize> {
        let mut reordered = Vec::new();
        let mut arrivals: Vec<((i64, u32), usize)> =
            sent.iter().copied().enumerate().map(|(place, arrival)| (arrival, place)).collect();
        arrivals.sort_unstable();
        // Arrivals that were the latest sent so far: place sent and order of arrival.
        let mut latest: Vec<(usize, usize)> = Vec::new();
        for (order, (arrival, place)) in arrivals.iter().enumerate() {
            if latest.last().is_none_or(|last| last.0 < *place) {
                latest.push((*place, order));
                continue;
            }
            let first = latest.partition_point(|it| it.0 < *place);
            let Some((_, overtook)) = latest.get(first) else { continue };
            let since = arrivals.get(*overtook).map_or(arrival.0, |it| it.0.0);
            // Ranges of one super-segment are no packets of their own.
            if arrivals.get(*overtook).is_some_and(|it| it.0 == *arrival) {
                continue;
            }
            self.packets += 1;
            reordered.push(*place);
            self.max_extent = self.max_extent.max((order - overtook) as u64);
            self.max_late_ns = self.max_late_ns.max(arrival.0.saturating_sub(since));
        }
        reordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arrivals: &[i64]) -> Reordering {
        let mut reordering = Reordering::default();
        let sent: Vec<(i64, u32)> = arrivals.iter().copied().zip(0..).collect();
        reordering.add(&sent);
        reordering
    }

    /// The example of RFC 4737, appendix: 1, 2, 3, 7, 8, 9, 10, 4, 5, 6.
    #[test]
    fn late_packets_count_and_early_ones_do_not() {
        let in_order = of(&[1, 2, 3, 4]);
        assert_eq!(in_order, Reordering::default());
        let three_late = of(&[1, 2, 3, 80, 90, 100, 40, 50, 60, 70]);
        assert_eq!(three_late.packets, 3);
        assert_eq!((three_late.max_extent, three_late.max_late_ns), (6, 60));
        // Equal times are in the order of the capture.
        assert_eq!(of(&[5, 5, 5]).packets, 0);
    }
}
