//! How a lab ends, and that nothing is left of it.

use crate::program::{Ended, end, lab, lab_with, processes, signal, start, until, valid, worked};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

/// The network namespaces of the processes with a mark: those of the lab.
fn namespaces(mark: &str) -> BTreeSet<PathBuf> {
    let own = namespace(Path::new("/proc/self"));
    let of = |id: u32| namespace(&Path::new("/proc").join(id.to_string()));
    processes(mark).into_iter().filter_map(of).filter(|found| Some(found) != own.as_ref()).collect()
}

/// The network namespace of a process, by its directory in /proc.
fn namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/net")).ok()
}

/// No process with the mark is left, and none of any name in the lab's namespaces.
fn all_gone(mark: &str, namespaces: &BTreeSet<PathBuf>) {
    assert!(!namespaces.is_empty(), "the lab had namespaces of its own");
    until("every process ends", || processes(mark).is_empty());
    until("every namespace goes", || {
        let mut all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        !all.any(|entry| namespace(&entry.path()).is_some_and(|one| namespaces.contains(&one)))
    });
}

pub(crate) fn killed_outside() {
    let child = sleeping("61.371");
    let inside = namespaces("61.371");
    signal("KILL", child.id());
    end(child);
    all_gone("61.371", &inside);
}

pub(crate) fn killed_inside() {
    let child = sleeping("61.372");
    let lab = namespaces("61.372");
    let inside = processes("61.372").into_iter().filter(|id| *id != child.id());
    let inside = inside.min().unwrap();
    signal("KILL", inside);
    let ended = end(child);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("killed by signal 9"), "{}", ended.stderr);
    all_gone("61.372", &lab);
}

pub(crate) fn interrupted() {
    let child = sleeping("61.373");
    let inside = namespaces("61.373");
    signal("TERM", child.id());
    let ended = end(child);
    assert_eq!(ended.code, Some(128 + 15), "{}", ended.stderr);
    all_gone("61.373", &inside);
}

/// What the command left behind in the background ends with the lab.
pub(crate) fn orphans_end_too() {
    let leave = "setsid sleep 61.374 >/dev/null 2>&1 & readlink /proc/self/ns/net";
    let ended = lab(LINK, &["sh", "-c", leave]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    all_gone("sleep\x0061.374", &BTreeSet::from([PathBuf::from(ended.stdout.trim())]));
}
