//! What is wrong with a plan is told in one line that names its own.

#![expect(clippy::expect_used, reason = "in a test an unwrap is an assertion")]

use proptest::prelude::*;
use std::fmt::Write as _;
use std::io;
use topology::{Plan, PlanError};

fn parse(text: &str) -> Result<Plan, PlanError> {
    let mut no_files = |_: &str| Err(io::ErrorKind::NotFound.into());
    Plan::parse("lab.toml", text, &mut no_files)
}

/// A plan that is right; 13 lines, and the link `wan` in 4 of them.
const RIGHT: &str = r#"duration = "10s"
[host.alice]
[host.bob]
[router.r1]
[[link]]
name = "wan"
between = ["alice", "r1"]
path = "rate=100mbit,rtt=40ms"
[[link]]
between = ["r1", "bob"]
path = "rate=1gbit,rtt=2ms"
[sysctl]
"net.ipv4.tcp_sack" = 1
"#;

/// The line in which a change of `RIGHT` is refused, and the words.
fn refused(text: &str) -> (Option<usize>, String) {
    let error = parse(text).expect_err(text);
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control) && text.len() < 500, "{text}");
    (error.line, text)
}

#[test]
fn the_plan_that_all_others_are_changes_of_is_right() {
    assert_eq!(parse(RIGHT).unwrap().hosts.len(), 3);
}

#[test]
fn what_is_changed_is_what_is_named() {
    for (from, to, line, part) in [
        ("\"10s\"", "\"0s\"", 1, "the duration is zero"),
        ("\"10s\"", "10", 1, "duration: '10' is not a time; write it as"),
        ("\"10s\"", "\"soon\"", 1, "'soon' is not a time"),
        ("duration", "length", 1, "unknown field 'length', expected one of 'name', 'duration'"),
        (
            "[host.alice]",
            "driver = \"dpdk\"\n[host.alice]",
            2,
            "the drivers are auto, tun and nfqueue",
        ),
        ("[host.bob]", "[host.Bob]", 3, "host name 'Bob' does not begin with a lower-case letter"),
        ("[host.bob]", "[host.b_b]", 3, "has characters other than"),
        ("[host.bob]", "[host.localhost]", 3, "is reserved for the loopback"),
        ("[host.bob]", "[host.alice]", 3, "duplicate"),
        ("[host.bob]", "[[host.bob]]", 3, "heading in single brackets, such as [host.alice]"),
        ("[host.bob]", "[host]\nbob = 1", 4, "heading in single brackets"),
        ("[router.r1]", "[router.alice]", 4, "two hosts are named 'alice'"),
        ("[host.bob]", "[host.bob]\naddres = \"10.0.0.1\"", 4, "unknown field 'addres'"),
        ("[host.bob]", "[host.bob]\naddress = \"10.0.0\"", 4, "'10.0.0' is not a valid IPv4"),
        ("[host.bob]", "[host.bob]\naddress = \"127.0.0.1\"", 4, "is not a valid IPv4"),
        ("[host.bob]", "[host.bob]\naddress6 = \"10.0.0.1\"", 4, "is not a valid IPv6"),
        ("[host.bob]", "[host.bob]\ncongestion = \"c u\"", 4, "is not a congestion"),
        ("[host.bob]", "[host.bob]\ntuned = 3", 4, "invalid type: integer"),
        ("wan", "w.n", 6, "link name 'w.n'"),
        ("wan", "r1-bob", 10, "two links are named 'r1-bob'"),
        ("\"bob\"]", "\"bbo\"]", 10, "link 'r1-bbo': no host 'bbo'; the hosts are alice, bob, r1"),
        ("\"bob\"]", "\"r1\"]", 10, "connects r1 to itself"),
        ("\"bob\"]", "\"bob\", \"alice\"]", 10, "a link between 3 hosts"),
        (
            "\"bob\"]",
            "\"alice\"]",
            3,
            "no route from alice to bob: no link connects alice, r1 to bob",
        ),
        ("rate=1gbit", "rate=0", 11, "link 'r1-bob'"),
        ("rate=1gbit,rtt=2ms", "rate=1gbit", 11, "link 'r1-bob': rtt is missing"),
        ("rate=1gbit,rtt=2ms", "rate=trace:x,rtt=2ms", 11, "link 'r1-bob'"),
        ("path = \"rate=1gbit,rtt=2ms\"", "", 9, "missing field 'path'"),
        ("router", "host", 4, "r1 is between them and does not forward; write [router.r1]"),
        ("net.ipv4", "vm", 13, "'vm.tcp_sack' is not a network setting"),
        ("net.ipv4.tcp_sack", "net.../../x", 13, "is not the name of a sysctl"),
        ("= 1", "= \"1\\n2\"", 13, "more than one line"),
        ("= 1", "= [1]", 13, "expected a string or a number"),
        ("[sysctl]", "[sysctl", 12, "unclosed table"),
    ] {
        let text = RIGHT.replacen(from, to, 1);
        assert_ne!(text, RIGHT, "{from}");
        let (found, words) = refused(&text);
        assert!(words.contains(part), "{to}: {words}");
        assert_eq!(found, Some(line), "{to}: {words}");
    }
}

