//! One direction between the captures in figures.

use crate::outcome::{PacketFate, PacketRow};
use crate::reordering::Reordering;
use crate::transit::Transit;

/// Delays of a direction, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelaySummary {
    /// Packets with a delay.
    pub count: u64,
    /// Least.
    pub min_ns: i64,
    /// Median.
    pub median_ns: i64,
    /// 95th percentile.
    pub p95_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
    /// Largest.
    pub max_ns: i64,
    /// Mean difference of the delays of consecutive packets (RFC 3393, absolute).
    pub jitter_ns: f64,
}

/// Losses one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossBursts {
    /// How many (loss periods of RFC 3357).
    pub count: u64,
    /// Packets of the longest one.
    pub longest: u64,
}

/// What happened to the packets that go one way.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitSummary {
    /// From which capture to which.
    pub transit: Transit,
    /// Packets of the first capture that would have passed the second while it ran.
    pub sent: u64,
    /// Packets of these that are not, or not entirely, in the second one.
    pub lost: u64,
    /// Of these, super-segments of which a part arrived.
    pub partly_lost: u64,
    /// Segments that were lost, those of super-segments counted by the segments of the
    /// other capture.
    pub lost_segments: u64,
    /// Bytes of payload that were lost.
    pub lost_bytes: u64,
    /// Losses one after the other.
    pub bursts: LossBursts,
    /// Packets that were duplicated in between.
    pub duplicated: u64,
    /// Packets of the second capture alone.
    pub only_after: u64,
    /// Packets that the other capture did not run for.
    pub outside: u64,
    /// Reordering in between, flow by flow.
    pub reordering: Reordering,
    /// Delays; `None` without a packet.
    pub delays: Option<DelaySummary>,
}

impl TransitSummary {
    /// Sums up rows, which are sorted by time.
    pub(crate) fn of(transit: Transit, rows: &[PacketRow], reordering: Reordering) -> Self {
        let mut it = TransitSummary {
            transit,
            sent: 0,
            lost: 0,
            partly_lost: 0,
            lost_segments: 0,
            lost_bytes: 0,
            bursts: LossBursts::default(),
            duplicated: 0,
            only_after: 0,
            outside: 0,
            reordering,
            delays: None,
        };
        let mut burst = 0;
        let mut last = None;
        for row in rows.iter().filter(|row| row.transit == transit) {
            let number = if transit == Transit::AToB { row.a } else { row.b };
            match row.fate {
                PacketFate::Delivered => {
                    // A super-segment has several rows.
                    if last != number {
                        it.sent += 1;
                    }
                    last = number;
                    burst = 0;
                }
                PacketFate::Lost | PacketFate::PartlyLost => {
                    it.lost += 1;
                    it.lost_segments += u64::from(row.segments);
                    it.lost_bytes += u64::from(row.bytes);
                    if row.fate == PacketFate::Lost {
                        it.sent += 1;
                    } else {
                        it.partly_lost += 1;
                    }
                    if burst == 0 {
                        it.bursts.count += 1;
                    }
                    burst += 1;
                    it.bursts.longest = it.bursts.longest.max(burst);
                }
                PacketFate::Duplicated => it.duplicated += 1,
                PacketFate::OnlyAfter => it.only_after += 1,
                PacketFate::Outside => it.outside += 1,
            }
        }
        let of = rows.iter().filter(|row| row.transit == transit);
        it.delays = DelaySummary::of(of.filter_map(|row| row.delay_ns).collect());
        it
    }

    /// Lost packets as a share of those that were sent.
    #[must_use]
    pub fn loss_share(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 / self.sent as f64 }
    }
}

impl DelaySummary {
    /// `delays` are in the order in which the packets were sent.
    fn of(mut delays: Vec<i64>) -> Option<Self> {
        let count = delays.len();
        let differences: f64 = delays.windows(2).map(|pair| pair[1].abs_diff(pair[0]) as f64).sum();
        delays.sort_unstable();
        // Nearest rank: the smallest value that at least this share does not exceed.
        let rank = |share: f64| {
            let place = (share * count as f64).ceil() as usize;
            delays.get(place.clamp(1, count.max(1)) - 1).copied()
        };
        Some(DelaySummary {
            count: count as u64,
            min_ns: *delays.first()?,
            median_ns: rank(0.5)?,
            p95_ns: rank(0.95)?,
            p99_ns: rank(0.99)?,
            max_ns: *delays.last()?,
            jitter_ns: differences / (count.max(2) - 1) as f64,
        })
    }
}
