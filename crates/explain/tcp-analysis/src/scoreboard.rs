//! The sender's scoreboard, as segments and ACKs show it: what is in flight, delivered and
//! lost, the RTT and the delivery rate. The rules are those of Linux (`net/ipv4/tcp_input.c`,
//! `tcp_rate.c`): lost is what lies three segments below the highest SACK (RFC 6675), all of
//! it after a timeout; the rate is that of draft-cheng-iccrg-delivery-rate-estimation.

use std::collections::{BTreeMap, VecDeque};

/// Segments that are followed, and ranges of SACK blocks; a BDP of 380 MB. What is beyond is not
/// in the scoreboard.
pub(crate) const MAX: usize = 1 << 18;

/// Segments below the highest SACK at which one counts as lost (RFC 6675, `DupThresh`).
const DUP_THRESH: u64 = 3;

/// Steps over segments for each one sent: where retransmissions cost more, they are not followed
/// further.
const STEPS_PER_SEGMENT: u64 = 64;

/// A segment that is not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Sent {
    start: u64,
    end: u64,
    sent_ns: u64,
    /// Bytes delivered when it was sent, and since when: the start of its rate sample.
    delivered: u64,
    delivered_ns: u64,
    first_sent_ns: u64,
    sacked: bool,
    lost: bool,
    /// A retransmission of it is on the way.
    resent: bool,
    /// It was not retransmitted.
    is_original: bool,
}

/// What is known of one direction at its sender. Positions are bytes from its start, without
/// wrap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scoreboard {
    /// Segments that are not followed for lack of memory: [`MAX`] less the limit.
    fewer: usize,
    segments: VecDeque<Sent>,
    /// Ranges that SACK blocks have reported, from start to end.
    sacked: BTreeMap<u64, u64>,
    una: u64,
    nxt: u64,
    /// The end of the highest SACK.
    highest_sacked: u64,
    /// Below this each segment was looked at for loss.
    lost_to: u64,
    sacked_bytes: u64,
    lost_bytes: u64,
    /// Of the retransmissions that are on the way.
    resent_bytes: u64,
    delivered_bytes: u64,
    delivered_ns: u64,
    /// When the segment was sent that was delivered last.
    first_sent_ns: u64,
    steps: u64,
    segments_sent: u64,
    pub(crate) smoothed_rtt_ns: u64,
    pub(crate) rtt_deviation_ns: u64,
    pub(crate) min_rtt_ns: u64,
    pub(crate) delivery_rate_bps: u64,
    /// How often a segment was delivered after a later one, without a retransmission.
    pub(crate) reorderings: u32,
    /// Segments retransmitted.
    pub(crate) resent_segments: u64,
}

/// A sample of the delivery rate in the making: that of the segment delivered last.
#[derive(Debug, Default)]
struct Delivered {
    last: Option<Sent>,
    /// RTT of the first segment that was sent once.
    rtt_ns: Option<u64>,
    was_reordered: bool,
}

impl Scoreboard {
    /// First byte that is not acknowledged.
    pub(crate) const fn una(&self) -> u64 {
        self.una
    }

    /// First byte that was not sent.
    pub(crate) const fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes delivered, in order or by SACK.
    pub(crate) const fn delivered(&self) -> u64 {
        self.una + self.sacked_bytes
    }

    /// Bytes in flight: neither delivered nor lost (Linux's `tcp_packets_in_flight`).
    pub(crate) fn in_flight(&self) -> u64 {
        let gone = self.sacked_bytes + self.lost_bytes;
        (self.nxt - self.una).saturating_sub(gone) + self.resent_bytes
    }

    /// Whether a loss is being repaired.
    pub(crate) const fn in_recovery(&self) -> bool {
        self.lost_bytes > 0 || self.resent_bytes > 0
    }

    /// Follows at most so many segments.
    pub(crate) fn limit(&mut self, most: usize) {
        self.fewer = MAX.saturating_sub(most);
    }

    /// The RTT of the handshake, the first sample.
    pub(crate) fn start(&mut self, rtt_ns: u64) {
        self.sample_rtt(rtt_ns);
    }

