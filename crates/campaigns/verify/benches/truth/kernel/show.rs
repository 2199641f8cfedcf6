//! The ground truth of a run as a table, a row for each 100 ms.

use crate::lab_run::LabRun;
use crate::lab_truth::HostInterval;
use simulator::Scenario;
use std::fmt;
use twin::{ConnectionTruth, TruthInterval};

pub(crate) struct Table<'a> {
    pub(crate) case: &'a Scenario,
    pub(crate) run: &'a LabRun,
}

const HEADING: &str = "  to s  util  queue   peak  delay |   own other Mbit/s | queue  aqm police \
                       wire marks over | acks: util drop lost |  app cwnd rwnd sbuf pace % | \
                       retr dup red ss unread | cpu snd wait rcv %";

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { case, run } = self;
        let Scenario { family, number, path, .. } = case;
        let congestion = case.congestion.name();
        writeln!(f, "{family} {number}: {path}, {congestion}")?;
        for reason in &run.not_valid {
            writeln!(f, "not valid: {reason}")?;
        }
        writeln!(f, "{HEADING}")?;
        for (truth, host) in run.truth.iter().zip(&run.hosts) {
            row(f, truth, host)?;
        }
        self.sums(f)
    }
}

fn row(f: &mut fmt::Formatter<'_>, truth: &TruthInterval, host: &HostInterval) -> fmt::Result {
    let own = || truth.connections.iter().filter(|one| one.measured);
    let sum = |of: fn(&ConnectionTruth) -> u64| own().map(of).sum::<u64>();
    let mbit = |bytes: u64| bytes as f64 * 80.0 / 1e6;
    let percent =
        |of: fn(&ConnectionTruth) -> u64| sum(of) as f64 / 1e6 / own().count().max(1) as f64;
    let drops = &truth.drops;
    write!(
        f,
        "{:6.1} {:5.2} {:6} {:6} {:6.2} | {:5.1} {:5.1}        | {:5} {:4} {:6} {:4} {:5} {:4} | ",
        truth.to_s,
        truth.utilization,
        truth.queue_bytes,
        truth.peak_queue_bytes,
        host.queued.as_secs_f64() * 1e3,
        mbit(sum(|one| one.arrived_bytes)),
        mbit(host.other_bytes),
        drops.queue,
        drops.aqm,
        drops.policer,
        truth.lost + drops.bursts + drops.blackhole,
        truth.marked,
        host.overtaken,
    )?;
    let reverse = &truth.reverse;
    write!(f, "{:10.2} {:4} {:4} | ", reverse.utilization, reverse.dropped, reverse.lost)?;
    write!(
        f,
        "{:4.0} {:4.0} {:4.0} {:4.0} {:4.0}   | ",
        percent(|one| one.times.application_ns),
        percent(|one| one.times.cwnd_ns),
        percent(|one| one.times.rwnd_ns),
        percent(|one| one.times.send_buffer_ns),
        percent(|one| one.times.pacing_ns),
    )?;
    writeln!(
        f,
        "{:4} {:3} {:3} {:2} {:6} | {:7.0} {:4.0} {:3.0}",
        sum(|one| one.retransmits),
        sum(|one| one.duplicates),
        sum(|one| one.reductions),
        sum(|one| u64::from(one.slow_start)),
        sum(|one| one.unread),
        host.sender_cpu.used * 100.0,
        host.sender_cpu.waited * 100.0,
        host.receiver_cpu.used * 100.0,
    )
}

impl Table<'_> {
    /// What the lab counted, beside what the test reported.
    fn sums(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LabRun { measurement, truth, path, .. } = self.run;
        let own = || truth.iter().flat_map(|one| &one.connections).filter(|one| one.measured);
        let read: u64 = own().map(|one| one.read).sum();
        let received: u64 = measurement.streams.iter().map(|stream| stream.received_bytes).sum();
        let retransmits: u64 = own().map(|one| one.retransmits).sum();
        let counted: u64 = measurement.streams.iter().filter_map(|stream| stream.retransmits).sum();
        writeln!(
            f,
            "truth: {:.2} MB read, {retransmits} retransmits; test: {:.2} MB, {counted}; \
             emulator {:.0} % of a core, lateness p99 {} us, first data {:.1} ms after the start\n",
            read as f64 * 1448.0 / 1e6,
            received as f64 / 1e6,
            path.cpu * 100.0,
            path.achieved.lateness_us.p99,
            self.run.first_data.as_secs_f64() * 1e3,
        )
    }
}
