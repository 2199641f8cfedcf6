//! Without random numbers there are no secrets: what needs one does not start.

use crate::program::Server;
use host::{random, seccomp};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// The arguments of the program that this test becomes, separated by newlines.
const ARGUMENTS: &str = "LONGHAUL_TEST_WITHOUT_RANDOM_NUMBERS";
const TEST: &str = "random_numbers::a_secret_that_the_system_refuses_is_an_error";

/// Runs the program where getrandom(2) is refused: in a process that starts as this test, as a
/// filter passes on to what is executed.
fn without_random_numbers(arguments: &[&str]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([TEST, "--exact", "--nocapture"]).env(ARGUMENTS, arguments.join("\n"));
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_secret_that_the_system_refuses_is_an_error() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        seccomp::refuse(&[seccomp::Refusal::RANDOM_NUMBERS]).unwrap();
        assert!(random::secret::<32>().is_err() && random::check().is_err());
        assert_ne!(random::seed(), 0, "a seed is no secret");
        let mut command = Command::new("timeout");
        command.arg("10").arg(env!("CARGO_BIN_EXE_longhaul")).args(arguments.lines());
        panic!("{}", command.exec());
    }
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
    let [tokens, root] = [&tokens, folder.path()].map(|path| path.to_str().unwrap());
    let server = Server::start(&[]);
    let near = ["server", "-B", "127.0.0.1", "-p", "0"];
    let cases: [Vec<&str>; 5] = [
        near.to_vec(),
        [&near[..], &["--tokens", tokens]].concat(),
        [&near[..], &["--tokens", tokens, "--root", root, "--copy-port", "0"]].concat(),
        vec!["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", &server.port],
        vec!["test", "127.0.0.1", "-p", &server.port, "-t", "1"],
    ];
    for arguments in cases {
        let output = without_random_numbers(&arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {output:?}");
        assert!(error.contains("no random numbers"), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    }
}
