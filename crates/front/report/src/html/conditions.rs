//! The changed settings, and the conditions under which the runs were measured.

use super::{Page, PageRun, markup::Markup};
use crate::{calendar, wording};
use record::{
    Direction, Drops, EndCondition, Lateness, Measurement, PathReport, PlanItem, TestSpec,
};
use units::ByteCount;

pub(super) fn plan(m: &mut Markup, items: &[PlanItem]) {
    if items.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Changed settings");
        m.table("plan", |m| {
            m.thead(["Host", "Setting", "Before", "After", "Reason"]);
            m.element("tbody", &[], |m| {
                for item in items {
                    m.element("tr", &[], |m| {
                        m.leaf("td", &[("data-label", &"Host")], &item.host);
                        let code = |m: &mut Markup, label: &'static str, text: &str| {
                            m.element("td", &[("data-label", &label)], |m| {
                                m.leaf("code", &[("class", &label.to_lowercase())], &text);
                            });
                        };
                        code(m, "Setting", &item.key);
                        code(m, "Before", &item.from);
                        code(m, "After", &item.to);
                        m.leaf("td", &[("data-label", &"Reason")], &item.why);
                    });
                }
            });
        });
    });
}

/// The host that a setting is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    /// The one that measured.
    Measuring,
    Sender,
    Receiver,
    Both,
}

impl Host {
    fn name(self, measurement: &Measurement) -> &'static str {
        let is = |of: fn(&record::Stream) -> bool| measurement.streams.iter().any(of);
        if is(|stream| stream.watched) {
            return "recorded host";
        }
        // Of the ends of a captured connection, none is known to be the client of a test.
        let is_captured = is(|stream| stream.captured.is_some());
        match (self, measurement.spec.direction) {
            (Host::Sender, _) if is_captured => "sender",
            (Host::Receiver, _) if is_captured => "receiver",
            (Host::Measuring, _)
            | (Host::Sender, Direction::Forward)
            | (Host::Receiver, Direction::Reverse) => "client",
            (Host::Sender, Direction::Reverse) | (Host::Receiver, Direction::Forward) => "server",
            (Host::Both | Host::Sender | Host::Receiver, _) => "client and server",
        }
    }
}

/// A row of the table: its label, the host of a setting, and its value for a run.
type Row = (&'static str, Option<Host>, fn(&PageRun<'_>) -> Option<String>);

