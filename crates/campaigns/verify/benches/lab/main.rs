//! The lab's promised figures, measured: `make bench`.
//!
//! Wall-clock figures of the host, medians of three, each beside the promised one.
//! Comparisons with a pair of TUN devices connected by nothing but a copy alternate
//! with measurements of that pair.

mod pair;
mod traffic;

use bench_harness::{Arguments, Fallible, heading, median, note, row};
use host::clock;
use lab::{Lab, Options};
use pair::{ADDRESSES, Pair};
use record::{Measurement, PathReport};
use std::process::ExitCode;
use std::time::Duration;
use topology::{Plan, Shape, ShapeKind};
use units::BitRate;

const REPEATS: usize = 3;

const HELP: &str = "\
cargo bench -p longhaul-verify --bench lab -- [PART]...
Parts: idle, rate, hosts, packets, trains, unlimited, long-fat (all of them)";

fn main() -> ExitCode {
    bench_harness::run_in_sandbox(HELP, measure)
}

type Part = fn() -> Fallible<()>;

/// Runs all benchmarks, or those named on the command line.
fn measure(arguments: Arguments) -> Fallible<()> {
    let parts: [(&str, Part); 7] = [
        ("idle", idle),
        ("rate", rate_error),
        ("hosts", many_hosts),
        ("packets", packets),
        ("trains", trains),
        ("unlimited", unlimited),
        ("long-fat", long_fat),
    ];
    let asked = arguments.parts(&parts)?;
    heading();
    asked.into_iter().try_for_each(|part| part())
}

fn lab(path: &str, accurate: bool) -> Fallible<Lab> {
    Ok(Lab::start(
        &Plan::pair(path.parse()?, "cubic", &[], true),
        Options { accurate, ..Options::default() },
    )?)
}

fn idle() -> Fallible<()> {
    for (accurate, promised, mode) in [(false, 0.3, ""), (true, 0.1, ", accurate")] {
        for rtt in ["1ms", "20ms", "100ms"] {
            let mut off = Vec::new();
            for _ in 0..REPEATS {
                let lab = lab(&format!("rate=100mbit,rtt={rtt}"), accurate)?;
                let asked = lab.path().rtt().millis_f64();
                let report = lab.finish()?.into_path();
                off.push((report.achieved.idle_rtt_ms.ok_or("no echo came back")? - asked).abs());
            }
            let off = median(&off);
            let what = format!("idle RTT of {rtt}{mode}, off by");
            row(&what, &format!("{promised} ms"), &format!("{off:.3} ms"), off <= promised);
        }
    }
    Ok(())
}

fn rate_error() -> Fallible<()> {
    for rate in ["1mbit", "10mbit", "100mbit", "1gbit", "5gbit"] {
        let lab = lab(&format!("rate={rate},rtt=20ms"), false)?;
        lab::check::fill(&lab, Duration::from_secs(10), &|| false)?;
        let report = lab.finish()?.into_path();
        let did = report.achieved.rate_bps.ok_or("never busy")?;
        let asked = report.rate_bps.ok_or("a rate was asked")?;
        let error = (did.as_f64() / asked.as_f64() - 1.0).abs() * 100.0;
        row(&format!("rate of {rate}, off by"), "0.1 %", &format!("{error:.4} %"), error <= 0.1);
        say_if_not_valid(&report);
    }
    Ok(())
}

fn many_hosts() -> Fallible<()> {
    let shape = Shape {
        hosts: Some(64),
        path: Some("rate=100mbit,rtt=10ms".to_owned()),
        ..Shape::new(ShapeKind::Star)
    };
    let plan = Plan::from_shape(&shape, &mut |_| Err(std::io::ErrorKind::NotFound.into()))?;
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let start = clock::now();
        let lab = Lab::start(&plan, Options::default())?;
        times.push(start.elapsed().as_secs_f64());
        lab.finish()?;
    }
    let time = median(&times);
    row("64 hosts around a router, up after", "2 s", &format!("{time:.2} s"), time < 2.0);
    Ok(())
}

