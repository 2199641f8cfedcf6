//! Direct measurements, which decide more than the fitted terms can: the kernel's
//! timers, the rate that was requested, the window scale, and the threads' CPU time, also per
//! byte.
//!
//! The simulation that the terms were fitted to has no CPU at all; the other figures it has,
//! but a term is smooth where these are facts.

use crate::facts::{Sender, WELL_UNDER};
use crate::posterior::Posterior;
use crate::statistics::{SampleSource, Statistic, Statistics};
use crate::window_scale::{is_scaled, window_scale};
use record::Limit;

/// The share of a core, with the time spent waiting for it, at which CPU-limited and not are
/// equally likely, and the width of the transition. Labelled lab runs that were CPU-limited
/// begin at 0.96; sampling ends one tick (1 %) early.
const CORE: f64 = 0.945;
const CORE_WIDTH: f64 = 0.01;

/// Shares of time from which a window or an idle application, not the CPU, is the limit.
const WAITS: f64 = 0.5;

/// A receiver that falls behind closes its window: the lowest window of the largest.
const CLOSES: f64 = 0.5;

/// The same share and width for the limits that make each byte cost more. Their transfers wait
/// for timers and for the other thread, so the busiest thread is not quite busy: labelled runs
/// begin at 0.86 (docs/design/local-paths.md).
const BUSY: f64 = 0.78;
const BUSY_WIDTH: f64 = 0.02;

/// The share of time that a thread waits for a core from which cores are contended: in
/// labelled runs at a requested rate threads wait for 0.06 at most.
const CONTENDED: f64 = 0.2;

/// The share from which timers of BBR's pacing are the limit: what they cost is the time of
/// softirqs and of waking, not of threads. The least busy labelled run had 0.71; at 0.2 ns
/// of CPU time per byte, 10 Gbit/s take a quarter of a core.
const WAITING: f64 = 0.6;

/// Around [`model::CACHES`] smaller buffers are as likely to help by a fifth as not: the width of
/// the transition, in ln of the megabytes between the applications.
const BUFFERED_WIDTH: f64 = 0.2;

/// A byte that costs no more than this, times its cost with little between the applications,
/// does not pass through memory.
const GREW: f64 = 1.05;

/// The probability of either where all of this holds.
const COSTLY: f64 = 0.97;

/// The share of time from which a timer of the kernel's is conclusive, and the probability
/// that it then has at least: what blocked the sender for so long cost the most goodput. The
/// probability is an assumption: labelled lab runs have yet to bound it.
const CONCLUSIVE: f64 = 0.7;
const TIMED: f64 = 0.995;

/// A receiving application that reads too slowly leaves data unread: of the largest window, in
/// the median, less than the first share where it does not, the second and more where it does.
/// Acknowledged data was received earlier, so an application that keeps up
/// never seems to leave any.
const READ: f64 = 0.05;
const UNREAD: f64 = 0.5;
const UNREAD_BY: [Statistic; 2] = [Statistic::Unread, Statistic::RxUnread];

/// Goodput over the requested rate, and over `SO_MAX_PACING_RATE`, from which that is reached:
/// at 95 % of either, the bottleneck's payload rate may be the limit. A qdisc's pacing counts
/// headers (1448 of 1514 bytes are payload), the kernel's own does not.
const REACHED: f64 = 0.98;
const PACED: std::ops::RangeInclusive<f64> = 0.95..=1.03;
const REQUESTED: f64 = 0.995;

/// A sender whose window is not full and that has nothing left to send waits for its
/// application, or for the buffer between them: Linux starts the send buffer's timer only when
/// a segment is sent while the application already waits, so it can miss a blocking writer
/// altogether. Shares of samples; the window in flight is compared with [`WELL_UNDER`].
const MOSTLY: f64 = 0.5;
const STARVED: f64 = 0.95;