const ROWS: &[Row] = &[
    ("Started", None, |r| {
        (r.measurement.started_unix_s > 0).then(|| calendar::utc(r.measurement.started_unix_s))
    }),
    ("Server", None, |r| {
        Some(format!("{}, port {}", r.measurement.spec.target, r.measurement.spec.port))
    }),
    ("Peer software", None, |r| Some(r.measurement.peer.clone())),
    ("Direction", None, |r| Some(direction(r.measurement.spec.direction).to_owned())),
    ("Requested length", None, |r| requested_length(&r.measurement.spec)),
    ("Streams", None, |r| Some(r.measurement.streams.len().to_string())),
    ("Received", None, |r| Some(received(r.measurement))),
    ("Average of the whole test", None, |r| Some(r.finding.average_bps.to_string())),
    ("Retransmits", None, |r| retransmits(r.measurement).map(wording::grouped)),
    ("Congestion control", Some(Host::Sender), |r| congestion(r.measurement)),
    ("Requested window", Some(Host::Both), |r| {
        r.measurement.spec.window_bytes.map(|w| w.to_string())
    }),
    ("Unsent data limit", Some(Host::Sender), |r| {
        r.measurement.unsent_limit().map(|it| it.to_string())
    }),
    ("Target rate per stream", Some(Host::Sender), |r| {
        r.measurement.spec.rate_bps.map(|b| b.to_string())
    }),
    ("Kernel", Some(Host::Measuring), |r| {
        Some(r.measurement.host.kernel.clone()).filter(|kernel| !kernel.is_empty())
    }),
    ("CPU cores", Some(Host::Measuring), |r| {
        (r.measurement.host.cores > 0).then(|| r.measurement.host.cores.to_string())
    }),
    ("CPU utilization before the test", Some(Host::Measuring), |r| {
        r.measurement.host.busy_before.map(wording::whole_percent)
    }),
    ("Sender thread, share of a core", Some(Host::Sender), |r| {
        r.measurement.sender_cpu.map(wording::whole_percent)
    }),
    ("Sender thread waiting for a core", Some(Host::Sender), |r| {
        r.measurement.sender_core_wait.map(wording::whole_percent)
    }),
    ("Receiver thread, share of a core", Some(Host::Receiver), |r| {
        r.measurement.receiver_cpu.map(wording::whole_percent)
    }),
    ("Receiver thread waiting for a core", Some(Host::Receiver), |r| {
        r.measurement.receiver_core_wait.map(wording::whole_percent)
    }),
    ("tcp_rmem", Some(Host::Measuring), |r| r.measurement.host.tcp_rmem.map(triple)),
    ("tcp_wmem", Some(Host::Measuring), |r| r.measurement.host.tcp_wmem.map(triple)),
    ("Longhaul version", None, |r| Some(r.measurement.version.clone())),
    ("Path, configured", None, |r| r.measurement.path.as_ref().map(configured)),
    ("Path, measured", None, |r| emulated(r).map(measured)),
    ("Packets", None, |r| r.measurement.path.as_ref().map(packets)),
    ("Packet release lateness", None, |r| emulated(r).map(lateness)),
    ("Emulation driver", None, |r| {
        r.measurement.path.as_ref().map(|path| path.asked.driver.name().to_owned())
    }),
    ("Emulation", None, |r| emulated(r).map(validity)),
    ("Notes", None, |r| Some(r.measurement.notes.join(" · ")).filter(|n| !n.is_empty())),
];

/// The path, unless it is simulated: nothing of it is measured then.
fn emulated<'a>(run: &PageRun<'a>) -> Option<&'a PathReport> {
    run.measurement.path.as_ref().filter(|path| !path.is_simulated())
}

/// The value of a row for a run, with the name of its host.
fn value(run: &PageRun<'_>, (_, host, get): &Row) -> Option<String> {
    let value = get(run)?;
    Some(match host {
        Some(host) => format!("{}: {value}", host.name(run.measurement)),
        None => value,
    })
}

pub(super) fn write(m: &mut Markup, page: &Page<'_>) {
    if page.runs.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Test conditions");
        m.leaf("p", &[("class", &"note")], &"Needed to interpret and reproduce the figures above.");
        m.table("conditions", |m| {
            if page.runs.len() > 1 {
                m.element("thead", &[], |m| {
                    m.element("tr", &[], |m| {
                        m.raw("<td></td>");
                        for run in &page.runs {
                            m.leaf("th", &[("scope", &"col")], &run.label);
                        }
                    });
                });
            }
            m.element("tbody", &[], |m| {
                for shown in ROWS {
                    row(m, shown.0, page.runs.iter().map(|run| value(run, shown)).collect());
                }
            });
        });
    });
}

/// A row; a value common to all runs is written once, a row without values is omitted.
fn row(m: &mut Markup, label: &str, cells: Vec<Option<String>>) {
    if cells.iter().all(Option::is_none) {
        return;
    }
    let same = cells.windows(2).all(|w| w[0] == w[1]);
    m.element("tr", &[], |m| {
        m.leaf("th", &[("scope", &"row")], &label);
        let count = cells.len();
        for cell in cells.into_iter().take(if same { 1 } else { count }) {
            let text = cell.unwrap_or_else(|| "–".to_owned());
            if same && count > 1 {
                m.leaf("td", &[("colspan", &count)], &text);
            } else {
                m.leaf("td", &[], &text);
            }
        }
    });
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "client to server",
        Direction::Reverse => "server to client",
        Direction::Both => "both directions",
    }
}