#[test]
fn what_is_added_is_what_is_named() {
    // The first line of what is added is 14.
    for (added, line, part) in [
        ("[[route]]\non = \"r2\"\nto = \"bob\"\nvia = \"r1\"", 15, "no host 'r2'"),
        ("[[route]]\non = \"r1\"\nto = \"eve\"\nvia = \"bob\"", 16, "no host 'eve'"),
        ("[[route]]\non = \"r1\"\nto = \"r1\"\nvia = \"bob\"", 16, "to itself"),
        (
            "[[route]]\non = \"alice\"\nto = \"bob\"\nvia = \"bob\"",
            17,
            "bob is neither a neighbour nor a link of alice; its neighbours are r1",
        ),
        (
            "[[route]]\non = \"r1\"\nto = \"bob\"\nvia = \"alice\"",
            17,
            "goes through alice, which does not forward",
        ),
        (
            "[[route]]\non = \"r1\"\nto = \"bob\"\nvia = \"bob\"\n[[route]]\non = \"r1\"\nto = \"bob\"\nvia = \"bob\"",
            19,
            "r1 has two routes to bob",
        ),
        ("[run]\non = \"bob\"", 14, "heading in double brackets, such as [[link]]"),
        ("[[shape]]\nkind = \"pair\"", 14, "heading in single brackets"),
        ("[[run]]\non = \"eve\"\ncommand = \"true\"", 15, "'true': no host 'eve'"),
        ("[[run]]\non = \"bob\"\ncommand = \" \"", 16, "without a command"),
        ("[[run]]\non = \"bob\"", 14, "missing field 'command'"),
        (
            "[[run]]\non = \"bob\"\ncommand = \"true\"\nstart = \"5s\"\nstop = \"5s\"",
            18,
            "'true' stops before it starts",
        ),
        (
            "[[run]]\non = \"bob\"\ncommand = \"true\"\nstart = \"10s\"",
            17,
            "after the end of the lab",
        ),
        (
            "[[run]]\non = \"bob\"\ncommand = \"true\"\nstop = \"11s\"",
            17,
            "after the end of the lab",
        ),
        (
            "[[run]]\non = \"bob\"\ncommand = \"true\"\nwait = \"long\"",
            17,
            "'long' is not a value of wait",
        ),
        (
            "[[run]]\non = \"bob\"\ncommand = \"true\"\nwait = \"listening\"\nstart = \"1s\"",
            17,
            "has both wait and start",
        ),
        (
            "[[change]]\nat = \"5s\"\nlink = \"lan\"\nset = \"loss=1%\"",
            16,
            "no link 'lan'; the links are wan, r1-bob",
        ),
        (
            "[[change]]\nat = \"5s\"\nlink = \"wan\"\nset = \"rate=0\"",
            17,
            "the change of link 'wan'",
        ),
        ("[[change]]\nat = \"5s\"\nlink = \"wan\"\nset = \"\"", 17, "set is empty"),
        (
            "[[change]]\nat = \"5s\"\nlink = \"wan\"\nset = \"@2s.loss=1%\"",
            17,
            "the time is given by at",
        ),
        (
            "[[change]]\nat = \"5s\"\nlink = \"wan\"\nset = \"mtu=9000\"",
            17,
            "up.mtu and down.mtu can",
        ),
        ("[[change]]\nat = \"5s\"\nlink = \"wan\"\nset = \"geo\"", 17, "not KEY=VALUE"),
        (
            "[[change]]\nat = \"10s\"\nlink = \"wan\"\nset = \"loss=1%\"",
            15,
            "after the end of the lab",
        ),
        ("[shape]\nkind = \"ring\"", 15, "no shape 'ring'"),
        ("[shape]\nkind = \"star\"\nhosts = 3", 15, "a star needs 'path'"),
        ("[shape]\nkind = \"star\"\nhosts = 300\npath = \"rate=1gbit,rtt=1ms\"", 16, "2 to 249"),
        ("[shape]\nkind = \"star\"\nhosts = -1", 16, "invalid value"),
        ("[shape]\nkind = \"pair\"\npath = \"rate=0\"", 16, "link 'path'"),
        (
            "[shape]\nkind = \"dumbbell\"\nbottleneck = \"rate=1mbit\"\nrtts = [\"1ms\",\n\"10\"]",
            18,
            "rtts: '10' is not a time",
        ),
        (
            "[shape]\nkind = \"chain\"\nrouters = 1\npath = \"rate=1mbit,rtt=1ms\"",
            4,
            "two hosts are named 'r1'",
        ),
    ] {
        // A shape's r1 is a router as ours is: only a host of that name collides.
        let base = match added.contains("chain") {
            true => RIGHT.replace("router.r1", "host.r1"),
            false => RIGHT.to_owned(),
        };
        let (found, words) = refused(&format!("{base}{added}"));
        assert!(words.contains(part), "{added}: {words}");
        assert_eq!(found, Some(line), "{added}: {words}");
    }
}

