//! A window that stays as it is: in results of tools that report neither the sender's timers nor
//! what it waited for.
//!
//! A sender that a receive window or a send buffer limits does not fill its congestion window,
//! which therefore stops growing (RFC 7661, section 4.3; Linux: `tcp_is_cwnd_limited`, at most
//! twice what was in flight). Without losses, its window, its rate and its RTT stay the same. A
//! path that is full has a queue whose RTT grows, or loses packets; a requested rate is a round
//! number, and a clock keeps it.

use model::IpVersion;
use model::statistics::median;
use record::{Caveat, Measurement, Sample, Stream, Unavailable};
use units::BitRate;

/// Intervals that show a level: their number, and their share of all.
const MIN: usize = 3;
const SHARE: f64 = 0.5;

/// The ramp-up ends with the first interval of at least this share of the level.
const REACHED: f64 = 0.9;

/// Intervals differ from the level by at most this share, or by this many bytes: iperf3 counts
/// writes of 128 KiB.
const LEVEL: f64 = 0.1;
const WRITES: f64 = 1.5 * WRITE;
const WRITE: f64 = 131_072.0;

/// The congestion window varies by at most this factor, and grows by at most these shares from one
/// half of the level to the other: where it is not filled, and where it is.
const CONSTANT: f64 = 1.03;
const GROWN: f64 = 0.005;
const GROWN_FILLED: f64 = 0.001;
const FILLED: f64 = 0.9;

/// Shares of the congestion window that a fixed window may fill: slow start grows it to twice that.
const FILLS: std::ops::RangeInclusive<f64> = 0.4..=1.1;

/// The queueing delay, of the minimum RTT, is at most this, and paths are no shorter: below, the
/// RTT under load is that of hosts and of their queues.
const QUEUED: f64 = 0.1;
const SHORTEST_S: f64 = 0.005;

/// Shares of the receiver's window from which that is the limit, and below which it is not.
const OPEN: f64 = 0.75;

/// A requested rate makes up for slow start: the average is at least this share of the level.
const CAUGHT_UP: f64 = 0.98;

/// Half of the default maximum of Linux's `tcp_rmem` (6 MiB), and how near to it counts.
pub(crate) const HALF_OF_DEFAULT: f64 = 3_145_728.0;
pub(crate) const NEAR: f64 = 0.08;

/// What keeps the rate of a test the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ConstantRate {
    /// The rate of all streams, bit/s.
    pub(crate) rate: f64,
    pub(crate) reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reason {
    /// The receive window or the send buffer.
    Window,
    /// The receiver's window is known, and larger.
    SendBuffer,
    /// The payload rate of an Ethernet line.
    Line,
    /// A rate that may have been requested, or a window.
    Undecided,
}

/// One stream's level.
struct Level {
    /// Bit/s.
    rate: f64,
    flight: f64,
    /// The receiver's window, in bytes, if it is known.
    receiver: Option<f64>,
    /// Whether its bytes keep to a clock.
    is_clocked: bool,
    /// The precision of its rate, as a share.
    precision: f64,
}

/// The constant rate, if all streams have one, and the reason is not known without this.
pub(crate) fn find(m: &Measurement) -> Option<ConstantRate> {
    let is_paced =
        m.spec.rate_bps.is_some_and(|rate| rate > BitRate::ZERO) || m.spec.fq_rate_bps.is_some();
    if m.streams.is_empty() || is_paced {
        return None;
    }
    let levels: Vec<Level> = m.streams.iter().map(level).collect::<Option<_>>()?;
    let rate = levels.iter().map(|level| level.rate).sum();
    let is_open = |level: &Level| level.receiver.is_some_and(|window| level.flight < OPEN * window);
    let reason = if is_line(rate) {
        Reason::Line
    } else if m.lacks(Unavailable::RequestedRate) && may_be_requested(m, &levels) {
        Reason::Undecided
    } else if levels.iter().all(is_open) {
        Reason::SendBuffer
    } else if levels.iter().all(|level| level.receiver.is_none()) {
        Reason::Window
    } else {
        return None;
    };
    Some(ConstantRate { rate, reason })
}