/// The end condition as requested.
fn requested_length(spec: &TestSpec) -> Option<String> {
    match spec.end {
        EndCondition::Time => Some(wording::seconds(spec.seconds)),
        EndCondition::Bytes(bytes) => Some(bytes.to_string()),
        EndCondition::Blocks(blocks) => Some(format!("{} blocks", wording::grouped(blocks))),
    }
}

fn received(measurement: &Measurement) -> String {
    // A saturating sum: a damaged file may hold counts that overflow 64 bits.
    let add = |sum: ByteCount, bytes: u64| sum.plus(ByteCount::from_bytes(bytes));
    let bytes = measurement.streams.iter().map(|s| s.received_bytes).fold(ByteCount::ZERO, add);
    format!("{} in {}", bytes.decimal(), wording::seconds(measurement.seconds()))
}

fn retransmits(measurement: &Measurement) -> Option<u64> {
    let counts: Vec<u64> = measurement.streams.iter().filter_map(|s| s.retransmits).collect();
    (!counts.is_empty()).then(|| counts.into_iter().fold(0, u64::saturating_add))
}

fn congestion(measurement: &Measurement) -> Option<String> {
    let mut names: Vec<&str> =
        measurement.streams.iter().filter_map(|s| s.congestion.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let used = (!names.is_empty()).then(|| names.join(", "));
    match (used, &measurement.spec.congestion) {
        (Some(used), Some(asked)) if used != *asked => Some(format!("{used} (requested: {asked})")),
        (Some(used), _) => Some(used),
        (None, asked) => asked.clone().map(|asked| format!("requested: {asked}")),
    }
}

fn triple(values: [u64; 3]) -> String {
    values.map(|v| v.to_string()).join(" ")
}

fn configured(path: &PathReport) -> String {
    format!(
        "{}, {} RTT, {} loss, queue {}, MTU {} bytes, {} bytes of link overhead, seed {}",
        wording::rate(path.rate_bps),
        path.rtt,
        path.loss,
        path.queue,
        path.mtu_bytes,
        path.overhead_bytes,
        path.seed
    )
}

fn measured(path: &PathReport) -> String {
    let rate =
        path.achieved.rate_bps.map_or_else(|| "rate not measured".to_owned(), |r| r.to_string());
    match wording::idle_rtt(&path.achieved, 1) {
        Some(idle) => format!("{rate}, idle RTT {idle}"),
        None => format!("{rate}, idle RTT not measured"),
    }
}

fn packets(path: &PathReport) -> String {
    let a = &path.achieved;
    let Drops { queue, aqm, policer, too_long, bursts, blackhole, unintended } = a.drops;
    let others = [
        (aqm, "dropped by AQM"),
        (policer, "dropped by the policer"),
        (too_long, "dropped for exceeding the MTU"),
        (bursts, "lost in bursts"),
        (blackhole, "lost in blackholes"),
        (a.marked, "ECN-marked"),
        (a.duplicated, "duplicated"),
        (a.corrupted, "corrupted"),
        (a.reordered, "reordered"),
    ];
    let others: String = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {} {what}", wording::grouped(*count)))
        .collect();
    let counted = format!(
        "{} forwarded, {} lost at random, {} dropped by the full queue{others}",
        wording::grouped(a.packets),
        wording::grouped(a.lost),
        wording::grouped(queue)
    );
    if path.is_simulated() {
        return counted;
    }
    format!("{counted}, {} dropped unintentionally by the emulator", wording::grouped(unintended))
}

fn lateness(path: &PathReport) -> String {
    let Lateness { p50, p99, max } = path.achieved.lateness_us;
    format!("median {p50} µs, p99 {p99} µs, max {max} µs")
}

fn validity(path: &PathReport) -> String {
    match (path.valid, path.reasons.is_empty()) {
        (true, true) => "valid".to_owned(),
        (true, false) => format!("valid; {}", path.reasons.join("; ")),
        (false, _) => format!("invalid: {}", path.reasons.join("; ")),
    }
}
