//! The page's protocol between hosts of a lab: which leg limits, and where the queue is.

use crate::legs_run;
use crate::page::{Server, carry_out, hello_by_requests};
use lab::{Lab, Options};
use libtest_mimic::{Completion, Failed, Trial};
use serde_json::{Value, json};
use stall_retry::Gauge;
use std::net::SocketAddr;
use std::process::Command;
use topology::Plan;
use web::WebRequest;

/// The environment variable that names the case of a process.
pub(crate) const CASE: &str = "LONGHAUL_WEB_LAB_CASE";
/// How a process says that there is no sandbox, or that the machine was too busy to emulate.
const UNDECIDED: i32 = 77;
const PORT: u16 = 8080;
/// Probes of a run that routers answer: in the search, and one each second of each router.
const MAX_ANSWERS: u64 = 40;
/// Processes of a case until one succeeds: the machine may stall.
const ATTEMPTS: usize = 3;

type Case = fn() -> Result<(), String>;

const CASES: [(&str, Case); 3] = [
    ("the_near_leg_limits", near_leg),
    ("a_queue_of_the_line_is_found", line),
    ("a_queue_of_a_link_that_aggregates_is_found", aggregating_link),
];

/// Each case as a test, in a process of its own.
pub(crate) fn trials() -> Vec<Trial> {
    CASES.map(|(name, _)| Trial::ignorable_test(name, move || outside(name))).into()
}

fn outside(name: &str) -> Result<Completion, Failed> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (mut failed, mut undecided) = (None, String::new());
    for _ in 0..ATTEMPTS {
        let output = Command::new(&program).env(CASE, name).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        match output.status.code() {
            Some(0) => return Ok(Completion::Completed),
            Some(UNDECIDED) => undecided = text,
            _ => failed = Some(text),
        }
    }
    match failed {
        Some(text) => Err(text.into()),
        None if stall_retry::required() => Err(undecided.into()),
        None => Ok(Completion::ignored_with(undecided)),
    }
}

/// Carries out a case; the code to exit with.
pub(crate) fn run(name: &str) -> i32 {
    let Some((_, case)) = CASES.into_iter().find(|(its, _)| *its == name) else { return 2 };
    let inside = || match case() {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{name}: {why}");
            if why.starts_with("undecided") { UNDECIDED } else { 1 }
        }
    };
    match host::sandbox::run_or(inside, |_| UNDECIDED) {
        Ok(host::sandbox::Ended::Code(code)) => code,
        Ok(host::sandbox::Ended::Signal(_)) => 1,
        Err(error) => {
            eprintln!("{error}");
            UNDECIDED
        }
    }
}

/// Both legs carry what the first link does.
fn near_leg() -> Result<(), String> {
    let plan = "name = \"legs\"\n[host.visitor]\n[router.near]\n[host.far]\n\
        [[link]]\nbetween = [\"visitor\", \"near\"]\npath = \"rate=40mbit,rtt=3ms,queue=100KiB\"\n\
        [[link]]\nbetween = [\"near\", \"far\"]\npath = \"rate=150mbit,rtt=6ms,queue=200KiB\"\n";
    let verdict = legs_run::run(plan, 0.8).map_err(|error| error.to_string())?;
    let download = &verdict["download"];
    let ratio = download["ratio"]["mean"].as_f64().unwrap_or(f64::NAN);
    if download["limiting"] == "near" && (0.9..1.1).contains(&ratio) {
        return Ok(());
    }
    Err(format!("the near leg limits, but: {download}"))
}

/// ICMP messages "time exceeded" that this network namespace has received (proc_net_snmp(5)).
fn time_exceeded() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.starts_with("Icmp:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let place = names.split(' ').position(|name| name == "InTimeExcds");
    let value = place.and_then(|place| values.split(' ').nth(place));
    value.and_then(|value| value.parse().ok()).unwrap_or(u64::MAX)
}

