//! `longhaul doctor --to` over paths of which everything is known.

use crate::program::{Ended, LONGHAUL, lab, lab_with, worked};
use serde_json::Value;

/// The report of `longhaul doctor --to server` over `link`, with a server there.
fn examined(link: &str, options: &[&str]) -> Value {
    let server = format!("{LONGHAUL} server");
    let command = [&[LONGHAUL, "doctor", "--to", "server", "--json"], options].concat();
    let Ended { code, stdout, stderr } = lab_with(link, &["--server", &server], &command);
    // 1 says that a check failed, 3 that the machine carried the path late.
    assert!(matches!(code, Some(0 | 1 | 3)), "{code:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {report}"))
}

pub(crate) fn a_path_is_seen_as_it_is() {
    let report = examined("rate=100mbit,rtt=50ms", &["--rate", "100mbit"]);
    let rtt = report["target"]["rtt_ms"].as_f64().unwrap();
    assert!((49.5..100.0).contains(&rtt), "{rtt}");
    let path = &report["facts"]["path"];
    assert_eq!(path["mtu"]["arrived"], path["mtu"]["tried"], "{path}");
    for id in ["path.mtu", "path.window-scale", "path.sack", "path.timestamps", "path.segment"] {
        assert_eq!(check(&report, id)["verdict"], "pass", "{}", check(&report, id));
    }
    assert_eq!(report["facts"]["device"]["name"], "lab0");
    // 625 kB in flight, which a lab's host with the kernel's own buffers holds.
    assert_eq!(check(&report, "net.ipv4.tcp_rmem")["area"], "settings");
}

pub(crate) fn middleboxes_are_found_out() {
    let link = "rate=100mbit,rtt=50ms,window-scale=strip,up.mtu=1400";
    let report = examined(link, &["--rate", "100mbit"]);
    let scale = check(&report, "path.window-scale");
    assert_eq!(scale["verdict"], "fail", "{scale}");
    assert!(scale["why"].as_str().unwrap().contains("middlebox"), "{scale}");
    // Larger packets vanish without a word; TCP's own search is off by default.
    let mtu = check(&report, "path.mtu");
    assert_eq!(report["facts"]["path"]["mtu"]["arrived"], 1_400, "{report}");
    assert!(matches!(mtu["verdict"].as_str(), Some("fail" | "warn")), "{mtu}");
    assert!(report["fail"].as_u64().unwrap() >= 1);
}

/// What a device that the kernel made reports, through sysfs, ioctl(2) and netlink.
pub(crate) fn a_device_is_read_as_it_was_made() {
    let script = format!(
        "ip link add made0 mtu 4321 numrxqueues 3 numtxqueues 2 type veth peer name made1; \
         ip link set made0 up; ip link set made1 up; tc qdisc replace dev made0 root pfifo; \
         {LONGHAUL} doctor --rate 1gbit --rtt 10ms --device made0 --json"
    );
    let ended = lab("rate=100mbit,rtt=1ms", &["sh", "-c", &script]);
    assert!(worked(&ended, 0), "{}{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let device = &report["facts"]["device"];
    assert_eq!(device["name"], "made0", "{device}");
    assert_eq!(device["state"], "up", "{device}");
    assert_eq!(device["mtu"], 4_321, "{device}");
    assert_eq!(device["rx_queues"], 3, "{device}");
    assert_eq!(device["is_hardware"], false, "{device}");
    assert_eq!(device["nic"]["qdisc"], "pfifo", "{device}");
    assert_eq!(device["nic"]["offloads"]["tso"], true, "{device}");
    // sysfs says 10 Gbit/s, which means nothing here.
    assert_eq!(device["speed_mbps"]["not_readable"], "a virtual device has no link rate");
    assert_eq!(check(&report, "nic.speed")["verdict"], "unknown");
}
