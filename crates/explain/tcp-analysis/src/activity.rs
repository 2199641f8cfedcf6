//! When the application of a sender had nothing to send.
//!
//! A sender that has data to send is released by ACKs: they open a window, and its segments
//! follow at once. A pause that ends without an ACK before it was the application's, unless
//! something else explains it:
//!
//! | pause | tells it apart |
//! |---|---|
//! | window or congestion window full | an ACK ends it, at the sender's side of the path |
//! | pacing | full segments at even distances, at most two at a time where the rate is low |
//! | recovery | a retransmission ends it, or something is missing |
//! | retransmission timer, tail loss probe | no ACK came for a round trip, with data outstanding |
//! | application | the last segment was short, or all was acknowledged, or a burst ended |
//! | application | the segments before and after it are short: a backlog would have filled them |
//!
//! A request of the other side that comes once all is acknowledged is a pause as well, whatever
//! follows at once: the sender waited for it.

mod even;

use even::EvenPauses;
use record::Activity;
use std::collections::VecDeque;

/// Shorter pauses are not looked at: ns, and share of the RTT.
const MIN_PAUSE_NS: u64 = 2_000_000;
const MIN_PAUSE_RTT: u64 = 20;

/// How long after an ACK's arrival what it releases may pass: at the sender; and elsewhere, where
/// the path in between adds its jitter.
const PROMPT_NS: u64 = 2_000_000;
const PROMPT_RTT: u64 = 20;
const FAR_PROMPT_NS: u64 = 4_000_000;
const FAR_PROMPT_RTT: u64 = 8;
/// And how much earlier than the least RTT.
const EARLY_NS: u64 = 1_000_000;

/// A pause after a burst of full segments: at least so long, so many times the distance of the
/// burst's segments; and one after which pacing is ruled out, ns.
const BURST_PAUSE_NS: u64 = 10_000_000;
const BURST_PAUSE: u64 = 3;
const LONG_PAUSE_NS: u64 = 250_000_000;

/// Bytes of a burst, in segments, beyond what pacing sends at once at a low rate (Linux
/// `tcp_tso_autosize`).
const PACED_SEGMENTS: u64 = 2;

/// ACKs that are remembered, and pauses and bursts of which a median is taken.
const MAX_ACKS: usize = 4096;
const MAX_VALUES: usize = 4096;

/// What is known of a connection beforehand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownPath {
    /// RTT between the capture point and the sender of the data, and the receiver, in ns.
    pub(crate) to_sender_ns: u64,
    pub(crate) to_receiver_ns: u64,
    /// Whether the point is at the sender.
    pub(crate) at_sender: bool,
    /// Payload of a full segment.
    pub(crate) mss: u64,
}

/// Data without a pause of the application.
#[derive(Debug, Clone, Copy, Default)]
struct Burst {
    first_ns: u64,
    last_ns: u64,
    bytes: u64,
    segments: u64,
}

/// What a pause of a sender was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// A loss was repaired, a window was full, or it was too short to tell.
    Explained,
    /// An ACK ended it, be it by chance.
    Released,
    /// Pacing, or an application with a timer.
    Paced,
    /// The application had nothing to send, if such pauses come at even times: far from the sender
    /// the jitter of the path makes single ones.
    Timed,
    /// The application had nothing to send.
    Idle,
}

/// A packet, as far as the activity goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentSegment {
    pub(crate) time_ns: u64,
    /// First and last number, as positions in the sender's direction.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The receiver's window, if it is known.
    pub(crate) window: Option<u64>,
}

/// Follows a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActivityTracker {
    path: KnownPath,
    /// The first packet; when the sender could have sent.
    start_ns: Option<u64>,
    ready_ns: u64,
    last_ns: u64,
    /// When the sender closed its direction.
    closed_ns: Option<u64>,
    /// The last data: its time and length.
    data: Option<(u64, u64)>,
    next: u64,
    /// ACKs by the time at which they passed, with their number; those that the sender has.
    acks: VecDeque<(u64, u64)>,
    acked: u64,
    acked_ns: u64,
    /// Until this position a loss is being repaired.
    repaired_to: u64,
    /// The last byte of a request since the last data.
    request_ns: Option<u64>,
    burst: Burst,
    idle_ns: u64,
    even: EvenPauses,
    /// Whether the last data filled the receiver's window.
    is_full: bool,
    sending_ns: u64,
    bytes: u64,
    bursts: u32,
    responses: u32,
    starts_ns: Vec<u64>,
    sizes: Vec<u64>,
    sender_thinks_ns: Vec<u64>,
    receiver_thinks_ns: Vec<u64>,
}

fn keep(values: &mut Vec<u64>, value: u64) {
    if values.len() < MAX_VALUES {
        values.push(value);
    }
}

fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

impl ActivityTracker {
    pub(crate) fn new(path: KnownPath) -> Self {
        ActivityTracker { path, ..Self::default() }
    }

