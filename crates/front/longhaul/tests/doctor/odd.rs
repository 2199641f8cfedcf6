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
    for id in ["net.core.rmem_max", "net.core.wmem_max", "cpu.governor", "memory.pressure"] {
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
    assert!(host.facts().device.why_not().contains("name a device, one of eth0"));
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
    assert_eq!(buffer.apply, [format!("sudo sysctl -w net.inet.tcp.autorcvbufmax={value}")]);
    // 86 MiB: more than the 32 MiB of a machine with 32 GB, and a pool of 16 times as much.
    let largest = of("kern.ipc.maxsockbuf");
    assert_eq!(value, 85 << 20);
    for fact in ["use 3 streams", "1360 MiB", "ncl=696320", "1.18 Gbit/s"] {
        assert!(largest.remark.contains(fact), "{fact} in {}", largest.remark);
    }
    assert!(largest.why.contains("32 MiB from 32 GB"), "{largest:?}");
    let far = doctor::commands(System::MacOs, &target("10gbit", "228.1ms"));
    let far = far.recipes.iter().find(|one| one.id == "kern.ipc.maxsockbuf").unwrap();
    assert!(far.remark.contains("cannot") && far.remark.contains("128 MiB"), "{far:?}");
    let shift = of("net.inet.tcp.win_scale_factor");
    assert!(shift.apply.is_empty() && shift.why.contains("11 for 85 MiB and 6 by default"));

    let windows = doctor::commands(System::Windows, &goal);
    let of = |id: &str| windows.recipes.iter().find(|one| one.id == id).unwrap();
    // RFC 9438: 0.2281 s / (49228 / 1.054)^(4/3), and Mathis: 1.5 / 49228^2.
    let congestion = of("tcp.congestion");
    for fact in ["0.000014 % loss (RFC 9438)", "0.000000062 % (Mathis 1997)"] {
        assert!(congestion.why.contains(fact), "{fact} in {}", congestion.why);
    }
    let bbr2 = of("tcp.bbr2");
    assert!(bbr2.apply[0].contains("Template=Internet "), "{bbr2:?}");
    assert!(!bbr2.apply.iter().any(|line| line.contains("Compat") || line.contains("Datacenter")));
    assert!(bbr2.source.contains("5793") && bbr2.why.contains("127.0.0.1"), "{bbr2:?}");
    let level = |goal| {
        let all = doctor::commands(System::Windows, &goal).recipes;
        all.iter().find(|one| one.id == "tcp.autotuning").unwrap().apply[0].clone()
    };
    assert!(level(goal.clone()).ends_with("=experimental"));
    assert!(level(target("1gbit", "100ms")).ends_with("=normal"));
    assert!(of("tcp.autotuning").remark.contains("-P 5"), "{:?}", of("tcp.autotuning"));
}

#[test]
fn a_recipe_inspects_or_has_all_five_parts() {
    for goal in [target("2.5gbit", "228.1ms"), target("100gbit", "3600s"), target("1mbit", "1ms")] {
        for system in [System::MacOs, System::Windows, System::Linux] {
            let all = doctor::commands(system, &goal);
            for recipe in &all.recipes {
                for text in [&recipe.needed, &recipe.why, &recipe.source] {
                    assert!(!text.is_empty(), "{recipe:?}");
                }
                assert!(!recipe.inspect.is_empty(), "{recipe:?}");
                let at_boot = !recipe.persist.is_empty() || recipe.is_persistent;
                let parts = [
                    !recipe.back_up.is_empty(),
                    !recipe.apply.is_empty(),
                    at_boot,
                    !recipe.undo.is_empty(),
                ];
                assert!(parts == [true; 4] || parts == [false; 4], "{recipe:?}");
                let commands = [&recipe.inspect, &recipe.back_up, &recipe.apply, &recipe.persist];
                for command in commands.into_iter().flatten().chain(&recipe.undo) {
                    // Printed on lines of 80 columns, and quoted text is not broken.
                    let quoted = command.split('\'').skip(1).step_by(2);
                    assert!(quoted.clone().all(|text| text.len() < 64), "{command}");
                    assert!(!command.contains('\n'), "{command}");
                }
            }
            let mut ids: Vec<_> = all.recipes.iter().map(|one| &one.id).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), all.recipes.len());
        }
    }
}

#[test]
fn linux_gets_the_plan_of_a_host_with_the_kernels_defaults() {
    let linux = doctor::commands(System::Linux, &target("10gbit", "100ms"));
    let of = |id: &str| linux.recipes.iter().find(|one| one.id == id).unwrap();
    assert_eq!(
        of("net.ipv4.tcp_rmem").apply,
        [format!("sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 {}'", 477_u64 << 20)]
    );
    assert_eq!(of("net.ipv4.tcp_ecn").apply, ["sudo sysctl -w net.ipv4.tcp_ecn='1'"]);
    assert!(linux.recipes.iter().all(|one| one.id != "net.core.default_qdisc"));
    assert!(of("net.ipv4.tcp_congestion_control").why.contains("0.0000028 %"));
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
        for system in [System::MacOs, System::Windows, System::Linux] {
            let _ = doctor::commands(system, &goal);
        }
    }
}
