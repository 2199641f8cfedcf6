//! Interval reports as samples.
//!
//! A sender's reports with window, RTT and retransmissions are samples of the sender: its
//! counters are summed up, and what is in flight follows from Little's law (rate x RTT).
//! Without these, they show how fast data went, as the samples of a receiver do.

use crate::start;
use record::{Caveat, Interval, ReceiverSample, Sample, Stream, Unavailable};
use units::{ByteCount, Rtt};

/// Totals of a stream, where the tool reports them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Bytes written by the sender, and read by the receiver.
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
    /// Seconds in which the receiver read them.
    pub(crate) received_seconds: Option<f64>,
    pub(crate) retransmits: Option<u64>,
    /// The least RTT.
    pub(crate) min_rtt: Option<Rtt>,
    /// Payload of a full segment.
    pub(crate) mss: u32,
}

/// Samples further apart than this hide what happens between them, in seconds.
const SPARSE_S: f64 = 1.5;

/// A receiver whose transfer took this many times as long as the sender's had data in the send
/// buffer to wait for.
const DRAINED: f64 = 1.05;

/// A stream of its intervals, oldest first, and what is not known of it.
pub(crate) fn stream(
    id: u32,
    reverse: bool,
    intervals: &[Interval],
    totals: &Totals,
) -> (Stream, Vec<Unavailable>) {
    let kept: Vec<&Interval> = in_order(intervals);
    let last = kept.last().map_or(0.0, |interval| interval.to_s);
    let counted = kept.iter().fold(ByteCount::ZERO, |sum, one| sum.plus(one.bytes)).bytes();
    let is_sender = kept.last().is_some_and(|interval| interval.sending);
    let sent = totals.sent.or(is_sender.then_some(counted)).or(totals.received).unwrap_or(counted);
    let received = totals.received.unwrap_or(counted);
    let has_state = |one: &&Interval| one.cwnd.is_some() && one.rtt.is_some();
    let shows_sender = is_sender
        && !kept.is_empty()
        && kept.iter().all(has_state)
        && kept.iter().all(|one| one.retransmits.is_some());
    let mut lacking = vec![Unavailable::SenderTimers, Unavailable::Unsent, Unavailable::InFlight];
    lacking.push(Unavailable::IdleRtt);
    if is_sender && totals.received.is_none() {
        lacking.push(Unavailable::Received);
    }
    if !kept.iter().any(|one| one.peer_window.is_some()) {
        lacking.push(Unavailable::ReceiveWindow);
    }
    let mut all = Stream {
        id,
        reverse,
        sent_bytes: sent,
        received_bytes: received,
        sent_seconds: last,
        received_seconds: totals.received_seconds.unwrap_or(last),
        retransmits: totals.retransmits.or_else(|| sum_of_retransmits(&kept)),
        caveats: caveats(intervals, &kept),
        ..Stream::default()
    };
    if is_within_one_round_trip(&kept, all.received_seconds) {
        all.caveats.push(Caveat::WithinOneRoundTrip);
        all.receiver = whole(&all);
        lacking.extend([Unavailable::CongestionWindow, Unavailable::Rtt]);
    } else if shows_sender {
        let omitted = intervals.iter().filter(|one| one.omitted);
        all.sender = sender(&kept, omitted, totals, &all);
    } else {
        lacking.extend([Unavailable::CongestionWindow, Unavailable::Rtt]);
        if all.retransmits.is_none() {
            lacking.push(Unavailable::Retransmissions);
        }
        let unread = if is_sender { sent.saturating_sub(received) } else { 0 };
        all.receiver = receiver(&kept, unread);
    }
    (all, lacking)
}