/// Single datagrams, alternating with the bare pair.
fn packets() -> Fallible<()> {
    const SECONDS: f64 = 4.0;
    let (mut bare, mut ours, mut unintended) = (Vec::new(), Vec::new(), 0);
    for _ in 0..REPEATS {
        let pair = Pair::start()?;
        let [client, server] = &pair.hosts;
        traffic::datagrams(client, server, ADDRESSES[1], SECONDS, None)?;
        bare.push(pair.finish()? as f64 / SECONDS);
        let lab = lab("rate=unlimited,rtt=1ms", false)?;
        let (client, server) = (&lab.client().namespace, &lab.server().namespace);
        traffic::datagrams(client, server, lab.server().ipv4, SECONDS, None)?;
        let report = lab.finish()?.into_path();
        ours.push(report.achieved.packets as f64 / SECONDS);
        unintended += report.achieved.drops.unintended;
    }
    let (bare, ours) = (median(&bare), median(&ours));
    let ratio = ours / bare;
    row("single datagrams, beside a bare pair", "0.80", &format!("{ratio:.2}"), ratio >= 0.8);
    note("packets a second: bare, lab", &format!("{bare:.0}, {ours:.0}"));
    note("lost unintentionally, and reported", &unintended.to_string());
    Ok(())
}

/// Datagrams in trains, 8 Gbit/s.
fn trains() -> Fallible<()> {
    let (mut rates, mut lost) = (Vec::new(), 0);
    for _ in 0..REPEATS {
        let lab = lab("rate=10gbit,rtt=20ms", false)?;
        let (client, server) = (&lab.client().namespace, &lab.server().namespace);
        let rate = BitRate::from_bps(8_000_000_000);
        traffic::datagrams(client, server, lab.server().ipv4, 4.0, Some(rate))?;
        std::thread::sleep(Duration::from_millis(50));
        let report = lab.finish()?.into_path();
        rates.push(report.achieved.bytes as f64 * 8.0 / 4.0 / 1e9);
        lost += report.achieved.drops.unintended;
        say_if_not_valid(&report);
    }
    let rate = median(&rates);
    row("segmented UDP", "8 Gbit/s", &format!("{rate:.2} Gbit/s"), rate >= 7.95 && lost == 0);
    Ok(())
}

/// One TCP flow without a rate limit, alternating with the bare pair.
fn unlimited() -> Fallible<()> {
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let pair = Pair::start()?;
        let [client, server] = &pair.hosts;
        bare.push(steady(&traffic::tcp(client, server, ADDRESSES[1], 5.0, None)?));
        pair.finish()?;
        let lab = lab("rate=unlimited,rtt=0ms", false)?;
        let (client, server) = (&lab.client().namespace, &lab.server().namespace);
        ours.push(steady(&traffic::tcp(client, server, lab.server().ipv4, 5.0, None)?));
        say_if_not_valid(&lab.finish()?.into_path());
    }
    let (bare, ours) = (median(&bare), median(&ours));
    let ratio = ours / bare;
    row(
        "one TCP flow, unlimited, beside a bare pair",
        "0.85",
        &format!("{ratio:.2}"),
        ratio >= 0.85,
    );
    note("Gbit/s: bare, lab", &format!("{bare:.2}, {ours:.2}"));
    Ok(())
}

/// One flow with each congestion control, at 1 and 10 Gbit/s.
fn long_fat() -> Fallible<()> {
    for (rate, seconds, promised, late) in [("1gbit", 8.0, 0.95, 0.2), ("10gbit", 15.0, 9.5, 2.0)] {
        for congestion in ["cubic", "bbr"] {
            let (mut rates, mut lateness, mut lost, mut valid) = (Vec::new(), Vec::new(), 0, 0);
            for _ in 0..REPEATS {
                let lab = lab(&format!("rate={rate},rtt=100ms"), false)?;
                let (client, server) = (&lab.client().namespace, &lab.server().namespace);
                let to = lab.server().ipv4;
                let measured = traffic::tcp(client, server, to, seconds, Some(congestion))?;
                let path = lab.finish()?.into_path();
                valid += usize::from(path.valid);
                lost += path.achieved.drops.unintended;
                lateness.push(path.achieved.lateness_us.p99 as f64 / 1e3);
                say_if_not_valid(&path);
                rates.push(steady(&Measurement { path: Some(path), ..measured }));
            }
            let (carried, p99) = (median(&rates), median(&lateness));
            let what = format!("{rate} x 100 ms, one flow of {congestion}, steady");
            let kept = carried >= promised && lost == 0;
            row(&what, &format!("{promised} Gbit/s"), &format!("{carried:.2} Gbit/s"), kept);
            row("  late by (99 %)", &format!("{late} ms"), &format!("{p99:.2} ms"), p99 < late);
            note("valid, of three", &valid.to_string());
        }
    }
    Ok(())
}

/// Throughput of the steady part, in Gbit/s.
fn steady(measured: &Measurement) -> f64 {
    diagnose::explain(measured).throughput_bps.as_f64() / 1e9
}

fn say_if_not_valid(path: &PathReport) {
    if !path.valid {
        println!("  one run is not valid: {}", path.reasons.join("; "));
    }
}
