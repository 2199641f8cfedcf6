//! UDT: the limit and the sentence, from the connection's own state.
//!
//! A UDT sender knows its period, the receiver's free buffer and NAKs. Random loss and
//! losses of a full queue differ in the RTT: a queue delays before it overflows.

use crate::evidence::Evidence;
use crate::facts::{CPU_FULL, Facts, HELD};
use crate::shares;
use record::{Limit, Measurement, Sample, Shares};
use std::time::Duration;
use units::{BitRate, ByteCount, percent};

/// Headers of IPv4, UDP and UDT.
const HEADER_BYTES: f64 = 44.0;
/// Queueing delay from which a queue has built up: this share of the minimum RTT, and ms.
const QUEUED: (f64, f64) = (0.1, 3.0);
/// UDT's moving average of the RTT begins at 100 ms: it is settled after this time, s.
const SETTLED_S: f64 = 1.0;
/// BBR version 3 takes more lost packets than these as congestion.
const BBR_LOSS: f64 = 0.02;
/// Growth of the rate over the test from which it is still rising.
const RISING: f64 = 1.05;

/// What is said of a UDT test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Explanation {
    pub(crate) limit: Option<Limit>,
    pub(crate) sentence: String,
    /// The rate that the limit's equation predicts, and the equation.
    pub(crate) prediction: Option<(BitRate, String)>,
    pub(crate) shares: Option<Shares>,
}

/// What showed losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Losses {
    Naks(u64),
    Retransmissions(u64),
}

impl Losses {
    const fn count(self) -> u64 {
        match self {
            Losses::Naks(count) | Losses::Retransmissions(count) => count,
        }
    }
}

impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Losses::Naks(_) => "NAK",
            Losses::Retransmissions(_) => "retransmission",
        };
        let plural = if self.count() == 1 { "" } else { "s" };
        write!(f, "{} {name}{plural}", self.count())
    }
}

/// The figures of the steady part.
struct Figures {
    /// NAKs received, or in native mode packets retransmitted.
    losses: Losses,
    /// Maximum queueing delay, ms.
    queueing_ms: f64,
    /// Capacity of the path as the receiver estimates it: payload.
    capacity: Option<BitRate>,
    /// Bytes of a full packet's payload.
    payload_bytes: f64,
    /// The receiver's free buffer.
    window: Option<ByteCount>,
}

pub(crate) fn explain(facts: &Facts<'_>, e: &Evidence) -> Explanation {
    let m = facts.m;
    let shares = shares::over(m, e.steady.from_s, e.steady.to_s);
    let Some(figures) = Figures::of(m, e) else {
        let sentence = format!("{} arrived; the sender's samples are unavailable.", e.average);
        return Explanation { limit: None, sentence, prediction: None, shares };
    };
    let limit = limit(facts, e, shares.as_ref(), &figures);
    let prediction = prediction(limit, facts, e, &figures);
    let sentence = sentence(limit, facts, e, &figures);
    Explanation { limit: Some(limit), sentence, prediction, shares }
}

fn limit(facts: &Facts<'_>, e: &Evidence, shares: Option<&Shares>, figures: &Figures) -> Limit {
    let m = facts.m;
    let share = |of: fn(&Shares) -> f64| shares.map_or(0.0, of);
    let is_full = |core: Option<f64>| core.is_some_and(|used| used >= CPU_FULL);
    let rises =
        e.ends.is_some_and(|[first, last]| last.goodput.as_f64() > RISING * first.goodput.as_f64());
    if is_full(m.sender_core()) || is_full(m.receiver_core()) {
        Limit::Cpu
    } else if facts.reached_requested_rate(e) || share(|shares| shares.application) >= HELD {
        Limit::Application
    } else if share(|shares| shares.receive_window) >= HELD {
        Limit::ReceiveWindow
    } else if share(|shares| shares.send_buffer) >= HELD {
        Limit::SendBuffer
    } else if figures.has_queue(e) {
        Limit::PathRate
    } else if figures.losses.count() > 0
        && (!is_bbr(facts) || e.loss.is_some_and(|loss| loss > BBR_LOSS))
    {
        Limit::Loss
    } else if rises {
        Limit::CongestionAvoidance
    } else if is_bbr(facts) {
        Limit::PathRate
    } else {
        Limit::Unknown
    }
}

/// Whether the rate is the bandwidth that the sender measures, whatever is lost up to 2 %.
fn is_bbr(facts: &Facts<'_>) -> bool {
    facts.congestion_control == Some("bbr3")
}

