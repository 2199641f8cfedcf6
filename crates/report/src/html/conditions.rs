//! The plan, and the conditions without which no figure is a result.

use super::{Page, Run, markup::Markup};
use crate::words;
use record::{Direction, Drops, Lateness, Measurement, PathReport, PlanItem};
use units::ByteCount;

pub(super) fn plan(m: &mut Markup, items: &[PlanItem]) {
    if items.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"What was changed");
        m.element("table", &[("class", &"plan")], |m| {
            m.element("thead", &[], |m| {
                m.element("tr", &[], |m| {
                    for head in ["Host", "Setting", "From", "To", "Why"] {
                        m.leaf("th", &[("scope", &"col")], &head);
                    }
                });
            });
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
                        code(m, "From", &item.from);
                        code(m, "To", &item.to);
                        m.leaf("td", &[("data-label", &"Why")], &item.why);
                    });
                }
            });
        });
    });
}

/// A row of the table: its label, and what it says of a run.
type Row = (&'static str, fn(&Run<'_>) -> Option<String>);

const ROWS: &[Row] = &[
    ("Measured", |r| Some(moment(r.measurement.started_unix_s))),
    ("Server", |r| {
        Some(format!("{}, port {}", r.measurement.spec.target, r.measurement.spec.port))
    }),
    ("Far end", |r| Some(r.measurement.peer.clone())),
    ("Direction", |r| Some(direction(r.measurement.spec.direction).to_owned())),
    ("Length asked", |r| Some(words::seconds(r.measurement.spec.seconds))),
    ("Streams", |r| Some(r.measurement.streams.len().to_string())),
    ("Received", |r| Some(received(r.measurement))),
    ("Average of the whole test", |r| Some(r.finding.average_bps.to_string())),
    ("Retransmits", |r| retransmits(r.measurement).map(words::grouped)),
    ("Congestion control", |r| congestion(r.measurement)),
    ("Window asked", |r| r.measurement.spec.window_bytes.map(|w| w.to_string())),
    ("Rate asked, a stream", |r| r.measurement.spec.rate_bps.map(|b| b.to_string())),
    ("Kernel", |r| Some(r.measurement.host.kernel.clone()).filter(|k| !k.is_empty())),
    ("Cores", |r| Some(r.measurement.host.cores.to_string())),
    ("CPU in use before", |r| r.measurement.host.busy_before.map(words::percent)),
    ("Sending thread, of a core", |r| r.measurement.sender_cpu.map(words::percent)),
    ("Sending thread waited for one", |r| r.measurement.sender_core_wait.map(words::percent)),
    ("Receiving thread, of a core", |r| r.measurement.receiver_cpu.map(words::percent)),
    ("Receiving thread waited for one", |r| r.measurement.receiver_core_wait.map(words::percent)),
    ("tcp_rmem", |r| r.measurement.host.tcp_rmem.map(triple)),
    ("tcp_wmem", |r| r.measurement.host.tcp_wmem.map(triple)),
    ("Longhaul", |r| Some(r.measurement.version.clone())),
    ("Path asked", |r| r.measurement.path.as_ref().map(asked)),
    ("Path achieved", |r| r.measurement.path.as_ref().map(achieved)),
    ("Packets", |r| r.measurement.path.as_ref().map(packets)),
    ("Release lateness", |r| r.measurement.path.as_ref().map(lateness)),
    ("Emulation", |r| r.measurement.path.as_ref().map(validity)),
    ("Notes", |r| Some(r.measurement.notes.join(" · ")).filter(|n| !n.is_empty())),
];

pub(super) fn write(m: &mut Markup, page: &Page<'_>) {
    if page.runs.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Conditions");
        m.leaf("p", &[("class", &"note")], &"A number without its conditions is not a result.");
        m.element("table", &[("class", &"conditions")], |m| {
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
                for (label, get) in ROWS {
                    row(m, label, page.runs.iter().map(get).collect());
                }
            });
        });
    });
}

/// A row; said once where it is the same for all, left out where nobody knows.
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
        Direction::Forward => "the client sends",
        Direction::Reverse => "the server sends",
        Direction::Both => "both send",
    }
}

fn received(measurement: &Measurement) -> String {
    // Summed here because a damaged file may hold more than 64 bits of bytes.
    let add = |sum: ByteCount, bytes: u64| sum.plus(ByteCount::from_bytes(bytes));
    let bytes = measurement.streams.iter().map(|s| s.received_bytes).fold(ByteCount::ZERO, add);
    format!("{bytes} in {}", words::seconds(measurement.seconds()))
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
        (Some(used), Some(asked)) if used != *asked => Some(format!("{used} (asked: {asked})")),
        (Some(used), _) => Some(used),
        (None, asked) => asked.clone().map(|asked| format!("asked: {asked}")),
    }
}

fn triple(values: [u64; 3]) -> String {
    values.map(|v| v.to_string()).join(" ")
}

fn asked(path: &PathReport) -> String {
    format!(
        "{}, {}, {} loss, queue {}, MTU {} + {} bytes, seed {}",
        words::rate(path.rate_bps),
        path.rtt,
        path.loss,
        path.queue,
        path.mtu_bytes,
        path.overhead_bytes,
        path.seed
    )
}

fn achieved(path: &PathReport) -> String {
    let rate = path.achieved.rate_bps.map_or_else(|| "rate not told".to_owned(), |r| r.to_string());
    match path.achieved.idle_rtt_ms.filter(|ms| ms.is_finite()) {
        Some(ms) => format!("{rate}, idle round trip {ms:.1} ms"),
        None => format!("{rate}, idle round trip not told"),
    }
}

fn packets(path: &PathReport) -> String {
    let a = &path.achieved;
    let Drops { queue, aqm, policer, too_long, bursts, blackhole, unasked } = a.drops;
    let asked = [
        (aqm, "dropped by the queue's management"),
        (policer, "dropped by the policer"),
        (too_long, "dropped as too long"),
        (bursts, "taken by bursts of loss"),
        (blackhole, "taken by blackholes"),
        (a.marked, "marked"),
        (a.duplicated, "doubled"),
        (a.corrupted, "corrupted"),
        (a.reordered, "held back"),
    ];
    let asked: String = asked
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}, ", words::grouped(*count)))
        .collect();
    format!(
        "{} carried, {} taken by random loss, {} dropped by the full queue, {asked}{} lost unasked",
        words::grouped(a.packets),
        words::grouped(a.lost),
        words::grouped(queue),
        words::grouped(unasked)
    )
}

fn lateness(path: &PathReport) -> String {
    let Lateness { p50, p99, max } = path.achieved.lateness_us;
    format!("median {p50} µs, 99 % within {p99} µs, worst {max} µs")
}

fn validity(path: &PathReport) -> String {
    match (path.valid, path.reasons.is_empty()) {
        (true, true) => "valid".to_owned(),
        (true, false) => format!("valid; {}", path.reasons.join("; ")),
        (false, _) => format!("not valid: {}", path.reasons.join("; ")),
    }
}

/// `2026-11-21 03:40 UTC`, by the proleptic Gregorian calendar.
fn moment(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Years are counted from March, so that the leap day is a year's last;
    // 719 468 days lie between 0000-03-01 and 1970-01-01, 146 097 in 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute) = (second / 3600, second % 3600 / 60);
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_795_232_400), "2026-11-21 03:40 UTC");
        assert!(moment(u64::MAX).ends_with("UTC"));
    }
}
