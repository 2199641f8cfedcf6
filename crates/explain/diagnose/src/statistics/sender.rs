//! What the sender waited for, the windows, the request, and the hosts.

use super::{Part, Statistic, Statistics, ln};
use crate::facts::WELL_UNDER;
use crate::series::Step;
use model::statistics::{median, percentile};
use record::Unavailable;
use units::{BitRate, ByteCount};

/// A window counts as full where no more of it is left than this share, or two segments.
const AT_WINDOW: f64 = 0.05;

/// Where the congestion window is this multiple of it, nothing else is full; BBR's pacing then sends
/// bursts of up to ten segments, and drains in one round trip of eight, so that more is left.
const ROOMY: f64 = 1.25;
const AT_WINDOW_PACED: f64 = 0.2;

/// Nearly all that a buffer holds is sent where less than this share of what is in flight is not.
const MOSTLY_SENT: f64 = 0.3;

/// A window that needs no scaling has at most this many bytes (RFC 7323).
const UNSCALED: f64 = 65_535.0;

pub(super) fn add(part: &Part<'_>, all: &mut Statistics) {
    let test = part.test;
    let m = test.facts.m;
    let flag = |holds: bool| Some(f64::from(u8::from(holds)));
    all.add(Statistic::LnRttMs, Some(ln(test.min_rtt * 1e3, 0.0)));
    all.add(Statistic::LnStreams, Some(ln(m.streams.len().max(1) as f64, 0.0)));
    let congestion = test.facts.congestion_control;
    all.add(Statistic::IsBbr, congestion.map(|name| f64::from(u8::from(name.starts_with("bbr")))));
    all.add(Statistic::IsReno, congestion.map(|name| f64::from(u8::from(name == "reno"))));

    let has_timers = !m.lacks(Unavailable::SenderTimers);
    let timer = |read: fn(&record::Sample) -> u64| {
        let share = |step: &Step| (step.growth(read) / 1e6 / step.seconds()).min(1.0);
        part.mean(|step| has_timers.then(|| share(step)))
    };
    let (rwnd, sndbuf) = (timer(|s| s.rwnd_limited_us), timer(|s| s.sndbuf_limited_us));
    let idle = timer(|s| s.busy_us).map(|busy| 1.0 - busy);
    all.add(Statistic::RwndShare, rwnd);
    all.add(Statistic::SndbufShare, sndbuf);
    all.add(Statistic::IdleShare, idle);
    let has_unsent = !m.lacks(Unavailable::Unsent);
    let flag = |holds: bool| flag(holds).filter(|_| has_unsent);
    all.add(Statistic::AppLimited, part.mean(|step| flag(step.after.delivery_app_limited)));
    let empty = |step: &Step| flag((step.after.unsent_bytes as f64) < step.mss());
    all.add(Statistic::NothingUnsent, part.mean(empty));
    // Autotuning gives a sender that always has more to send twice its window, and BBR more.
    let sent = |step: &Step| {
        let (sent, unsent) = (step.after.in_flight_bytes as f64, step.after.unsent_bytes as f64);
        flag(unsent < MOSTLY_SENT * sent).filter(|_| sent > 0.0)
    };
    all.add(Statistic::MostlySent, part.mean(sent));
    let filled = |step: &Step| {
        let cwnd = step.after.cwnd_bytes as f64;
        (cwnd > 0.0).then(|| step.after.in_flight_bytes as f64 / cwnd)
    };
    all.add(Statistic::CwndFilled, median(&part.values(filled)));
    // A buffer that is smaller than the window empties while there is room in the window.
    let starved = |step: &Step| {
        let room = filled(step).is_some_and(|filled| filled < WELL_UNDER);
        flag(room && (step.after.unsent_bytes as f64) < step.mss())
    };
    all.add(Statistic::Starved, part.mean(starved));
    // How far goodput is below a window per round trip.
    let turned = |step: &Step| {
        let window = step.after.cwnd_bytes as f64;
        let sent = step.rate / 8.0 * f64::from(step.after.rtt_us) / 1e6;
        (window > 0.0).then(|| (sent / window).min(2.0))
    };
    all.add(Statistic::CwndTurned, part.mean(turned));
    let window = |step: &Step| step.after.peer_window_bytes.map(|bytes| bytes as f64);
    let window_filled = |step: &Step| {
        window(step).filter(|w| *w > 0.0).map(|w| step.after.in_flight_bytes as f64 / w)
    };
    all.add(Statistic::WindowFilled, percentile(&part.values(window_filled), 0.8));
    // What may be sent ends less than a segment before the window does.
    let at_window = |step: &Step| {
        let left = window(step).filter(|w| *w > 0.0)? - step.after.in_flight_bytes as f64;
        let has_room = step.after.cwnd_bytes as f64 > ROOMY * window(step)?;
        let share = if has_room { AT_WINDOW_PACED } else { AT_WINDOW };
        let near = (2.0 * step.mss()).max(share * window(step)?);
        Some(f64::from(u8::from(left <= near)))
    };
    all.add(Statistic::AtWindow, part.mean(at_window));
    all.add(Statistic::FlightVariation, super::variation(&part.values(in_flight)));
    all.add(Statistic::ActivityIdle, test.facts.idle_share);
    let windows = part.values(window);
    let largest = windows.iter().copied().fold(0.0, f64::max);
    let known = !windows.is_empty();
    all.add(Statistic::LnWindow64k, known.then(|| ln(largest / UNSCALED, 1e-3)));
    let low = percentile(&windows, 0.1).filter(|_| largest > 0.0).map(|low| low / largest);
    all.add(Statistic::WindowFloor, low);
    let level = median(&windows).filter(|_| largest > 0.0).map(|middle| middle / largest);
    all.add(Statistic::WindowLevel, level);
    all.add(Statistic::Unread, unread(part, largest));
    let unscaled =
        |step: &Step| step.after.peer_window_scale.map(|scale| f64::from(u8::from(scale == 0)));
    all.add(Statistic::Unscaled, part.mean(unscaled));
    // Linux chooses the scale by the buffer: one that was requested so small needs none.
    let small = |window: ByteCount| f64::from(u8::from(window.as_f64() <= UNSCALED));
    all.add(Statistic::SmallRequested, m.spec.window_bytes.map(small));
    all.add(Statistic::WindowPerRtt, over_window(part));

    let rate = test.rate(part.from, part.to);
    let requested = test.facts.requested_rate.map(BitRate::as_f64);
    all.add(Statistic::OfRequested, requested.map(|most| (rate / most.max(1.0)).min(2.0)));
    // A requested rate comes with a pacing rate a tenth above it, for catching up.
    let to_catch_up = requested.is_some() && m.spec.fq_rate_bps.is_none();
    let pacing_cap = part.sum_of_medians(|step| step.after.max_pacing_rate_bps);
    all.add(
        Statistic::OfMaxPacing,
        pacing_cap.filter(|_| !to_catch_up).map(|most| (rate / most.max(1.0)).min(2.0)),
    );
    let paced = |step: &Step| {
        let pacing = step.after.pacing_rate_bps.filter(|rate| *rate > 0)?;
        Some((step.after.delivery_rate_bps as f64 / pacing as f64).min(4.0))
    };
    all.add(Statistic::OfPacing, median(&part.values(paced)));

    all.add(Statistic::SenderCore, m.sender_core().map(|core| core.min(2.0)));
    all.add(Statistic::ReceiverCore, m.receiver_core().map(|core| core.min(2.0)));
    let waits = [m.sender_core_wait, m.receiver_core_wait].into_iter().flatten();
    all.add(Statistic::CoreWait, waits.reduce(f64::max));
    let in_flight = part.mean(|step| Some(step.after.in_flight_bytes as f64));
    let streams = m.streams.len() as f64;
    let is_local = test.min_rtt < model::SHORT_RTT.secs_f64();
    let excess = in_flight.filter(|_| is_local).map(|each| {
        let needed = rate / 8.0 * test.min_rtt.max(20e-6);
        ln(each * streams / needed.max(1.0), 1e-3)
    });
    all.add(Statistic::LnExcessInFlight, excess);
    let ln_rate = excess.map(|_| ln(rate / 1e9, 1e-3));
    all.add(Statistic::LnLocalGbps, ln_rate);
    let cost = test.cpu.as_ref().filter(|_| is_local);
    let cost = cost.and_then(|counters| counters.over(part.from, part.to));
    all.add(Statistic::LnBufferedMb, cost.map(|cost| ln(cost.buffered / 1e6, 1e-3)));
    all.add(Statistic::CpuGrowth, cost.and_then(|cost| cost.growth()));
}

