//! What a deciding test's rule compares.

use crate::evidence::Evidence;
use record::{Measurement, Protocol};
use units::BitRate;

/// Figures of one test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Payload received over the steady part.
    pub goodput: BitRate,
    /// Segments or datagrams sent.
    pub packets: f64,
    /// Share of segments that were retransmitted, or of datagrams that were lost.
    pub lost: f64,
    /// Datagrams lost in a row, as a mean; `None` for TCP, or without losses.
    pub run: Option<f64>,
    /// Share of datagrams that arrived late.
    pub reordered: f64,
}

impl Observation {
    /// From the samples and counters of a test.
    #[must_use]
    pub fn of(m: &Measurement) -> Self {
        let e = Evidence::gather(m);
        if m.spec.protocol == Protocol::Udp { udp(m, &e) } else { tcp(m, &e) }
    }
}

fn tcp(m: &Measurement, e: &Evidence) -> Observation {
    let mss = e.mss.map_or(f64::NAN, units::ByteCount::as_f64);
    let bytes: f64 = m.streams.iter().map(|stream| stream.received_bytes as f64).sum();
    let retransmits = e.retransmits as f64;
    let packets = bytes / mss + retransmits;
    Observation {
        goodput: e.goodput,
        packets: if packets.is_finite() { packets } else { 0.0 },
        lost: share(retransmits, packets),
        run: None,
        reordered: 0.0,
    }
}

fn udp(m: &Measurement, e: &Evidence) -> Observation {
    let datagrams = || m.streams.iter().filter_map(|stream| stream.datagrams.as_ref());
    let sum = |count: fn(&record::Datagrams) -> u64| -> f64 {
        datagrams().map(|datagrams| count(datagrams) as f64).sum()
    };
    let (received, lost) = (sum(|d| d.received), sum(|d| d.lost));
    let runs: f64 = datagrams().flat_map(|d| &d.loss_bursts).map(|burst| burst.count as f64).sum();
    Observation {
        goodput: e.goodput,
        packets: received + lost,
        lost: share(lost, received + lost),
        run: (runs > 0.0).then(|| lost / runs),
        reordered: share(sum(|d| d.reordered), received + lost),
    }
}

fn share(part: f64, whole: f64) -> f64 {
    let share = part / whole;
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::Observation;
    use crate::example::Example;
    use record::{Datagrams, LossBurst, Protocol, Sample, Stream};

    #[test]
    fn datagrams_are_counted() {
        let mut example = Example::new(10.0, 20.0);
        example.m.spec.protocol = Protocol::Udp;
        example.m.streams = vec![Stream {
            datagrams: Some(Datagrams {
                received: 960,
                lost: 40,
                reordered: 10,
                loss_bursts: vec![
                    LossBurst { from: 1, to: 1, count: 4 },
                    LossBurst { from: 2, to: 3, count: 12 },
                ],
                ..Datagrams::default()
            }),
            ..Stream::default()
        }];
        let seen = Observation::of(&example.m);
        assert_eq!((seen.packets, seen.lost, seen.reordered), (1000.0, 0.04, 0.01));
        assert_eq!(seen.run, Some(2.5));
    }

    #[test]
    fn segments_are_counted() {
        let mut example = Example::new(10.0, 20.0);
        let at = |t_s: f64, retransmits: u64| Sample {
            t_s,
            retransmits,
            mss_bytes: 1000,
            rtt_us: 20_000,
            delivered_bytes: (t_s * 1e5) as u64,
            acked_bytes: (t_s * 1e5) as u64,
            ..Sample::default()
        };
        example.m.streams[0].sender = (0..=100).map(|i| at(f64::from(i) / 10.0, 10)).collect();
        example.m.streams[0].received_bytes = 990_000;
        let seen = Observation::of(&example.m);
        assert_eq!((seen.packets, seen.lost, seen.run), (1000.0, 0.01, None));
        let nothing = Observation::of(&Example::nothing().m);
        assert_eq!((nothing.packets, nothing.lost), (0.0, 0.0));
    }
}
