//! The summary of a capture file: its format, its amount of data, and where it broke off.

use super::{
    Style,
    capture_tables::{ConversationRow, capture_conversations},
    line::{Line, block, wrap},
    style,
};
use crate::{calendar, wording};
use capture::file::{FileSummary, Interface};
use capture::overview::Overview;
use units::{BitRate, ByteCount};

/// A file that was read, to be shown.
#[derive(Debug, Clone, Copy)]
pub struct CaptureSummary<'a> {
    /// Its name.
    pub name: &'a str,
    /// The file's own description.
    pub file: &'a FileSummary,
    /// Totals.
    pub overview: &'a Overview,
    /// The conversations with most bytes, their kind, and how many there are.
    pub top: (&'a str, &'a [ConversationRow], usize),
    /// Further notes, as sentences: where it broke off, what was not counted.
    pub notes: &'a [String],
}

/// Column of the values.
const VALUES: usize = 13;

/// Interfaces that are listed one by one.
const MAX_LISTED: usize = 8;

/// The summary of a file.
#[must_use]
pub fn capture_summary(summary: &CaptureSummary<'_>, style: &Style) -> String {
    let (file, overview) = (summary.file, summary.overview);
    let mut lines = vec![Line::new(style).put(style::STRONG, summary.name)];
    let mut add = |label: &str, text: &str| {
        let mut label = Some(label);
        for part in wrap(style, text, style.text_width().saturating_sub(VALUES).max(20)) {
            let line = Line::new(style).put(style::DIM, label.take().unwrap_or_default());
            lines.push(line.to(VALUES).put(style::PLAIN, &part));
        }
    };
    add("format", &format(file));
    if overview.packets > 0 {
        add("packets", &packets(overview));
        add("time", &time(overview));
    } else {
        add("packets", "0");
    }
    if overview.cut_off > 0 {
        add(
            "cut off",
            &format!(
                "{} packets, after at most {} bytes ({} captured)",
                overview.cut_off,
                overview.longest_cut_off,
                ByteCount::from_bytes(overview.captured_bytes).decimal()
            ),
        );
    }
    let special = [
        (overview.fragments, "IP fragments"),
        (overview.super_segments, "super-segments (GSO, GRO), longer than any Ethernet frame"),
        (overview.without_length, "IP packets without a length (offload, BIG TCP)"),
        (overview.not_dissected, "packets of a link type that is not dissected"),
    ];
    for (count, what) in special.into_iter().filter(|(count, _)| *count > 0) {
        add("", &format!("{count} {what}"));
    }
    for interface in file.interfaces.iter().take(MAX_LISTED) {
        add("interface", &describe(interface));
    }
    if file.interfaces.len() > MAX_LISTED {
        add(
            "",
            &format!(
                "and {}",
                wording::counted(file.interfaces.len() - MAX_LISTED, "more interface")
            ),
        );
    }
    add("drops", &file.dropped().map_or("not recorded".to_owned(), |count| count.to_string()));
    if !file.captured_by.is_empty() {
        add("captured by", &file.captured_by.join(", "));
    }
    for comment in &file.comments {
        add("comment", comment);
    }
    if file.packet_comments > 0 {
        add("comments", &format!("on {}", wording::counted(file.packet_comments, "packet")));
    }
    for note in summary.notes {
        for (place, part) in wrap(style, note, style.text_width()).iter().enumerate() {
            let indented = if place > 0 { 2 } else { 0 };
            lines.push(Line::new(style).to(indented).put(style::WARN, part));
        }
    }
    let (title, rows, all) = summary.top;
    let table = if rows.is_empty() {
        String::new()
    } else {
        format!("\n{}", capture_conversations(title, rows, all, overview.first_ns, style))
    };
    block(lines) + &table
}

fn format(file: &FileSummary) -> String {
    let mut text = file.format.name().to_owned();
    text += if file.big_endian { ", big-endian" } else { ", little-endian" };
    if let Some(compression) = file.compression.name() {
        text += &format!(", compressed with {compression}");
    }
    if file.sections > 1 {
        text += &format!(", {} sections", file.sections);
    }
    text
}

fn packets(overview: &Overview) -> String {
    let mean = overview.bytes as f64 / overview.packets as f64;
    let rate = overview
        .rate_bps()
        .map_or(String::new(), |bps| format!(", {} on average", BitRate::from_bps_f64(bps)));
    format!(
        "{}, {} on the wire, {mean:.0} bytes each{rate}",
        overview.packets,
        ByteCount::from_bytes(overview.bytes).decimal()
    )
}

fn time(overview: &Overview) -> String {
    let second = 1_000_000_000;
    format!(
        "{:.3} s, from {} to {}",
        overview.seconds(),
        calendar::utc_seconds(overview.first_ns / second),
        calendar::utc_seconds(overview.last_ns / second)
    )
}

fn describe(interface: &Interface) -> String {
    let mut text = interface.link.to_string();
    if !interface.name.is_empty() {
        text += &format!(", {}", interface.name);
    }
    match interface.snaplen {
        0 => {}
        snaplen => text += &format!(", snaplen {snaplen} bytes"),
    }
    if interface.packets > 0 {
        text += &format!(", {} packets", interface.packets);
    }
    text
}
