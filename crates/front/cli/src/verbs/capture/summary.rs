//! The summary of a capture.

use longhaul::capture::CaptureProgress;
use record::CaptureReport;
use units::ByteCount;

/// Totals in one line, while it runs.
pub(super) fn line(totals: &CaptureProgress) -> String {
    format!(
        "{:.0} s  {} packets, {} on the wire, {} dropped",
        totals.seconds,
        totals.packets,
        ByteCount::from_bytes(totals.wire_bytes).decimal(),
        totals.dropped_packets
    )
}

/// The totals at its end, with its files.
pub(super) fn result(report: &CaptureReport) -> String {
    let share = if report.dropped_packets == 0 {
        String::new()
    } else {
        let share = report.dropped_packets as f64 / report.accepted_packets.max(1) as f64;
        format!(
            " ({} of {}; -B takes a larger buffer)",
            units::percent_with(share, 2),
            report.accepted_packets
        )
    };
    let to = match report.files.as_slice() {
        [] => String::new(),
        [only] => format!(" in {only}"),
        [first, .., last] => format!(" in {} files, from {first} to {last}", report.files.len()),
    };
    let hardware = if report.hardware_timestamps == 0 {
        String::new()
    } else {
        format!("; {} with hardware timestamps", report.hardware_timestamps)
    };
    format!(
        "{} packets{to}, {} on the wire in {:.1} s{hardware}; {} dropped by the kernel{share}",
        report.packets,
        ByteCount::from_bytes(report.wire_bytes).decimal(),
        report.seconds,
        report.dropped_packets
    )
}
