//! A measurement and its evidence for the causes' tests.

use crate::{
    causes::Observed, evidence::Evidence, facts::Facts, next_limit::NextLimit, remedy::Goal,
    statistics::Statistic,
};
use record::{Measurement, PathReport, Remedy, Sample, Shares, Stream};
use units::{BitRate, ByteCount, Rtt};

/// What a cause is explained from, to be changed by the test.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub(crate) m: Measurement,
    pub(crate) e: Evidence,
    pub(crate) shares: Option<Shares>,
}

impl Example {
    /// One CUBIC stream of `mbit` over an idle RTT of `rtt_ms`, 10 s, MSS 1448.
    pub(crate) fn new(mbit: f64, rtt_ms: f64) -> Self {
        let mut example = Example::nothing();
        example.m.spec.seconds = 10.0;
        example.m.streams =
            vec![Stream { congestion: Some("cubic".to_owned()), ..Stream::default() }];
        let rate = BitRate::from_bps_f64(mbit * 1e6);
        let rtt = Rtt::from_secs(rtt_ms / 1e3);
        let window = ByteCount::from_bytes(4 << 20);
        example.e = Evidence {
            goodput: rate,
            average: rate,
            streams: 1,
            min_rtt: Some(rtt),
            loaded_rtt: Some(rtt),
            mean_rtt: Some(rtt),
            mss: Some(ByteCount::from_bytes(1448)),
            windows: Some(vec![window]),
            held: Some(window),
            cwnd: Some(model::bdp(rate, rtt)),
            delivery: Some(rate),
            pacing: Some(rate),
            losses: 100.0,
            ..example.e
        };
        example.e.steady.to_s = 10.0;
        example.shares = Some(Shares { network: 1.0, ..Shares::default() });
        example
    }

    /// A test without streams.
    pub(crate) fn nothing() -> Self {
        let m = Measurement::default();
        let e = Evidence::gather(&m);
        Example { m, e, shares: None }
    }

    /// Over a known path of `mbit` (IP packets of 1500 bytes) and the same RTT, with a
    /// queue of one BDP.
    pub(crate) fn on_path(mut self, mbit: u64) -> Self {
        let (rate, rtt) = (BitRate::from_bps(mbit * 1_000_000), self.e.min_rtt.unwrap_or_default());
        self.m.path = Some(PathReport {
            rate_bps: Some(rate),
            rtt,
            queue_bytes: Some(model::bdp(rate, rtt)),
            mtu_bytes: 1500,
            ..PathReport::default()
        });
        self
    }

    pub(crate) fn observed(&self) -> Observed<'_> {
        let facts = Facts::of(&self.m);
        Observed { m: &self.m, facts, e: &self.e, shares: self.shares }
    }

    /// The remedies of one cause, for the known path.
    pub(crate) fn remedies(&self, cause: &dyn crate::causes::Cause) -> Vec<Remedy> {
        let goal = Goal::of_path(&self.m);
        cause.remedies(&NextLimit::new(goal.as_ref(), self.observed()))
    }
}

/// A sender's samples, one every 100 ms, at a constant `mbit` over an RTT of 20 ms, with a
/// window of 100 segments of 1000 bytes; `change` sets what matters, by the sample's number.
pub(crate) fn samples(seconds: f64, mbit: f64, change: impl Fn(u64, &mut Sample)) -> Vec<Sample> {
    let count = (seconds * 10.0) as u64;
    let sample = |index: u64| {
        let t_s = index as f64 / 10.0;
        let bytes = (t_s * mbit * 125_000.0) as u64;
        let mut sample = Sample {
            t_s,
            acked_bytes: bytes,
            delivered_bytes: bytes,
            mss_bytes: 1_000,
            cwnd_bytes: 100_000,
            rtt_us: 20_000,
            min_rtt_us: Some(20_000),
            busy_us: (t_s * 1e6) as u64,
            ..Sample::default()
        };
        change(index, &mut sample);
        sample
    };
    (0..=count).map(sample).collect()
}

/// A measurement of one sender with these samples.
pub(crate) fn sampled(sender: Vec<Sample>) -> Measurement {
    let mut m = Example::nothing().m;
    m.spec.seconds = sender.last().map_or(0.0, |sample| sample.t_s);
    m.streams = vec![Stream { sender, ..Stream::default() }];
    m
}

/// A statistic of 10 s at 10 Mbit/s with these samples.
pub(crate) fn statistic(name: &str, change: impl Fn(u64, &mut Sample)) -> Option<f64> {
    crate::prepared(&sampled(samples(10.0, 10.0, change)))
        .over(0.0, 10.0)
        .get(Statistic::named(name).unwrap())
}

/// Asserts that a statistic is within 2 % of what is expected.
pub(crate) fn close(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() < 0.02 * expected.abs().max(1.0), "{value} {expected}");
}
