//! A recording's connections, each with what limited it.

use super::{
    Style, ink,
    line::{Line, block, labelled},
    watch::compact,
};
use crate::words;
use record::{ConnectionId, Finding};

/// One connection of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched<'a> {
    /// Which one.
    pub who: &'a ConnectionId,
    /// When it began and ended to be seen, in seconds of the recording.
    pub seconds: (f64, f64),
    /// Payload carried, the way in which more went.
    pub bytes: u64,
    /// Whether this host sent it.
    pub sends: bool,
    /// Segments sent again.
    pub retransmits: u64,
    /// What limited it.
    pub finding: &'a Finding,
}

/// A row for each, numbered from 1, and beneath it what limited it.
#[must_use]
pub fn watched(connections: &[Watched<'_>], style: &Style) -> String {
    let head = Line::new(style)
        .right(ink::DIM, "#", 3)
        .to(5)
        .put(ink::DIM, "Program")
        .to(16)
        .put(ink::DIM, "Remote")
        .right(ink::DIM, "seconds", 51)
        .right(ink::DIM, "bytes", 60)
        .right(ink::DIM, "bit/s", 70)
        .right(ink::DIM, "again", 77);
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
                .right(ink::STRONG, &(at + 1).to_string(), 3)
                .to(5)
                .put(ink::PLAIN, &program)
                .to(16)
                .put(ink::PLAIN, &one.who.remote)
                .right(ink::PLAIN, &seconds, 51)
                .right(ink::PLAIN, &compact(one.bytes as f64), 60)
                .right(
                    ink::PLAIN,
                    &format!("{arrow} {}", compact(one.finding.average_bps.as_f64())),
                    70,
                )
                .right(ink::PLAIN, &compact(one.retransmits as f64), 77),
        );
        let tone = match words::tone(one.finding.limit) {
            words::Tone::Mend => ink::STRONG,
            _ => ink::PLAIN,
        };
        lines.extend(labelled(style, 5, (ink::PLAIN, ""), 5, (tone, &one.finding.sentence)));
    }
    block(lines)
}
