//! What is read from files and from the command line.

use record::{ConnectionId, Measurement, ReceiverSample, Sample};
use report::terminal::{self, Style};
use std::io;
use std::path::Path;
use tool_results::ndt7_server::{self, ServerMessage};
use topology::{PathSpec, Plan, UserPaths};
use units::BitRate;

/// What error messages call the input.
const NAME: &str = "input";

/// A journal of `tune apply`: its bytes, and its records with right checksums.
pub(crate) fn journal(input: &[u8]) {
    let one_line = |result: Result<(), tune::JournalError>| {
        let _ = result.map_err(|error| error.to_string());
    };
    one_line(tune::fuzz::journal(input));
    if let Ok(records) = std::str::from_utf8(input) {
        one_line(tune::fuzz::journal_of_records(records));
    }
}

/// Output of `netstat -s` or `ss -tin`, as `doctor --read` explains it.
pub(crate) fn pasted_counters(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(report) = doctor::pasted(text) {
        for width in [20, 80] {
            let style = Style { colour: true, width, unicode: true };
            let _ = terminal::pasted(&report, &style);
        }
    }
}

/// The file that sets values at each boot, which others may have edited.
pub(crate) fn boot_file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let once = tune::fuzz::boot_file(text);
    assert_eq!(tune::fuzz::boot_file(&once), once);
}

/// Splits the input at its first line `---`: what is parsed, and what every file
/// that it names holds.
fn with_a_file(input: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(input).ok()?;
    Some(text.split_once("\n---\n").unwrap_or((text, "")))
}

/// A path as a flag gives it, as a change to another path, and as a file of paths.
pub(crate) fn lab_path(input: &[u8]) {
    let Some((text, file)) = with_a_file(input) else { return };
    let mut read = |_: &str| io::Result::Ok(file.to_owned());
    if let Ok(path) = PathSpec::parse(text, &mut read) {
        looked_at(&path);
        let written = path.to_spec();
        let again = PathSpec::parse(&written, &mut read);
        assert!(again.is_ok(), "{written} does not read: {again:?}");
        let _ = path.with("rate=10mbit", &mut read).map(|path| looked_at(&path));
    }
    let base = PathSpec::parse("rate=100mbit,rtt=50ms", &mut read);
    let _ = base.and_then(|base| base.with(text, &mut read)).map(|path| looked_at(&path));
    if let Ok(paths) = UserPaths::parse(NAME, text) {
        for path in paths.iter() {
            let _ = PathSpec::parse(&path.spec(), &mut read).map(|path| looked_at(&path));
        }
    }
    let _ = link::Trace::parse(text).map(|trace| (trace.mean_rate(), trace.period()));
}

/// What a lab asks a path before it makes one.
fn looked_at(path: &PathSpec) {
    let _ = (path.rate(), path.down_rate(), path.rtt(), path.mtu(), path.overhead());
    let _ = (path.bdp(), path.queue_bytes(), path.memory());
    if path.has_schedule() {
        let _ = path.schedules(7);
    }
}

/// A plan of a lab.
pub(crate) fn lab_plan(input: &[u8]) {
    let Some((text, file)) = with_a_file(input) else { return };
    let mut read = |_: &str| io::Result::Ok(file.to_owned());
    if let Ok(plan) = Plan::parse(NAME, text, &mut read) {
        let _ = plan.memory();
    }
}

/// A recording of `watch`, read, explained and shown.
pub(crate) fn recording(input: &[u8]) {
    let Ok(recording) = store::read_recording(Path::new(NAME), input) else { return };
    for one in &recording.connections {
        if let Some(transfer) = watch::transfer(&one.who, &one.samples, Some(&recording.head)) {
            explained(&transfer.measurement);
            shown(&one.who, &transfer);
        }
    }
}

/// A file of `test --save`, read, explained and shown.
pub(crate) fn measurement(input: &[u8]) {
    if let Ok(measurement) = store::parse(Path::new(NAME), input) {
        explained(&measurement);
    }
    let _ = store::parse_baseline(Path::new(NAME), input);
}

/// The result of another tool, in any of the formats, read, explained and shown.
pub(crate) fn tool_result(input: &[u8]) {
    match tool_results::read(input) {
        Ok(all) => all.iter().take(8).for_each(|one| {
            explained(one);
            if let Some(tool) = &one.tool {
                assert!(!tool.next_test.contains(char::is_control), "{}", tool.next_test);
            }
        }),
        Err(error) => {
            let _ = error.to_string();
        }
    }
}

/// Messages of an ndt7 server during a test, one a line: a download, and an upload.
pub(crate) fn ndt7_messages(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let messages = || text.lines().filter_map(ServerMessage::parse).collect();
    let receiver = ReceiverSample { t_s: 1.0, received_bytes: 1000, ..ReceiverSample::default() };
    let sender = Sample { t_s: 1.0, acked_bytes: 1000, ..Sample::default() };
    let download = ndt7_server::download(messages(), vec![receiver], NAME, 0);
    let upload = ndt7_server::upload(messages(), vec![sender], None, NAME, 0);
    download.iter().chain(&upload).for_each(explained);
}

/// A file of `baseline`, compared with itself and shown.
pub(crate) fn baseline(input: &[u8]) {
    let Ok(mut report) = store::parse_baseline_report(Path::new(NAME), input) else { return };
    report.comparison = baseline::compare(&report, &report).ok();
    report.differences = baseline::differences(&report.conditions);
    report.links = baseline::links(&report.conditions, &report.paths);
    report.steps = baseline::steps(&report);
    let _ = terminal::baseline(&report, &STYLE);
    let _ = report::html::baseline_page(&report, NAME);
}

/// A list of public servers, and the choice among them.
pub(crate) fn server_list(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(list) = baseline::ServerList::parse(text) else { return };
    let needed =
        baseline::NeededRate { rate: BitRate::from_bps(1_000_000_000), from: String::new() };
    let mut probed = vec![None; list.servers.len()];
    for (rank, number) in (1..).zip(baseline::worth_probing(&list.servers, needed.rate)) {
        let rtt_ms = f64::from(rank);
        probed[number] =
            Some(baseline::ProbedServer::Alive { rtt_ms, from: record::RttSource::Icmp });
    }
    let mut choice = baseline::choose_server(NAME, &list.servers, &needed, &probed);
    while baseline::reject_chosen(&mut choice, "busy") {}
}

const STYLE: Style = Style { colour: false, width: 80, unicode: true };

fn explained(measurement: &Measurement) {
    let finding = diagnose::explain(measurement);
    let _ = terminal::finding(&finding, &STYLE);
    let _ = terminal::totals(measurement, terminal::Rows::Each, &STYLE);
    let _ = terminal::notes(&measurement.notes, &STYLE);
}

fn shown(who: &ConnectionId, transfer: &watch::Transfer) {
    let row = terminal::ConnectionSummary {
        who,
        seconds: (0.0, transfer.measurement.spec.seconds),
        bytes: transfer.measurement.received().bytes(),
        sends: true,
        retransmits: 0,
        finding: &transfer.finding,
    };
    let _ = terminal::recorded_connections(&[row], &STYLE);
}
