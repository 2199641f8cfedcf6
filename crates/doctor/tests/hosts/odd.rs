//! Containers, hosts of which nothing can be seen, and files that hold anything.

use crate::fake::{Host, ids, one, target, verdict};
use doctor::{Fact, System};
use proptest::prelude::{ProptestConfig, any, proptest};
use record::Verdict::{Fail, Pass, Unknown};

#[test]
fn a_container_without_a_device_and_closed_settings() {
    let host = Host::server()
        .without("sys/class/net")
        .without("proc/sys/net/core")
        .without("proc/net/route")
        .without("proc/pressure")
        .without("sys/devices/system/cpu/cpufreq")
        .set("net.ipv4.tcp_rmem", "4096 131072 6291456");
    let mut facts = host.facts();
    facts.may_set = Fact::unread("/proc/sys is mounted read-only, as in a container");
    let report = doctor::report(&facts, &target("1gbit", "100ms"), None, 0);
    assert!(report.notes.iter().any(|note| note.contains("read-only")), "{:?}", report.notes);
    let checks = &report.checks;
    let device = one(checks, "nic.device");
    assert_eq!(device.verdict, Unknown);
    assert!(device.seen.contains("no network device"), "{device:?}");
    for id in ["net.core.rmem_max", "net.core.default_qdisc", "cpu.governor", "memory.pressure"] {
        let check = one(checks, id);
        assert!(check.verdict == Unknown && !check.seen.is_empty(), "{check:?}");
        assert!(!check.seen.contains('\n'), "{check:?}");
    }
    // The rest works.
    assert_eq!(verdict(checks, "net.ipv4.tcp_rmem"), Fail);
    assert_eq!(verdict(checks, "net.ipv4.tcp_sack"), Pass);
    assert_eq!(report.fail, ids(checks, Fail).len());
}

#[test]
fn of_a_bare_host_everything_is_open() {
    let facts = Host::bare().facts();
    let checks = doctor::examine(&facts, &target("1gbit", "100ms"));
    assert!(checks.len() > 15, "{checks:#?}");
    for check in &checks {
        assert_eq!(check.verdict, Unknown, "{check:?}");
        assert!(!check.seen.is_empty(), "{check:?}");
    }
    assert_eq!(doctor::link_rate(&facts), None);
}

#[test]
fn a_device_that_is_not_there_names_those_that_are() {
    for name in ["eth7", "../../etc", "", ".", "eth0/.."] {
        let mut host = Host::server();
        host.asked.device = Some(name.to_owned());
        let device = host.facts().device;
        assert!(device.why_not().contains("eth0"), "{name}: {device:?}");
    }
    let host = Host::server().without("proc/net/route");
    assert!(host.facts().device.why_not().contains("give --device, one of eth0"));
}

#[test]
fn facts_are_json_with_reasons() {
    let facts = Host::server().without("proc/loadavg").facts();
    let json = serde_json::to_value(&facts).unwrap();
    assert_eq!(json["kernel"], "6.12.9-amd64");
    assert_eq!(json["cpu"]["load"]["not_readable"], "not present on this host");
    assert_eq!(json["settings"]["net.ipv4.tcp_sack"], "1");
}

#[test]
fn other_systems_get_commands_with_the_values_of_the_target() {
    let goal = target("2.5gbit", "228.1ms");
    let mac = doctor::commands(System::MacOs, &goal);
    let of = |id: &str| mac.recipes.iter().find(|one| one.id == id).unwrap();
    let buffer = of("net.inet.tcp.autorcvbufmax");
    // 71 281 250 bytes in flight: the published choice for it is 83 886 080.
    let value: u64 = buffer.needed.split(' ').next().unwrap().parse().unwrap();
    assert!((71_281_250..100_000_000).contains(&value), "{buffer:?}");
    assert_eq!(buffer.set, [format!("sudo sysctl -w net.inet.tcp.autorcvbufmax={value}")]);
    assert_eq!(of("net.inet.tcp.win_scale_factor").needed, "11 or more");
    let windows = doctor::commands(System::Windows, &goal);
    let level = |goal| {
        let all = doctor::commands(System::Windows, &goal).recipes;
        all.into_iter().find(|one| one.id == "tcp.autotuning").unwrap().set.concat()
    };
    assert!(level(goal).ends_with("=experimental"));
    assert!(level(target("1gbit", "100ms")).ends_with("=normal"));
    for recipe in mac.recipes.iter().chain(&windows.recipes) {
        assert!(!recipe.look.is_empty() && !recipe.needed.is_empty(), "{recipe:?}");
        assert!(!recipe.why.is_empty(), "{recipe:?}");
    }
    // Beyond what TCP can announce there is something to say as well.
    let far = target("100gbit", "3600s");
    let _ = (doctor::commands(System::MacOs, &far), doctor::commands(System::Windows, &far));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn files_may_hold_anything(
        texts in proptest::collection::vec(any::<Vec<u8>>(), 6),
        numbers in proptest::collection::vec("-?[0-9]{1,22}( [0-9]{1,22}){0,3}", 6),
        bps in 0u64..=100_000_000_000_000,
        nanos in 0u64..=3_600_000_000_000,
        streams: u32,
    ) {
        let host = Host::server();
        for (index, name) in Host::names().enumerate() {
            match index % 3 {
                0 => host.write(name, &texts[index % texts.len()]),
                1 => host.write(name, numbers[index % numbers.len()].as_bytes()),
                _ => {}
            }
        }
        let facts = host.facts();
        let goal = doctor::Target {
            rate: units::BitRate::from_bps(bps),
            rtt: Some(units::Rtt::from_nanos(nanos)),
            streams,
            ..target("1gbit", "1ms")
        };
        let report = doctor::report(&facts, &goal, None, 0);
        for check in &report.checks {
            proptest::prop_assert!(!check.id.is_empty() && !check.source.is_empty());
        }
        proptest::prop_assert!(serde_json::to_string(&report).is_ok());
        let _ = (doctor::commands(System::MacOs, &goal), doctor::commands(System::Windows, &goal));
    }
}