fn level(stream: &Stream) -> Option<Level> {
    let is_paced = stream.congestion.as_deref().is_some_and(|name| name.contains("bbr"));
    let omitted_losses = stream.caveats.iter().any(|caveat| {
        matches!(caveat, Caveat::OmittedSeconds { retransmits, .. } if *retransmits != Some(0))
    });
    let samples = &stream.sender;
    if is_paced || omitted_losses || samples.last()?.retransmits > 0 {
        return None;
    }
    let pairs: Vec<(&Sample, &Sample)> = samples.iter().zip(samples.iter().skip(1)).collect();
    let seconds = |(before, after): &(&Sample, &Sample)| after.t_s - before.t_s;
    let whole = median(&pairs.iter().map(seconds).collect::<Vec<_>>())?;
    // The last interval may be a short one.
    let pairs: Vec<_> = pairs.into_iter().filter(|pair| seconds(pair) > 0.5 * whole).collect();
    let bytes = |(before, after): &(&Sample, &Sample)| {
        after.delivered_bytes.saturating_sub(before.delivered_bytes) as f64
    };
    let rates: Vec<f64> = pairs.iter().map(|pair| bytes(pair) / seconds(pair)).collect();
    let typical = median(rates.get(rates.len() / 2..)?)?;
    let begin = rates.iter().position(|rate| *rate >= REACHED * typical)?;
    // What the first full interval has of the ramp-up, or what filled the send buffer in it.
    let begin = if begin > 0 || rates.first()? > &typical { begin + 1 } else { begin };
    let (kept, of_level) = (pairs.get(begin..)?, rates.get(begin..)?);
    if kept.len() < MIN || (kept.len() as f64) < SHARE * pairs.len() as f64 || typical <= 0.0 {
        return None;
    }
    let rate = of_level.iter().sum::<f64>() / of_level.len() as f64;
    let allowed = (LEVEL * rate).max(WRITES / whole);
    if of_level.iter().any(|one| (one - rate).abs() > allowed) {
        return None;
    }
    let of = |read: fn(&Sample) -> f64| kept.iter().map(|(_, s)| read(s)).collect::<Vec<f64>>();
    let (windows, rtts) = (of(|s| s.cwnd_bytes as f64), of(|s| f64::from(s.rtt_us) / 1e6));
    let rtt = median(&rtts)?;
    let least = samples.iter().filter_map(|s| s.min_rtt_us).min().map(|us| f64::from(us) / 1e6)?;
    if least < SHORTEST_S || rtt > (1.0 + QUEUED) * least {
        return None;
    }
    let (flight, cwnd) = (rate * rtt, median(&windows)?);
    let filled = flight / cwnd.max(1.0);
    if !FILLS.contains(&filled) || !is_constant(&windows, filled) {
        return None;
    }
    let receiver: Vec<f64> =
        kept.iter().filter_map(|(_, s)| s.peer_window_bytes).map(|bytes| bytes as f64).collect();
    let all = of_level.iter().sum::<f64>() * whole;
    Some(Level {
        rate: 8.0 * rate,
        flight,
        receiver: median(&receiver),
        is_clocked: is_clocked(of_level, rate, whole),
        precision: WRITE / all.max(1.0),
    })
}

/// Whether a congestion window stays, by its values in the order of time.
fn is_constant(windows: &[f64], filled: f64) -> bool {
    let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
    let most = windows.iter().copied().fold(0.0, f64::max);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let (early, late) = windows.split_at(windows.len() / 2);
    let grown = if filled < FILLED { GROWN } else { GROWN_FILLED };
    most <= CONSTANT * least && (mean(late) / mean(early).max(1.0) - 1.0).abs() <= grown
}

/// Whether the bytes sent never differ from the clock by more than a write.
fn is_clocked(rates: &[f64], mean: f64, seconds: f64) -> bool {
    let mut ahead = 0.0;
    rates.iter().all(|rate| {
        ahead += (rate - mean) * seconds;
        f64::abs(ahead) <= WRITES
    })
}

