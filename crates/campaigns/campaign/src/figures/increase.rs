//! The increases of a UDT sender's rate against alpha(x), from samples: in each SYN without a NAK
//! the rate x rises by `alpha = 10^(ceil(log10(L - x)) - 9) x 1500/S` packets (Gu, Grossman 2007),
//! where L is the capacity that the receiver estimates.

use model::{UDT_SYN_S, udt_alpha};
use record::{Sample, Stream};
use units::BitRate;

/// Headers of IPv4, UDP and UDT, which the packet size S counts.
const HEADER_BYTES: u32 = 44;

/// Above this rate, in packets/s, the sender is in slow start, which its window alone limits.
const SLOW_START_PPS: f64 = 5e6;

/// Two samples further apart are not compared: the capacity in between is unknown, in s.
const MAX_S: f64 = 0.5;

/// After a decrease, the unused capacity counts as at most this share of the capacity.
const CAUTIOUS: f64 = 1.0 / 9.0;

/// The rate is controlled when an acknowledgement comes, which is each SYN at the earliest and
/// less often where one comes a little early: at least so many times alpha.
const MIN: f64 = 0.3;

/// Samples are rounded to bit/s, and the capacity changes between two of them.
const MAX: f64 = 1.05;

/// The increases of all streams.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Increases {
    /// Times between two samples without a NAK in which the rate rose.
    pub(super) count: u64,
    /// Of those, the ones in which it rose as alpha(x) has it.
    pub(super) by_alpha: u64,
    /// What the rate rose by, and alpha(x) in each SYN of that time, in packets/s.
    grown: f64,
    allowed: f64,
}

impl Increases {
    /// Of UDT's own control; `None` of another one.
    pub(super) fn of(streams: &[Stream]) -> Option<Self> {
        let own = |stream: &&Stream| stream.congestion.as_deref() == Some("udt");
        let mut all = Increases::default();
        for pair in streams.iter().filter(own).flat_map(|stream| stream.sender.windows(2)) {
            all.add(pair);
        }
        streams.iter().any(|stream| own(&stream)).then_some(all)
    }

    /// The growth of all of them over what alpha(x) is; `None` without any.
    pub(super) fn over_alpha(&self) -> Option<f64> {
        (self.allowed > 0.0).then(|| self.grown / self.allowed)
    }

    fn add(&mut self, pair: &[Sample]) {
        let [a, b] = pair else { return };
        let time = b.t_s - a.t_s;
        let (Some(from), Some(to)) = (packets_per_second(a), packets_per_second(b)) else { return };
        let compared = a.naks.is_some() && a.naks == b.naks && time > 0.0 && time <= MAX_S;
        let rises = to > from && from < SLOW_START_PPS && to < SLOW_START_PPS;
        let Some((least, most)) = alphas(a, b).filter(|_| compared && rises) else { return };
        let syns = time / UDT_SYN_S;
        let grown = to - from;
        self.count += 1;
        // A SYN that began before the first sample may end after it.
        if grown <= (syns + 1.0) * most * MAX && grown >= syns * least * MIN {
            self.by_alpha += 1;
        }
        self.grown += grown;
        self.allowed += syns * f64::midpoint(least, most);
    }
}

/// The sending rate.
fn packets_per_second(sample: &Sample) -> Option<f64> {
    let bits = f64::from(sample.mss_bytes) * 8.0;
    sample.pacing_rate_bps.filter(|_| bits > 0.0).map(|rate| rate as f64 / bits)
}

/// The least and the highest alpha(x) between two samples, in packets/s.
fn alphas(a: &Sample, b: &Sample) -> Option<(f64, f64)> {
    let packet = a.mss_bytes + HEADER_BYTES;
    let wire = |bps: u64| bps as f64 * f64::from(packet) / f64::from(a.mss_bytes);
    let capacities = [wire(a.capacity_bps?), wire(b.capacity_bps?)];
    let rates = [wire(a.pacing_rate_bps?), wire(b.pacing_rate_bps?)];
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (capacity, rate) in capacities.iter().flat_map(|c| rates.iter().map(move |r| (c, r))) {
        let unused = capacity - rate;
        for gap in [unused, unused.min(capacity * CAUTIOUS)] {
            let link = BitRate::from_bps_f64(gap.max(0.0));
            let alpha = udt_alpha(link, BitRate::ZERO, packet)?;
            (least, most) = (least.min(alpha), most.max(alpha));
        }
    }
    Some((least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1456;

    /// Samples each 100 ms of a sender towards 900 Mbit/s of payload, whose rate rises by so
    /// many packets in each SYN.
    fn rising(packets: f64) -> Vec<Sample> {
        let sample = |number: u32| Sample {
            t_s: f64::from(number) / 10.0,
            mss_bytes: MSS,
            naks: Some(3),
            capacity_bps: Some(900_000_000),
            pacing_rate_bps: Some(
                // A packet more in each SYN of 10 ms are 100 packets/s.
                (100e6 + f64::from(number) * 10.0 * packets * 100.0 * f64::from(MSS) * 8.0) as u64,
            ),
            ..Sample::default()
        };
        (0..20).map(sample).collect()
    }

    fn of(sender: Vec<Sample>) -> Increases {
        let congestion = Some("udt".to_owned());
        Increases::of(&[Stream { congestion, sender, ..Stream::default() }]).unwrap()
    }

    #[test]
    fn a_rate_that_rises_by_alpha_does() {
        // 900 Mbit/s of payload and headers less 100 to 123: the decade of 1 Gbit/s, and a packet.
        let found = of(rising(1.0));
        assert_eq!((found.count, found.by_alpha), (19, 19));
        assert!((found.over_alpha().unwrap() - 1.0).abs() < 0.1, "{found:?}");
        // Every second acknowledgement came too early to count.
        let slow = of(rising(0.5));
        assert_eq!((slow.count, slow.by_alpha), (19, 19));
    }

    #[test]
    fn one_that_rises_faster_or_slower_does_not() {
        for packets in [1.3, 5.0, 0.2, 0.01] {
            assert_eq!(of(rising(packets)).by_alpha, 0, "{packets}");
        }
    }

    #[test]
    fn only_rises_of_udt_s_own_control_without_naks_count() {
        let stream = Stream { sender: rising(1.0), ..Stream::default() };
        assert_eq!(Increases::of(&[stream]), None);
        let mut lossy = rising(1.0);
        (0..).zip(&mut lossy).for_each(|(number, sample)| sample.naks = Some(number));
        assert_eq!(of(lossy).count, 0);
        let mut falling = rising(1.0);
        let times: Vec<f64> = falling.iter().map(|sample| sample.t_s).collect();
        falling.reverse();
        falling.iter_mut().zip(times).for_each(|(sample, t_s)| sample.t_s = t_s);
        assert_eq!(of(falling).count, 0);
        let mut unknown = rising(1.0);
        unknown.iter_mut().for_each(|sample| sample.capacity_bps = None);
        assert_eq!((of(unknown).count, of(Vec::new()).over_alpha()), (0, None));
    }
}
