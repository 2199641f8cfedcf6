//! Against a real iperf3, as client and as server: both programs report the same
//! results.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod matrix;
#[path = "../endpoints/test_server.rs"]
#[expect(dead_code, reason = "the endpoints' own tests use the rest")]
mod test_server;

use libtest_mimic::Arguments;
use perf::client::EndAfter;
use perf::{PerfError, ServerEvent};
use record::Direction;
use serde_json::Value;
use stall_retry::Gauge;
use std::{
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::Duration,
};
use test_server::{TestServer, check, run, short};

/// A test with a real iperf3.
type Test = fn(&str);

/// Without iperf3 every test counts as ignored, not as passed. Another version's
/// program is used if `LONGHAUL_IPERF3` names it.
fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Transfers without a limit: more of them than cores take longer than one after another.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(cores);
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let mut programs = vec![("iperf3".to_owned(), String::new())];
    if let Ok(other) = std::env::var("LONGHAUL_IPERF3") {
        assert!(is_there(&other), "LONGHAUL_IPERF3 names {other}, which does not run");
        programs.push((other, "_of_another_version".to_owned()));
    }
    let missing = !is_there("iperf3");
    if missing {
        assert!(
            !stall_retry::required(),
            "iperf3 is not installed, and LONGHAUL_REQUIRE_PEERS=1 asks for it"
        );
        eprintln!("iperf3 is not installed: the tests against it are skipped");
    }
    let tests: [(&str, Test); 8] = [
        ("our_client_against_its_server", our_client_against_its_server),
        ("its_client_against_our_server", its_client_against_our_server),
        ("a_file_of_any_length_ends_a_test", a_file_of_any_length_ends_a_test),
        (
            "unsupported_parameters_are_refused_in_iperf3s_words",
            unsupported_parameters_are_refused_in_iperf3s_words,
        ),
        ("a_busy_iperf3_is_reported_as_busy", a_busy_iperf3_is_reported_as_busy),
        ("a_killed_iperf3_is_reported_at_once", a_killed_iperf3_is_reported_at_once),
        ("matrix_our_client_against_its_server", matrix::our_client),
        ("matrix_its_client_against_our_server", matrix::its_client),
    ];
    let mut trials = Vec::new();
    for (program, suffix) in programs {
        for (name, test) in tests {
            let program = program.clone();
            let trial = stall_retry::trial(format!("{name}{suffix}"), move || test(&program));
            trials.push(trial.with_ignored_flag(missing));
        }
    }
    stall_retry::run(&arguments, trials)
}

/// A real server, killed when dropped.
struct Iperf3(Child, u16);

