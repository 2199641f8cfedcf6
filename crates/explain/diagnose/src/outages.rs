//! Outages: spans in which nothing was delivered although data was outstanding.
//!
//! A sender with outstanding data hears of it within a round trip, or its retransmission timer
//! expires (RFC 6298: at least 1 s there, 200 ms in Linux) and doubles. One timeout is ordinary
//! after a burst of losses; an outage is longer than a timeout and its first repeat. A window of
//! zero is the receiver's, not the path's (RFC 9293, section 3.8.6.1).

use crate::series::Step;
use crate::statistics::Prepared;
use record::{ReceiverSample, Sample, Stream};

/// The shortest outage, in seconds and in RTTs.
const MIN_S: f64 = 1.0;
const MIN_RTTS: f64 = 4.0;

/// The share of the test from which outages are its limit; one that lasts until the end is
/// whatever its share.
const SHARE: f64 = 0.15;

/// The loss ratio outside outages from which timeouts are those of a lossy path: each retransmission
/// is lost as well with this probability, and the timer doubles.
const LOSSY: f64 = 0.005;

/// A receiver's outage, as a multiple of the mean time between segments: of a flow that is paced to
/// few segments a second, none is.
const SPACINGS: f64 = 10.0;

/// Payload of a segment that was not counted, in bytes.
const SEGMENT: f64 = 1448.0;

/// An outage of all streams.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outage {
    /// Its start and end, in seconds since the test's start.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Segments that were retransmitted in vain.
    pub(crate) retransmits: u64,
    /// Segments that arrived from the receiver meanwhile; `None` if they were not counted.
    pub(crate) received: Option<u64>,
    /// Bytes in flight and unsent at its end.
    pub(crate) outstanding: u64,
}

/// The outages of a test, in the order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outages {
    pub(crate) all: Vec<Outage>,
    /// Whether the last one lasts until the end.
    pub(crate) is_final: bool,
}

impl Outages {
    /// The outages that limited the test; `None` if they cost too little of it.
    pub(crate) fn limiting(test: &Prepared<'_>) -> Option<Self> {
        let end = test.end();
        let found = Outages::of(test);
        if found.is_lossy(test) {
            return None;
        }
        let lasted: f64 = found.all.iter().map(|outage| outage.to - outage.from).sum();
        (found.is_final || lasted > SHARE * end)
            .then_some(found)
            .filter(|found| !found.all.is_empty())
    }

    /// How long they last between two times, in seconds.
    pub(crate) fn seconds_in(&self, from: f64, to: f64) -> f64 {
        self.all.iter().map(|outage| (outage.to.min(to) - outage.from.max(from)).max(0.0)).sum()
    }

    /// Whether the rest of the test loses so much that its timeouts are those of a lossy path.
    fn is_lossy(&self, test: &Prepared<'_>) -> bool {
        let steps = || test.series.streams.iter().flatten();
        let outside = |step: &&Step| !self.all.iter().any(|o| step.to > o.from && step.from < o.to);
        let lost: f64 = steps().filter(outside).map(|step| step.lost).sum();
        let sent: f64 = steps().map(|step| step.rate * step.seconds() / 8.0 / step.mss()).sum();
        lost > LOSSY * (sent + lost)
    }

    fn of(test: &Prepared<'_>) -> Self {
        let m = test.facts.m;
        if test.facts.is_received_only() {
            return Outages::at_receiver(test);
        }
        let streams = &test.series.streams;
        if streams.is_empty() || streams.iter().any(Vec::is_empty) {
            return Outages::default();
        }
        let rtt = m.streams.iter().flat_map(|s| &s.sender).map(|s| s.rtt_us).min().unwrap_or(0);
        let least = MIN_S.max(MIN_RTTS * f64::from(rtt) / 1e6);
        let stalls = |steps: &Vec<Step>| {
            joined(steps.iter().filter(|step| is_stalled(step)).map(|step| (step.from, step.to)))
        };
        let end = streams.iter().flatten().map(|step| step.to).fold(0.0, f64::max);
        let spans = in_common(streams.iter().map(stalls), least);
        Outages::ending(spans, end, |span| described(streams, span))
    }