fn in_flight(step: &Step) -> Option<f64> {
    Some(step.after.in_flight_bytes as f64)
}

/// Delivered bytes that the receiving application has not read, over the largest window:
/// near 1 where it reads too slowly, near 0 where it waits for data.
fn unread(part: &Part<'_>, window: f64) -> Option<f64> {
    let mut all = Vec::new();
    for (read, steps) in part.test.read.iter().zip(&part.streams) {
        read.end()?;
        let acked = |step: &Step| step.after.acked_bytes as f64 - read.at(step.to);
        all.extend(steps.iter().map(acked));
    }
    let middle = median(&all).filter(|_| window > 0.0)?;
    Some((middle / window).clamp(-0.5, 2.0))
}

/// Goodput over receive window / minimum RTT, from either side's view of the window.
fn over_window(part: &Part<'_>) -> Option<f64> {
    let mut sum = 0.0;
    for stream in &part.test.facts.m.streams {
        let inside = |t: f64| t > part.from && t <= part.to + 1e-9;
        let sent = stream.sender.iter().filter(|s| inside(s.t_s));
        let sent: Vec<f64> = sent.filter_map(|s| s.peer_window_bytes).map(|w| w as f64).collect();
        let own = stream.receiver.iter().filter(|s| inside(s.t_s));
        let own = || own.filter_map(|s| s.window_bytes).map(|w| w as f64).collect::<Vec<f64>>();
        sum += median(&sent).or_else(|| median(&own()))?;
    }
    let most = sum * 8.0 / part.test.min_rtt;
    (most > 0.0).then(|| ln(part.test.rate(part.from, part.to) / most, 1e-3))
}

