//! `longhaul` in a lab, bounded in time.

use serde_json::Value;
use stall_retry::undecided;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// The path of the program under test, for use inside a lab too.
pub(crate) const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn start(arguments: &[&str]) -> Child {
    Command::new(LONGHAUL)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for its end; one that does not end is killed and fails the test.
#[track_caller]
pub(crate) fn end(child: Child) -> Ended {
    let (id, (send, receive)) = (child.id(), std::sync::mpsc::channel());
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let output: Output = match receive.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal("KILL", id);
            panic!("it did not end within {PATIENCE:?}");
        }
    };
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[track_caller]
pub(crate) fn run(arguments: &[&str]) -> Ended {
    end(start(arguments))
}

pub(crate) fn signal(name: &str, id: u32) {
    let done = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status();
    assert!(done.unwrap().success(), "no process {id} to signal");
}

/// `lab run` over `link`.
pub(crate) fn lab(link: &str, command: &[&str]) -> Ended {
    lab_with(link, &[], command)
}

pub(crate) fn lab_with(link: &str, options: &[&str], command: &[&str]) -> Ended {
    let mut arguments = vec!["lab", "run", "--link", link];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(command);
    run(&arguments)
}

/// A run that the machine could not carry in time says nothing about the program
/// under test: it is repeated, twice at most.
pub(crate) fn valid(attempt: impl Fn() -> Ended) -> Ended {
    for _ in 0..3 {
        let ended = attempt();
        if !is_not_valid(&ended) {
            return ended;
        }
        eprintln!("the lab was not valid: {}", ended.stderr.lines().last().unwrap_or_default());
    }
    undecided("no lab was valid in three runs: the machine was busy")
}

fn is_not_valid(ended: &Ended) -> bool {
    ended.code == Some(3) && ended.stderr.contains("not valid")
}

/// Whether a run did its work; that the machine carried it in time, where
/// `expected` is not about that, it need not.
pub(crate) fn worked(ended: &Ended, expected: i32) -> bool {
    ended.code == Some(expected) || is_not_valid(ended)
}

/// A run that must be valid, and its path's report.
#[track_caller]
pub(crate) fn reported(link: &str, options: &[&str], command: &[&str]) -> (Ended, Value) {
    let (ended, report) = report(link, options, command, |attempt| valid(attempt));
    assert_eq!(ended.code, Some(0), "{link} {command:?}: {}", ended.stderr);
    (ended, report)
}

/// A run that must do its work, in time or not, and its path's report.
#[track_caller]
pub(crate) fn carried(link: &str, options: &[&str], command: &[&str]) -> (Ended, Value) {
    let (ended, report) = report(link, options, command, |attempt| attempt());
    assert!(worked(&ended, 0), "{link} {command:?}: {}", ended.stderr);
    (ended, report)
}

fn report(
    link: &str,
    options: &[&str],
    command: &[&str],
    run: impl Fn(&dyn Fn() -> Ended) -> Ended,
) -> (Ended, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json").to_str().unwrap().to_owned();
    let mut all = vec!["--report", &file];
    all.extend(options);
    let ended = run(&|| lab_with(link, &all, command));
    let report = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    (ended, report)
}

/// The processes whose command line holds `mark`, this one aside.
pub(crate) fn processes(mark: &str) -> Vec<u32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|id| *id != std::process::id())
        .filter(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(mark)
        })
        .collect()
}

/// Waits for something that must come.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