/// Bytes in flight that fill the receive window for most of the time are limited by it, whatever
/// the congestion control does: BBR's window is twice what it has in flight, and its pacing hides
/// the timer. Where the queueing delay exceeds this share of the RTT of the empty path, a good part
/// of the window waits in a queue, and the bottleneck is the limit.
const FILLS: f64 = 0.5;
/// The ratio of arrivals to the window of each RTT from which the known window is too low: without
/// the SYNs of a capture it is a lower bound.
const EXCEEDED: f64 = 1.1;
const QUEUED: f64 = 0.25;

/// The probability of an application that a capture shows to have nothing to send for most of the
/// time.
const OBSERVED: f64 = 0.98;

/// The initial window in segments (RFC 6928). With no more in flight and nothing lost, no congestion
/// window is filled; an application that writes little is the common cause, a smaller send buffer
/// the rare one. The share is an assumption.
const INITIAL_WINDOW: f64 = 10.0;
const WRITES_LITTLE: f64 = 0.9;

/// The limits that the receive window's timer counts.
const RECEIVER: [Limit; 3] = [Limit::ReceiveWindow, Limit::WindowScaling, Limit::SlowReceiver];

/// The posterior with what was measured directly.
pub(crate) fn apply(
    posterior: Posterior,
    s: &Statistics,
    sender: Sender,
    limits_unsent: bool,
) -> Posterior {
    let mut posterior = unread(window_scale(posterior, s), s);
    // Without the SYNs a capture's window is a lower bound that the bytes in flight prove, so that they
    // always seem to fill it.
    let fills_window = s.source == SampleSource::Kernel && fills_window(s);
    if fills_window {
        let full = filling(s);
        posterior = posterior.at_least(TIMED, |limit| full.contains(&limit));
    }
    if sender == Sender::Bulk {
        // With nothing left in its buffer, it waits for the buffer.
        posterior = posterior.moved(Limit::Application, Limit::SendBuffer);
    }
    // A capture only estimates these, and the terms of captures weigh the estimates.
    let measured = s.source == SampleSource::Kernel;
    if measured && !limits_unsent && is_starved(s) {
        let any = sender == Sender::Any;
        let limit = if any { Limit::Application } else { Limit::SendBuffer };
        posterior = posterior.at_least(STARVED, |other| other == limit);
    }
    let is_bulk = matches!(sender, Sender::Bulk | Sender::RemoteBulk);
    if measured && is_bulk && !limits_unsent && !fills_window && is_sent(s) {
        posterior = posterior.at_least(STARVED, |limit| limit == Limit::SendBuffer);
    }
    let timers: [(Statistic, &[Limit]); 3] = [
        (Statistic::RwndShare, &RECEIVER),
        (Statistic::SndbufShare, &[Limit::SendBuffer]),
        (Statistic::IdleShare, &[Limit::Application]),
    ];
    for (timer, limits) in timers {
        // Of two timers Linux runs that of the send buffer, also while the window is full.
        let hides_window = fills_window && timer == Statistic::SndbufShare;
        let own = is_own(timer, limits_unsent) || hides_window;
        if measured && !own && s.reaches(timer, CONCLUSIVE) {
            posterior = posterior.at_least(TIMED, |limit| limits.contains(&limit));
        }
    }
    if s.get(Statistic::OfMaxPacing).is_some_and(|of| PACED.contains(&of)) {
        posterior = posterior.at_least(REQUESTED, |limit| limit == Limit::Pacing);
    }
    if s.reaches(Statistic::OfRequested, REACHED) {
        posterior = posterior.at_least(REQUESTED, |limit| limit == Limit::Application);
    }
    if s.reaches(Statistic::ActivityIdle, crate::facts::IDLE) {
        posterior = posterior.at_least(OBSERVED, |limit| limit == Limit::Application);
    }
    if sender == Sender::Any && s.source == SampleSource::Capture && has_little_in_flight(s) {
        posterior = posterior.split(Limit::Application, Limit::SendBuffer, WRITES_LITTLE);
    }
    threads(without_own(posterior, s, limits_unsent), s, limits_unsent)
}

/// Returns true if the initial window was not exceeded although nothing was lost.
fn has_little_in_flight(s: &Statistics) -> bool {
    // The statistics are ln(segments + 1) and ln(losses + 0.5).
    s.get(Statistic::LnWindow).is_some_and(|ln| ln <= INITIAL_WINDOW.ln_1p())
        && s.get(Statistic::LnLost).is_none_or(|ln| ln <= 0.0)
}