    /// `start` to `end` is sent, in segments of `mss` bytes; a gap before it was sent with it,
    /// and lost before it came here.
    pub(crate) fn send(&mut self, start: u64, end: u64, mss: u64, now_ns: u64) {
        if self.segments.is_empty() && self.una == self.nxt {
            // After silence the rate's clock begins anew.
            self.first_sent_ns = now_ns;
            self.delivered_ns = now_ns;
        }
        if start < self.nxt {
            self.resend(start, end.min(self.nxt), mss, now_ns);
        }
        let mut at = self.nxt;
        while at < end && self.segments.len() + self.fewer < MAX {
            let next = if at < start { start } else { (at + mss.max(1)).min(end) };
            self.segments_sent += 1;
            self.segments.push_back(Sent {
                start: at,
                end: next,
                sent_ns: now_ns,
                delivered: self.delivered_bytes,
                delivered_ns: self.delivered_ns,
                first_sent_ns: self.first_sent_ns,
                sacked: false,
                lost: false,
                resent: false,
                is_original: true,
            });
            at = next;
        }
        self.nxt = self.nxt.max(end);
    }

    fn is_too_costly(&self) -> bool {
        self.steps > STEPS_PER_SEGMENT * (self.segments_sent + 1024)
    }

    /// The first segment that ends after `at`.
    fn find(&self, at: u64) -> usize {
        self.segments.partition_point(|segment| segment.end <= at)
    }

    fn resend(&mut self, start: u64, end: u64, mss: u64, now_ns: u64) {
        self.resent_segments += (end - start).div_ceil(mss.max(1)).max(1);
        if self.is_too_costly() {
            return;
        }
        for index in self.find(start)..self.segments.len() {
            self.steps += 1;
            let segment = &mut self.segments[index];
            if segment.start >= end {
                break;
            }
            if segment.sacked {
                continue;
            }
            let length = segment.end - segment.start;
            if !segment.lost {
                segment.lost = true;
                self.lost_bytes += length;
            }
            if !segment.resent {
                segment.resent = true;
                self.resent_bytes += length;
            }
            segment.is_original = false;
            segment.sent_ns = now_ns;
            segment.delivered = self.delivered_bytes;
            segment.delivered_ns = self.delivered_ns;
            segment.first_sent_ns = self.first_sent_ns;
        }
    }

    /// A retransmission timeout: all that is not delivered is lost.
    pub(crate) fn time_out(&mut self) {
        if self.is_too_costly() {
            return;
        }
        self.steps += self.segments.len() as u64;
        for segment in self.segments.iter_mut().filter(|segment| !segment.sacked) {
            let length = segment.end - segment.start;
            if !segment.lost {
                segment.lost = true;
                self.lost_bytes += length;
            }
            if segment.resent {
                // Linux forgets which ones it has retransmitted.
                self.resent_bytes -= length;
                segment.resent = false;
            }
        }
        self.lost_to = self.nxt;
    }

    /// An ACK of all before `ack`, with SACK blocks; without `takes_rtt` the time of its arrival
    /// is not known well enough for an RTT.
    pub(crate) fn acknowledge(
        &mut self,
        ack: u64,
        sacks: impl IntoIterator<Item = (u64, u64)>,
        mss: u64,
        now_ns: u64,
        takes_rtt: bool,
    ) {
        let mut delivered = Delivered::default();
        let ack = ack.min(self.nxt);
        let before = self.delivered();
        let highest = self.highest_sacked;
        if ack > self.una {
            while let Some(segment) = self.segments.front().copied()
                && segment.end <= ack
            {
                self.segments.pop_front();
                if segment.sacked {
                    self.sacked_bytes -= segment.end - segment.start;
                } else {
                    self.deliver(&segment, highest, now_ns, &mut delivered);
                }
            }
            self.una = ack;
            while let Some(range) = self.sacked.first_entry()
                && *range.get() <= ack
            {
                range.remove();
            }
        }
        for (left, right) in sacks {
            let (left, right) = (left.max(self.una), right.min(self.nxt));
            for (left, right) in self.not_yet_sacked(left, right) {
                self.sack(left, right, highest, now_ns, &mut delivered);
            }
        }
        self.find_losses(mss);
        if !takes_rtt {
            delivered.rtt_ns = None;
        }
        self.take_samples(before, &delivered, now_ns);
    }

    fn deliver(&mut self, segment: &Sent, highest: u64, now_ns: u64, delivered: &mut Delivered) {
        let length = segment.end - segment.start;
        if segment.lost {
            self.lost_bytes -= length;
        }
        if segment.resent {
            self.resent_bytes -= length;
        }
        if segment.is_original {
            delivered.was_reordered |= segment.end < highest;
            delivered.rtt_ns.get_or_insert(now_ns.saturating_sub(segment.sent_ns));
        }
        if delivered.last.is_none_or(|last| segment.sent_ns >= last.sent_ns) {
            delivered.last = Some(*segment);
        }
    }

