//! What each sender waited for, from its kernel's readings.

use super::{Axis, INTERVAL_NS};
use crate::lab_run::{Clocks, ReceiverReading, SenderReading};
use host::tcp_info::TcpInfo;
use lab::FlowKey;
use tcp::LimitTimes;
use twin::ConnectionTruth;
use units::Nanos;

/// Gain of BBR's startup is 2.89; of its other states at most 1.25.
const STARTUP_GAIN: f64 = 2.0;

/// Connections in their order, each with its intervals. A connection is its flow, and
/// whether its application writes as fast as it can.
pub(super) struct Senders(Vec<Vec<ConnectionTruth>>);

impl Senders {
    pub(super) fn of(clocks: &Clocks, keys: &[(FlowKey, bool)], axis: Axis) -> Self {
        let one = |(key, is_bulk): &(FlowKey, bool)| {
            let mut truth = vec![ConnectionTruth::default(); axis.count];
            let senders = clocks.senders.get(key).map(Vec::as_slice).unwrap_or_default();
            let mut idle = Idle::default();
            for pair in senders.windows(2) {
                let [before, after] = pair else { continue };
                let times = waited(before, after, *is_bulk, idle.between(before, after));
                add_times(&mut truth, axis, [before.at, after.at], &times);
                if let Some(index) = axis.index(middle(before.at, after.at)) {
                    add_events(&mut truth[index], before, after);
                }
            }
            let mss = senders.last().map_or(1448, |reading| reading.info.snd_mss);
            let receivers = clocks.receivers.get(key).map(Vec::as_slice).unwrap_or_default();
            add_reading(&mut truth, axis, receivers, u64::from(mss).max(1));
            truth
        };
        Senders(keys.iter().map(one).collect())
    }

    pub(super) fn truth(&self, number: usize, index: usize) -> ConnectionTruth {
        self.0[number][index]
    }
}

fn middle(from: Nanos, to: Nanos) -> Nanos {
    from.plus_nanos(to.nanos_since(from) / 2)
}

/// Spreads the time between two readings over the intervals that it overlaps.
fn add_times(
    truth: &mut [ConnectionTruth],
    axis: Axis,
    [from, to]: [Nanos; 2],
    times: &LimitTimes,
) {
    let passed = to.nanos_since(from).max(1);
    for (index, interval) in truth.iter_mut().enumerate() {
        let (start, end) = (axis.start(index).0, axis.start(index).0 + INTERVAL_NS);
        let shared = to.0.min(end).saturating_sub(from.0.max(start));
        if shared == 0 {
            continue;
        }
        let part =
            |time: u64| u64::try_from(u128::from(time) * u128::from(shared) / u128::from(passed));
        let sum = &mut interval.times;
        for (sum, time) in [
            (&mut sum.application_ns, times.application_ns),
            (&mut sum.cwnd_ns, times.cwnd_ns),
            (&mut sum.rwnd_ns, times.rwnd_ns),
            (&mut sum.send_buffer_ns, times.send_buffer_ns),
            (&mut sum.pacing_ns, times.pacing_ns),
            (&mut sum.busy_ns, times.busy_ns),
        ] {
            *sum += part(time).unwrap_or(0);
        }
    }
}

/// Time without data to send or in flight. The kernel's timer of the opposite counts in its
/// ticks, of up to 10 ms: only what exceeds them is idle time.
#[derive(Default)]
struct Idle {
    passed_ns: u64,
    busy_ns: u64,
    counted_ns: u64,
}

const TICK_NS: u64 = 10_000_000;

impl Idle {
    fn between(&mut self, before: &SenderReading, after: &SenderReading) -> u64 {
        self.passed_ns += after.at.nanos_since(before.at);
        self.busy_ns += since(before, after, |info| info.busy_us);
        let idle = self.passed_ns.saturating_sub(self.busy_ns).saturating_sub(self.counted_ns);
        if idle <= TICK_NS {
            return 0;
        }
        self.counted_ns += idle;
        idle
    }
}

/// A timer of the kernel, in ns.
fn since(before: &SenderReading, after: &SenderReading, of: fn(&TcpInfo) -> Option<u64>) -> u64 {
    let read = |reading: &SenderReading| of(&reading.info).unwrap_or(0);
    read(after).saturating_sub(read(before)).saturating_mul(1000)
}

