//! Interoperability with iperf 2, between our own endpoints, and with invalid clients.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod own;
mod real;
mod test_server;

use libtest_mimic::Arguments;
use std::process::{Command, ExitCode};

/// Where iperf is missing its tests count as ignored, not as passed.
fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = Command::new("iperf").arg("-v").output().is_err();
    if missing {
        assert!(
            !stall_retry::required(),
            "iperf is not installed, and LONGHAUL_REQUIRE_PEERS=1 asks for it"
        );
        eprintln!("iperf is not installed: the tests against it are skipped");
    }
    let trial = |(name, test): (&str, fn()), ignored| {
        stall_retry::trial(name, test).with_ignored_flag(ignored)
    };
    let real = real::TESTS.map(|test| trial(test, missing));
    let own = own::TESTS.map(|test| trial(test, false));
    let memory = stall_retry::trial_alone(
        "garbage_datagrams_take_no_memory",
        own::garbage_datagrams_take_no_memory,
    );
    stall_retry::run(&arguments, real.into_iter().chain(own).chain([memory]).collect())
}
