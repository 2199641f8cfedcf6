//! The connections of a recording, each with its finding.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
    watch::compact,
};
use crate::wording;
use record::{ConnectionId, Finding};

/// One connection of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionSummary<'a> {
    /// Identity.
    pub who: &'a ConnectionId,
    /// First and last sample, in seconds of the recording.
    pub seconds: (f64, f64),
    /// Payload in the direction that carried more.
    pub bytes: u64,
    /// Whether this host sent it.
    pub sends: bool,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// The finding on it.
    pub finding: &'a Finding,
}

/// A row per connection, numbered from 1, and its finding below.
#[must_use]
pub fn recorded_connections(connections: &[ConnectionSummary<'_>], style: &Style) -> String {
    let head = Line::new(style)
        .right(style::DIM, "#", 3)
        .to(5)
        .put(style::DIM, "Program")
        .to(16)
        .put(style::DIM, "Remote")
        .right(style::DIM, "seconds", 51)
        .right(style::DIM, "bytes", 60)
        .right(style::DIM, "bit/s", 70)
        .right(style::DIM, "retr", 77);
    let mut lines = vec![head];
    for (at, one) in connections.iter().enumerate() {
        let arrow = match (one.sends, style.unicode) {
            (true, true) => "→",
            (true, false) => ">",
            (false, true) => "←",
            (false, false) => "<",
        };
        let seconds = format!("{:.0}-{:.0}", one.seconds.0, one.seconds.1);
        let program: String = one.who.program.as_deref().unwrap_or("-").chars().take(10).collect();
        lines.push(
            Line::new(style)
                .right(style::STRONG, &(at + 1).to_string(), 3)
                .to(5)
                .put(style::PLAIN, &program)
                .to(16)
                .put(style::PLAIN, &one.who.remote)
                .right(style::PLAIN, &seconds, 51)
                .right(style::PLAIN, &compact(one.bytes as f64), 60)
                .right(
                    style::PLAIN,
                    &format!("{arrow} {}", compact(one.finding.average_bps.as_f64())),
                    70,
                )
                .right(style::PLAIN, &compact(one.retransmits as f64), 77),
        );
        let tone = match wording::tone(one.finding.limit) {
            wording::Tone::Fixable => style::STRONG,
            _ => style::PLAIN,
        };
        lines.extend(labelled(style, 5, (style::PLAIN, ""), 5, (tone, &one.finding.sentence)));
    }
    block(lines)
}