/// What the reports do not show.
fn caveats(all: &[Interval], kept: &[&Interval]) -> Vec<Caveat> {
    let omitted = || all.iter().filter(|one| one.omitted);
    let lengths = |one: &Interval| one.to_s - one.from_s;
    let mut found = Vec::new();
    let seconds = omitted().map(lengths).filter(|s| s.is_finite() && *s > 0.0).sum();
    if seconds > 0.0 {
        let retransmits = sum_of_retransmits(&omitted().collect::<Vec<_>>());
        found.push(Caveat::OmittedSeconds { seconds, retransmits });
    }
    let lengths: Vec<f64> = kept.iter().map(|one| lengths(one)).collect();
    let interval_s = model::statistics::median(&lengths).unwrap_or(0.0);
    if interval_s > SPARSE_S && kept.len() > 1 {
        found.push(Caveat::SparseSamples { interval_s });
    }
    found
}

/// Whether a transfer of so many seconds was over before an acknowledgement could change its rate.
fn is_within_one_round_trip(intervals: &[&Interval], seconds: f64) -> bool {
    let rtts = intervals.iter().filter_map(|one| one.rtt).filter(|rtt| *rtt > Rtt::ZERO);
    let written = intervals.last().map_or(0.0, |last| last.to_s);
    rtts.min().is_some_and(|rtt| written.min(seconds) <= rtt.secs_f64())
}

/// A transfer as its receiver reports it: start and end.
fn whole(stream: &Stream) -> Vec<ReceiverSample> {
    let end = ReceiverSample {
        t_s: stream.received_seconds,
        received_bytes: stream.received_bytes,
        ..ReceiverSample::default()
    };
    vec![ReceiverSample::default(), end]
}

/// The intervals that count, without those that go back in time.
fn in_order(intervals: &[Interval]) -> Vec<&Interval> {
    let mut before = 0.0;
    intervals
        .iter()
        .filter(|one| !one.omitted && one.to_s.is_finite())
        .filter(|one| {
            let later = one.to_s > before;
            before = if later { one.to_s } else { before };
            later
        })
        .collect()
}

fn sum_of_retransmits(intervals: &[&Interval]) -> Option<u64> {
    let mut counts = intervals.iter().map(|one| one.retransmits);
    let sum = counts.try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)));
    sum.filter(|_| !intervals.is_empty())
}

/// Samples of the sender. What it wrote and the receiver did not read filled the send buffer, from
/// the first interval to the last. `omitted` are the intervals before them: a loss in these has
/// ended slow start.
fn sender<'a>(
    intervals: &[&Interval],
    omitted: impl Iterator<Item = &'a Interval>,
    totals: &Totals,
    stream: &Stream,
) -> Vec<Sample> {
    let unread = stream.sent_bytes.saturating_sub(stream.received_bytes);
    let us = |rtt: Rtt| u32::try_from(rtt.nanos() / 1000).unwrap_or(u32::MAX);
    let least = intervals.iter().filter_map(|one| one.rtt).filter(|rtt| *rtt > Rtt::ZERO).min();
    let least = totals.min_rtt.filter(|rtt| *rtt > Rtt::ZERO).into_iter().chain(least).min();
    let mss = totals.mss.max(1);
    let (mut written, mut acked, mut retransmits) = (0_u64, 0_u64, 0_u64);
    let (mut begun_cwnd, mut begun_ssthresh) = (None, None);
    for one in omitted {
        begun_cwnd = one.cwnd.map(ByteCount::bytes).or(begun_cwnd);
        if one.retransmits.is_some_and(|lost| lost > 0) {
            begun_ssthresh = begun_cwnd;
        }
    }
    let mut ssthresh: Option<u64> = begun_ssthresh;
    let mut before = 0.0;
    // No more has arrived at any time than the receiver's average allows, if it went on longer.
    let last = intervals.last().map_or(0.0, |one| one.to_s);
    let is_drained = stream.received_seconds > DRAINED * last;
    let per_second = stream.received_bytes as f64 / stream.received_seconds.max(1e-9);
    let at_most = |t_s: f64| if is_drained { (per_second * t_s) as u64 } else { u64::MAX };
    let mut samples = Vec::with_capacity(intervals.len() + 1);
    for one in intervals {
        written = written.saturating_add(one.bytes.bytes());
        let arrived = written.saturating_sub(unread).min(at_most(one.to_s)).saturating_sub(acked);
        acked = acked.saturating_add(arrived);
        let lost = one.retransmits.unwrap_or(0);
        retransmits = retransmits.saturating_add(lost);
        let cwnd = one.cwnd.unwrap_or_default().bytes();
        if lost > 0 {
            // A loss ends slow start; the window after it is the threshold, or above it.
            ssthresh = Some(cwnd);
        }
        let rtt = one.rtt.unwrap_or_default();
        let rate = arrived as f64 / (one.to_s - before).max(1e-6);
        let flight = ByteCount::from_f64(rate * rtt.secs_f64()).bytes();
        let sample = Sample {
            t_s: one.to_s,
            written_bytes: written,
            acked_bytes: acked,
            delivered_bytes: acked,
            mss_bytes: mss,
            cwnd_bytes: cwnd,
            ssthresh_bytes: ssthresh,
            in_flight_bytes: flight.min(cwnd),
            peer_window_bytes: one.peer_window.map(ByteCount::bytes),
            rtt_us: us(rtt),
            rttvar_us: one.rttvar.map_or(0, us),
            min_rtt_us: least.map(us),
            delivery_rate_bps: (rate * 8.0) as u64,
            retransmits,
            ..Sample::default()
        };
        if samples.is_empty() {
            let begun = start::of_sender(&sample);
            samples.push(Sample {
                cwnd_bytes: begun_cwnd.unwrap_or(begun.cwnd_bytes),
                ssthresh_bytes: begun_ssthresh,
                ..begun
            });
        }
        samples.push(sample);
        before = one.to_s;
    }
    if let Some(end) = samples.last().copied().filter(|_| is_drained) {
        let acked = stream.received_bytes.max(end.acked_bytes);
        samples.push(Sample {
            t_s: stream.received_seconds,
            acked_bytes: acked,
            delivered_bytes: acked,
            in_flight_bytes: 0,
            ..end
        });
    }
    samples
}

