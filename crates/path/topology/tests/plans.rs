//! Plans as files: what is read from them, and that the examples can be read.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io;
use std::path::Path;
use std::time::Duration;
use topology::plan::{Problem, Role, Wait};
use topology::{DriverChoice, Plan, PlanError, routes};
use units::{BitRate, ByteCount, Rtt};

fn parse(text: &str) -> Result<Plan, PlanError> {
    let mut no_files = |_: &str| Err(io::ErrorKind::NotFound.into());
    Plan::parse("plans/My Lab.toml", text, &mut no_files)
}

fn example(name: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut no_files = |_: &str| Err(io::ErrorKind::NotFound.into());
    Plan::parse(name, &text, &mut no_files).unwrap()
}

const TWO: &str = r#"
[host.alice]
[host.bob]
[[link]]
between = ["alice", "bob"]
path = "rate=100mbit,rtt=40ms"
"#;

#[test]
fn the_shortest_plan_has_sensible_defaults() {
    let plan = parse(TWO).unwrap();
    assert_eq!((plan.name.as_str(), plan.duration), ("my-lab", None));
    assert_eq!(plan.links[0].name, "alice-bob");
    assert_eq!(plan.links[0].line, Some(6));
    let bob = &plan.hosts[1];
    assert_eq!((bob.name.as_str(), bob.role, bob.tuned), ("bob", Role::Host, false));
    assert_eq!((bob.congestion.as_str(), bob.line), ("cubic", Some(3)));
    assert_eq!((bob.ipv4.to_string(), bob.ipv6.to_string()), ("10.0.0.2".into(), "fd00::2".into()));
}

#[test]
fn hosts_keep_the_order_of_writing() {
    let plan = parse(
        r#"
[host.zoe]
address = "192.168.7.1"
[router.mid]
[host.adam]
address6 = "2001:db8::1"
[[link]]
between = ["zoe", "mid"]
path = "rate=100mbit,rtt=40ms"
[[link]]
between = ["mid", "adam"]
path = "rate=100mbit,rtt=40ms"
"#,
    )
    .unwrap();
    let hosts: Vec<String> = plan
        .hosts
        .iter()
        .map(|host| format!("{} {} {}", host.name, host.ipv4, host.ipv6))
        .collect();
    assert_eq!(
        hosts,
        ["zoe 192.168.7.1 fd00::1", "mid 10.0.0.1 fd00::2", "adam 10.0.0.2 2001:db8::1"]
    );
    assert_eq!(plan.device(1, 1), "lab1");
    assert_eq!(plan.device(2, 1), "lab0");
}

#[test]
fn a_hosts_settings_take_the_place_of_all_hosts() {
    let text = r#"
congestion = "bbr"
tuned = true
[sysctl]
"net.ipv4.tcp_sack" = 1
net.ipv4.tcp_rmem = "4096 131072 6291456"
[host.alice]
congestion = "reno"
tuned = false
sysctl = { "net.ipv4.tcp_sack" = false, "net.ipv4.tcp_ecn" = 1 }
"#;
    let plan = parse(&format!("{text}{}", TWO.replace("[host.alice]", ""))).unwrap();
    let setting = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let [alice, bob] = &plan.hosts[..] else { panic!("{plan:?}") };
    assert_eq!((alice.congestion.as_str(), alice.tuned), ("reno", false));
    assert_eq!((bob.congestion.as_str(), bob.tuned), ("bbr", true));
    let buffers = setting("net.ipv4.tcp_rmem", "4096 131072 6291456");
    assert_eq!(bob.sysctls, [setting("net.ipv4.tcp_sack", "1"), buffers.clone()]);
    assert_eq!(
        alice.sysctls,
        [setting("net.ipv4.tcp_sack", "0"), buffers, setting("net.ipv4.tcp_ecn", "1")]
    );
}

#[test]
fn programs_and_the_clock_that_waits_for_them() {
    let text = r#"
duration = "2min"
[[run]]
on = "bob"
command = "iperf3 -s"
background = true
[[run]]
on = "bob"
command = "iperf3 -s -p 7000"
background = true
wait = "no"
[[run]]
on = "alice"
command = "late"
background = true
start = "1500ms"
stop = "2min"
[[run]]
on = "alice"
command = "server"
wait = "listening"
"#;
    let plan = parse(&format!("{text}{TWO}")).unwrap();
    assert_eq!((plan.duration, plan.driver), (Some(Duration::from_secs(120)), DriverChoice::Auto));
    let held = parse(&format!("driver = \"nfqueue\"\n{TWO}")).unwrap();
    assert_eq!(held.driver, DriverChoice::Nfqueue);
    let waits: Vec<Wait> = plan.programs.iter().map(|program| program.wait).collect();
    assert_eq!(waits, [Wait::Briefly, Wait::No, Wait::No, Wait::UntilListening]);
    let late = &plan.programs[2];
    assert_eq!((late.host, late.start, late.stop), (0, Duration::from_millis(1500), plan.duration));
    assert_eq!(late.line, Some(14));
}

