//! Plans for a host: values, and what is left unchanged.

use crate::defaults::DEFAULTS;
use crate::fake::Fake;
use record::TunePlan;
use tune::{Goal, Profile, advise};

fn target(rate: &str, rtt: &str, streams: u32) -> Goal {
    Goal::Target { rate: rate.parse().unwrap(), rtt: rtt.parse().unwrap(), streams }
}

fn planned<'a>(plan: &'a TunePlan, key: &str) -> Option<&'a str> {
    plan.settings.iter().find(|one| one.key == key).map(|one| one.planned.as_str())
}

#[test]
fn ten_gigabit_over_200_ms() {
    let plan = Fake::new().plan(&target("10gbit", "200ms", 1));
    // 250 MB in flight, four times that in whole MiB.
    let most: u64 = 954 << 20;
    let triple = |least, initial| format!("{least} {initial} {most}");
    assert_eq!(planned(&plan, "net.ipv4.tcp_rmem"), Some(triple(4096, 131_072).as_str()));
    assert_eq!(planned(&plan, "net.ipv4.tcp_wmem"), Some(triple(4096, 16_384).as_str()));
    assert_eq!(planned(&plan, "net.core.rmem_max"), Some(most.to_string().as_str()));
    assert_eq!(planned(&plan, "net.ipv4.tcp_ecn"), Some("1"));
    assert_eq!(planned(&plan, "net.ipv4.tcp_sack"), None);
    assert!(plan.settings[0].why.contains("10 Gbit/s x 200 ms = 250 MB"), "{:?}", plan.settings[0]);
    assert!(plan.settings.iter().all(|one| !one.why.is_empty() && !one.risk.is_empty()));
    // Now half of the send buffer of 4 MiB; then more than the path's rate.
    assert_eq!(plan.carries_now_bps.unwrap().to_string(), "83.9 Mbit/s");
    assert!(plan.carries_then_bps.unwrap() >= "10gbit".parse().unwrap());
    assert_eq!(plan.memory.per_connection_bytes.bytes(), 2 * most);
    assert_eq!(plan.memory.together_bytes, plan.memory.per_connection_bytes);
}

#[test]
fn profiles_have_the_published_values() {
    for (profile, core, tcp) in [
        (Profile::Server, "268435456", "134217728"),
        (Profile::DataTransferNode10g, "536870912", "268435456"),
        (Profile::DataTransferNode40g, "536870912", "268435456"),
        (Profile::DataTransferNode100g, "2147483647", "1073741824"),
    ] {
        let plan = Fake::new().plan(&Goal::Profile(profile));
        for key in ["net.core.rmem_max", "net.core.wmem_max"] {
            assert_eq!(planned(&plan, key), Some(core), "{profile:?}");
        }
        assert!(planned(&plan, "net.ipv4.tcp_rmem").unwrap().ends_with(&format!(" {tcp}")));
        let hundred = profile == Profile::DataTransferNode100g;
        assert_eq!(planned(&plan, "net.core.optmem_max").is_some(), hundred, "{profile:?}");
        assert_eq!(planned(&plan, "net.ipv4.tcp_no_metrics_save"), None);
        assert!(plan.settings[0].why.contains("ESnet"), "{:?}", plan.settings[0]);
    }
    let workstation = Fake::new().plan(&Goal::Profile(Profile::Workstation));
    // ESnet advises 64 to 128 MB for 1 Gbit/s x 200 ms.
    let most: u64 = planned(&workstation, "net.core.rmem_max").unwrap().parse().unwrap();
    assert!((64_000_000..=128_000_000).contains(&most), "{most}");
}

/// Linux has cached no ssthresh by default since 5.6: only where it does is that switched off.
#[test]
fn a_cached_ssthresh_is_switched_off() {
    const SSTHRESH: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";
    const ALL: &str = "net.ipv4.tcp_no_metrics_save";
    let plan = |fake: &Fake| {
        let plan = fake.plan(&Goal::Profile(Profile::Server));
        [SSTHRESH, ALL].map(|key| planned(&plan, key).map(str::to_owned))
    };
    let fake = Fake::new();
    assert_eq!(plan(&fake), [None, None]);
    fake.put(SSTHRESH, "0");
    assert_eq!(plan(&fake), [Some("1".to_owned()), None]);
    fake.hide(SSTHRESH);
    assert_eq!(plan(&fake), [None, Some("1".to_owned())]);
}

#[test]
fn sufficient_values_are_kept_and_nothing_is_lowered() {
    for profile in Profile::ALL {
        let fake = Fake::new();
        let plan = fake.plan(&Goal::Profile(profile));
        for one in &plan.settings {
            fake.put(&one.key, &one.planned);
        }
        assert_eq!(fake.plan(&Goal::Profile(profile)).settings, [], "{profile:?}");
    }
    let fake = Fake::new();
    for key in ["net.core.rmem_max", "net.core.wmem_max"] {
        fake.put(key, "2147483647");
    }
    fake.put("net.ipv4.tcp_rmem", "4096 131072 2147483647");
    fake.put("net.ipv4.tcp_mtu_probing", "2");
    let plan = fake.plan(&target("1gbit", "100ms", 1));
    for key in ["net.core.rmem_max", "net.ipv4.tcp_rmem", "net.ipv4.tcp_mtu_probing"] {
        assert_eq!(planned(&plan, key), None);
    }
}