/// The result of a run, and whether the machine stalled in it or did not emulate the path.
struct Told {
    result: Value,
    has_stalled: bool,
}

/// A server, two routers and a visitor in a row.
fn in_a_row(line: &str, home: &str) -> Result<Told, String> {
    let text = format!(
        "name = \"row\"\n[host.visitor]\n[router.home]\n[router.isp]\n[host.server]\n\
         [[link]]\nbetween = [\"visitor\", \"home\"]\npath = \"{home}\"\n\
         [[link]]\nbetween = [\"home\", \"isp\"]\npath = \"{line}\"\n\
         [[link]]\nbetween = [\"isp\", \"server\"]\npath = \"rate=200mbit,rtt=4ms\"\n"
    );
    let wrong = |error: lab::LabError| error.to_string();
    // When a packet of 1500 bytes may leave, in ms; the last time is the period.
    let wifi = &mut |_: &str| Ok("5\n".repeat(20));
    let plan = Plan::parse("row.toml", &text, wifi).map_err(|error| error.to_string())?;
    let lab = Lab::start(&plan, Options { shared: true, ..Options::default() }).map_err(wrong)?;
    lab.begin();
    let host = lab.host("server").map_err(wrong)?;
    let request = WebRequest {
        listen: SocketAddr::from(([0, 0, 0, 0], PORT)),
        step_seconds: 2.5,
        ..WebRequest::default()
    };
    let server =
        host.namespace.run(|| Server::start(request)).map_err(|error| error.to_string())?;
    let address = SocketAddr::new(host.ipv4.into(), PORT);
    let mut hello = hello_by_requests();
    hello["thorough"] = json!(false);
    let visitor = lab.host("visitor").map_err(wrong)?;
    let gauge = Gauge::start();
    let told = visitor.namespace.run(|| carry_out(address, &hello));
    let stall = gauge.worst();
    let told = told.map_err(|error| error.to_string())?;
    let answers = host.namespace.run(time_exceeded).map_err(|error| error.to_string())?;
    if answers > MAX_ANSWERS {
        return Err(format!("{answers} probes of a run were answered"));
    }
    drop(server);
    let report = lab.finish().map_err(wrong)?;
    let is_valid = report.links.iter().all(|link| link.path.valid);
    let result = told.messages.last().cloned().ok_or_else(|| "no result".to_owned())?;
    Ok(Told { result, has_stalled: stall >= stall_retry::STALL || !is_valid })
}

/// What must be found of downloads: where the RTT grows, and whether arrivals are aggregated. Of
/// arrivals nothing is known only where the machine stalled.
fn expect(told: &Told, growth: &str, is_aggregated: bool) -> Result<(), String> {
    let queue = &told.result["queue"];
    let found = &queue["download"];
    let Some(paused) = found["arrivals"]["paused"].as_f64() else {
        let why = format!("how data arrived is unknown: {queue}");
        return Err(if told.has_stalled { format!("undecided: {why}") } else { why });
    };
    let is_it = found["growth"] == growth
        && found["place"] == growth
        && (paused >= 0.5) == is_aggregated
        && found["last_router"] == 2
        && queue["not_probed"].is_null();
    if is_it { Ok(()) } else { Err(format!("{growth}, aggregated {is_aggregated}, but: {queue}")) }
}

fn line() -> Result<(), String> {
    let told = in_a_row("rate=30mbit,rtt=8ms,queue=400KiB", "rate=200mbit,rtt=2ms,queue=400KiB")?;
    expect(&told, "line", false)
}

/// A first link that delivers 20 packets at once every 5 ms, as Wi-Fi does with aggregated frames.
fn aggregating_link() -> Result<(), String> {
    let home = "rate=trace:wifi,rtt=2ms,queue=400KiB";
    let told = in_a_row("rate=150mbit,rtt=8ms,queue=400KiB", home)?;
    expect(&told, "last-hop", true)
}
