//! Settings, kernels, processors and memory.

use crate::fake::{Host, ids, one, target, verdict};
use record::CheckCommand;
use record::Verdict::{Fail, Pass, Unknown, Warn};

const APPLY: &str = "sudo longhaul tune apply --rate 10gbit --rtt 200ms --yes";

#[test]
fn a_server_that_is_fit_fails_and_warns_of_nothing() {
    let checks = Host::server().checks(&target("10gbit", "100ms"));
    assert_eq!(ids(&checks, Fail), [""; 0], "{checks:#?}");
    assert_eq!(ids(&checks, Warn), [""; 0], "{checks:#?}");
    for check in &checks {
        assert!(!check.seen.is_empty() && !check.source.is_empty(), "{check:?}");
        assert!(check.verdict == Unknown || check.remedy.is_empty(), "{check:?}");
    }
}

#[test]
fn sixteen_mib_do_not_carry_10_gbit_over_200_ms() {
    let host = Host::server()
        .set("net.ipv4.tcp_rmem", "4096 131072 16777216")
        .set("net.ipv4.tcp_wmem", "4096 16384 16777216");
    let checks = host.checks(&target("10gbit", "200ms"));
    for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        let check = one(&checks, key);
        assert_eq!(check.verdict, Fail, "{check:?}");
        // Half of 16 MiB is 8 MiB a round trip: 335.5 Mbit/s.
        assert!(check.why.contains("336 Mbit/s"), "{check:?}");
        // 250 MB in flight, four times over and in whole MiB: what tune plans.
        assert!(check.needed.starts_with(&(954u64 << 20).to_string()), "{check:?}");
        assert_eq!(check.command, Some(APPLY.into()));
        assert!(!check.seen.is_empty() && check.source.contains("RFC 7323"));
    }
    // The same buffers are enough for a short way.
    let near = host.checks(&target("10gbit", "1ms"));
    assert_eq!(verdict(&near, "net.ipv4.tcp_rmem"), Pass, "{near:#?}");
}

#[test]
fn between_the_window_and_the_head_room_it_is_a_warning() {
    // 10 Gbit/s x 100 ms is 125 MB in flight, of a buffer half.
    let at = |most: u64| {
        let host = Host::server().set("net.ipv4.tcp_rmem", &format!("4096 131072 {most}"));
        verdict(&host.checks(&target("10gbit", "100ms")), "net.ipv4.tcp_rmem")
    };
    assert_eq!((at(249_999_000), at(250_000_000), at(499 << 20)), (Fail, Warn, Pass));
}

#[test]
fn what_is_switched_off_fails_or_warns() {
    let one_off = |key: &str, value: &str, rate: &str| {
        verdict(&Host::server().set(key, value).checks(&target(rate, "100ms")), key)
    };
    assert_eq!(one_off("net.ipv4.tcp_window_scaling", "0", "1gbit"), Fail);
    // 64 KiB in 100 ms are 5.24 Mbit/s.
    assert_eq!(one_off("net.ipv4.tcp_window_scaling", "0", "5mbit"), Warn);
    assert_eq!(one_off("net.ipv4.tcp_moderate_rcvbuf", "0", "1gbit"), Fail);
    assert_eq!(one_off("net.ipv4.tcp_sack", "0", "1gbit"), Warn);
    assert_eq!(one_off("net.ipv4.tcp_timestamps", "0", "1gbit"), Warn);
    assert_eq!(one_off("net.ipv4.tcp_ecn", "0", "1gbit"), Warn);
    assert_eq!(one_off("net.ipv4.tcp_ecn", "2", "1gbit"), Warn);
    assert_eq!(one_off("net.ipv4.tcp_ecn", "3", "1gbit"), Pass);
    assert_eq!(one_off("net.ipv4.tcp_no_metrics_save", "0", "1gbit"), Warn);
    assert_eq!(one_off("net.ipv4.tcp_mtu_probing", "2", "1gbit"), Pass);
    assert_eq!(one_off("net.core.busy_poll", "50", "1gbit"), Warn);
    assert_eq!(one_off("net.ipv4.tcp_notsent_lowat", "4096", "1gbit"), Warn);
}

