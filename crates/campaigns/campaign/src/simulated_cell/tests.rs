//! Cells in the simulator.

use super::*;
use record::Protocol;
use study::{Plan, Study};

fn test(plan: &str) -> Test {
    let plan = Plan::parse(plan).unwrap();
    plan.test(&plan.cell(0)).unwrap()
}

/// A plan with these lines of its path, its factors and its traffic.
fn plan(path: &str, factors: &str, traffic: &str) -> String {
    format!(
        "question = \"?\"\n[path]\nrtt = \"20ms\"\n{path}\n[factors]\n{factors}\n[traffic]\n{traffic}"
    )
}

const RATE: &str = "rate = \"10mbit\"";
const CUBIC: &str = "congestion = [\"cubic\"]";

fn attempt(plan: &str) -> Attempt {
    run(&test(plan), 7, &StopFlag::new()).unwrap()
}

#[test]
fn the_same_cell_and_seed_give_the_same_result() {
    let plan = plan(&format!("{RATE}\nloss = \"1%\""), CUBIC, "duration = \"3s\"");
    let (first, second) = (attempt(&plan), attempt(&plan));
    assert_eq!(first.flows, second.flows);
    assert_eq!(first.took, Duration::from_secs(3));
    let other = run(&test(&plan), 8, &StopFlag::new()).unwrap();
    assert_ne!(first.flows, other.flows, "another seed loses other packets");
}

#[test]
fn a_flow_carries_what_its_path_does_and_its_report_says_so() {
    let attempt = attempt(&plan(RATE, CUBIC, "duration = \"5s\""));
    let (figures, measurement) = &attempt.flows[0];
    assert!(attempt.reasons.is_empty());
    // 1448 of 1500 bytes are payload.
    assert!((9.0e6..9.7e6).contains(&figures.throughput_bps), "{}", figures.throughput_bps);
    assert_eq!((figures.name.as_str(), figures.seconds), ("traffic", 5.0));
    assert_eq!(figures.series_bps.len(), 5);
    let path = measurement.path.as_ref().unwrap();
    assert_eq!((path.asked.driver, path.valid), (record::PathDriver::Simulator, true));
    assert!(path.achieved.packets > 3_000 && path.achieved.lost == 0);
}

/// The queue has room for slow start: what waits for a repair would count when it is read.
#[test]
fn flows_begin_and_end_at_their_times_and_warm_ups_do_not_count() {
    let text = format!(
        "question = \"?\"\n[path]\nrtt = \"20ms\"\nqueue = \"10bdp\"\n{RATE}\n[flows.early]\n\
         duration = \"2s\"\n[flows.late]\nstart = \"3s\"\nomit = \"1s\"\nduration = \"2s\"\n[factors]\n\
         congestion = [\"cubic\"]\n"
    );
    let attempt = attempt(&text);
    let [early, late] = attempt.flows.as_slice() else { panic!("{:?}", attempt.flows) };
    assert_eq!((early.0.name.as_str(), late.0.name.as_str()), ("early", "late"));
    assert!((early.0.seconds - 2.0).abs() < 0.02 && (late.0.seconds - 2.0).abs() < 0.02);
    assert!((late.0.began_s - 4.0).abs() < 0.01, "{}", late.0.began_s);
    for (figures, measurement) in [early, late] {
        // Each has the path for itself.
        assert!((8e6..9.7e6).contains(&figures.throughput_bps), "{}", figures.throughput_bps);
        let times = measurement.streams[0].sender.iter().map(|sample| sample.t_s);
        assert!(times.clone().all(|t_s| (0.0..=2.000_001).contains(&t_s)));
    }
    let caveats = &late.1.streams[0].caveats;
    assert!(matches!(caveats.as_slice(), [record::Caveat::OmittedSeconds { .. }]), "{caveats:?}");
    assert!(early.1.streams[0].caveats.is_empty());
}

#[test]
fn each_client_and_stream_is_a_connection_and_reverse_is_the_way_back() {
    let traffic = "duration = \"3s\"\nstreams = 2\ndirection = \"reverse\"";
    let path = "up.rate = \"50mbit\"\ndown.rate = \"5mbit\"";
    let attempt = attempt(&plan(path, "hosts = [\"2x1\"]", traffic));
    let names: Vec<&str> = attempt.flows.iter().map(|(flow, _)| flow.name.as_str()).collect();
    assert_eq!(names, ["traffic-1", "traffic-2"]);
    let sum: f64 = attempt.flows.iter().map(|(flow, _)| flow.throughput_bps).sum();
    assert!((4.2e6..4.9e6).contains(&sum), "{sum}");
    assert!(attempt.flows.iter().all(|(_, m)| m.streams.len() == 2 && m.streams[0].reverse));
}

#[test]
fn controls_that_need_marks_negotiate_them() {
    let path = format!("{RATE}\nqueue = \"dualpi2\"");
    let achieved = |control: &str| {
        let factors = format!("congestion = [\"{control}\"]");
        let attempt = attempt(&plan(&path, &factors, "duration = \"5s\""));
        attempt.flows[0].1.path.as_ref().unwrap().achieved
    };
    assert_eq!(achieved("cubic").marked, 0, "its packets are not ECN-capable");
    for control in ["dctcp", "prague"] {
        let achieved = achieved(control);
        assert!(achieved.marked > 10, "{control}: {achieved:?}");
    }
}