/// Whether the level may be a rate that was requested: a round number, which a clock keeps, and no
/// window that a kernel has by default.
fn may_be_requested(m: &Measurement, levels: &[Level]) -> bool {
    m.streams.iter().zip(levels).all(|(stream, level)| {
        let average = stream.sender.last().map_or(0.0, |s| 8.0 * s.delivered_bytes as f64 / s.t_s);
        let is_default = (level.flight / HALF_OF_DEFAULT - 1.0).abs() <= NEAR;
        let is_round = |half_steps| is_round(level.rate, half_steps, level.precision);
        average >= CAUGHT_UP * level.rate
            && level.is_clocked
            && (is_round(1.0) || (is_round(2.0) && !is_default))
    })
}

/// Whether a number is near a multiple of its power of ten, or of a half of that.
fn is_round(rate: f64, parts: f64, precision: f64) -> bool {
    let step = 10_f64.powf(rate.log10().floor()) / parts;
    let nearest = (rate / step).round() * step;
    (rate / nearest - 1.0).abs() <= precision.max(0.001)
}

/// Whether a rate is that of a full Ethernet line.
fn is_line(rate: f64) -> bool {
    let rate = BitRate::from_bps_f64(rate);
    [IpVersion::Ipv4, IpVersion::Ipv6].iter().any(|ip| model::line_class(rate, *ip).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::sampled;
    use record::ToolResult;

    /// Ten seconds at a rate in Mbit/s over an RTT in ms, one sample a second, of a file without
    /// timers; the first second is a ramp-up if it is not omitted.
    fn file(mbit: f64, rtt_ms: f64, change: impl Fn(usize, &mut Sample)) -> Measurement {
        let per_second = mbit * 1e6 / 8.0;
        let flight = per_second * rtt_ms / 1e3;
        let us = (rtt_ms * 1e3) as u32;
        let samples = (0..=10).map(|index| {
            let bytes = (per_second * (index as f64 - 0.4).max(0.0)) as u64;
            let mut s = Sample {
                t_s: index as f64,
                written_bytes: bytes,
                acked_bytes: bytes,
                delivered_bytes: bytes,
                mss_bytes: 1448,
                cwnd_bytes: (flight * 1.4) as u64,
                in_flight_bytes: flight as u64,
                rtt_us: us,
                min_rtt_us: Some(us),
                ..Sample::default()
            };
            change(index, &mut s);
            s
        });
        let mut m = sampled(samples.collect());
        m.streams[0].received_bytes = m.streams[0].sender[10].acked_bytes;
        m.streams[0].received_seconds = 10.0;
        m.streams[0].congestion = Some("cubic".to_owned());
        m.tool = Some(ToolResult {
            tool: "tool".to_owned(),
            transfer: String::new(),
            unavailable: vec![
                Unavailable::SenderTimers,
                Unavailable::ReceiveWindow,
                Unavailable::RequestedRate,
            ],
            next_test: String::new(),
        });
        m
    }

    fn reason(m: &Measurement) -> Option<Reason> {
        find(m).map(|found| found.reason)
    }

    fn is_found(m: &Measurement) -> bool {
        reason(m) == Some(Reason::Window)
    }

    #[test]
    fn a_level_without_losses_is_a_fixed_window() {
        for (mbit, rtt) in [(85.0, 296.0), (3.3, 60.0), (410.0, 61.0), (4.9, 150.0)] {
            assert!(is_found(&file(mbit, rtt, |_, _| {})), "{mbit} {rtt}");
            let noisy = file(mbit, rtt, |index, s| {
                s.delivered_bytes += (mbit * 1e3) as u64 * (index as u64 * 7 % 3);
                s.rtt_us += 300 * (index as u32 % 3);
            });
            assert!(is_found(&noisy), "{mbit} {rtt} with noise");
        }
        let found = crate::explain(&file(85.0, 296.0, |_, _| {}));
        assert_eq!(found.limit, Some(record::Limit::FixedWindow));
        assert!(found.sentence.contains("fixed window of 3.1"), "{}", found.sentence);
        assert!(found.sentence.contains("tcp_rmem") && found.sentence.contains("tcp_wmem"));
    }

    #[test]
    fn what_grows_loses_or_queues_is_none() {
        let not = |what: &str, change: &dyn Fn(usize, &mut Sample)| {
            assert!(!is_found(&file(85.0, 100.0, change)), "{what}");
        };
        not("one loss", &|index, s| s.retransmits = u64::from(index > 3));
        not("a window that grows", &|index, s| s.cwnd_bytes += 40_000 * index as u64);
        not("a queue", &|index, s| {
            s.rtt_us = if index < 2 { 100_000 } else { 115_000 };
            s.min_rtt_us = Some(100_000);
        });
        not("a short path", &|_, s| (s.rtt_us, s.min_rtt_us) = (4_000, Some(4_000)));
        not("mostly idle", &|_, s| s.cwnd_bytes *= 4);
        let half = |mbit: f64| file(mbit, 100.0, |index, s| s.delivered_bytes >>= index % 2);
        assert!(!is_found(&half(85.0)), "a rate that varies");
        let mut bbr = file(85.0, 100.0, |_, _| {});
        bbr.streams[0].congestion = Some("bbr".to_owned());
        assert!(!is_found(&bbr));
        let mut omitted = file(85.0, 100.0, |_, _| {});
        omitted.streams[0].caveats =
            vec![Caveat::OmittedSeconds { seconds: 3.0, retransmits: Some(4) }];
        assert!(!is_found(&omitted));
    }

    #[test]
    fn a_full_line_and_a_requested_rate_are_none() {
        let line = file(941.5, 30.0, |_, _| {});
        assert_eq!(reason(&line), Some(Reason::Line));
        assert_eq!(crate::explain(&line).limit, Some(record::Limit::PathRate));
        let mut asked = file(83.0, 100.0, |_, _| {});
        asked.spec.rate_bps = Some("83mbit".parse().unwrap());
        assert!(!is_found(&asked));
        // Without the ramp-up a round number may have been requested.
        let omitted = |mbit: f64| {
            let mut m = file(mbit, 100.0, |_, s| {
                s.delivered_bytes = (mbit * 1e6 / 8.0 * s.t_s) as u64;
                s.acked_bytes = s.delivered_bytes;
            });
            m.streams[0].received_bytes = m.streams[0].sender[10].acked_bytes;
            m
        };
        assert!(is_found(&omitted(21.0)) && is_found(&file(85.0, 100.0, |_, _| {})));
        for mbit in [20.0, 85.0] {
            let either = omitted(mbit);
            assert_eq!(reason(&either), Some(Reason::Undecided), "{mbit}");
            assert_eq!(crate::explain(&either).limit, None, "{mbit}");
        }
    }

    #[test]
    fn a_receive_window_that_is_open_leaves_the_send_buffer() {
        let window = |share: f64| {
            let mut m = file(85.0, 100.0, |_, s| {
                s.peer_window_bytes = Some((s.in_flight_bytes as f64 / share) as u64);
            });
            m.tool.as_mut().unwrap().unavailable.retain(|one| *one != Unavailable::ReceiveWindow);
            m
        };
        assert_eq!(reason(&window(0.5)), Some(Reason::SendBuffer));
        assert_eq!(find(&window(0.9)), None);
        let found = crate::explain(&window(0.5));
        assert_eq!(found.limit, Some(record::Limit::SendBuffer), "{found:?}");
    }

    #[test]
    fn each_stream_has_its_window() {
        let mut m = file(20.4, 100.0, |_, _| {});
        m.streams = vec![m.streams[0].clone(); 4];
        m.spec.streams = 4;
        assert!((find(&m).unwrap().rate / 81.6e6 - 1.0).abs() < 0.01);
        let sentence = crate::explain(&m).sentence;
        assert!(sentence.contains("255 kB") && sentence.contains("each"), "{sentence}");
    }
}