impl Figures {
    /// Sums and extremes over the streams; `None` without samples.
    fn of(m: &Measurement, e: &Evidence) -> Option<Self> {
        let steady =
            |sample: &&Sample| (e.steady.from_s..=e.steady.to_s + 1e-9).contains(&sample.t_s);
        let (mut naks, mut retransmissions) = (None, 0);
        let (mut queueing_ms, mut capacity) = (0.0_f64, None);
        let (mut payload_bytes, mut window) = (0, None);
        for stream in &m.streams {
            let samples = || stream.sender.iter().filter(steady);
            let (first, last) = (samples().next()?, samples().next_back()?);
            if let Some(last) = last.naks {
                let received = last.saturating_sub(first.naks.unwrap_or(0));
                naks = Some(naks.unwrap_or(0) + received);
            }
            retransmissions += last.retransmits.saturating_sub(first.retransmits);
            let least = last.min_rtt_us.unwrap_or(last.rtt_us);
            let settled = samples().filter(|sample| sample.t_s >= SETTLED_S);
            let most = settled.map(|sample| sample.rtt_us).max().unwrap_or(0);
            queueing_ms = queueing_ms.max(f64::from(most.saturating_sub(least)) / 1e3);
            // Connections share a path: each one estimates it whole.
            capacity = capacity.max(last.capacity_bps);
            payload_bytes = payload_bytes.max(last.mss_bytes);
            let free = last.peer_window_bytes.map(ByteCount::from_bytes);
            window = free.map(|free| free.plus(window.unwrap_or(ByteCount::ZERO))).or(window);
        }
        (payload_bytes > 0).then(|| Figures {
            losses: naks.map_or(Losses::Retransmissions(retransmissions), Losses::Naks),
            queueing_ms,
            capacity: capacity.map(BitRate::from_bps),
            payload_bytes: f64::from(payload_bytes),
            window,
        })
    }

    fn has_queue(&self, e: &Evidence) -> bool {
        let (share, least_ms) = QUEUED;
        let rtt_ms = e.min_rtt.map_or(0.0, units::Rtt::millis_f64);
        self.queueing_ms > least_ms.max(share * rtt_ms)
    }
}

/// The equation of the limit with its numbers.
fn prediction(
    limit: Limit,
    facts: &Facts<'_>,
    e: &Evidence,
    figures: &Figures,
) -> Option<(BitRate, String)> {
    match limit {
        Limit::ReceiveWindow => {
            let (window, rtt) = (figures.window?, e.min_rtt?);
            let rate = BitRate::of(window, rtt.duration());
            Some((rate, format!("buffer / RTT = {window} / {rtt} = {rate}")))
        }
        // An acknowledgement comes up to a SYN late.
        Limit::SendBuffer => {
            // What is held is sampled while it changes; it is no more than was requested.
            let requested = facts.m.spec.window_bytes.unwrap_or(ByteCount::from_bytes(u64::MAX));
            let (buffer, rtt) = (e.held?.min(requested), e.min_rtt?);
            let time = rtt.duration() + Duration::from_secs_f64(model::UDT_SYN_S);
            let rate = BitRate::of(buffer, time);
            Some((rate, format!("buffer / (RTT + SYN) = {buffer} / ({rtt} + 10 ms) = {rate}")))
        }
        // Only UDT's own control has this equation.
        Limit::Loss if facts.congestion_control == Some("udt") => {
            let loss = e.loss.filter(|loss| *loss > 0.0 && *loss < 1.0)?;
            let size = figures.payload_bytes + HEADER_BYTES;
            let wire = size / figures.payload_bytes;
            let link = figures.capacity?.scaled(wire);
            let ratio = model::loss_from_fraction(loss)?;
            let each = model::udt_under_loss(link, size as u32, ratio)?.scaled(1.0 / wire);
            let rate = each.scaled(e.streams.max(1) as f64);
            let equation = format!(
                "sqrt(9 alpha / (SYN p)) = sqrt(9 alpha / (10 ms x {})) = {rate}",
                percent(loss)
            );
            Some((rate, equation))
        }
        _ => None,
    }
}