/// Returns true if the receive window is full for most of the time, and not because it waits in a
/// queue, or grows with the transfer (autotuning).
fn fills_window(s: &Statistics) -> bool {
    s.reaches(Statistic::AtWindow, FILLS)
        && s.get(Statistic::Q50PerRtt).is_some_and(|ln| ln <= QUEUED.ln())
        && s.get(Statistic::WindowFloor).is_none_or(|floor| floor >= CLOSES)
        && s.get(Statistic::WindowPerRtt).is_none_or(|ln| ln <= EXCEEDED.ln())
}

/// Which of the limits of the receiver fill the window: without a scale, either of two, and where
/// what is unread is not known, a slow receiving application may as well.
fn filling(s: &Statistics) -> &'static [Limit] {
    let unread = s.first(UNREAD_BY);
    if unread.is_some_and(|unread| unread >= UNREAD) {
        return &[Limit::SlowReceiver];
    }
    match is_scaled(s) {
        Some(false) => &[Limit::WindowScaling],
        Some(true) if unread.is_some() => &[Limit::ReceiveWindow],
        Some(true) => &[Limit::ReceiveWindow, Limit::SlowReceiver],
        None if unread.is_some() => &[Limit::ReceiveWindow, Limit::WindowScaling],
        None => &RECEIVER,
    }
}

/// Returns true if a timer runs while the sender waits for the test's own limit of unsent data. It
/// is never what limits the rate.
fn is_own(timer: Statistic, limits_unsent: bool) -> bool {
    timer == Statistic::SndbufShare && limits_unsent
}

/// Without the send buffer, which the test's own limit of unsent data looks like. Where the sender
/// waits for it most of the time, and nothing is left unread, what remains is no evidence either.
fn without_own(posterior: Posterior, s: &Statistics, limits_unsent: bool) -> Posterior {
    if !limits_unsent {
        return posterior;
    }
    let is_read = s.first(UNREAD_BY).is_none_or(|left| left < UNREAD);
    let posterior = posterior.without(|limit| limit == Limit::SendBuffer);
    if is_read && s.reaches(Statistic::SndbufShare, CONCLUSIVE) {
        posterior.at_least(TIMED, |limit| limit == Limit::Unknown)
    } else {
        posterior
    }
}

/// Returns true if the sender mostly had nothing to send, though its window was not full.
fn is_starved(s: &Statistics) -> bool {
    let over = |statistic| s.get(statistic).is_some_and(|share| share > MOSTLY);
    let cwnd_filled = s.get(Statistic::CwndFilled).is_some_and(|filled| filled < WELL_UNDER);
    over(Statistic::AppLimited) && over(Statistic::NothingUnsent) && cwnd_filled
}

/// Returns true if BBR mostly had sent what the buffer holds, into a path with room, though its
/// window was not full: its pacing hides the timer, and leaves something unsent.
fn is_sent(s: &Statistics) -> bool {
    s.reaches(Statistic::IsBbr, MOSTLY)
        && s.reaches(Statistic::MostlySent, CONCLUSIVE)
        && s.get(Statistic::CwndFilled).is_some_and(|filled| filled < WELL_UNDER)
        && s.get(Statistic::Q50PerRtt).is_some_and(|ln| ln <= QUEUED.ln())
}

/// Where the application has read what arrived, it is not the application; where it has not,
/// it is not the window that fills meanwhile.
fn unread(posterior: Posterior, s: &Statistics) -> Posterior {
    match s.first(UNREAD_BY) {
        Some(unread) if unread < READ => posterior.moved(Limit::SlowReceiver, Limit::ReceiveWindow),
        Some(unread) if unread >= UNREAD => {
            posterior.moved(Limit::ReceiveWindow, Limit::SlowReceiver)
        }
        _ => posterior,
    }
}