    /// The parts of a block that no block before it reported; they count as reported now.
    fn not_yet_sacked(&mut self, left: u64, right: u64) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        if left >= right || self.sacked.len() + self.fewer >= MAX {
            return parts;
        }
        let (mut from, mut to, mut at) = (left, right, left);
        // From the last range that begins at or before the block.
        let first = self.sacked.range(..=left).next_back().map_or(left, |(start, _)| *start);
        let overlap = self.sacked.range(first..=right).filter(|(_, end)| **end >= left);
        let overlap: Vec<(u64, u64)> = overlap.map(|(start, end)| (*start, *end)).collect();
        for (start, end) in overlap {
            if start > at {
                parts.push((at, start));
            }
            at = at.max(end);
            (from, to) = (from.min(start), to.max(end));
            self.sacked.remove(&start);
        }
        if at < right {
            parts.push((at, right));
        }
        self.sacked.insert(from, to);
        parts
    }

    fn sack(
        &mut self,
        left: u64,
        right: u64,
        highest: u64,
        now_ns: u64,
        delivered: &mut Delivered,
    ) {
        for index in self.find(left)..self.segments.len() {
            let segment = self.segments[index];
            if segment.end > right {
                break;
            }
            if segment.sacked || segment.start < left {
                continue;
            }
            self.deliver(&segment, highest, now_ns, delivered);
            self.sacked_bytes += segment.end - segment.start;
            self.segments[index] = Sent { sacked: true, lost: false, resent: false, ..segment };
            self.highest_sacked = self.highest_sacked.max(segment.end);
        }
    }

    /// What lies three segments below the highest SACK is lost.
    fn find_losses(&mut self, mss: u64) {
        let below = self.highest_sacked.saturating_sub(DUP_THRESH * mss);
        if below <= self.lost_to.max(self.una) {
            return;
        }
        for index in self.find(self.lost_to)..self.segments.len() {
            let segment = &mut self.segments[index];
            if segment.end > below {
                break;
            }
            if !segment.sacked && !segment.lost {
                segment.lost = true;
                self.lost_bytes += segment.end - segment.start;
            }
        }
        self.lost_to = below;
    }

    /// RTT and rate of what an ACK delivered, and whether the path reorders.
    fn take_samples(&mut self, before: u64, delivered: &Delivered, now_ns: u64) {
        let Some(last) = delivered.last else { return };
        let new_bytes = self.delivered().saturating_sub(before);
        self.delivered_bytes += new_bytes;
        self.reorderings = self.reorderings.saturating_add(u32::from(delivered.was_reordered));
        if let Some(rtt) = delivered.rtt_ns.filter(|rtt| *rtt > 0) {
            self.sample_rtt(rtt);
        }
        let sending = last.sent_ns.saturating_sub(last.first_sent_ns);
        let arriving = now_ns.saturating_sub(last.delivered_ns);
        let interval = sending.max(arriving);
        // A sample over less than an RTT is no rate of the path.
        if interval >= self.min_rtt_ns && interval > 0 {
            let bytes = self.delivered_bytes - last.delivered;
            let rate = u128::from(bytes) * 8_000_000_000 / u128::from(interval);
            self.delivery_rate_bps = u64::try_from(rate).unwrap_or(u64::MAX);
        }
        self.delivered_ns = now_ns;
        self.first_sent_ns = last.sent_ns;
    }

    /// RFC 6298, section 2.
    fn sample_rtt(&mut self, rtt_ns: u64) {
        if self.min_rtt_ns == 0 || rtt_ns < self.min_rtt_ns {
            self.min_rtt_ns = rtt_ns;
        }
        if self.smoothed_rtt_ns == 0 {
            (self.smoothed_rtt_ns, self.rtt_deviation_ns) = (rtt_ns, rtt_ns / 2);
            return;
        }
        let error = self.smoothed_rtt_ns.abs_diff(rtt_ns);
        self.rtt_deviation_ns += error / 4;
        self.rtt_deviation_ns -= self.rtt_deviation_ns / 4;
        self.smoothed_rtt_ns = self.smoothed_rtt_ns - self.smoothed_rtt_ns / 8 + rtt_ns / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const MS: u64 = 1_000_000;

    /// Ten segments sent at 0, one each 1 ms.
    fn ten() -> Scoreboard {
        let mut board = Scoreboard::default();
        for index in 0..10 {
            board.send(index * MSS, (index + 1) * MSS, MSS, index * MS);
        }
        board
    }

    #[test]
    fn in_flight_is_what_is_neither_delivered_nor_lost() {
        let mut board = ten();
        assert_eq!(board.in_flight(), 10 * MSS);
        board.acknowledge(2 * MSS, [], MSS, 50 * MS, true);
        assert_eq!((board.in_flight(), board.delivered()), (8 * MSS, 2 * MSS));
        // Segment 2 is missing; it counts as lost once three segments beyond it have arrived.
        board.acknowledge(2 * MSS, [(3 * MSS, 5 * MSS)], MSS, 51 * MS, true);
        assert_eq!((board.in_flight(), board.delivered()), (6 * MSS, 4 * MSS));
        board.acknowledge(2 * MSS, [(3 * MSS, 6 * MSS)], MSS, 52 * MS, true);
        assert_eq!(board.in_flight(), 4 * MSS);
        assert!(board.in_recovery());
        board.send(2 * MSS, 3 * MSS, MSS, 53 * MS);
        assert_eq!((board.in_flight(), board.resent_segments), (5 * MSS, 1));
        board.acknowledge(10 * MSS, [], MSS, 100 * MS, true);
        assert_eq!((board.in_flight(), board.delivered()), (0, 10 * MSS));
        assert!(!board.in_recovery());
        assert_eq!(board.reorderings, 0);
    }

    #[test]
    fn a_timeout_loses_all_that_is_not_delivered() {
        let mut board = ten();
        board.acknowledge(0, [(4 * MSS, 5 * MSS)], MSS, 50 * MS, true);
        board.time_out();
        assert_eq!(board.in_flight(), 0);
        board.send(0, MSS, MSS, 300 * MS);
        assert_eq!(board.in_flight(), MSS);
    }

    #[test]
    fn an_original_after_a_later_segment_is_reordering() {
        let mut board = ten();
        board.acknowledge(0, [(MSS, 5 * MSS)], MSS, 50 * MS, true);
        board.acknowledge(5 * MSS, [], MSS, 51 * MS, true);
        assert_eq!(board.reorderings, 1);
        // A retransmission is none.
        board.acknowledge(5 * MSS, [(6 * MSS, 9 * MSS)], MSS, 52 * MS, true);
        board.send(5 * MSS, 6 * MSS, MSS, 53 * MS);
        board.acknowledge(9 * MSS, [], MSS, 90 * MS, true);
        assert_eq!(board.reorderings, 1);
    }

    #[test]
    fn rtt_is_of_segments_sent_once_and_rate_of_a_round_trip() {
        let mut board = ten();
        for index in 0..10 {
            board.acknowledge((index + 1) * MSS, [], MSS, (50 + index) * MS, true);
        }
        assert_eq!((board.min_rtt_ns, board.smoothed_rtt_ns), (50 * MS, 50 * MS));
        // The last segment was sent 9 ms after the first delivery began: 10 segments in 59 ms.
        assert_eq!(board.delivery_rate_bps, 10 * MSS * 8 * 1000 / 59);
        board.send(10 * MSS, 11 * MSS, MSS, 60 * MS);
        board.send(10 * MSS, 11 * MSS, MSS, 100 * MS);
        board.acknowledge(11 * MSS, [], MSS, 110 * MS, true);
        assert_eq!(board.min_rtt_ns, 50 * MS);
    }

    #[test]
    fn a_block_counts_once() {
        let mut board = ten();
        assert_eq!(board.not_yet_sacked(2, 4), [(2, 4)]);
        assert_eq!(board.not_yet_sacked(2, 4), []);
        assert_eq!(board.not_yet_sacked(6, 8), [(6, 8)]);
        assert_eq!(board.not_yet_sacked(1, 9), [(1, 2), (4, 6), (8, 9)]);
        assert_eq!(board.not_yet_sacked(3, 9), []);
        assert_eq!(board.sacked, BTreeMap::from([(1, 9)]));
    }

    #[test]
    fn a_gap_was_sent_and_lost_before() {
        let mut board = Scoreboard::default();
        board.send(0, MSS, MSS, 0);
        board.send(3 * MSS, 4 * MSS, MSS, 0);
        assert_eq!((board.nxt(), board.in_flight()), (4 * MSS, 4 * MSS));
        board.acknowledge(MSS, [(3 * MSS, 4 * MSS)], MSS, MS, true);
        assert_eq!(board.in_flight(), 2 * MSS);
    }

    /// Retransmissions of everything, over and over, cost no more than so many steps.
    #[test]
    fn work_is_bounded() {
        let mut board = Scoreboard::default();
        for byte in 0..10_000 {
            board.send(byte, byte + 1, 1, 0);
        }
        for _ in 0..10_000 {
            board.send(0, 10_000, 1, 0);
            board.time_out();
        }
        assert!(board.steps < STEPS_PER_SEGMENT * 11_024 + 20_000, "{}", board.steps);
    }
}
