//! An outage: nothing arrived for a while, although data was outstanding.

use crate::causes::{Cause, Observed};
use crate::outages::{Outage as Span, Outages};
use crate::prepared;
use record::Limit;

pub(super) struct Outage;

/// Outages that a sentence lists; of more it counts the rest.
const LISTED: usize = 3;

impl Cause for Outage {
    fn limit(&self) -> Limit {
        Limit::Outage
    }

    fn noun(&self) -> &'static str {
        "an outage"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let found = Outages::limiting(&prepared(o.m)).unwrap_or_default();
        let Some(last) = found.all.last() else {
            return "Outage: nothing arrived for a while, although data was outstanding."
                .to_owned();
        };
        let retransmits: u64 = found.all.iter().map(|span| span.retransmits).sum();
        let mut text = match last.outstanding {
            // Seen at the receiver.
            0 => format!("Outage: nothing arrived {}", times(&found)),
            bytes => format!(
                "Outage: nothing was acknowledged {}, with {} outstanding",
                times(&found),
                units::ByteCount::from_bytes(bytes)
            ),
        };
        if retransmits > 0 {
            text += &format!(" and {}", after_timeouts(retransmits));
        }
        text += match last.received {
            Some(0) => "; no packet came back either",
            Some(_) => "; packets came back, so only the data direction was down",
            None => "",
        };
        text + ". Look for an interruption of the path at these times: link flaps, roaming, \
                expired firewall state, a route change."
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let found = Outages::limiting(&prepared(o.m)).unwrap_or_default();
        match found.all.last() {
            Some(Span { retransmits, .. }) => format!(
                "outage: nothing acknowledged {}, {}",
                times(&found),
                after_timeouts(*retransmits)
            ),
            None => "outage: nothing arrived for a while, although data was outstanding".to_owned(),
        }
    }
}

fn after_timeouts(retransmits: u64) -> String {
    match retransmits {
        1 => "1 retransmission after a timeout".to_owned(),
        count => format!("{count} retransmissions after timeouts"),
    }
}

/// `from 2.5 s to 6 s, the end`.
fn times(found: &Outages) -> String {
    let seconds = |s: f64| units::significant(s, 3);
    let spans: Vec<String> = found
        .all
        .iter()
        .take(LISTED)
        .map(|span| format!("from {} s to {} s", seconds(span.from), seconds(span.to)))
        .collect();
    let mut text = spans.join(", ");
    if found.all.len() > LISTED {
        let more = found.all.len() - LISTED;
        text += &format!(" and {more} more time{}", if more == 1 { "" } else { "s" });
    }
    if found.is_final {
        text += " (the end)";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Outage;
    use crate::{
        causes::Cause,
        example::{Example, sampled, samples},
    };

    #[test]
    fn it_names_the_times_and_the_direction() {
        let mut example = Example::new(10.0, 20.0);
        example.m = sampled(samples(10.0, 10.0, |index, s| {
            let acked = 125_000 * index.min(60);
            (s.delivered_bytes, s.acked_bytes, s.written_bytes) = (acked, acked, acked + 90_000);
            (s.retransmits, s.acks) = (index.saturating_sub(60) / 10, Some(index.min(60) as u32));
        }));
        let sentence = Outage.sentence(&example.observed());
        assert!(sentence.starts_with(
            "Outage: nothing was acknowledged from 6 s to 10 s (the end), with 90 kB outstanding and \
             4 retransmissions after timeouts; no packet came back either."
        ), "{sentence}");
    }
}