fn threads(posterior: Posterior, s: &Statistics, limits_unsent: bool) -> Posterior {
    let cpu = sending_thread(s, limits_unsent).max(receiving_thread(s)).max(contended(s));
    let (timers, memory) = (pacing_timers(s), memory(s));
    if cpu.max(timers).max(memory) <= 0.0 {
        return posterior;
    }
    posterior.with(Limit::Cpu, cpu).with(Limit::Memory, memory).with(Limit::PacingTimers, timers)
}

/// The probability that threads wait for each other's cores on a path of under 1 ms: none of them is
/// then quite busy, as each also waits for what the others do.
fn contended(s: &Statistics) -> f64 {
    let waits = s.reaches(Statistic::CoreWait, CONTENDED);
    if waits { COSTLY * costly(s, BUSY) } else { 0.0 }
}

/// The probability that a busy sender waits for BBR's pacing timers: on a path of under
/// 1 ms, at a rate that no application asked for.
fn pacing_timers(s: &Statistics) -> f64 {
    let bbr = s.get(Statistic::IsBbr).is_some_and(|is| is > 0.5);
    if bbr { COSTLY * costly(s, WAITING) } else { 0.0 }
}

/// The probability that data leaves the caches before it is read.
fn memory(s: &Statistics) -> f64 {
    let Some(buffered) = s.get(Statistic::LnBufferedMb) else { return 0.0 };
    if s.get(Statistic::CpuGrowth).is_some_and(|growth| growth < GREW) {
        return 0.0;
    }
    COSTLY
        * costly(s, BUSY)
        * logistic(buffered, (model::CACHES.as_f64() / 1e6).ln(), BUFFERED_WIDTH)
}

/// The probability that a byte's CPU time is the limit on a path of under 1 ms, where `busy` is the
/// share of a core that divides it from other limits. What the
/// sender waits for does not matter: where threads share cores, each waits for the other.
fn costly(s: &Statistics, busy: f64) -> f64 {
    let least_rate = (model::SHORT_PATH_RATE.as_f64() / 1e9).ln();
    let fast = s.reaches(Statistic::LnLocalGbps, least_rate);
    let requested = s.reaches(Statistic::OfRequested, REACHED)
        || s.get(Statistic::OfMaxPacing).is_some_and(|of| PACED.contains(&of));
    let core = |statistic| s.get(statistic).unwrap_or(0.0);
    let busiest = core(Statistic::SenderCore).max(core(Statistic::ReceiverCore));
    if fast && !requested && busiest > 0.0 { logistic(busiest, busy, BUSY_WIDTH) } else { 0.0 }
}

fn logistic(value: f64, middle: f64, width: f64) -> f64 {
    1.0 / (1.0 + (-(value - middle) / width).exp())
}

/// The probability that a core of this share is the limit.
fn full(core: Option<f64>) -> f64 {
    core.map_or(0.0, |share| logistic(share, CORE, CORE_WIDTH))
}

/// Returns true if the sender waits for a buffer that the test does not limit, or for a window.
fn waits_for(timer: Statistic, s: &Statistics, limits_unsent: bool) -> bool {
    !is_own(timer, limits_unsent) && s.get(timer).unwrap_or(0.0) > WAITS
}

fn sending_thread(s: &Statistics, limits_unsent: bool) -> f64 {
    let waits = [Statistic::RwndShare, Statistic::SndbufShare]
        .into_iter()
        .any(|timer| waits_for(timer, s, limits_unsent));
    if waits { 0.0 } else { full(s.get(Statistic::SenderCore)) }
}

