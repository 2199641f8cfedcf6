//! A file on a disk that is slower than the link.

use super::super::Measured;
use super::super::runs::{Runs, mbit, near};
use record::{FlowFigures, Limit};

/// A rate is the disk's within this share, as a test has some four chunks more or less one; and TCP's
/// from memory.
const SAME: f64 = 0.2;

/// In a peak UDT sends at more than this many times its mean rate, in a trough at less than this
/// share of it.
const PEAK: f64 = 2.0;
const TROUGH: f64 = 0.2;

/// UDT from the file has the disk's rate, in peaks and troughs; TCP has what it has from memory.
pub(super) fn slow_disk(runs: &Runs<'_>) -> Option<Measured> {
    let flow = |protocol, source| -> Option<&FlowFigures> {
        let cell = [("protocol", protocol), ("source", source)];
        runs.valid("file", &cell).into_iter().next()?.flows.first()
    };
    let (udt, tcp) = (flow("udt", "file")?, flow("tcp", "file")?);
    let from_memory = |protocol| Some(flow(protocol, "memory")?.throughput_bps);
    let (udt_memory, tcp_memory) = (from_memory("udt")?, from_memory("tcp")?);
    let (low, high) = extremes(&udt.series_bps)?;
    let (tcp_low, tcp_high) = extremes(&tcp.series_bps)?;
    let disk = udt.disk_bps?;
    let mean = udt.throughput_bps;
    let limited = udt.limit == Some(Limit::Application);
    let named = if limited { "disk-limited" } else { "not disk-limited" };
    Some(Measured {
        text: format!(
            "UDT: {} from memory, {} from the file, {named}: the disk gave {}; {} to {} from second \
             to second. TCP: {} from memory, {} from the file, {} to {}",
            mbit(udt_memory),
            mbit(mean),
            mbit(disk),
            mbit(low),
            mbit(high),
            mbit(tcp_memory),
            mbit(tcp.throughput_bps),
            mbit(tcp_low),
            mbit(tcp_high),
        ),
        holds: limited
            && near(mean, disk, SAME)
            && mean < udt_memory / PEAK
            && high > mean * PEAK
            && low < mean * TROUGH
            && near(tcp.throughput_bps, tcp_memory, SAME),
    })
}

/// The lowest and the highest goodput of a second.
fn extremes(series: &[f64]) -> Option<(f64, f64)> {
    let low = series.iter().copied().reduce(f64::min)?;
    Some((low, series.iter().copied().fold(0.0, f64::max)))
}