    /// Those in which no segment arrived from a test's sender, which always has more to send; none
    /// if its segments are lost so often that its timer doubles: a receiver sees a loss by what
    /// arrives after it, out of order.
    fn at_receiver(test: &Prepared<'_>) -> Self {
        let m = test.facts.m;
        if test.late_steps_per_segment() > LOSSY {
            return Outages::default();
        }
        let stalls = |stream: &Stream| {
            let least = MIN_S.max(SPACINGS * spacing(&stream.receiver));
            let pairs = stream.receiver.windows(2).filter_map(|pair| match pair {
                [before, after] => is_silent(before, after).then_some((before.t_s, after.t_s)),
                _ => None,
            });
            let mut spans = joined(pairs);
            spans.retain(|(from, to)| to - from >= least);
            spans
        };
        let end = m.streams.iter().flat_map(|s| &s.receiver).map(|s| s.t_s).fold(0.0, f64::max);
        let spans = in_common(m.streams.iter().map(stalls), MIN_S);
        Outages::ending(spans, end, |(from, to)| Outage {
            from,
            to,
            retransmits: 0,
            received: None,
            outstanding: 0,
        })
    }

    fn ending(spans: Vec<(f64, f64)>, end: f64, described: impl Fn((f64, f64)) -> Outage) -> Self {
        let is_final = spans.last().is_some_and(|(_, to)| *to >= end - 1e-9);
        Outages { all: spans.into_iter().map(described).collect(), is_final }
    }
}

/// Whether nothing arrived at a receiver that had room, and had read what was there.
fn is_silent(before: &ReceiverSample, after: &ReceiverSample) -> bool {
    let arrived = before.segments.zip(after.segments).is_some_and(|(was, is)| is > was);
    let is_full = after.window_bytes == Some(0) || after.unread_bytes.is_some_and(|left| left > 0);
    before.received_bytes >= after.received_bytes && !arrived && !is_full
}

/// The mean time between segments, in seconds.
fn spacing(samples: &[ReceiverSample]) -> f64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return 0.0 };
    let counted = first.segments.zip(last.segments).map(|(was, is)| is.saturating_sub(was));
    let bytes = last.received_bytes.saturating_sub(first.received_bytes);
    let segments = counted.map_or(bytes as f64 / SEGMENT, f64::from);
    (last.t_s - first.t_s) / segments.max(1.0)
}

/// Steps that follow each other as one span.
fn joined(steps: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for (from, to) in steps {
        match spans.last_mut() {
            Some((_, end)) if (*end - from).abs() < 1e-9 => *end = to,
            _ => spans.push((from, to)),
        }
    }
    spans
}

/// The spans that all streams have, of at least `least` seconds.
fn in_common(streams: impl Iterator<Item = Vec<(f64, f64)>>, least: f64) -> Vec<(f64, f64)> {
    let long = |mut spans: Vec<(f64, f64)>| {
        spans.retain(|(from, to)| to - from >= least);
        spans
    };
    let common = streams.map(long).reduce(|one, other| long(intersection(&one, &other)));
    common.unwrap_or_default()
}

/// Whether a stream delivered nothing in a step, with data outstanding.
fn is_stalled(step: &Step) -> bool {
    let delivered = |s: &Sample| s.delivered_bytes.max(s.acked_bytes);
    step.growth(delivered) <= 0.0
        && outstanding(&step.after) > 0
        && step.after.peer_window_bytes != Some(0)
}

/// Bytes sent and unsent that were not acknowledged.
fn outstanding(s: &Sample) -> u64 {
    s.in_flight_bytes.max(s.unsent_bytes).max(s.written_bytes.saturating_sub(s.acked_bytes))
}

