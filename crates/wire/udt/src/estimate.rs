//! What a receiver estimates from arrivals: the rate at which packets arrive, and the
//! capacity of the path by packet pairs or by the trains of a sender like ours.

use units::Nanos;

/// Arrivals that give the rate.
const ARRIVALS: usize = 16;
/// The rate is known if more of them than this are near the median.
const MIN_ARRIVALS: usize = 8;
/// Pairs that give the capacity.
const PAIRS: usize = 64;
/// Interval of a pair before there are samples, ns.
const FIRST_PAIR_NS: u64 = 1_000_000;
/// Measured intervals that give the capacity by themselves. The library waits until they outnumber
/// the ones before there were samples: a flow that starts slowly beside others then takes several
/// seconds for it, in which its rate rises as on a path of 12 Mbit/s.
const MIN_PAIRS: usize = 16;
/// Intervals count if they are within this factor of the median.
const BAND: u64 = 8;

/// Arrivals within this time count as one, ns: trains of a paced sender, and what the
/// network or the host delivers together.
const MIN_INTERVAL_NS: u64 = 1_000_000;

/// Packets that arrived in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Arrival {
    /// At least [`MIN_INTERVAL_NS`].
    interval_ns: u64,
    packets: u64,
}

impl Arrival {
    const fn per_packet_ns(self) -> u64 {
        self.interval_ns / if self.packets == 0 { 1 } else { self.packets }
    }
}

/// Both estimates.
#[derive(Debug)]
pub(crate) struct ArrivalEstimator {
    arrivals: [Arrival; ARRIVALS],
    next_arrival: usize,
    /// All of them were measured.
    is_filled: bool,
    /// When the current interval began, and the packets since.
    last: Option<Nanos>,
    packets: u64,
    pairs: [u64; PAIRS],
    next_pair: usize,
    /// Of them, at most [`PAIRS`].
    measured_pairs: usize,
    /// When the first packet of a pair arrived.
    pair_began: Option<Nanos>,
    train: Train,
    /// Pairs since a train was measured.
    pairs_since_train: usize,
}

/// Packets that were sent together: they bear the same timestamp. Their dispersion at a
/// receiver is less disturbed by the scheduling of hosts than that of two packets.
#[derive(Debug, Default)]
struct Train {
    timestamp_us: u32,
    /// The packet that continues it.
    next: u64,
    first: Nanos,
    latest: Nanos,
    packets: u64,
    /// Packets before those that arrived at `latest`.
    before_latest: u64,
}

/// Packets of a train, at least, whose dispersion is measured.
const MIN_TRAIN: u64 = 8;

impl ArrivalEstimator {
    pub(crate) fn new() -> Self {
        ArrivalEstimator {
            arrivals: [Arrival { interval_ns: 0, packets: 0 }; ARRIVALS],
            next_arrival: 0,
            is_filled: false,
            last: None,
            packets: 0,
            pairs: [FIRST_PAIR_NS; PAIRS],
            next_pair: 0,
            measured_pairs: 0,
            pair_began: None,
            train: Train::default(),
            pairs_since_train: PAIRS,
        }
    }

    /// Packets arrived together.
    pub(crate) fn on_arrival(&mut self, now: Nanos, packets: u64) {
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        self.packets += packets;
        let interval_ns = now.nanos_since(last);
        if interval_ns < MIN_INTERVAL_NS {
            return;
        }
        self.arrivals[self.next_arrival] = Arrival { interval_ns, packets: self.packets };
        self.next_arrival = (self.next_arrival + 1) % ARRIVALS;
        self.is_filled |= self.next_arrival == 0;
        self.last = Some(now);
        self.packets = 0;
    }

    /// A packet arrived that was not missing before.
    pub(crate) fn on_packet(&mut self, arrived: Nanos, packet: u64, timestamp_us: u32) {
        let train = &mut self.train;
        if train.packets > 0 && train.next == packet && train.timestamp_us == timestamp_us {
            if arrived > train.latest {
                train.latest = arrived;
                train.before_latest = train.packets;
            }
            train.packets += 1;
            train.next = packet + 1;
            return;
        }
        if train.before_latest >= MIN_TRAIN {
            let interval_ns = train.latest.nanos_since(train.first) / train.before_latest;
            self.pairs_since_train = 0;
            self.add_interval(interval_ns.max(1));
        }
        self.train = Train {
            timestamp_us,
            next: packet + 1,
            first: arrived,
            latest: arrived,
            packets: 1,
            before_latest: 0,
        };
    }

    fn add_interval(&mut self, interval_ns: u64) {
        self.pairs[self.next_pair] = interval_ns;
        self.next_pair = (self.next_pair + 1) % PAIRS;
        self.measured_pairs = (self.measured_pairs + 1).min(PAIRS);
    }

    /// The first packet of a pair arrived.
    pub(crate) const fn begin_pair(&mut self, now: Nanos) {
        self.pair_began = Some(now);
    }