fn sentence(limit: Limit, facts: &Facts<'_>, e: &Evidence, figures: &Figures) -> String {
    let m = facts.m;
    let rate = e.goodput;
    let losses = figures.losses;
    match limit {
        Limit::Cpu => format!(
            "CPU-limited: a thread of the {} used a whole core at {rate}; use a faster core or \
             larger packets.",
            if m.sender_core() >= m.receiver_core() { "sender" } else { "receiver" }
        ),
        Limit::Application if facts.reached_requested_rate(e) => {
            format!("The requested rate was reached: {rate}.")
        }
        Limit::Application => facts.disk_limited(e).unwrap_or_else(|| {
            format!(
                "The application wrote less than the network could send: {rate} arrived; use a \
                 faster source."
            )
        }),
        Limit::ReceiveWindow => format!(
            "The receiver's UDT buffer limits the transfer to {rate}: raise it with -w, or use a \
             receiver that reads faster."
        ),
        Limit::SendBuffer => {
            format!("The sender's UDT buffer limits the transfer to {rate}: raise it with -w.")
        }
        Limit::PathRate if is_bbr(facts) => format!(
            "Bottleneck saturated: {rate} on average, the bandwidth that BBR measures. Its queue \
             added up to {:.1} ms of delay ({losses}).",
            figures.queueing_ms
        ),
        Limit::PathRate => format!(
            "Bottleneck saturated: {rate} on average. Its queue added up to {:.1} ms of delay \
             before it overflowed ({losses}), and each overflow reduces the rate.",
            figures.queueing_ms
        ),
        Limit::Loss => format!(
            "Random loss reduces the rate: {losses} and {} of packets retransmitted without a \
             queue, {rate} arrived; repair the path{}.",
            percent(e.loss.unwrap_or(0.0)),
            if is_bbr(facts) {
                ""
            } else {
                ", or use a congestion control that tolerates loss (bbr)"
            }
        ),
        Limit::CongestionAvoidance => format!(
            "The rate was still rising at the end of the test: {rate} on average; run a longer \
             test (-t)."
        ),
        _ => format!(
            "Cannot identify the limit at {rate}: no buffer, application, CPU, queue or loss \
             stands out; run a longer test (-t)."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;
    use record::Protocol;
    use units::Rtt;

    /// Ten seconds at 20 Mbit/s over 50 ms, with samples changed by `change`.
    fn explained(change: impl Fn(f64, &mut Sample)) -> Explanation {
        explained_of("udt", 0.001, change)
    }

    fn explained_of(algorithm: &str, loss: f64, change: impl Fn(f64, &mut Sample)) -> Explanation {
        let mut example = Example::new(20.0, 50.0);
        example.m.spec.protocol = Protocol::Udt;
        example.m.streams[0].congestion = Some(algorithm.to_owned());
        example.m.streams[0].sender = (0..=100)
            .map(|step| {
                let t_s = f64::from(step) / 10.0;
                let mut sample = Sample {
                    t_s,
                    mss_bytes: 1_456,
                    rtt_us: 50_000,
                    min_rtt_us: Some(50_000),
                    busy_us: (t_s * 1e6) as u64,
                    peer_window_bytes: Some(125_000),
                    capacity_bps: Some(97_000_000),
                    naks: Some(0),
                    ..Sample::default()
                };
                change(t_s, &mut sample);
                sample
            })
            .collect();
        example.e.loss = Some(loss);
        example.e.min_rtt = Some(Rtt::from_micros(50_000));
        explain(&Facts::of(&example.m), &example.e)
    }

    #[test]
    fn losses_without_a_queue_are_random_and_have_an_equation() {
        let found = explained(|t_s, sample| sample.naks = Some((t_s * 2.0) as u64));
        assert_eq!(found.limit, Some(Limit::Loss));
        assert!(found.sentence.contains("20 NAKs and 0.1 %"), "{}", found.sentence);
        // 300 sqrt(inc / p) packets/s at a gap of 100 Mbit/s: inc = 0.1.
        let (rate, equation) = found.prediction.unwrap();
        assert!((rate.as_f64() / 34.9e6 - 1.0).abs() < 0.02, "{rate}, {equation}");
    }

    #[test]
    fn an_rtt_that_is_not_settled_is_no_queue() {
        let found = explained(|t_s, sample| {
            sample.naks = Some((t_s * 2.0) as u64);
            sample.rtt_us += if t_s < 0.5 { 49_800 } else { 0 };
        });
        assert_eq!(found.limit, Some(Limit::Loss));
    }

    #[test]
    fn losses_of_a_queue_are_the_bottleneck() {
        let found = explained(|t_s, sample| {
            sample.naks = Some(t_s as u64);
            sample.rtt_us += (t_s * 3_000.0) as u32;
        });
        assert_eq!((found.limit, found.prediction), (Some(Limit::PathRate), None));
    }

    #[test]
    fn bbr_is_limited_by_losses_over_two_percent_only() {
        let lossy = |t_s: f64, sample: &mut Sample| {
            sample.naks = None;
            sample.retransmits = (t_s * 10.0) as u64;
        };
        let found = explained_of("bbr3", 0.01, lossy);
        assert_eq!(found.limit, Some(Limit::PathRate));
        assert!(found.sentence.contains("(100 retransmissions)"), "{}", found.sentence);
        let found = explained_of("bbr3", 0.03, lossy);
        assert_eq!((found.limit, found.prediction), (Some(Limit::Loss), None));
        assert_eq!(explained_of("cubic", 0.01, lossy).limit, Some(Limit::Loss));
    }

    #[test]
    fn buffers_and_the_application_are_told_apart_by_time() {
        let window = explained(|_, sample| sample.rwnd_limited_us = sample.busy_us);
        assert_eq!(window.limit, Some(Limit::ReceiveWindow));
        let (rate, _) = window.prediction.unwrap();
        assert_eq!(rate, BitRate::from_bps(20_000_000));
        let buffer = explained(|_, sample| sample.sndbuf_limited_us = sample.busy_us);
        assert_eq!(buffer.limit, Some(Limit::SendBuffer));
        let idle = explained(|_, sample| sample.busy_us /= 10);
        assert_eq!(idle.limit, Some(Limit::Application));
    }

    #[test]
    fn without_samples_no_limit_is_named() {
        let mut example = Example::new(20.0, 50.0);
        example.m.spec.protocol = Protocol::Udt;
        assert_eq!(explain(&Facts::of(&example.m), &example.e).limit, None);
    }
}