#[test]
fn disabled_features_are_enabled() {
    let fake = Fake::new();
    for key in ["tcp_window_scaling", "tcp_timestamps", "tcp_sack", "tcp_moderate_rcvbuf"] {
        fake.put(&format!("net.ipv4.{key}"), "0");
        let plan = fake.plan(&target("1gbit", "100ms", 1));
        assert_eq!(planned(&plan, &format!("net.ipv4.{key}")), Some("1"));
    }
}

#[test]
fn congestion_control_is_set_if_requested_and_available() {
    const KEY: &str = "net.ipv4.tcp_congestion_control";
    let (fake, goal) = (Fake::new(), target("1gbit", "100ms", 1));
    assert_eq!(planned(&fake.plan(&goal), KEY), None);
    let bbr = advise(&fake, &goal, Some("bbr"), None).unwrap();
    assert_eq!(planned(&bbr, KEY), Some("bbr"));
    fake.put("net.ipv4.tcp_available_congestion_control", "reno cubic");
    let none = advise(&fake, &goal, Some("bbr"), None).unwrap();
    assert_eq!(planned(&none, KEY), None);
    assert!(none.left_out[0].why.contains("modprobe tcp_bbr"), "{:?}", none.left_out);
}

#[test]
fn only_hosts_that_run_bbr_get_fq() {
    const QDISC: &str = "net.core.default_qdisc";
    let fake = Fake::new();
    fake.put(QDISC, "fq_codel");
    for profile in Profile::ALL {
        let goal = Goal::Profile(profile);
        assert_eq!(planned(&fake.plan(&goal), QDISC), None, "{profile:?}");
        let bbr = advise(&fake, &goal, Some("bbr"), None).unwrap();
        assert_eq!(planned(&bbr, QDISC), Some("fq"), "{profile:?}");
    }
    let goal = target("1gbit", "100ms", 1);
    // BBR that is not available is not used; BBR in use that a plan replaces neither.
    fake.put("net.ipv4.tcp_available_congestion_control", "reno cubic");
    assert_eq!(planned(&advise(&fake, &goal, Some("bbr"), None).unwrap(), QDISC), None);
    fake.put("net.ipv4.tcp_congestion_control", "bbr");
    assert_eq!(planned(&fake.plan(&goal), QDISC), Some("fq"));
    assert_eq!(planned(&advise(&fake, &goal, Some("cubic"), None).unwrap(), QDISC), None);
}

#[test]
fn ecn_is_requested_but_accurate_ecn_is_kept() {
    const KEY: &str = "net.ipv4.tcp_ecn";
    for (now, then) in [("0", Some("1")), ("2", Some("1")), ("1", None), ("3", None), ("4", None)] {
        let fake = Fake::new();
        fake.put(KEY, now);
        assert_eq!(planned(&fake.plan(&target("1gbit", "100ms", 1)), KEY), then, "{now}");
    }
}

#[test]
fn settings_of_other_guides_are_named_with_a_reason() {
    let plan = Fake::new().plan(&target("1gbit", "200ms", 1));
    let keys: Vec<&str> = plan.unchanged.iter().map(|one| one.key.as_str()).collect();
    for key in [
        "net.core.rmem_default",
        "net.core.wmem_default",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.tcp_mem",
        "net.ipv4.route.flush",
        "net.core.optmem_max",
        "net.core.default_qdisc",
    ] {
        assert_eq!(keys.iter().filter(|one| **one == key).count(), 1, "{key} of {keys:?}");
    }
    assert!(plan.unchanged.iter().all(|one| one.why.len() > 40), "{:?}", plan.unchanged);
    // What a plan sets is not among them.
    let hundred = Fake::new();
    let goal = Goal::Profile(Profile::DataTransferNode100g);
    let plan = advise(&hundred, &goal, Some("bbr"), None).unwrap();
    let named = |key: &str| plan.unchanged.iter().any(|one| one.key == key);
    assert!(!named("net.core.optmem_max") && !named("net.core.default_qdisc"));
}

#[test]
fn high_memory_use_causes_a_warning() {
    let plan = Fake::new().plan(&Goal::Profile(Profile::Server));
    // 100 connections of 2 x 128 MiB against pressure from 382045 pages.
    assert_eq!(plan.memory.together_bytes.bytes(), 100 * (256 << 20));
    assert!(plan.notes.iter().any(|note| note.contains("tcp_mem")), "{:?}", plan.notes);
}

#[test]
fn a_target_beyond_one_buffer_needs_more_streams() {
    let fake = Fake::new();
    let error = advise(&fake, &target("100gbit", "100ms", 1), None, None).unwrap_err();
    assert!(error.to_string().contains("at least 3 streams"), "{error}");
    assert!(advise(&fake, &target("100gbit", "100ms", 3), None, None).is_ok());
}

#[test]
fn an_unreadable_setting_is_skipped() {
    for (key, value) in DEFAULTS {
        let fake = Fake::new();
        fake.put(key, "");
        let plan = fake.plan(&target("1gbit", "100ms", 1));
        assert!(plan.settings.iter().all(|one| one.key != key || one.now.is_empty()), "{value}");
    }
}