impl Iperf3 {
    fn start(program: &str) -> Self {
        let port = stall_retry::free_port();
        let child = Command::new(program)
            .args(["-s", "-B", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Iperf3(child, port)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// A test against it; retries until its server listens.
    fn test(&self, change: impl FnOnce(&mut perf::client::ClientConfig)) -> record::Measurement {
        let mut config = short(([127, 0, 0, 1], self.1).into());
        change(&mut config);
        for _ in 0..100 {
            match run(&config) {
                Err(error) if is_between_tests(&error) => {
                    thread::sleep(Duration::from_millis(50));
                }
                measured => {
                    let measured = measured.unwrap();
                    check(&measured, &config);
                    return measured;
                }
            }
        }
        panic!("the iperf3 server never answered");
    }
}

/// iperf3 closes its listening socket after each test, with the clients in its backlog.
fn is_between_tests(error: &PerfError) -> bool {
    match error {
        PerfError::Connect { .. } | PerfError::Busy { .. } => true,
        PerfError::Vanished { point, .. } => *point == "before PARAM_EXCHANGE",
        _ => false,
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A real client against our server; its JSON.
fn iperf3_client(program: &str, server: &TestServer, options: &[&str]) -> Value {
    let output = Command::new(program)
        .args(["-c", "127.0.0.1", "-J", "-p", &server.address.port().to_string()])
        .args(options)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether both ends counted the same: within `slack`, or `blocks` in flight at the
/// receiver's end of the test, plus what was sent during stalls of the host in a test
/// of `seconds`.
fn close(a: u64, b: u64, slack: f64, blocks: u64, gauge: &Gauge, seconds: f64) -> bool {
    let (apart, most) = (a.abs_diff(b), a.max(b) as f64);
    // Both ends may stall at the end, one after the other.
    let still = 2.0 * gauge.worst().as_secs_f64() / seconds;
    apart <= blocks || apart as f64 <= (slack + still) * most
}

fn our_client_against_its_server(program: &str) {
    let server = Iperf3::start(program);
    for (direction, streams) in [
        (Direction::Forward, 1),
        (Direction::Reverse, 1),
        (Direction::Forward, 4),
        (Direction::Reverse, 4),
    ] {
        let gauge = Gauge::start();
        let measured = server.test(|config| {
            config.direction = direction;
            config.streams = streams;
            // At a rate that both ends sustain, buffers are nearly empty and bytes comparable.
            config.rate = Some("40mbit".parse().unwrap());
        });
        assert_eq!(measured.peer, "iperf3");
        let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
        assert!(
            close(
                sent,
                measured.received().bytes(),
                0.01,
                u64::from(streams) * 131_072,
                &gauge,
                measured.spec.seconds
            ),
            "{direction:?} {streams}: {measured:?}"
        );
    }
    let measured = server.test(|config| config.direction = Direction::Reverse);
    assert!(measured.received().bytes() > 1_000_000, "at full speed too");
    let measured = server.test(|config| {
        config.end = EndAfter::Bytes(units::ByteCount::from_bytes(5_000_000));
    });
    assert_eq!(measured.received().bytes(), 39 * 131_072);
}

fn its_client_against_our_server(program: &str) {
    let server = TestServer::new();
    for options in [
        &["-t1", "-b40M"][..],
        &["-t1", "-b40M", "-R"],
        &["-t1", "-b20M", "-P4"],
        &["-t1", "-b20M", "-P4", "-R"],
        &["-t1", "-O1", "-b40M"],
        &["-t1", "-O1", "-b40M", "-R"],
        &["-n20M"],
        &["-n20M", "-R"],
        &["-k100", "-R"],
        &["-t1", "-w128K", "-C", "reno", "-R", "-N", "-M1000"],
        &["-t1"],
        &["-t1", "-R"],
    ] {
        server.events.lock().unwrap().clear();
        let gauge = Gauge::start();
        let report = iperf3_client(program, &server, options);
        assert_eq!(report.get("error"), None, "{options:?}: {}", report["error"]);
        let theirs = |end: &str| report["end"][end]["bytes"].as_u64().unwrap();
        let (sent, received) = (theirs("sum_sent"), theirs("sum_received"));
        let ServerEvent::Finished { summary, .. } =
            server.wait_for(|event| matches!(event, ServerEvent::Finished { .. }))
        else {
            unreachable!()
        };
        let reverse = options.contains(&"-R");
        let ours = if reverse { summary.sent } else { summary.received }.bytes();
        assert!(received > 0 && ours > 0, "{options:?}");
        // Our server's results are what the client printed for the server.
        assert_eq!(ours, if reverse { sent } else { received }, "{options:?}");
        if options.iter().any(|option| option.starts_with("-b") || option.starts_with("-n")) {
            // The ends omit the warm-up by their own clocks.
            let slack = if options.contains(&"-O1") { 0.05 } else { 0.02 };
            assert!(
                close(sent, received, slack, 8 * 131_072, &gauge, 1.0),
                "{options:?}: sent {sent}, received {received}"
            );
        }
        if options.contains(&"-O1") {
            assert!(received < 7_500_000, "{options:?}: {received} includes the warm-up");
        }
        if options.contains(&"reno") {
            assert_eq!(report["end"]["sender_tcp_congestion"], "reno");
        }
        assert!(report["end"]["sum_sent"]["retransmits"].is_u64(), "{options:?}");
    }
}

fn a_file_of_any_length_ends_a_test(program: &str) {
    const LENGTH: usize = 300_001;
    let name = |what: &str| format!("longhaul-foreign-{what}-{}", std::process::id());
    let [from, to] = ["from", "to"].map(|what| std::env::temp_dir().join(name(what)));
    std::fs::write(&from, vec![7; LENGTH]).unwrap();
    let server = Iperf3::start(program);
    let measured = server.test(|config| {
        config.file = Some(from.clone());
        config.end = EndAfter::Bytes(units::ByteCount::from_bytes(LENGTH as u64));
    });
    let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
    assert_eq!(sent, LENGTH as u64);
    // Versions from 3.16 count whole blocks only.
    let received = measured.received().bytes();
    assert!(received == sent || received == 2 * 131_072, "{received}");

    let server = TestServer::with(|config| config.file = Some(to.clone()));
    let report = iperf3_client(program, &server, &["-F", from.to_str().unwrap()]);
    assert_eq!(report.get("error"), None, "{}", report["error"]);
    assert_eq!(report["end"]["sum_received"]["bytes"], LENGTH);
    assert_eq!(std::fs::read(&to).unwrap(), vec![7; LENGTH]);
    for path in [from, to] {
        std::fs::remove_file(path).unwrap();
    }
}

fn unsupported_parameters_are_refused_in_iperf3s_words(program: &str) {
    let server = TestServer::new();
    for options in [&["-t7200"][..], &["-t86400", "-R"]] {
        let report = iperf3_client(program, &server, options);
        let error = report["error"].as_str().unwrap_or_default();
        assert!(!error.is_empty(), "{options:?}: {report}");
    }
    server.check_serving();
}

fn a_busy_iperf3_is_reported_as_busy(program: &str) {
    let server = Iperf3::start(program);
    server.test(|config| config.end = EndAfter::Seconds(0.2));
    let mut long = Command::new(program)
        .args(["-c", "127.0.0.1", "-t60", "-b1M", "-p", &server.1.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut busy, mut last) = (None, None);
    for _ in 0..100 {
        thread::sleep(Duration::from_millis(50));
        let mut config = short(([127, 0, 0, 1], server.1).into());
        config.end = EndAfter::Seconds(0.1);
        match run(&config) {
            Err(error @ PerfError::Busy { .. }) => {
                busy = Some(error);
                break;
            }
            other => last = Some(other.map(|measured| measured.received())),
        }
    }
    let _ = long.kill();
    let _ = long.wait();
    assert!(busy.is_some(), "it never said that it is busy, but {last:?}");
}

fn a_killed_iperf3_is_reported_at_once(program: &str) {
    let mut server = Iperf3::start(program);
    let mut config = short(([127, 0, 0, 1], server.1).into());
    config.end = EndAfter::Seconds(600.0);
    config.report_every = Duration::from_millis(100);
    for _ in 0..100 {
        let mut events = 0;
        let mut progress = |_| {
            events += 1;
            if events == 3 {
                server.0.kill().unwrap();
            }
        };
        let error = perf::client::run(&config, &mut progress, &perf::StopFlag::new()).unwrap_err();
        if !is_between_tests(&error) {
            assert!(error.to_string().contains("during the test"), "{error}");
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("the iperf3 server never answered");
}
