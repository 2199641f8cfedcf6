//! `nstat` of iproute2: the kernel's counters by name, `TcpExtTCPTimeouts 5 0.0`.

use super::PastedReport;
use super::netstat::{LINUX, write};

/// Prefixes of names, the longest first.
const GROUPS: [&str; 4] = ["TcpExt", "IpExt", "Tcp", "Udp"];

/// Returns true if a line begins with a counter of nstat.
pub(super) fn is_nstat(lines: &[&str]) -> bool {
    lines.iter().any(|line| counter(line).is_some())
}

/// The kernel's name of a line's counter, with the dot that nstat leaves out, and its value.
fn counter(line: &str) -> Option<(String, u64)> {
    let mut words = line.split_whitespace();
    let (name, value) = (words.next()?, words.next()?.parse().ok()?);
    words.next().filter(|rate| rate.parse::<f64>().is_ok())?;
    let group = GROUPS.into_iter().find(|group| name.starts_with(group))?;
    let rest = name.strip_prefix(group)?;
    (!rest.is_empty() && words.next().is_none()).then(|| (format!("{group}.{rest}"), value))
}

/// Reads the counters into the report, in the order of netstat's.
pub(super) fn read(lines: &[&str], report: &mut PastedReport) {
    let names: Vec<&str> = LINUX.names().collect();
    let mut values: Vec<Option<u64>> = vec![None; names.len()];
    let mut named: Vec<(String, u64)> = Vec::new();
    for line in lines.iter().filter(|line| !line.trim_start().starts_with('#')) {
        let Some((name, value)) = counter(line) else {
            report.unread_lines += usize::from(line.chars().any(|c| c.is_ascii_digit()));
            continue;
        };
        // Several sentences of netstat may stand for one counter: the first has it.
        match names.iter().position(|one| *one == name) {
            Some(at) => _ = values[at].get_or_insert(value),
            None if record::counter_doc(&name).is_none() => report.unread_lines += 1,
            None if named.iter().all(|(known, _)| *known != name) => named.push((name, value)),
            None => {}
        }
    }
    write(&LINUX, &values, named, report);
    report.notes.push(
        "nstat prints the growth since its last call; nstat -asz prints all counters since boot \
         and leaves that call's values alone"
            .to_owned(),
    );
}
