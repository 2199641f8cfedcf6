//! The finding for a connection that longhaul only watches: one short line, with
//! no advice that applies to a test alone.

use crate::{
    causes::{self, Observed},
    evidence::Evidence,
    sentence,
};
use record::{Confidence, Limit, Probability};

/// The line for `limit`.
pub(crate) fn of(
    limit: Option<Limit>,
    confidence: Option<Confidence>,
    posterior: &[Probability],
    o: &Observed<'_>,
) -> String {
    match limit {
        Some(limit) if o.shares.is_some() || limit != Limit::Unknown => {
            let other = sentence::rival(limit, confidence, posterior);
            let other = other.map_or(String::new(), |other| {
                format!("; also possible: {}", causes::of(other.limit).noun())
            });
            causes::of(limit).one_line(o) + &other
        }
        _ if o.facts.has_one_direction => one_direction(o),
        _ => without_timers(o.e),
    }
}

/// Retransmissions show in the data alone, and nothing else.
fn one_direction(o: &Observed<'_>) -> String {
    let again = match o.e.retransmits {
        0 => String::new(),
        1 => "1 segment was retransmitted; ".to_owned(),
        count => format!("{count} segments were retransmitted; "),
    };
    again + "one direction does not show the limit: capture both"
}

/// The peer sends, or the sender's kernel has no such timers.
fn without_timers(e: &Evidence) -> String {
    let text = "only the sender can identify the limit";
    match e.window_sum() {
        Some(window) => format!("{text}; receive window of this host: {window}"),
        None => text.to_owned(),
    }
}
