//! Transfers that show no limit: nothing arrived, or all of it within one round trip.
//!
//! The rate of what is sent before the first acknowledgement is that of a memory copy, and its
//! growth that of the initial window (RFC 6928).

use crate::{evidence::Evidence, facts::Facts};
use record::{Caveat, Limit, Measurement, Stream, Unavailable};
use units::{ByteCount, significant};

/// The sentence for a test with too little data for a limit; `None` if there is enough, or the
/// reason is known.
pub(crate) fn sentence(facts: &Facts<'_>, limit: Option<Limit>, e: &Evidence) -> Option<String> {
    let m = facts.m;
    let is_captured = m.streams.iter().any(|stream| stream.captured.is_some());
    if m.streams.is_empty() || is_captured || facts.is_watched {
        return None;
    }
    let explains = matches!(limit, Some(Limit::Outage | Limit::PmtuBlackHole));
    let received = m.received();
    if received == ByteCount::ZERO
        && !is_delivered(m)
        && !explains
        && !m.lacks(Unavailable::Received)
    {
        return Some(
            "Nothing arrived, so there is no rate and no limit: look for a firewall or an outage \
             (`longhaul doctor` checks the path)."
                .to_owned(),
        );
    }
    let is_short = |stream: &Stream| stream.caveats.contains(&Caveat::WithinOneRoundTrip);
    m.streams.iter().all(is_short).then(|| {
        let seconds = significant(m.seconds(), 3);
        format!(
            "Cannot identify the limit: the transfer of {received} ended {seconds} s after its \
             start, before an acknowledgement could change its rate; {} is its size divided by its \
             duration. Run a longer test: -t 10.",
            e.average
        )
    })
}

/// Returns true if a sample has data that arrived.
fn is_delivered(m: &Measurement) -> bool {
    let sent = |s: &Stream| s.sender.iter().any(|sample| sample.acked_bytes > 0);
    let read = |s: &Stream| s.receiver.iter().any(|sample| sample.received_bytes > 0);
    m.streams.iter().any(|stream| sent(stream) || read(stream))
}

#[cfg(test)]
mod tests {
    use crate::example::{sampled, samples};
    use record::{Caveat, Limit, Measurement, Sample};

    fn moved(change: impl Fn(u64, &mut Sample)) -> Measurement {
        sampled(samples(4.0, 10.0, change))
    }

    #[test]
    fn within_one_round_trip_there_is_no_limit() {
        let mut m = moved(|_, _| {});
        m.streams[0].caveats.push(Caveat::WithinOneRoundTrip);
        let found = crate::explain(&m);
        assert_eq!((found.limit, found.predicted_bps), (None, None));
        assert!(found.sentence.contains("before an acknowledgement"), "{}", found.sentence);
        assert_eq!(found.caveats, [Caveat::WithinOneRoundTrip]);
    }

    #[test]
    fn nothing_has_no_limit_unless_the_path_was_down() {
        let nothing = |index, s: &mut Sample| {
            (s.acked_bytes, s.delivered_bytes) = (0, 0);
            (s.written_bytes, s.in_flight_bytes) = (90_000, 14_480);
            s.retransmits = index / 10;
        };
        let m = moved(nothing);
        assert_eq!(crate::explain(&m).limit, Some(Limit::Outage));
        let m = moved(|_, s| *s = Sample { t_s: s.t_s, ..Sample::default() });
        let found = crate::explain(&m);
        assert_eq!(found.limit, None);
        assert!(found.sentence.starts_with("Nothing arrived"), "{}", found.sentence);
    }
}