#[test]
fn bbr_wants_fq_before_tcp_paced_by_itself() {
    const KEY: &str = "net.ipv4.tcp_congestion_control";
    let on = |release: &str, qdisc: &str| {
        let host = Host::server()
            .with("proc/sys/kernel/osrelease", release)
            .set(KEY, "bbr")
            .set("net.core.default_qdisc", qdisc);
        verdict(&host.checks(&target("1gbit", "100ms")), KEY)
    };
    assert_eq!(on("4.9.0-19-amd64", "pfifo_fast"), Fail);
    assert_eq!(on("4.9.0-19-amd64", "fq"), Pass);
    assert_eq!(on("4.12.0", "fq_codel"), Fail);
    assert_eq!(on("4.13.0", "fq_codel"), Warn);
    assert_eq!(on("4.20.0", "fq_codel"), Pass);
    assert_eq!(on("6.12.0", "fq_codel"), Pass);
}

#[test]
fn the_devices_own_queue_counts() {
    let on = |congestion: &str, qdisc: &str, release: &str| {
        let mut host = Host::server()
            .with("proc/sys/kernel/osrelease", release)
            .set("net.core.default_qdisc", "fq")
            .set("net.ipv4.tcp_congestion_control", congestion);
        host.nic.qdisc = crate::fake::seen(qdisc.to_owned());
        let checks = host.checks(&target("1gbit", "100ms"));
        let of = |id| verdict(&checks, id);
        (of("nic.qdisc"), of("net.ipv4.tcp_congestion_control"))
    };
    // The default is fq, but the device came up before it was set.
    assert_eq!(on("bbr", "pfifo_fast", "4.9.0"), (Warn, Fail));
    assert_eq!(on("bbr", "fq", "4.9.0"), (Pass, Pass));
    assert_eq!(on("bbr", "mq", "6.1.0"), (Pass, Pass));
    assert_eq!(on("bbr", "fq_codel", "6.1.0"), (Warn, Pass));
    // Without BBR either managed queue will do, and a single queue will not.
    for (qdisc, verdict) in [("fq_codel", Pass), ("fq", Pass), ("cake", Pass), ("pfifo_fast", Warn)]
    {
        assert_eq!(on("cubic", qdisc, "6.1.0").0, verdict, "{qdisc}");
    }
}

#[test]
fn fq_is_a_default_for_hosts_that_run_bbr() {
    const QDISC: &str = "net.core.default_qdisc";
    let cubic = Host::server().checks(&target("1gbit", "100ms"));
    assert!(cubic.iter().all(|check| check.id != QDISC), "{cubic:#?}");
    let bbr = Host::server().set("net.ipv4.tcp_congestion_control", "bbr");
    assert_eq!(verdict(&bbr.checks(&target("1gbit", "100ms")), QDISC), Warn);
    assert_eq!(verdict(&bbr.set(QDISC, "fq").checks(&target("1gbit", "100ms")), QDISC), Pass);
}

#[test]
fn reno_needs_hours_to_come_back() {
    const KEY: &str = "net.ipv4.tcp_congestion_control";
    let host = Host::server().set(KEY, "reno");
    let checks = host.checks(&target("10gbit", "200ms"));
    // 250 MB are 172 652 segments; half of them at one a round trip of 0.2 s.
    assert!(one(&checks, KEY).why.contains("17265 s"), "{:?}", one(&checks, KEY));
    assert_eq!(verdict(&checks, KEY), Warn);
    assert_eq!(verdict(&host.checks(&target("10mbit", "10ms")), KEY), Pass);
    let odd = Host::server().set(KEY, "vegas").checks(&target("1gbit", "10ms"));
    assert_eq!(verdict(&odd, KEY), Warn);
}