/// How fast data went, as a receiver sees it.
fn receiver(intervals: &[&Interval], unread: u64) -> Vec<ReceiverSample> {
    let mut sum = 0_u64;
    let first = ReceiverSample::default();
    let rest = intervals.iter().map(|one| {
        sum = sum.saturating_add(one.bytes.bytes());
        ReceiverSample {
            t_s: one.to_s,
            received_bytes: sum.saturating_sub(unread),
            ..ReceiverSample::default()
        }
    });
    std::iter::once(first).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(to_s: f64, bytes: u64) -> Interval {
        Interval {
            sending: true,
            to_s,
            bytes: ByteCount::from_bytes(bytes),
            retransmits: Some(2),
            cwnd: Some(ByteCount::from_bytes(50_000)),
            rtt: Some(Rtt::from_micros(20_000)),
            ..Interval::default()
        }
    }

    #[test]
    fn what_filled_the_send_buffer_is_not_delivered() {
        let intervals = [interval(1.0, 1_300_000), interval(2.0, 1_000_000)];
        let totals = Totals { received: Some(2_000_000), mss: 1448, ..Totals::default() };
        let (all, lacking) = stream(1, false, &intervals, &totals);
        let acked: Vec<u64> = all.sender.iter().map(|s| s.acked_bytes).collect();
        assert_eq!(acked, [0, 1_000_000, 2_000_000]);
        assert_eq!(all.sender[1].in_flight_bytes, 20_000, "Little's law");
        assert_eq!((all.retransmits, all.sender[2].retransmits), (Some(4), 4));
        assert!(lacking.contains(&Unavailable::ReceiveWindow));
        assert!(!lacking.contains(&Unavailable::Received));
    }

    #[test]
    fn without_the_senders_state_the_rate_alone_is_known() {
        let bare = |to_s| Interval { cwnd: None, ..interval(to_s, 1_000) };
        let back = bare(0.5);
        let (all, lacking) = stream(1, false, &[bare(1.0), back, bare(2.0)], &Totals::default());
        assert!(all.sender.is_empty());
        assert_eq!(all.receiver.len(), 3, "time does not go back");
        assert!(lacking.contains(&Unavailable::CongestionWindow));
        assert!(lacking.contains(&Unavailable::Received));
    }
}