impl Part<'_> {
    /// The sum over streams of each one's median; `None` if a stream has no value.
    fn sum_of_medians(&self, read: impl Fn(&Step) -> Option<u64>) -> Option<f64> {
        let one = |steps: &&[Step]| {
            let values: Vec<f64> = steps.iter().filter_map(&read).map(|v| v as f64).collect();
            median(&values)
        };
        let all: Option<Vec<f64>> = self.streams.iter().map(one).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use crate::statistics::Statistic;
    use crate::{
        example::{close, sampled, samples, statistic as of},
        prepared,
    };
    use record::Sample;
    use units::BitRate;

    #[test]
    fn timers_are_shares_of_time() {
        close(of("rwnd_share", |_, s| s.rwnd_limited_us = s.busy_us / 2), 0.5);
        close(of("sndbuf_share", |_, s| s.sndbuf_limited_us = s.busy_us / 4), 0.25);
        close(of("idle_share", |_, s| s.busy_us /= 5), 0.8);
        close(of("idle_share", |_, _| {}), 0.0);
        // A counter that runs faster than time.
        close(of("rwnd_share", |_, s| s.rwnd_limited_us = s.busy_us * 9), 1.0);
    }

    #[test]
    fn the_window_is_compared_with_what_fills_it() {
        let full = |_, s: &mut Sample| {
            s.peer_window_bytes = Some(25_000);
            s.in_flight_bytes = 25_000;
        };
        close(of("window_filled", full), 1.0);
        // 25 kB over 20 ms are 10 Mbit/s.
        close(of("window_per_rtt", full), 0.0);
        close(of("ln_window_64k", full), (25_000.0f64 / 65_535.0).ln());
        for name in ["window_filled", "window_per_rtt", "ln_window_64k", "unscaled"] {
            assert_eq!(of(name, |_, _| {}), None, "{name}");
        }
        assert_eq!(of("unscaled", |_, s| s.peer_window_scale = Some(0)), Some(1.0));
    }

    #[test]
    fn what_is_unsent_is_compared_with_what_is_in_flight() {
        let of = |unsent: u64| {
            of("mostly_sent", |_, s| (s.in_flight_bytes, s.unsent_bytes) = (50_000, unsent))
        };
        assert_eq!((of(14_000), of(16_000)), (Some(1.0), Some(0.0)));
    }

    #[test]
    fn a_window_that_closes_has_a_low_floor() {
        let closes = |index: u64, s: &mut Sample| {
            s.peer_window_bytes = Some(if index.is_multiple_of(3) { 0 } else { 100_000 });
        };
        assert_eq!(of("window_floor", closes), Some(0.0));
        assert_eq!(of("window_floor", |_, s| s.peer_window_bytes = Some(9_000)), Some(1.0));
        assert_eq!(of("window_floor", |_, s| s.peer_window_bytes = Some(0)), None);
    }

    #[test]
    fn the_rate_is_compared_with_what_was_asked_for() {
        let mut m = sampled(samples(10.0, 10.0, |_, s| s.max_pacing_rate_bps = Some(20_000_000)));
        let get = |m: &record::Measurement, name| {
            prepared(m).over(0.0, 10.0).get(Statistic::named(name).unwrap())
        };
        assert_eq!(get(&m, "of_requested"), None);
        close(get(&m, "of_max_pacing"), 0.5);
        m.spec.rate_bps = Some(BitRate::from_bps(10_000_000));
        close(get(&m, "of_requested"), 1.0);
        assert_eq!(get(&m, "of_max_pacing"), None, "it comes with the requested rate");
        m.spec.fq_rate_bps = Some(BitRate::from_bps(20_000_000));
        close(get(&m, "of_max_pacing"), 0.5);
        // Only a path of under 1 ms may be limited by memory.
        assert_eq!(get(&m, "ln_excess_in_flight"), None);
    }
}
