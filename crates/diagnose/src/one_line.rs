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
        _ => without_timers(o.e),
    }
}

/// The peer sends, or the sender's kernel has no such timers.
fn without_timers(e: &Evidence) -> String {
    let text = "only the sender can identify the limit";
    match e.window_sum() {
        Some(window) => format!("{text}; receive window of this host: {window}"),
        None => text.to_owned(),
    }
}