#[test]
fn old_kernels_tell_less_and_share_otherwise() {
    let host = Host::server().with("proc/sys/kernel/osrelease", "4.4.0-generic");
    let checks = host.checks(&target("1gbit", "100ms"));
    assert_eq!(verdict(&checks, "kernel.tcp-info"), Warn);
    assert_eq!(verdict(&checks, "kernel.pacing"), Warn);
    let info = Host::server().with("proc/sys/kernel/osrelease", "5.10.0");
    let info = info.checks(&target("1gbit", "100ms"));
    let told = one(&info, "kernel.tcp-info");
    assert!(told.verdict == Pass && told.why.contains("this end advertises"), "{told:?}");
    // A quarter of the buffer: 125 MB of 512 MiB is just enough no longer.
    let quarter = Host::server()
        .with("proc/sys/kernel/osrelease", "5.10.0")
        .set("net.ipv4.tcp_adv_win_scale", "-2");
    let checks = quarter.checks(&target("10gbit", "110ms"));
    assert_eq!(verdict(&checks, "kernel.window-share"), Warn);
    assert_eq!(verdict(&checks, "net.ipv4.tcp_rmem"), Fail);
}

#[test]
fn one_stream_cannot_hold_every_target() {
    let checks = Host::server().checks(&target("100gbit", "200ms"));
    let streams = one(&checks, "streams");
    assert_eq!((streams.verdict, streams.needed.as_str()), (Fail, "5 or more"), "{streams:?}");
    let flags = "--rate 100gbit --rtt 200ms --streams 5 --yes".to_owned();
    let command = &one(&checks, "net.ipv4.tcp_rmem").command;
    assert_eq!(command, &Some(CheckCommand::TuneApply { flags }));
}

#[test]
fn without_a_round_trip_buffers_are_left_open() {
    let open = doctor::Target { rtt: None, ..target("10gbit", "1ms") };
    let facts = Host::server().facts();
    let report = doctor::report(&facts, &open, None, 0);
    assert_eq!(verdict(&report.checks, "net.ipv4.tcp_rmem"), Unknown);
    assert_eq!(verdict(&report.checks, "net.ipv4.tcp_sack"), Pass);
    assert!(report.notes.iter().any(|note| note.contains("give the RTT")), "{:?}", report.notes);
    let ids: Vec<&str> = report.checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids.iter().filter(|id| **id == "net.ipv4.tcp_rmem").count(), 1, "{ids:?}");
}

#[test]
fn memory_and_processors_are_held_against_the_rate() {
    let host = Host::server()
        .set("net.ipv4.tcp_mem", "100 200 300")
        .with("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 100000 kB\n")
        .with("proc/net/netstat", "TcpExt: RcvPruned TCPMemoryPressures\nTcpExt: 7 3\n")
        .with("proc/pressure/memory", "some avg10=35.10 avg60=0 avg300=0 total=1\n")
        .with("proc/net/softnet_stat", "0a 0000000f 0\n")
        .with("proc/interrupts", "  CPU0 CPU1\n 24: 50000 10 PCI-MSI eth0\n")
        .with("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave")
        .with("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "1200000")
        .with("proc/loadavg", "9.10 8.00 7.00 9/200 4242");
    let checks = host.checks(&target("10gbit", "100ms"));
    assert_eq!(verdict(&checks, "net.ipv4.tcp_mem"), Fail);
    assert_eq!(verdict(&checks, "memory.available"), Fail);
    for id in [
        "memory.tcp",
        "memory.pressure",
        "cpu.backlog",
        "cpu.interrupts",
        "cpu.governor",
        "cpu.frequency",
        "cpu.load",
    ] {
        assert_eq!(verdict(&checks, id), Warn, "{:?}", one(&checks, id));
    }
    let backlog = one(&checks, "cpu.backlog").command.as_ref().unwrap().to_string();
    assert!(backlog.ends_with("=10000"), "{backlog}");
    let fast = Host::server().with("sys/devices/system/cpu/smt/active", "1");
    let fast = fast.checks(&target("100gbit", "10ms"));
    assert_eq!((verdict(&fast, "cpu.smt"), verdict(&fast, "cpu.iommu")), (Warn, Pass));
}
