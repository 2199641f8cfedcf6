//! What a plan says of links, files and the commands it prints.

mod files;
mod links;

use super::*;
use record::{BoostKind, BoostOption, BoostPlan, BoostReason, Limit};
use std::path::{Path, PathBuf};

fn plan(request: &PlanRequest) -> BoostPlan {
    run(request, &mut |_| (), &StopFlag::new()).unwrap()
}

fn of_link(path: &str, change: impl FnOnce(&mut PlannedLink)) -> BoostTransfer {
    let mut link = PlannedLink::new(path);
    change(&mut link);
    plan(&PlanRequest::new(PlanSource::Link(link))).transfers.remove(0)
}

fn of_kind(transfer: &BoostTransfer, kind: BoostKind) -> &BoostOption {
    transfer.options.iter().find(|one| one.kind == kind).unwrap()
}

fn factor(transfer: &BoostTransfer, kind: BoostKind) -> f64 {
    of_kind(transfer, kind).factor.unwrap().expected
}

/// Whatever has no gain or no prediction says why, and commands are for what has a gain.
fn assert_reasons(transfer: &BoostTransfer, what: &str) {
    for one in &transfer.options {
        let gains = one.factor.is_some_and(|factor| factor.expected >= record::BOOST_WORTH);
        let explained = one.reason.is_some();
        assert!(gains || explained, "{what}: {one:?}");
        assert!(gains || one.commands.is_empty(), "{what}: {one:?}");
        assert_eq!(one.goodput_bps.is_some(), one.factor.is_some(), "{what}: {one:?}");
        if let Some(factor) = one.factor {
            assert!(
                factor.low <= factor.expected && factor.expected <= factor.high,
                "{what}: {one:?}"
            );
        }
    }
}

#[test]
fn a_small_window_gains_by_a_pair_and_not_by_a_route() {
    let small = of_link("rate=100mbit,rtt=173ms,overhead=38", |link| {
        link.window = Some("64KiB".parse().unwrap());
    });
    assert!((30.0..32.0).contains(&factor(&small, BoostKind::Pair)), "{small:?}");
    assert_eq!(of_kind(&small, BoostKind::Route).reason, Some(BoostReason::WindowRemains));
    assert!((factor(&small, BoostKind::Streams) - 16.0).abs() < 1e-6);
    let pair = of_kind(&small, BoostKind::Pair);
    assert!(
        pair.commands.iter().any(|one| one.contains("--buffer 4MiB") || !one.contains("--buffer"))
    );
    assert!(small.recommended.is_some());
    assert_reasons(&small, "64 KiB");
    let gigabit = of_link("rate=1gbit,rtt=100ms,overhead=38", |link| {
        link.window = Some("64KiB".parse().unwrap());
    });
    assert!((176.0..180.0).contains(&factor(&gigabit, BoostKind::Pair)), "{gigabit:?}");
    let commands = &of_kind(&gigabit, BoostKind::Pair).commands;
    assert!(commands[1].ends_with("-C cubic --buffer 23MiB"), "{commands:?}");
}

#[test]
fn bbr_with_buffers_gains_nothing_and_says_so() {
    let bbr = of_link("rate=1gbit,rtt=100ms,loss=0.1%", |link| {
        link.congestion = model::Congestion::Bbr;
        link.window = Some("64MiB".parse().unwrap());
    });
    for one in &bbr.options {
        assert_eq!(one.reason, Some(BoostReason::AlreadyBbr), "{one:?}");
        assert!((0.95..1.05).contains(&one.factor.unwrap().expected), "{one:?}");
    }
    assert_eq!(bbr.recommended, None);
}

#[test]
fn under_loss_the_route_is_the_cheapest_remedy() {
    let lossy = of_link("rate=100mbit,rtt=100ms,loss=0.5%", |_| ());
    assert!(factor(&lossy, BoostKind::Route) > 40.0);
    assert_eq!(lossy.recommended, Some(BoostKind::Route));
    let route = &of_kind(&lossy, BoostKind::Route).commands[0];
    assert_eq!(route, "longhaul tune plan --route PREFIX --rate 100mbit --rtt 100ms --loss 0.5%");
    assert!(of_kind(&lossy, BoostKind::Pair).commands[1].contains("-C bbr"));
    assert_reasons(&lossy, "0.5 %");
}