    /// The second packet of a pair arrived. A pair that was received as one train has lost
    /// its interval.
    pub(crate) fn end_pair(&mut self, now: Nanos) {
        if let Some(interval_ns) =
            self.pair_began.take().map(|began| now.nanos_since(began)).filter(|ns| *ns > 0)
        {
            self.pairs_since_train = self.pairs_since_train.saturating_add(1);
            if self.pairs_since_train > PAIRS {
                self.add_interval(interval_ns);
            }
        }
    }

    /// Arrival rate, packets a second; zero if there are too few intervals or too few of
    /// them are alike.
    pub(crate) fn arrival_pps(&self) -> u32 {
        if !self.is_filled {
            return 0;
        }
        let median = median(self.arrivals.map(Arrival::per_packet_ns));
        let alike = |arrival: &&Arrival| is_near(arrival.per_packet_ns(), median);
        let (mut count, mut packets, mut time_ns) = (0, 0, 0);
        for arrival in self.arrivals.iter().filter(alike) {
            count += 1;
            packets += arrival.packets;
            time_ns += arrival.interval_ns;
        }
        if count > MIN_ARRIVALS { rate(packets, time_ns) } else { 0 }
    }

    /// Capacity of the path, packets a second.
    pub(crate) fn capacity_pps(&self) -> u32 {
        let pairs = match self.measured_pairs {
            0..MIN_PAIRS => &self.pairs[..],
            measured => &self.pairs[..measured],
        };
        let median = *pairs.to_vec().select_nth_unstable(pairs.len() / 2).1;
        let (mut count, mut time_ns) = (1, median);
        for interval_ns in pairs.iter().filter(|interval| is_near(**interval, median)) {
            count += 1;
            time_ns += interval_ns;
        }
        rate(count, time_ns)
    }
}

const fn is_near(value: u64, median: u64) -> bool {
    value > median / BAND && value < median.saturating_mul(BAND)
}

fn median<const N: usize>(mut values: [u64; N]) -> u64 {
    *values.select_nth_unstable(N / 2).1
}

/// Packets a second, rounded up.
fn rate(packets: u64, time_ns: u64) -> u32 {
    let pps = (packets as f64 * 1e9 / time_ns.max(1) as f64).ceil();
    // Saturates.
    pps as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn arrivals_alike_give_the_rate_and_outliers_do_not_count() {
        let mut estimator = ArrivalEstimator::new();
        let mut now = 0;
        for index in 0..40_u64 {
            now += if index.is_multiple_of(4) { 90_000 * US } else { 2_000 * US };
            estimator.on_arrival(Nanos(now), 1);
        }
        assert_eq!(estimator.arrival_pps(), 500);
    }

    #[test]
    fn a_train_counts_with_its_packets() {
        let mut estimator = ArrivalEstimator::new();
        for index in 0..200 {
            // A pair and the train after it.
            for (after, packets) in [(0, 1), (1, 1), (2, 14)] {
                estimator.on_arrival(Nanos((index * 100 + after) * US), packets);
            }
        }
        assert_eq!(estimator.arrival_pps(), 160_000);
    }

    #[test]
    fn too_few_arrivals_give_no_rate() {
        let mut estimator = ArrivalEstimator::new();
        for index in 0..16_u64 {
            estimator.on_arrival(Nanos(index * 1_000 * US), 1);
            assert_eq!(estimator.arrival_pps(), 0);
        }
        let mut now = 0;
        for index in 0..17 {
            now += [1, 10, 100, 1_000][index % 4] * 1_000 * US;
            estimator.on_arrival(Nanos(now), 1);
        }
        assert_eq!(estimator.arrival_pps(), 0);
    }

    #[test]
    fn trains_give_the_capacity_and_pairs_then_do_not() {
        let mut estimator = ArrivalEstimator::new();
        for index in 0..100_u64 {
            let began = index * 500 * US;
            for packet in 0..20 {
                // Two at a time, as they are released by a host's timer.
                let arrived = Nanos(began + packet / 2 * 2 * 12 * US);
                estimator.on_packet(arrived, index * 20 + packet, index as u32);
            }
            estimator.begin_pair(Nanos(began));
            estimator.end_pair(Nanos(began + 300 * US));
        }
        assert_eq!(estimator.capacity_pps(), 83_334);
    }

    #[test]
    fn few_pairs_give_the_capacity() {
        let mut estimator = ArrivalEstimator::new();
        for index in 0..16 {
            assert_eq!(estimator.capacity_pps(), 1_000, "{index} pairs are too few");
            estimator.begin_pair(Nanos(index * 5_000 * US));
            estimator.end_pair(Nanos((index * 5_000 + 120) * US));
        }
        assert_eq!(estimator.capacity_pps(), 8_334);
    }

    #[test]
    fn pairs_give_the_capacity() {
        let mut estimator = ArrivalEstimator::new();
        assert_eq!(estimator.capacity_pps(), 1_000);
        for index in 0..64 {
            let now = index * 5_000 * US;
            estimator.begin_pair(Nanos(now));
            estimator.end_pair(Nanos(now + 12 * US));
            // Received together, and a second packet without its first: not counted.
            estimator.begin_pair(Nanos(now));
            estimator.end_pair(Nanos(now));
            estimator.end_pair(Nanos(now + 400 * US));
        }
        assert_eq!(estimator.capacity_pps(), 83_334);
    }
}
