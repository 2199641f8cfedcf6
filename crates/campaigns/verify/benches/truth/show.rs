//! The ground truth of one run, interval by interval.

use simulator::Truth;
use twin::TruthInterval;

/// Prints a line for each interval: its limit, utilization, queue, and for each measured
/// connection what it waited for most, what it read and what it lost.
pub(crate) fn show(intervals: &[TruthInterval], truth: &Truth) {
    for interval in intervals {
        let at = interval.to_s - 0.05;
        let segment = truth.segments.iter().find(|s| s.from_s <= at && at < s.to_s);
        let limit = segment.map_or("", |segment| segment.limit.name());
        print!(
            "{:5.1} {limit:<20} {:4.0} % queue {:8}",
            interval.to_s,
            interval.utilization * 100.0,
            interval.peak_queue_bytes
        );
        if interval.reverse.utilization > 0.2 {
            print!(" back {:3.0} %", interval.reverse.utilization * 100.0);
        }
        for connection in interval.connections.iter().filter(|c| c.measured) {
            let times = &connection.times;
            let waits = [
                ("cwnd", times.cwnd_ns),
                ("rwnd", times.rwnd_ns),
                ("app", times.application_ns),
                ("sndbuf", times.send_buffer_ns),
                ("pacing", times.pacing_ns),
            ];
            let most = waits.into_iter().max_by_key(|(_, time)| *time).map_or("", |(name, _)| name);
            let phase = if connection.slow_start { "ss" } else { "ca" };
            print!(" | {most} {phase} {}", connection.read);
            let drops = &connection.drops;
            for (name, count) in [
                ("cut", connection.reductions),
                ("again", connection.retransmits),
                ("twice", connection.duplicates),
                ("queue", drops.queue),
                ("aqm", drops.aqm),
                ("policer", drops.policer),
                ("wire", connection.lost),
                ("burst", drops.bursts),
                ("marked", connection.marked),
            ] {
                if count > 0 {
                    print!(" {name} {count}");
                }
            }
        }
        println!();
    }
    let shares =
        truth.shares.iter().map(|(l, share)| format!("{} {:.0} %", l.name(), share * 100.0));
    println!("{}", shares.collect::<Vec<_>>().join(", "));
}
