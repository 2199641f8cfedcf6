//! iperf 2's protocol: our ends against the real program, against each other,
//! and against clients that are none.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod bad;
mod ground;
mod real;

use libtest_mimic::{Arguments, Trial};
use patience::hold;
use std::process::Command;

/// Where iperf is missing its tests are counted as ignored, not as passed.
fn main() {
    let arguments = Arguments::from_args();
    let missing = Command::new("iperf").arg("-v").output().is_err();
    if missing {
        assert!(
            std::env::var("LONGHAUL_REQUIRE_PEERS").as_deref() != Ok("1"),
            "iperf is not installed, and LONGHAUL_REQUIRE_PEERS=1 asks for it"
        );
        eprintln!("iperf is not installed: the tests against it are skipped");
    }
    let trial = |(name, test): (&str, fn()), ignored| {
        let run = move || {
            hold(test);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(ignored)
    };
    let real = real::TESTS.map(|test| trial(test, missing));
    let own = bad::TESTS.map(|test| trial(test, false));
    libtest_mimic::run(&arguments, real.into_iter().chain(own).collect()).exit();
}