fn receiving_thread(s: &Statistics) -> f64 {
    let open = s.get(Statistic::WindowFloor).is_none_or(|floor| floor >= CLOSES);
    let waits = s.get(Statistic::RwndShare).unwrap_or(0.0) > WAITS && open;
    let idle = s.get(Statistic::IdleShare).unwrap_or(0.0) > WAITS;
    if waits || idle { 0.0 } else { full(s.get(Statistic::ReceiverCore)) }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        prepared,
    };
    use record::{Measurement, Sample};

    /// The probabilities of CPU and memory.
    fn found(m: &Measurement) -> (f64, f64) {
        let statistics = prepared(m).over(0.0, 4.0);
        let posterior = apply(Posterior::of(&statistics), &statistics, Sender::Bulk, false);
        (posterior.probability(Limit::Cpu), posterior.probability(Limit::Memory))
    }

    fn with(sender: f64, receiver: f64, change: impl Fn(u64, &mut Sample)) -> Measurement {
        let mut m = sampled(samples(4.0, 900.0, change));
        (m.sender_cpu, m.receiver_cpu) = (Some(sender), Some(receiver));
        m
    }

    #[test]
    fn a_saturated_core_of_either_side_is_the_limit() {
        let plain = |sender, receiver| found(&with(sender, receiver, |_, _| {})).0;
        assert!(plain(0.99, 0.2) > 0.98 && plain(0.2, 0.99) > 0.98);
        assert!(plain(0.9, 0.9) < 0.02);
        let mut waits = with(0.55, 0.2, |_, _| {});
        waits.sender_core_wait = Some(0.44);
        assert!(found(&waits).0 > 0.98, "its thread waited for a core");
    }

    #[test]
    fn threads_that_share_cores_on_a_short_path_are_limited_by_them() {
        let cpu = |rate: f64, rtt_ms: f64, wait: f64| {
            let mut m = sampled(samples(4.0, rate, |_, s| {
                (s.rtt_us, s.min_rtt_us) = ((rtt_ms * 1e3) as u32, Some((rtt_ms * 1e3) as u32));
            }));
            (m.sender_cpu, m.sender_core_wait) = (Some(0.86 - wait), Some(wait));
            found(&m).0
        };
        assert!(cpu(40_000.0, 0.05, 0.6) > 0.9);
        assert!(cpu(40_000.0, 0.05, 0.03) < 0.1, "no core is contended");
        assert!(cpu(900.0, 0.05, 0.6) < 0.1 && cpu(40_000.0, 20.0, 0.6) < 0.1, "slow, or long");
    }

    #[test]
    fn a_sender_that_waits_for_its_window_has_cpu_time_to_spare() {
        let waits = |_, s: &mut Sample| s.rwnd_limited_us = s.busy_us;
        assert!(found(&with(0.99, 0.2, waits)).0 < 0.02);
        assert!(found(&with(0.2, 0.99, waits)).0 < 0.02);
        // A receiver that falls behind closes its window.
        let closes = |index, s: &mut Sample| {
            waits(index, s);
            s.peer_window_bytes = Some(if index.is_multiple_of(3) { 0 } else { 1 << 20 });
        };
        assert!(found(&with(0.2, 0.99, closes)).0 > 0.98);
        let idle = |_, s: &mut Sample| s.busy_us /= 4;
        assert!(found(&with(0.2, 0.99, idle)).0 < 0.02);
    }

    #[test]
    fn a_sender_with_more_to_send_is_not_limited_by_its_application() {
        let m = sampled(samples(4.0, 900.0, |_, s| {
            (s.delivery_app_limited, s.unsent_bytes) = (true, 0);
        }));
        let statistics = prepared(&m).over(0.0, 4.0);
        let of = |sender| apply(Posterior::of(&statistics), &statistics, sender, false);
        let application = of(Sender::Any).probability(Limit::Application);
        assert!(application > 0.01, "{application}");
        assert_eq!(of(Sender::Bulk).probability(Limit::Application), 0.0);
        assert!(of(Sender::Bulk).probability(Limit::SendBuffer) >= application);
    }

    #[test]
    fn unsent_data_that_the_test_limited_is_not_the_limit() {
        let mut m = with(0.99, 0.5, |index, s| s.sndbuf_limited_us = index * 95_000);
        let send_buffer = |m: &Measurement| {
            let statistics = prepared(m).over(0.0, 4.0);
            let fitted = Posterior::of(&statistics);
            let found = apply(fitted, &statistics, Sender::Bulk, m.unsent_limit().is_some());
            (found.most_probable(), found.probability(Limit::SendBuffer))
        };
        assert!(send_buffer(&m).1 > 0.9);
        m.streams[0].unsent_limit_bytes = Some(131_072);
        assert_eq!(send_buffer(&m), (Limit::Cpu, 0.0));
    }

    #[test]
    fn what_an_application_leaves_unread_tells_it_from_the_window() {
        // 50 kB of window, full for 20 ms: 20 Mbit/s.
        let full = |_, s: &mut Sample| {
            s.rwnd_limited_us = s.busy_us;
            (s.peer_window_bytes, s.in_flight_bytes) = (Some(50_000), 50_000);
        };
        let of = |unread: u64| {
            let mut m = sampled(samples(4.0, 20.0, full));
            let acked = m.streams[0].sender.clone();
            m.streams[0].receiver = acked
                .iter()
                .map(|s| record::ReceiverSample {
                    t_s: s.t_s,
                    received_bytes: s.acked_bytes.saturating_sub(unread),
                    ..record::ReceiverSample::default()
                })
                .collect();
            let statistics = prepared(&m).over(0.0, 4.0);
            let posterior = apply(Posterior::of(&statistics), &statistics, Sender::Bulk, false);
            [Limit::ReceiveWindow, Limit::SlowReceiver].map(|limit| posterior.probability(limit))
        };
        assert_eq!(of(0)[1], 0.0, "all is read");
        assert_eq!(of(45_000)[0], 0.0, "nearly the whole window is unread");
    }

    /// A local transfer of 4 s, with that many MB between the applications.
    fn local(mbit: f64, congestion: &str, megabytes: u64, core: f64) -> Measurement {
        let local = |_, s: &mut Sample| {
            (s.rtt_us, s.min_rtt_us) = (60, Some(30));
            s.written_bytes = s.acked_bytes + megabytes * 1_000_000;
        };
        let mut m = sampled(samples(4.0, mbit, local));
        m.sender_cpu = Some(core);
        m.streams[0].congestion = Some(congestion.to_owned());
        m
    }

    #[test]
    fn memory_takes_a_fast_local_path_and_much_data_between_the_applications() {
        let of = |mbit, megabytes| found(&local(mbit, "cubic", megabytes, 1.0));
        let (cpu, memory) = of(25_000.0, 70);
        assert!(memory > 0.9 && cpu < 0.1, "{cpu} {memory}");
        assert!(of(25_000.0, 8).1 < 0.01, "little");
        assert!(of(2_000.0, 70).1 < 0.01, "slow");
        assert!(found(&local(25_000.0, "cubic", 70, 0.5)).1 < 0.01, "idle cores");
    }

    #[test]
    fn memory_does_not_take_a_byte_whose_cost_stays() {
        let of = |late: u64| {
            let mut m = local(25_000.0, "cubic", 70, 1.0);
            // Little is between the applications in the first second.
            for s in &mut m.streams[0].sender {
                let (early, later) = (s.t_s.min(1.0) * 1e6, (s.t_s - 1.0).max(0.0) * 1e6);
                s.written_bytes -= if s.t_s < 1.0 { 66_000_000 } else { 0 };
                s.cpu_us = Some((early * 0.5) as u64 + late * later as u64 / 100);
            }
            found(&m).1
        };
        assert!(of(50) < 0.01, "{}", of(50));
        assert!(of(75) > 0.8, "{}", of(75));
    }

    #[test]
    fn timers_of_bbr_take_a_fast_local_path_unless_a_rate_was_requested() {
        let of = |m: &Measurement| {
            let statistics = prepared(m).over(0.0, 4.0);
            let posterior = apply(Posterior::of(&statistics), &statistics, Sender::Bulk, false);
            posterior.probability(Limit::PacingTimers)
        };
        assert!(of(&local(25_000.0, "bbr", 1, 0.9)) > 0.9);
        assert!(of(&local(25_000.0, "cubic", 1, 0.9)) < 0.01);
        assert!(of(&local(9_400.0, "bbr", 1, 0.4)) < 0.01, "a saturated link of 10 Gbit/s");
        let mut requested = local(25_000.0, "bbr", 1, 0.9);
        requested.spec.rate_bps = Some(units::BitRate::from_bps(25_000_000_000));
        assert!(of(&requested) < 0.01);
    }
}
