//! Connecting to a running lab and entering its host.

use crate::role::{self, TIMEOUT};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A lab that runs until it is dropped.
struct Running {
    name: String,
    child: Child,
}

impl Running {
    fn start(how: fn(&str, &[&str]) -> Command) -> Self {
        Self::start_as("lab", how)
    }

    fn start_as(role: &str, how: fn(&str, &[&str]) -> Command) -> Self {
        static LABS: AtomicU32 = AtomicU32::new(0);
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{number}", std::process::id());
        let mut child = how(role, &[&name]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Running { name, child }
    }

    /// Runs a program on its host.
    fn join(&self, how: fn(&str, &[&str]) -> Command, command: &[&str]) -> Output {
        end(how("join", &[&[self.name.as_str()], command].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Waits for its end; one that does not end is killed and fails the test.
fn end(mut child: Child) -> Output {
    until("it ends", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    const STEP: Duration = Duration::from_millis(5);
    for _ in 0..TIMEOUT.as_millis() / STEP.as_millis() {
        if holds() {
            return;
        }
        std::thread::sleep(STEP);
    }
    panic!("never: {what}");
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Prints what a program on the host of the test's lab sees.
const LOOK: &str = "tail -n +3 /proc/self/net/dev | cut -d: -f1; ls /sys/class/net; \
    pwd; id -u; echo $$ $(ls -d /proc/[0-9]* | wc -l)";

fn looks_like_a_host(output: &Output) {
    let (out, error) = text(output);
    let lines: Vec<&str> = out.lines().map(str::trim).collect();
    let folder = std::env::current_dir().unwrap();
    let [devices, sys, at, user, processes] = lines[..] else {
        panic!("{out}{error}");
    };
    assert_eq!([devices, sys, at, user], ["lo", "lo", folder.to_str().unwrap(), "0"], "{error}");
    let (own, all) = processes.split_once(' ').unwrap();
    let (own, all): (u32, u32) = (own.parse().unwrap(), all.parse().unwrap());
    assert!(own > 1 && own < 20 && all < 10, "in the lab's PID namespace: {processes}");
}

pub(crate) fn a_program_joins_a_host() {
    let lab = Running::start(role::start);
    looks_like_a_host(&lab.join(role::start, &["sh", "-c", LOOK]));
    let (names, _) = text(&role::start("running", &[]).output().unwrap());
    assert!(names.lines().any(|name| name == lab.name), "{names}");
    // Standard input is ours, and the lab keeps running.
    let (out, _) = text(&lab.join(role::start, &["readlink", "/proc/self/fd/0"]));
    assert_eq!(out, "/dev/null\n");
    // A descriptor that is not a network namespace.
    let wrong = lab.join(role::start, &["wrong"]);
    assert_eq!(wrong.status.code(), Some(95), "{:?}", text(&wrong));
}

pub(crate) fn an_ordinary_user_joins() {
    let lab = Running::start(role::start_as_user);
    looks_like_a_host(&lab.join(role::start_as_user, &["sh", "-c", LOOK]));
    // Root has no lab of that name, and does not see the user's.
    let (names, _) = text(&role::start("running", &[]).output().unwrap());
    assert!(!names.lines().any(|name| name == lab.name), "{names}");
    assert_eq!(lab.join(role::start, &["true"]).status.code(), Some(97));
}

pub(crate) fn the_exit_code_and_signals_pass() {
    let lab = Running::start(role::start);
    let code = |command: &[&str]| lab.join(role::start, command).status.code();
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -KILL $$"]), Some(137));
    let missing = lab.join(role::start, &["no-such-program"]);
    assert_eq!(missing.status.code(), Some(95));
    assert!(text(&missing).1.contains("no-such-program"), "{:?}", text(&missing));

    for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let (child, _) = sleeper(&lab);
        kill(name, child.id());
        assert_eq!(end(child).status.code(), Some(code), "{name}");
    }
}

/// A long-running program on the host, and its process ID outside.
fn sleeper(lab: &Running) -> (Child, u32) {
    let line = "echo here; exec sleep 1000";
    let mut child =
        role::start("join", &[&lab.name, "sh", "-c", line]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut said).unwrap();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let program = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    (child, program)
}

fn kill(name: &str, process: u32) -> ExitStatus {
    Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap()
}

fn is_alive(process: u32) -> bool {
    std::fs::metadata(format!("/proc/{process}")).is_ok()
}

pub(crate) fn a_program_ends_with_the_lab_and_with_us() {
    let lab = Running::start(role::start);
    let (mut child, program) = sleeper(&lab);
    assert!(is_alive(program));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the program ends with us", || !is_alive(program));

    let (child, program) = sleeper(&lab);
    assert!(is_alive(program));
    let name = lab.name.clone();
    drop(lab);
    assert_eq!(end(child).status.code(), Some(137));
    assert!(!is_alive(program));
    let gone = || role::start("join", &[&name, "true"]).output().unwrap();
    until("its name goes with it", || gone().status.code() == Some(97));
    assert!(text(&gone()).1.contains(&format!("no lab named {name} is running")));
}

pub(crate) fn a_name_is_taken_once() {
    let lab = Running::start(role::start);
    let second = end(role::start("lab", &[&lab.name]).spawn().unwrap());
    assert_eq!(second.status.code(), Some(98));
}

pub(crate) fn strangers_are_refused() {
    let lab = Running::start(role::start);
    let answers = |how: fn(&str, &[&str]) -> Command| {
        end(how("stranger", &[&lab.name]).spawn().unwrap()).status.code()
    };
    assert_eq!(answers(role::start), Some(1), "its own user is answered");
    assert_eq!(answers(role::start_as_user), Some(0));
    assert_eq!(answers(role::start), Some(1), "and still is");
}

pub(crate) fn an_impostor_is_detected() {
    let impostor = Running::start_as("impostor", role::start_as_user);
    let refused = impostor.join(role::start, &["true"]);
    assert_eq!(refused.status.code(), Some(97));
    assert!(text(&refused).1.contains("another user"), "{:?}", text(&refused));
}

/// Each client is answered eventually, though the lab runs out of descriptors
/// many times.
pub(crate) fn more_clients_than_descriptors() {
    let lab = Running::start_as("crowded", role::start_with_few_files);
    let mut callers: Vec<_> = (0..100)
        .map(|_| host::control::connect(host::control::Owner::Lab, &lab.name).unwrap())
        .collect();
    for caller in &mut callers {
        assert_eq!(caller.receive_line(TIMEOUT).unwrap().as_deref(), Some("here"));
    }
}
