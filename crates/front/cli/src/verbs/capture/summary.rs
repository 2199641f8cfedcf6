//! What a capture says of itself.

use live_capture::Totals;
use units::ByteCount;

/// Totals in one line, while it runs.
pub(super) fn line(totals: &Totals) -> String {
    format!(
        "{:.0} s  {} packets, {} on the wire, {} dropped",
        totals.elapsed.as_secs_f64(),
        totals.packets,
        ByteCount::from_bytes(totals.bytes).decimal(),
        totals.dropped
    )
}

/// The same at its end, with its files.
pub(super) fn result(totals: &Totals) -> String {
    let share = if totals.dropped == 0 {
        String::new()
    } else {
        let share = totals.dropped as f64 / totals.accepted.max(1) as f64;
        format!(
            " ({} of {}; -B takes a larger buffer)",
            units::percent_with(share, 2),
            totals.accepted
        )
    };
    let files: Vec<String> = totals.files.iter().map(|path| path.display().to_string()).collect();
    let to = match files.as_slice() {
        [] => String::new(),
        [only] => format!(" in {only}"),
        [first, .., last] => format!(" in {} files, from {first} to {last}", files.len()),
    };
    let hardware = if totals.hardware_timestamps == 0 {
        String::new()
    } else {
        format!("; {} with hardware timestamps", totals.hardware_timestamps)
    };
    format!(
        "{} packets{to}, {} on the wire in {:.1} s{hardware}; {} dropped by the kernel{share}",
        totals.packets,
        ByteCount::from_bytes(totals.bytes).decimal(),
        totals.elapsed.as_secs_f64(),
        totals.dropped
    )
}