/// What the sender waited for between two readings. The kernel's timers have the receive
/// window and the send buffer; the rest is told by the state at either reading, half each.
fn waited(before: &SenderReading, after: &SenderReading, is_bulk: bool, idle: u64) -> LimitTimes {
    let passed = after.at.nanos_since(before.at).max(1);
    let application_ns = idle.min(passed);
    let busy_ns = passed - application_ns;
    let rwnd_ns = since(before, after, |info| info.rwnd_limited_us).min(busy_ns);
    let send_buffer_ns = since(before, after, |info| info.sndbuf_limited_us).min(busy_ns - rwnd_ns);
    let mut times =
        LimitTimes { application_ns, rwnd_ns, send_buffer_ns, busy_ns, ..LimitTimes::default() };
    let rest = busy_ns - rwnd_ns - send_buffer_ns;
    for (reading, part) in [(before, rest / 2), (after, rest - rest / 2)] {
        *match state(reading, is_bulk) {
            State::Application => &mut times.application_ns,
            State::SendBuffer => &mut times.send_buffer_ns,
            State::Pacing => &mut times.pacing_ns,
            State::Cwnd => &mut times.cwnd_ns,
        } += part;
    }
    times
}

enum State {
    Application,
    SendBuffer,
    Pacing,
    Cwnd,
}

fn state(reading: &SenderReading, is_bulk: bool) -> State {
    let info = &reading.info;
    let room = info.snd_cwnd.saturating_sub(info.in_flight_segments());
    let repairs = info.lost > info.retrans;
    // What does not fill a segment waits for the rest of it (RFC 9293 section 3.7.4).
    let has_segment = info.notsent_bytes.is_none_or(|bytes| bytes >= info.snd_mss.max(1));
    if !has_segment && room > 0 && !repairs {
        // A bulk application always has more to write. Any other is blocked if less than
        // a third of the buffer is free (`sk_stream_is_writeable`).
        let is_full = reading.memory.is_some_and(|memory| {
            3 * u64::from(memory.send_used) >= 2 * u64::from(memory.send_buffer)
        });
        return if is_bulk || is_full { State::SendBuffer } else { State::Application };
    }
    // A sender that waits for its window may leave room for part of a burst
    // (`tcp_tso_should_defer`).
    let has_room = room > (info.snd_cwnd / 8).max(2);
    let is_paced = reading.bbr.is_some() || info.max_pacing_rate.is_some();
    if !is_paced || !has_room {
        return State::Cwnd;
    }
    // The test paces a socket at a little more than the application's rate (`-b`).
    let is_at_maximum = info.max_pacing_rate.is_some_and(|most| info.pacing_rate >= Some(most));
    if !is_bulk && is_at_maximum { State::Application } else { State::Pacing }
}

/// Counters, and the state at the later of two readings.
fn add_events(interval: &mut ConnectionTruth, before: &SenderReading, after: &SenderReading) {
    let (earlier, later) = (&before.info, &after.info);
    interval.retransmits += u64::from(later.total_retrans.saturating_sub(earlier.total_retrans));
    let duplicates = |info: &TcpInfo| info.dsack_dups.unwrap_or(0);
    interval.duplicates += u64::from(duplicates(later).saturating_sub(duplicates(earlier)));
    interval.reductions += u64::from(is_reduced(before, after));
    interval.slow_start = match after.bbr {
        Some(bbr) => bbr.pacing_gain > STARTUP_GAIN,
        None => later.snd_ssthresh.is_none_or(|threshold| later.snd_cwnd < threshold),
    };
}

/// Whether the window was reduced: a reduction sets the threshold below the window of
/// that moment, the end of HyStart at it. BBR begins a recovery without a threshold; and at
/// the least threshold, two segments, a recovery does not change it.
fn is_reduced(before: &SenderReading, after: &SenderReading) -> bool {
    const RECOVERY: u8 = 3;
    const MIN: u32 = 2;
    let threshold = after.info.snd_ssthresh;
    let unchanged = threshold == before.info.snd_ssthresh;
    if after.bbr.is_some() || (unchanged && threshold == Some(MIN)) {
        return before.info.ca_state < RECOVERY && after.info.ca_state >= RECOVERY;
    }
    !unchanged && threshold.is_some_and(|threshold| threshold < before.info.snd_cwnd)
}

/// What the receiving application read, and what it had not read at the end.
fn add_reading(truth: &mut [ConnectionTruth], axis: Axis, readings: &[ReceiverReading], mss: u64) {
    // Whole packets: the remainder is counted with a later interval.
    let mut counted = None;
    for reading in readings {
        let base = *counted.get_or_insert(reading.read);
        let Some(index) = axis.index(reading.at) else {
            if reading.at < axis.began {
                counted = Some(reading.read);
            }
            continue;
        };
        let packets = reading.read.saturating_sub(base) / mss;
        truth[index].read += packets;
        truth[index].unread = reading.unread / mss;
        counted = Some(base + packets * mss);
    }
}