#[test]
fn two_hosts_with_one_address() {
    let text = RIGHT
        .replace("[host.alice]", "[host.alice]\naddress = \"10.0.0.2\"")
        .replace("[host.bob]", "[host.bob]\naddress = \"10.0.0.2\"");
    let (line, words) = refused(&text);
    assert_eq!(line, Some(5));
    assert_eq!(
        words,
        "lab.toml line 5: hosts alice and bob have the same address 10.0.0.2; give each another, or none"
    );
}

#[test]
fn too_many_of_anything() {
    let mut text = String::new();
    for host in 0..251 {
        writeln!(text, "[host.h{host}]").unwrap();
    }
    let (line, words) = refused(&text);
    assert_eq!(line, Some(251));
    assert!(words.contains("more than 250 hosts"), "{words}");

    let mut text = "host = { a = {}, b = {} }\n".to_owned();
    for link in 0..501 {
        let path = "path = \"rate=1mbit,rtt=1ms\"";
        writeln!(text, "[[link]]\nname = \"l{link}\"\nbetween = [\"a\", \"b\"]\n{path}").unwrap();
    }
    let (line, words) = refused(&text);
    assert_eq!(line, Some(2 + 500 * 4 + 1));
    assert!(words.contains("more than 500 links"), "{words}");
}

#[test]
fn hostile_text_is_told_in_one_bounded_line() {
    let long = "x".repeat(1 << 20);
    for text in [
        format!("{long} = 1"),
        format!("[host.{long}]"),
        format!("{RIGHT}[[link]]\nbetween = [\"{long}\", \"bob\"]\npath = \"x\""),
        format!("{RIGHT}[[run]]\non = \"{long}\"\ncommand = \"{long}\""),
        "a = ".to_owned() + &"[".repeat(100_000),
        "[a]\n".repeat(1000),
        "\u{0}\u{1b}[2J = 1".to_owned(),
        "\"\\u001b[2J\" = 1".to_owned(),
    ] {
        refused(&text);
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".*") {
        let _ = parse(&text);
    }

    #[test]
    fn any_values_are_answered(
        line in 0usize..13,
        key in "[a-z.\\[\\]\"]{0,12}",
        value in "[-0-9a-z.\\[\\]{}\"=, \n]{0,20}",
    ) {
        let mut lines: Vec<String> = RIGHT.lines().map(str::to_owned).collect();
        lines[line] = format!("{key} = {value}");
        if let Err(error) = parse(&lines.join("\n")) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
            prop_assert!(error.line.is_none_or(|line| line <= 40), "{error}");
        }
    }

    #[test]
    fn any_line_may_be_missing(line in 0usize..13) {
        let left: Vec<&str> =
            RIGHT.lines().enumerate().filter(|(at, _)| *at != line).map(|(_, text)| text).collect();
        if let Err(error) = parse(&left.join("\n")) {
            prop_assert!(error.line.is_some_and(|line| line <= 13), "{error}");
        }
    }
}