#[test]
fn each_change_is_made_to_what_the_ones_before_left() {
    let text = r#"
[[change]]
at = "9s"
link = "alice-bob"
set = "rtt=300ms"
[[change]]
at = "5s"
link = "alice-bob"
set = "rate=10mbit,rtt=30ms"
"#;
    let plan = parse(&format!("{TWO}{text}")).unwrap();
    let seconds: Vec<u64> = plan.changes.iter().map(|change| change.at.as_secs()).collect();
    assert_eq!(seconds, [5, 9]);
    assert_eq!(plan.changes[0].path.rtt(), Rtt::from_nanos(30_000_000));
    assert_eq!(plan.changes[1].path.rtt(), Rtt::from_nanos(300_000_000));
    let slow = parse(&TWO.replace("rate=100mbit,rtt=40ms", "rate=10mbit,rtt=300ms")).unwrap();
    assert_eq!(plan.changes[1].path.memory(), slow.memory());
    // What takes most counts, be it before a change or after.
    assert_eq!(plan.memory(), parse(TWO).unwrap().memory().max(slow.memory()));
}

#[test]
fn a_shape_can_be_said_more_about_and_added_to() {
    let plan = parse(
        r#"
[shape]
kind = "star"
hosts = 2
path = "rate=100mbit,rtt=40ms"
[host.host2]
congestion = "reno"
[host.far]
[[link]]
between = ["far", "hub"]
path = "rate=10mbit,rtt=400ms"
"#,
    )
    .unwrap();
    let hosts: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(hosts, ["host1", "host2", "hub", "far"]);
    assert_eq!(plan.hosts[1].congestion, "reno");
    assert_eq!(plan.links[0].line, Some(5));
}

#[test]
fn memory_that_is_not_there_is_told_before() {
    let mut plan = parse(&format!(
        "{TWO}[[link]]\nname = \"fat\"\nbetween = [\"bob\", \"alice\"]\npath = \"rate=10gbit,rtt=200ms\""
    ))
    .unwrap();
    let needed = plan.memory();
    assert!(needed > plan.links[1].path.memory());
    assert_eq!(plan.check_memory(needed.times(2)), Ok(()));
    let error = plan.check_memory(ByteCount::from_bytes(needed.bytes() * 2 - 2)).unwrap_err();
    assert_eq!(error.line, Some(10));
    let text = error.to_string();
    assert!(text.contains(&format!("take {needed} of memory")), "{text}");
    assert!(text.contains("link 'fat'"), "{text}");
    plan.links.clear();
    assert_eq!(plan.check_memory(ByteCount::ZERO), Ok(()));
}

#[test]
fn links_take_all_that_a_path_can_be() {
    let text = TWO.replace("rate=100mbit,rtt=40ms", "geo,up.loss=1%");
    let change = "[[change]]\nat = \"5s\"\nlink = \"alice-bob\"\nset = \"down.rate=1mbit\"";
    let plan = parse(&format!("{text}{change}")).unwrap();
    assert_eq!(plan.links[0].path.rtt(), Rtt::from_nanos(600_000_000));
    let changed = &plan.changes[0].path;
    assert_eq!(changed.rate(), plan.links[0].path.rate());
    assert_eq!(changed.down_rate(), Some(BitRate::from_bps(1_000_000)));
    assert_eq!(changed.directions()[0].mean_loss(), plan.links[0].path.directions()[0].mean_loss());
}

#[test]
fn a_file_is_read_once_for_all_links_that_name_it() {
    let text = "[shape]\nkind = \"star\"\nhosts = 64\npath = \"rate=trace:lte,rtt=20ms\"";
    let mut read = Vec::new();
    let mut reader = |name: &str| {
        read.push(name.to_owned());
        Ok("1\n2\n3\n".to_owned())
    };
    let plan = Plan::parse("star.toml", text, &mut reader).unwrap();
    assert_eq!(read, ["lte"]);
    assert!(plan.links.iter().all(|link| link.path == plan.links[0].path));
}

#[test]
fn large_plans_are_checked_as_a_whole() {
    let rtts: Vec<String> = (1..=31).map(|pair| format!("\"{}ms\"", pair * 10)).collect();
    let text = format!(
        "[shape]\nkind = \"dumbbell\"\nbottleneck = \"rate=100mbit\"\nrtts = [{}]",
        rtts.join(", ")
    );
    let plan = parse(&text).unwrap();
    assert_eq!((plan.hosts.len(), plan.links.len()), (64, 63));
    let star =
        parse("[shape]\nkind = \"star\"\nhosts = 249\npath = \"rate=1gbit,rtt=1ms\"").unwrap();
    assert_eq!(star.hosts.len(), 250);
}

#[test]
fn the_examples_are_plans() {
    let dumbbell = example("dumbbell.toml");
    assert_eq!(dumbbell.hosts.len(), 6);
    assert_eq!(dumbbell.hosts[1].congestion, "reno");

    let lot = example("parking-lot.toml");
    assert_eq!((lot.hosts.len(), lot.links.len(), lot.changes.len()), (12, 11, 1));
    let table = routes::table(&lot).unwrap();
    let ends = ["alice", "bob"].map(|name| lot.host(name).unwrap());
    assert_eq!(table.links_between(&lot, ends[0], ends[1]).len(), 5);

    let directions = example("two-ways.toml");
    let table = routes::table(&directions).unwrap();
    let [alice, bob] = ["alice", "bob"].map(|name| directions.host(name).unwrap());
    let passes = |from, to, name: &str| {
        table.links_between(&directions, from, to).contains(&directions.link(name).unwrap())
    };
    assert!(passes(alice, bob, "space-east"));
    assert!(passes(bob, alice, "land-east"));
}

#[test]
fn a_plan_without_a_lab_in_it() {
    for text in ["", "[host.alice]", "[host.alice]\n[host.bob]", "# nothing\n"] {
        let error = parse(text).unwrap_err();
        assert_eq!(*error.problem, Problem::Empty, "{text}");
        assert!(error.to_string().starts_with("plans/My Lab.toml: a lab needs two hosts"));
    }
}