fn intersection(one: &[(f64, f64)], other: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let both = one.iter().flat_map(|a| other.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    both.filter(|(from, to)| to > from).collect()
}

fn described(streams: &[Vec<Step>], (from, to): (f64, f64)) -> Outage {
    let mut outage = Outage { from, to, retransmits: 0, received: Some(0), outstanding: 0 };
    for steps in streams {
        let within =
            || steps.iter().filter(|step| step.from >= from - 1e-9 && step.to <= to + 1e-9);
        let lost = within().map(|step| step.lost as u64).fold(0, u64::saturating_add);
        outage.retransmits = outage.retransmits.saturating_add(lost);
        let received: Option<f64> = within().map(|step| step.growth32(|s| s.acks)).sum();
        outage.received =
            outage.received.zip(received).map(|(sum, more)| sum.saturating_add(more as u64));
        let left = within().next_back().map_or(0, |step| outstanding(&step.after));
        outage.outstanding = outage.outstanding.saturating_add(left);
    }
    outage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        prepared,
    };
    use record::Measurement;

    /// 10 s at 10 Mbit/s that stop from 4 s on, for as many tenths of a second.
    fn stops(tenths: u64, change: impl Fn(&mut Sample)) -> Measurement {
        sampled(samples(10.0, 10.0, |index, s| {
            let lost = 125_000 * index.saturating_sub(40).min(tenths);
            s.delivered_bytes -= lost;
            s.acked_bytes -= lost;
            s.written_bytes = s.acked_bytes + 50_000;
            s.in_flight_bytes = 50_000;
            s.retransmits = index.saturating_sub(40).min(tenths) / 10;
            change(s);
        }))
    }

    fn limiting(m: &Measurement) -> Option<Outages> {
        Outages::limiting(&prepared(m))
    }

    #[test]
    fn an_outage_has_its_times_and_its_retransmissions() {
        let found = limiting(&stops(30, |s| s.acks = Some(7))).unwrap();
        let [one] = found.all.as_slice() else { panic!("{found:?}") };
        assert!((one.from - 4.0).abs() < 0.01 && (one.to - 7.0).abs() < 0.01, "{one:?}");
        assert_eq!((one.retransmits, one.received, one.outstanding), (3, Some(0), 50_000));
        assert!(!found.is_final);
        assert!(limiting(&stops(60, |_| {})).unwrap().is_final);
    }

    #[test]
    fn an_ordinary_timeout_is_none() {
        assert_eq!(limiting(&stops(9, |_| {})), None);
        assert_eq!(limiting(&stops(14, |_| {})), None, "an outage, of a seventh of the test");
        assert!(limiting(&stops(16, |_| {})).is_some());
    }

    #[test]
    fn a_receiver_or_an_application_that_stops_is_none() {
        let zero = limiting(&stops(30, |s| s.peer_window_bytes = Some(0)));
        assert_eq!(zero, None);
        let idle = |s: &mut Sample| (s.written_bytes, s.in_flight_bytes) = (s.acked_bytes, 0);
        assert_eq!(limiting(&stops(30, idle)), None);
        assert_eq!(limiting(&stops(30, |s| s.rtt_us = 800_000)), None, "four round trips");
    }

    #[test]
    fn a_receiver_alone_sees_an_outage_of_an_unlimited_test() {
        let received = |stopped: u64| {
            let mut m = stops(0, |_| {});
            let stream = &mut m.streams[0];
            stream.sender.clear();
            stream.receiver = (0..=100)
                .map(|index| ReceiverSample {
                    t_s: index as f64 / 10.0,
                    received_bytes: 125_000 * index.min(stopped),
                    ..ReceiverSample::default()
                })
                .collect();
            m
        };
        let found = limiting(&received(60)).unwrap();
        assert!(found.is_final && (found.all[0].from - 6.0).abs() < 0.01, "{found:?}");
        assert_eq!(limiting(&received(91)), None);
        let finding = crate::explain(&received(60));
        assert_eq!(finding.limit, Some(record::Limit::Outage));
        assert!(
            finding.sentence.starts_with("Outage: nothing arrived from 6 s to 10 s (the end).")
        );
        assert_eq!(
            finding.confidence,
            Some(record::Confidence::Likely),
            "no retransmission is seen"
        );
        let mut paced = received(60);
        paced.spec.rate_bps = Some("10mbit".parse().unwrap());
        assert_eq!(limiting(&paced), None);
    }

    /// 10 s in which every tenth of a second adds a segment until 6 s, and `change` what it likes.
    fn seen(change: impl Fn(u64, &mut ReceiverSample)) -> Option<Outages> {
        let mut m = stops(0, |_| {});
        let stream = &mut m.streams[0];
        stream.sender.clear();
        let sample = |index: u64| {
            let mut sample = ReceiverSample {
                t_s: index as f64 / 10.0,
                received_bytes: 144_800 * index.min(60),
                segments: Some(100 * index.min(60) as u32),
                out_of_order: Some(0),
                ..ReceiverSample::default()
            };
            change(index, &mut sample);
            sample
        };
        stream.receiver = (0..=100).map(sample).collect();
        limiting(&m)
    }

    #[test]
    fn a_receiver_that_is_full_slow_or_loses_often_sees_no_outage() {
        assert!(seen(|_, _| {}).is_some());
        assert_eq!(seen(|_, s| s.window_bytes = Some(0)), None);
        assert_eq!(seen(|_, s| s.unread_bytes = Some(7)), None, "it does not read");
        let duplicates = |index, s: &mut ReceiverSample| s.segments = Some(100 * index as u32);
        assert_eq!(seen(duplicates), None, "segments arrive");
        let paced = |index: u64, s: &mut ReceiverSample| {
            s.received_bytes = 1448 * (index / 20);
            s.segments = Some((index / 20) as u32);
        };
        assert_eq!(seen(paced), None, "a segment every two seconds");
        let lossy =
            |index: u64, s: &mut ReceiverSample| s.out_of_order = Some(index.min(60) as u32);
        assert_eq!(seen(lossy), None, "one of a hundred segments is lost");
    }
}