#[test]
fn a_programs_own_window_and_a_full_line_are_told() {
    let sftp = of_link("rate=1gbit,rtt=173ms", |link| {
        link.program_window = Some("2MiB".parse().unwrap());
    });
    let pair = of_kind(&sftp, BoostKind::Pair);
    assert_eq!(pair.reason, Some(BoostReason::ProgramWindow), "{pair:?}");
    assert!((pair.goodput_bps.unwrap().expected.as_f64() / 1e6 - 96.8).abs() < 0.5, "{pair:?}");
    assert!(factor(&sftp, BoostKind::Streams) > 8.0);
    let full = of_link("rate=100mbit,rtt=20ms", |_| ());
    assert_eq!(of_kind(&full, BoostKind::Pair).reason, Some(BoostReason::LineFull));
    for transfer in [&sftp, &full] {
        assert_reasons(transfer, "link");
    }
}

#[test]
fn compression_and_edges_are_computed_if_asked_for() {
    let mut link = PlannedLink::new("rate=100mbit,rtt=173ms");
    link.window = Some("64KiB".parse().unwrap());
    let mut request = PlanRequest::new(PlanSource::Link(link));
    request.settings.compressible = Some(2.5);
    request.settings.edge_rtt = Some("4ms".parse().unwrap());
    let transfer = plan(&request).transfers.remove(0);
    let ratio = factor(&transfer, BoostKind::CompressedPair) / factor(&transfer, BoostKind::Pair);
    assert!((ratio - 2.5).abs() < 0.01, "{ratio}");
    let commands = &of_kind(&transfer, BoostKind::CompressedPair).commands;
    assert_eq!(commands.iter().filter(|line| line.ends_with(" --compress")).count(), 2);
    assert_eq!(transfer.recommended, Some(BoostKind::CompressedPair));
    let edge = of_kind(&transfer, BoostKind::Edge);
    let object = edge.object.unwrap();
    assert!((2.9..3.5).contains(&object.now_s) && object.then_s < 0.2, "{object:?}");
    assert_reasons(&transfer, "edge");
    request.settings.compressible = Some(0.5);
    assert!(run(&request, &mut |_| (), &StopFlag::new()).is_err());
}

fn corpus() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/corpus");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|file| !file.ends_with("README.md")).collect();
    files.sort();
    files
}

fn check(file: &Path) -> usize {
    let mut request = PlanRequest::new(PlanSource::File(PlannedFile::new(file)));
    request.rate = Some("100gbit".parse().unwrap());
    request.settings.edge_rtt = Some("4ms".parse().unwrap());
    request.settings.compressible = Some(3.0);
    // A capture of which nothing can be told is an error, and no panic.
    let Ok(plan) = run(&request, &mut |_| (), &StopFlag::new()) else { return 0 };
    let name = file.display().to_string();
    let ends = [Limit::Application, Limit::SlowReceiver, Limit::Cpu];
    for transfer in &plan.transfers {
        assert_reasons(transfer, &name);
        if transfer.limit.is_some_and(|limit| ends.contains(&limit)) {
            assert_eq!(transfer.recommended, None, "{name}: {transfer:?}");
            for one in &transfer.options {
                let factor = one.factor.map_or(1.0, |factor| factor.expected);
                assert!((factor - 1.0).abs() < 1e-9, "{name}: {one:?}");
            }
        }
    }
    plan.transfers.len()
}

#[test]
fn files_of_every_kind_are_planned_without_a_gain_where_the_application_is_the_limit() {
    let files = corpus();
    assert!(files.len() > 50);
    let transfers: usize = files.iter().map(|file| check(file)).sum();
    assert!(transfers >= files.len() / 2, "{transfers}");
}

#[test]
fn a_host_without_a_server_is_one_error() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = PlannedHost { port, ..PlannedHost::new("127.0.0.1") };
    let problem = run(&PlanRequest::new(PlanSource::Host(host)), &mut |_| (), &StopFlag::new());
    let line = problem.unwrap_err().to_string();
    assert!(line.contains("longhaul server") && line.lines().count() == 1, "{line}");
}

#[test]
fn a_file_adds_no_words_to_commands() {
    let mut measurement = record::Measurement::default();
    for (name, is_host) in [
        ("a.example", true),
        ("2001:db8::1", true),
        ("--ssh=evil", false),
        ("x; rm -rf ~", false),
        ("", false),
    ] {
        measurement.spec.target = name.to_owned();
        let asked = Asked::default();
        let all = Situation::of_measurement("", &measurement, None, &asked).unwrap();
        let situation = &all[0];
        assert_eq!(situation.target.is_some(), is_host, "{name}");
        let command = commands::copy(situation).remove(0);
        assert!(is_host || command == "longhaul copy FILE HOST:", "{command}");
    }
}
