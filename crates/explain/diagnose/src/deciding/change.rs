//! The deciding tests, and the options that each one changes.

use crate::facts::Facts;
use record::Measurement;
use std::fmt;
use units::{BitRate, ByteCount};

/// A second test of the same path, different in one respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidingTest {
    /// With BBR, which does not respond to single losses.
    Bbr,
    /// With CUBIC, which paces nothing by itself.
    Cubic,
    /// With four times the streams.
    Streams,
    /// With UDP at half the goodput, as many packets: no queue or token bucket overflows.
    UdpBelow,
    /// With UDP at 1.5 times the goodput: datagrams need no acknowledgements.
    UdpAbove,
    /// For four times as long.
    Longer,
    /// Paced at 0.9 of the goodput: bursts overflow no queue or token bucket, and without them
    /// nothing else does.
    Paced,
    /// With socket buffers of 1 MiB, the best of the measured curve (docs/design/local-paths.md).
    SmallBuffers,
}

/// The factor on the number of streams, and the most that a test can have.
const TIMES_STREAMS: u32 = 4;
const MAX_STREAMS: u32 = 128;

/// The factor on the goodput of [`DecidingTest::Paced`].
const PACED_AT: f64 = 0.9;

/// The factor on the duration of [`DecidingTest::Longer`].
const TIMES_DURATION: f64 = 4.0;

/// The longest test that is proposed, in seconds.
const LONGEST_S: f64 = 600.0;

/// The options that a deciding test changes; `None` stays as it was. Prints as these options.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// `-C NAME`.
    pub congestion: Option<String>,
    /// `-P N`.
    pub streams: Option<u32>,
    /// `-u -b RATE`, for each stream.
    pub udp_rate: Option<BitRate>,
    /// `-t SECONDS`.
    pub seconds: Option<f64>,
    /// `-w SIZE`.
    pub window: Option<ByteCount>,
    /// The pacing rate of each stream, in words.
    pub pacing: Option<BitRate>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = [
            self.congestion.as_ref().map(|name| format!("-C {name}")),
            self.streams.map(|streams| format!("-P {streams}")),
            self.udp_rate.map(|rate| format!("-u -b {}kbit", rate.bps().div_ceil(1_000))),
            self.seconds.map(|seconds| format!("-t {seconds}")),
            self.window.map(|window| format!("-w {}K", window.bytes() >> 10)),
            self.pacing.map(|rate| format!("pacing at {rate}")),
        ];
        let options: Vec<String> = options.into_iter().flatten().collect();
        f.write_str(&options.join(" "))
    }
}

impl DecidingTest {
    /// The options to change for `m`, with a goodput of `goodput`; `None` if it was tested
    /// this way already, or if nothing arrived.
    #[must_use]
    pub fn change(self, m: &Measurement, goodput: BitRate) -> Option<Change> {
        let streams = m.spec.streams.max(1);
        let each = goodput.scaled(1.0 / f64::from(streams));
        let lasted = m.spec.duration_s().unwrap_or_else(|| m.seconds());
        let seconds = |times: f64| Some((times * lasted).ceil()).filter(|s| *s >= 1.0);
        let longer = |times: f64| seconds(times).map(|s| s.min(LONGEST_S));
        let none = Change::default();
        match self {
            DecidingTest::Bbr => (!Facts::of(m).is_bbr())
                .then(|| Change { congestion: Some("bbr".to_owned()), ..none }),
            DecidingTest::Cubic => (Facts::of(m).congestion_control != Some("cubic"))
                .then(|| Change { congestion: Some("cubic".to_owned()), ..none }),
            DecidingTest::Streams => {
                let more = streams.saturating_mul(TIMES_STREAMS);
                (more <= MAX_STREAMS).then_some(Change { streams: Some(more), ..none })
            }
            // At half the rate, as many packets take twice the time.
            DecidingTest::UdpBelow => (each > BitRate::ZERO).then(|| Change {
                udp_rate: Some(each.scaled(0.5)),
                seconds: longer(2.0),
                ..none
            }),
            DecidingTest::UdpAbove => {
                (each > BitRate::ZERO).then(|| Change { udp_rate: Some(each.scaled(1.5)), ..none })
            }
            DecidingTest::Longer => {
                let seconds = longer(TIMES_DURATION).filter(|s| *s >= 2.0 * lasted)?;
                Some(Change { seconds: Some(seconds), ..none })
            }
            DecidingTest::Paced => {
                let rate = Some(each.scaled(PACED_AT)).filter(|rate| *rate > BitRate::ZERO);
                let is_lower = m.spec.fq_rate_bps.is_none_or(|set| Some(set) > rate);
                rate.filter(|_| is_lower).map(|rate| Change { pacing: Some(rate), ..none })
            }
            DecidingTest::SmallBuffers => {
                let window = ByteCount::from_bytes(1 << 20);
                let smaller = m.spec.window_bytes.is_none_or(|set| set > window);
                smaller.then_some(Change { window: Some(window), ..none })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;

    #[test]
    fn a_change_prints_as_options() {
        let mut example = Example::new(48.0, 20.0);
        example.m.spec.streams = 2;
        let printed = |test: DecidingTest, m: &Measurement| {
            test.change(m, BitRate::from_bps(48_000_000)).map(|change| change.to_string())
        };
        for (test, options) in [
            (DecidingTest::Bbr, "-C bbr"),
            (DecidingTest::Streams, "-P 8"),
            (DecidingTest::UdpBelow, "-u -b 12000kbit -t 20"),
            (DecidingTest::UdpAbove, "-u -b 36000kbit"),
            (DecidingTest::Longer, "-t 40"),
            (DecidingTest::SmallBuffers, "-w 1024K"),
            (DecidingTest::Paced, "pacing at 21.6 Mbit/s"),
        ] {
            assert_eq!(printed(test, &example.m).as_deref(), Some(options));
        }
        assert_eq!(printed(DecidingTest::Cubic, &example.m), None, "it was CUBIC");
        example.m.streams[0].congestion = Some("bbr".to_owned());
        assert_eq!(printed(DecidingTest::Cubic, &example.m).as_deref(), Some("-C cubic"));
    }

    #[test]
    fn no_test_repeats_the_first_one() {
        let mut example = Example::new(48.0, 20.0);
        example.m.streams[0].congestion = Some("bbr".to_owned());
        example.m.spec.streams = 64;
        example.m.spec.seconds = 600.0;
        example.m.spec.window_bytes = Some(ByteCount::from_bytes(1000));
        let rate = BitRate::from_bps(48_000_000);
        for test in [
            DecidingTest::Bbr,
            DecidingTest::Streams,
            DecidingTest::Longer,
            DecidingTest::SmallBuffers,
        ] {
            assert_eq!(test.change(&example.m, rate), None, "{test:?}");
        }
        example.m.spec.fq_rate_bps = Some(BitRate::from_bps(1_000));
        assert_eq!(DecidingTest::Paced.change(&example.m, rate), None);
        for test in [DecidingTest::UdpBelow, DecidingTest::Paced] {
            assert_eq!(test.change(&example.m, BitRate::ZERO), None);
        }
        example.m.spec.seconds = f64::NAN;
        for test in [DecidingTest::Longer, DecidingTest::UdpBelow] {
            let seconds = test.change(&example.m, rate).and_then(|change| change.seconds);
            assert_eq!(seconds, None, "{test:?}");
        }
    }
}
