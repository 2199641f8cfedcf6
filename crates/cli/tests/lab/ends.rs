//! How a lab ends, and that nothing is left of it.

use crate::program::{Ended, end, lab, lab_with, processes, signal, start, until, valid};
use std::fs;

const LINK: &str = "rate=1gbit,rtt=1ms";

pub(crate) fn exit_codes() {
    let said = |ended: &Ended| ended.stderr.lines().last().unwrap_or_default().to_owned();
    assert_eq!(valid(|| lab(LINK, &["sh", "-c", "exit 7"])).code, Some(7));
    assert_eq!(valid(|| lab(LINK, &["sh", "-c", "kill -9 $$"])).code, Some(137));
    let ended = lab(LINK, &["no-such-program"]);
    assert!(ended.code == Some(2) && said(&ended).contains("no-such-program"), "{ended:?}");
    let ended = lab_with(LINK, &["--server", "no-such-server"], &["true"]);
    assert!(ended.code == Some(2) && said(&ended).contains("no-such-server"), "{ended:?}");
    let ended = lab_with(LINK, &["--server", "exit 5"], &["true"]);
    assert!(ended.code == Some(1) && said(&ended).contains("exit code 5"), "{ended:?}");
    let ended = lab("rate=100tbit,rtt=3600s", &["true"]);
    assert!(ended.code == Some(2) && said(&ended).contains("memory"), "{ended:?}");
}

/// A lab with two programs, told apart from others by how long they would sleep.
fn sleeping(mark: &str) -> std::process::Child {
    let client = format!("sleep {mark} & exec sleep {mark}");
    let child = start(&["lab", "run", "--link", LINK, "--", "sh", "-c", &client]);
    until("the programs run", || processes(&format!("sleep\0{mark}")).len() == 2);
    child
}

fn all_gone(mark: &str, namespaces: usize) {
    until("every process ends", || processes(mark).is_empty());
    until("every namespace goes", || network_namespaces() <= namespaces);
}

/// Network namespaces that some process is in.
fn network_namespaces() -> usize {
    let mut all: Vec<_> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path().join("ns/net")).ok())
        .collect();
    all.sort();
    all.dedup();
    all.len()
}

pub(crate) fn killed_outside() {
    let before = network_namespaces();
    let child = sleeping("61.371");
    signal("KILL", child.id());
    end(child);
    all_gone("61.371", before);
}

pub(crate) fn killed_inside() {
    let before = network_namespaces();
    let child = sleeping("61.372");
    let inside = processes("61.372").into_iter().filter(|id| *id != child.id());
    let inside = inside.min().unwrap();
    signal("KILL", inside);
    let ended = end(child);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("killed by signal 9"), "{}", ended.stderr);
    all_gone("61.372", before);
}

pub(crate) fn interrupted() {
    let before = network_namespaces();
    let child = sleeping("61.373");
    signal("TERM", child.id());
    let ended = end(child);
    assert_eq!(ended.code, Some(128 + 15), "{}", ended.stderr);
    all_gone("61.373", before);
}

/// What the command left behind in the background ends with the lab.
pub(crate) fn orphans_end_too() {
    let before = network_namespaces();
    let leave = "setsid sleep 61.374 >/dev/null 2>&1 & exit 0";
    let ended = lab(LINK, &["sh", "-c", leave]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    all_gone("sleep\x0061.374", before);
}
