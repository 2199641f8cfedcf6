//! The changes that a middlebox made between two captures.

use super::{
    Style,
    capture_merge::{VALUES, labelled},
    line::{Line, columns},
    style,
};
use crate::wording;
use capture_merge::{Change, HandshakeChange, Merge};

/// Options of handshakes that are listed.
const MAX_OPTIONS: usize = 12;

/// The differences after the path.
pub(super) fn changes(merge: &Merge, style: &Style) -> Vec<Line> {
    let changes = &merge.changes;
    let mut lines =
        vec![Line::new(style), Line::new(style).put(style::STRONG, "changed between the captures")];
    let mut any = false;
    for change in &changes.fields {
        any = true;
        lines.extend(changed(change, style));
    }
    let [compared, differing] = changes.handshakes_compared;
    if compared > 0 && differing == 0 {
        let text = format!("{compared} SYNs and SYN-ACKs have the same options on both sides");
        lines.extend(labelled("handshakes", &text, style));
        any = true;
    }
    for change in changes.handshakes.iter().take(MAX_OPTIONS) {
        lines.extend(rewritten(change, style));
        any = true;
    }
    let more = changes.handshakes.len().saturating_sub(MAX_OPTIONS);
    if more > 0 {
        lines.extend(labelled(
            "",
            &format!("and {} (all: --json)", wording::counted(more, "more option")),
            style,
        ));
    }
    if !any {
        lines.push(Line::new(style).put(style::PLAIN, "nothing"));
    }
    lines
}

fn changed(change: &Change, style: &Style) -> Vec<Line> {
    let [before, after] = &change.values;
    let why = if change.is_routing { ", as routers do" } else { "" };
    let text = format!(
        "{}: {} packets, first {before} -> {after} in packet {} of A, {} of B{why}",
        change.transit.name(),
        change.count,
        change.first.0,
        change.first.1
    );
    long_label(change.field, &text, style)
}

fn rewritten(change: &HandshakeChange, style: &Style) -> Vec<Line> {
    let [before, after] = change.values.each_ref().map(|value| value.as_deref());
    let which = if change.is_syn_ack { "SYN-ACK" } else { "SYN" };
    let what = match (before, after) {
        (Some(before), None) => format!("{before}, removed by a middlebox"),
        (None, Some(after)) => format!("added by a middlebox: {after}"),
        (before, after) => format!(
            "rewritten by a middlebox: {} -> {}",
            before.unwrap_or("-"),
            after.unwrap_or("-")
        ),
    };
    let text = format!(
        "{}, {which}: {what} (packet {} of A, {} of B)",
        change.transit.name(),
        change.packets.0,
        change.packets.1
    );
    long_label(change.option, &text, style)
}

/// As [`labelled`], for labels that may be longer than the column.
fn long_label(label: &str, text: &str, style: &Style) -> Vec<Line> {
    if columns(label) < VALUES {
        return labelled(label, text, style);
    }
    let first = Line::new(style).put(style::DIM, label);
    std::iter::once(first).chain(labelled("", text, style)).collect()
}