#[test]
fn psockets_are_several_connections_of_one_flow() {
    let path = "rate = \"100mbit\"\nloss = \"1%\"";
    let of = |control: &str| {
        let factors = format!("congestion = [\"{control}\"]");
        attempt(&plan(path, &factors, "duration = \"20s\""))
    };
    let (one, four) = (of("reno"), of("psockets:4"));
    assert_eq!((one.flows.len(), four.flows.len()), (1, 1));
    assert_eq!(four.flows[0].1.streams.len(), 4);
    let ratio = four.flows[0].0.throughput_bps / one.flows[0].0.throughput_bps;
    assert!((3.2..4.8).contains(&ratio), "{ratio}");
}

#[test]
fn xcp_fills_a_path_with_its_router() {
    let path = format!("{RATE}\nqueue = \"xcp\"");
    let attempt = attempt(&plan(&path, "congestion = [\"xcp\"]", "duration = \"10s\""));
    let figures = &attempt.flows[0].0;
    assert!(figures.throughput_bps > 9.2e6 && figures.retransmits == Some(0), "{figures:?}");
}

#[test]
fn a_window_limits_a_flow() {
    // Of a rate at which a window takes no time to send.
    let fast = "rate = \"1gbit\"";
    let attempt = attempt(&plan(fast, "window = [\"10000\"]", "duration = \"4s\""));
    let expected = 6.0 * 1448.0 * 8.0 / 0.02;
    let throughput = attempt.flows[0].0.throughput_bps;
    assert!((throughput / expected - 1.0).abs() < 0.1, "{throughput} {expected}");
}

#[test]
fn a_stopped_run_has_no_result() {
    let stop = StopFlag::new();
    stop.raise();
    assert!(run(&test(&plan(RATE, CUBIC, "duration = \"3s\"")), 7, &stop).is_none());
}

#[test]
fn what_the_simulator_lacks_is_refused_with_its_reason() {
    let refused = |path: &str, factors: &str, traffic: &str| {
        refusal(&test(&plan(path, factors, &format!("duration = \"1s\"\n{traffic}"))))
    };
    assert_eq!(refused(RATE, CUBIC, ""), None);
    for (path, factors, traffic, reason) in [
        (RATE, "congestion = [\"nothing\"]", "", NotSimulated::Congestion("nothing".to_owned())),
        (RATE, "congestion = [\"xcp\"]", "", NotSimulated::NoXcpRouter),
        (RATE, CUBIC, "ip = \"6\"", NotSimulated::Ipv6),
        (RATE, CUBIC, "program = \"iperf3\"", NotSimulated::Program("iperf3".to_owned())),
        (RATE, "streams = [1]", "protocol = \"udt\"", NotSimulated::Protocol(Protocol::Udt)),
        (RATE, CUBIC, "direction = \"both\"", NotSimulated::Directions),
        (RATE, CUBIC, "source = \"file\"\ndisk = \"1mbit\"", NotSimulated::File),
        ("rate = \"unlimited\"", CUBIC, "", NotSimulated::Endless),
        (
            RATE,
            "\"net.ipv4.tcp_sack\" = [0]",
            "",
            NotSimulated::Sysctl("net.ipv4.tcp_sack".to_owned()),
        ),
    ] {
        assert_eq!(refused(path, factors, traffic), Some(reason));
    }
    assert_eq!(refused("rate = \"unlimited\"", "window = [\"64KiB\"]", ""), None);
    // Boundary pairs: what is just too large, and what is not.
    let streams = "streams = [128]";
    assert_eq!(refused(RATE, streams, "omit = \"600s\""), None);
    let long = plan(RATE, streams, "duration = \"3600s\"");
    assert_eq!(refusal(&test(&long)), Some(NotSimulated::Memory));
    let hour = plan("rate = \"10gbit\"", CUBIC, "duration = \"3590s\"");
    assert_eq!(refusal(&test(&hour)), None);
    let more = hour.replace("10gbit", "10.1gbit");
    assert_eq!(refusal(&test(&more)), Some(NotSimulated::Packets));
}

#[test]
fn cells_that_it_cannot_run_are_counted_and_the_first_one_is_named() {
    let plan = plan(RATE, "congestion = [\"cubic\", \"one\", \"two\"]", "duration = \"1s\"");
    let study = Study::of_plan("s", &plan, false).unwrap();
    let found = unsupported(&study).unwrap();
    assert_eq!((found.cells, found.all), (2, 3));
    assert_eq!(
        (found.first.as_str(), &found.reason),
        ("congestion=one", &NotSimulated::Congestion("one".to_owned()))
    );
    let study = Study::of_plan("s", &plan.replace(", \"one\", \"two\"", ""), false).unwrap();
    assert_eq!(unsupported(&study), None);
}
