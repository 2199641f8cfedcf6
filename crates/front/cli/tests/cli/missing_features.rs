//! What an older kernel or a container's filter lacks: the program says so, and goes on where it
//! can. Each call is refused by seccomp, in a process that starts as this test.

use crate::program::{Server, printed, run};
use host::seccomp::{self, Refusal};
use serde_json::Value;
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Index of the refusals and arguments of the program that this test becomes.
const ARGUMENTS: &str = "LONGHAUL_TEST_WITHOUT";
const TEST: &str = "missing_features::what_a_test_lacks_is_said";

const SETS: [&[Refusal]; 9] = [
    &[Refusal::OPENAT2],
    &[Refusal::OPENAT2_IN_CONTAINER],
    &[Refusal::MPTCP],
    &[Refusal::CONGESTION_CONTROL],
    &[Refusal::NOTSENT_LOWAT],
    &[Refusal::UDP_SEGMENT, Refusal::UDP_GRO],
    &[Refusal::TCP_INFO],
    &[Refusal::EPOLL_PWAIT2],
    &[Refusal::NAMESPACES],
];

/// Runs the program where these calls are refused.
fn without(refusals: &[Refusal], arguments: &[&str]) -> Output {
    let set = SETS.iter().position(|set| *set == refusals).unwrap();
    let text = format!("{set}\n{}", arguments.join("\n"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([TEST, "--exact", "--nocapture"]).env(ARGUMENTS, text);
    command.stdin(Stdio::null()).output().unwrap()
}

/// In the process that [`without`] starts.
fn become_the_program() {
    let Ok(text) = std::env::var(ARGUMENTS) else { return };
    let (set, arguments) = text.split_once('\n').unwrap();
    seccomp::refuse(SETS[set.parse::<usize>().unwrap()]).unwrap();
    let mut command = Command::new("timeout");
    command.arg("20").arg(env!("CARGO_BIN_EXE_longhaul")).args(arguments.lines());
    panic!("{}", command.exec());
}

/// The document that a test prints; libtest's own lines come first.
fn document(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text.find('{').map(|at| &text[at..]).unwrap_or_default();
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn what_a_test_lacks_is_said() {
    become_the_program();
    let server = Server::start(&[]);
    let test = |refusals: &[Refusal], more: &[&str]| {
        let start = ["test", "127.0.0.1", "-p", &server.port, "-t", "1", "--json"];
        without(refusals, &[&start, more].concat())
    };
    // Asked for, and missing: one line that says what is needed.
    for (refusals, more, said) in [
        (&[Refusal::MPTCP][..], &["--mptcp"][..], "Multipath TCP needs Linux 5.6"),
        (&[Refusal::CONGESTION_CONTROL], &["-C", "bbr"], "bbr"),
    ] {
        let output = test(refusals, more);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{more:?}: {output:?}");
        assert!(error.contains(said) && error.lines().count() == 1, "{more:?}: {error}");
    }
    // Not asked for: the test runs without.
    for refusals in [
        &[Refusal::NOTSENT_LOWAT][..],
        &[Refusal::EPOLL_PWAIT2],
        &[Refusal::MPTCP],
        &[Refusal::CONGESTION_CONTROL],
    ] {
        let output = test(refusals, &[]);
        assert_eq!(output.status.code(), Some(0), "{refusals:?}: {output:?}");
        assert!(document(&output)["throughput_bps"].as_f64().unwrap() > 1e6, "{refusals:?}");
    }
    let datagrams = ["-u", "-b", "10mbit"];
    let output = test(&[Refusal::UDP_SEGMENT, Refusal::UDP_GRO], &datagrams);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // Without TCP_INFO of the sender nothing is sure, and it says so.
    let output = test(&[Refusal::TCP_INFO], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found = document(&output);
    assert_ne!(found["confidence"], "sure", "{found}");
    assert!(found["notes"].to_string().contains("no TCP_INFO of this end"), "{found}");
    assert!(found["throughput_bps"].as_f64().unwrap() > 1e6, "{found}");
}

#[test]
fn a_server_without_multipath_tcp_serves_others() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let port = free.clone();
    let server = std::thread::spawn(move || {
        without(&[Refusal::MPTCP], &["server", "-B", "127.0.0.1", "-p", &port, "--one-off"])
    });
    // Until it listens.
    let succeeded = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        run(&["test", "127.0.0.1", "-p", &free, "-t", "1", "--json"]).status.success()
    });
    assert!(succeeded, "no test succeeded");
    assert_eq!(server.join().unwrap().status.code(), Some(0));
}

#[test]
fn a_copy_without_openat2_says_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ssh = path("ssh");
    stall_retry::write_script(ssh.as_ref(), "shift 2\nexec \"$@\"");
    std::fs::write(path("data"), "data").unwrap();
    std::fs::set_permissions(path("data"), Permissions::from_mode(0o600)).unwrap();
    let far = env!("CARGO_BIN_EXE_longhaul");
    let (from, to) = (format!("localhost:{}", path("data")), path("copy"));
    let arguments = ["copy", "--ssh", &ssh, "--far-program", far, &from, &to];
    for (refusals, said) in [
        (&[Refusal::OPENAT2][..], "this needs Linux 5.6 (openat2)"),
        (&[Refusal::OPENAT2_IN_CONTAINER], "seccomp filter must allow openat2"),
    ] {
        let output = without(refusals, &arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(error.contains(said), "{error}");
        assert!(!std::path::Path::new(&to).exists());
    }
}

#[test]
fn a_lab_without_namespaces_says_who_has_to_allow_them() {
    let arguments = ["lab", "run", "--link", "rate=10mbit,rtt=1ms", "--", "true"];
    let output = without(&[Refusal::NAMESPACES], &arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.contains("--privileged") || error.contains("sysctl -w"), "{error}");
    // Everything else works.
    assert!(printed(&["bdp", "100mbit", "173ms"]).contains("2.1625 MB"));
}