    fn rtt_ns(&self) -> u64 {
        self.path.to_sender_ns + self.path.to_receiver_ns
    }

    /// A packet passes; `is_ready` says that data may follow it: it is none of the handshake.
    pub(crate) fn pass(&mut self, time_ns: u64, is_ready: bool) {
        self.start_ns.get_or_insert(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        if is_ready && self.ready_ns == 0 {
            self.ready_ns = time_ns;
        }
    }

    /// The sender closes its direction.
    pub(crate) fn close(&mut self, time_ns: u64) {
        self.closed_ns.get_or_insert(time_ns);
    }

    /// The receiver sends a request; its `ack` is one of everything.
    pub(crate) fn request(&mut self, time_ns: u64, ack: u64) {
        if ack < self.next {
            self.ack(time_ns, ack, false);
        } else {
            self.acks.push_back((time_ns, ack));
            self.trim(time_ns);
        }
        if self.request_ns.is_none()
            && let Some((last_ns, _)) = self.data
            && ack >= self.next
        {
            let think = time_ns.saturating_sub(last_ns).saturating_sub(self.path.to_receiver_ns);
            keep(&mut self.receiver_thinks_ns, think);
        }
        self.request_ns = Some(time_ns);
    }

    /// The receiver acknowledges; `is_gap` says that something is missing.
    pub(crate) fn ack(&mut self, time_ns: u64, ack: u64, is_gap: bool) {
        if is_gap {
            self.repaired_to = self.next;
        }
        self.acks.push_back((time_ns, ack));
        self.trim(time_ns);
    }

    /// Takes the ACKs that the sender has had for longer than it needs to answer.
    fn trim(&mut self, now_ns: u64) {
        let latest = now_ns.saturating_sub(self.path.to_sender_ns + self.prompt_ns());
        while let Some(&(time_ns, ack)) = self.acks.front()
            && (time_ns < latest || self.acks.len() > MAX_ACKS)
        {
            (self.acked, self.acked_ns) = (self.acked.max(ack), time_ns);
            self.acks.pop_front();
        }
    }

    fn prompt_ns(&self) -> u64 {
        let rtt = self.rtt_ns();
        if self.path.at_sender {
            PROMPT_NS.max(rtt / PROMPT_RTT)
        } else {
            FAR_PROMPT_NS.max(rtt / FAR_PROMPT_RTT)
        }
    }

    /// The sender repeats data.
    pub(crate) fn repeat(&mut self, time_ns: u64) {
        self.repaired_to = self.next;
        if let Some((last_ns, _)) = &mut self.data {
            *last_ns = time_ns;
        }
        self.burst.last_ns = time_ns;
    }

    /// The sender sends new data; returns whether its application had nothing to send until then.
    pub(crate) fn data(&mut self, seen: SentSegment) -> bool {
        let (now, length) = (seen.time_ns, seen.end - seen.start);
        let is_idle = match self.data {
            None => {
                let ready = self.ready_ns.max(self.start_ns.unwrap_or(now));
                let waited = now.saturating_sub(ready);
                let is_idle = waited > self.prompt_ns();
                self.idle_ns += if is_idle { waited } else { 0 };
                is_idle
            }
            Some((last_ns, last_length)) => {
                let pause = now.saturating_sub(last_ns);
                let why = self.pause(&seen, pause, last_length);
                self.even.add(why, now, pause, self.next);
                self.idle_ns += if why == Pause::Idle { pause } else { 0 };
                why == Pause::Idle
            }
        };
        if is_idle || self.data.is_none() {
            self.end_burst(now);
            keep(&mut self.starts_ns, now);
            self.burst = Burst { first_ns: now, ..Burst::default() };
        }
        if let Some(request_ns) = self.request_ns.take()
            && (is_idle || self.bursts == 0)
        {
            self.responses = self.responses.saturating_add(1);
            let think = now.saturating_sub(request_ns).saturating_sub(self.path.to_sender_ns);
            keep(&mut self.sender_thinks_ns, think);
        }
        self.burst.last_ns = now;
        self.burst.bytes += length;
        self.burst.segments += 1;
        self.bytes += length;
        self.data = Some((now, length));
        let flight = seen.end.saturating_sub(self.acked);
        self.is_full = seen.window.is_some_and(|window| window < flight + 2 * self.path.mss);
        self.next = self.next.max(seen.end);
        is_idle
    }

    /// What a pause before new data was.
    fn pause(&mut self, seen: &SentSegment, pause: u64, last_length: u64) -> Pause {
        let (now, length) = (seen.time_ns, seen.end - seen.start);
        let (rtt, mss) = (self.rtt_ns(), self.path.mss);
        if pause < MIN_PAUSE_NS.max(rtt / MIN_PAUSE_RTT) || seen.start > self.next {
            return Pause::Explained;
        }
        // An ACK that the sender may just have received is in the list, one before is `acked`.
        self.trim(now);
        let reached = now.saturating_sub(self.path.to_sender_ns.saturating_sub(EARLY_NS));
        let arrived = self.acks.iter().take_while(|(time_ns, _)| *time_ns <= reached);
        let is_released = arrived.clone().next().is_some();
        let newest = arrived.map(|(_, ack)| *ack).max().unwrap_or(0);
        let acked = self.acked.max(newest);
        let all_acked = acked >= self.next;
        if acked < self.repaired_to {
            return Pause::Explained;
        }
        if self.request_ns.is_some() && all_acked {
            return Pause::Idle;
        }
        // A backlog fills segments: one that is shorter was all that the application had written.
        if last_length < mss && length < mss && !self.is_full {
            return Pause::Idle;
        }
        // A super-segment ends with what is left.
        let was_short = !last_length.is_multiple_of(mss.max(1));
        if is_released {
            // Nagle's algorithm holds what does not fill a segment until all is acknowledged.
            let is_held = was_short && all_acked && length < mss;
            return if is_held { Pause::Idle } else { Pause::Released };
        }
        let was_heard = self.acked_ns + self.path.to_sender_ns >= now - pause;
        if !all_acked && !was_heard && pause > rtt + rtt / 4 {
            return Pause::Explained;
        }
        if all_acked && pause >= LONG_PAUSE_NS.max(2 * rtt) {
            return Pause::Idle;
        }
        if self.is_full {
            return Pause::Explained;
        }
        let Burst { first_ns, last_ns, bytes, segments } = self.burst;
        let distance = last_ns.saturating_sub(first_ns) / segments.saturating_sub(1).max(1);
        let ends_burst =
            bytes > PACED_SEGMENTS * mss && pause >= BURST_PAUSE_NS.max(BURST_PAUSE * distance);
        match was_short || ends_burst {
            // With all acknowledged, neither a window nor a buffer holds the sender.
            true if self.path.at_sender || all_acked => Pause::Idle,
            true => Pause::Timed,
            false => Pause::Paced,
        }
    }

    /// The next burst, or the end of the connection, is at `next_ns`.
    fn end_burst(&mut self, next_ns: u64) {
        let Burst { first_ns, last_ns, bytes, segments } = self.burst;
        if segments == 0 {
            return;
        }
        self.bursts = self.bursts.saturating_add(1);
        keep(&mut self.sizes, bytes);
        // One within a flight takes a round trip to arrive.
        let flight = self.rtt_ns().min(next_ns.saturating_sub(first_ns));
        self.sending_ns += last_ns.saturating_sub(first_ns).max(flight);
    }

    /// When the connection's life began, in ns; `None` without a packet.
    pub(crate) const fn start_ns(&self) -> Option<u64> {
        self.start_ns
    }

    fn timer(&self) -> Option<(even::Timer, u64)> {
        self.even.timer((!self.path.at_sender).then_some(self.rtt_ns()))
    }

    /// The time of pauses that only their even times show to be the application's, in ns.
    pub(crate) fn timer_ns(&self) -> u64 {
        self.timer().map_or(0, |(_, ns)| ns)
    }

    /// The activity over the connection's life; `None` without data.
    pub(crate) fn finish(mut self) -> Option<Activity> {
        let start = self.start_ns?;
        let (last_ns, _) = self.data?;
        self.end_burst(self.last_ns);
        let acked = self.acks.iter().map(|(_, ack)| *ack).max().unwrap_or(0).max(self.acked);
        let end = self.closed_ns.unwrap_or(self.last_ns).max(last_ns);
        let tail = end - last_ns;
        if acked >= self.next && tail > LONG_PAUSE_NS.max(2 * self.rtt_ns()) {
            self.idle_ns += tail;
        }
        let life = end.saturating_sub(start);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let starts: Vec<u64> =
            self.starts_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        let mut burst = (median(&starts).filter(|_| starts.len() >= 2), median(&self.sizes));
        if let Some((timer, ns)) = self.timer()
            && ns > self.idle_ns / 2
        {
            self.idle_ns += ns;
            burst = (Some(timer.period_ns), Some(timer.bytes));
            self.bursts = u32::try_from(timer.count).unwrap_or(u32::MAX);
        }
        let sending = self.sending_ns;
        Some(Activity {
            idle_share: if life > 0 { (self.idle_ns as f64 / life as f64).min(1.0) } else { 0.0 },
            sending_bps: if sending > 0 { self.bytes as f64 * 8.0 / seconds(sending) } else { 0.0 },
            bursts: self.bursts,
            burst_bytes: burst.1.unwrap_or(0),
            burst_period_s: burst.0.map(seconds),
            responses: self.responses,
            sender_think_s: median(&self.sender_thinks_ns).map(seconds),
            receiver_think_s: median(&self.receiver_thinks_ns).map(seconds),
        })
    }
}
