//! Interoperability with UDT 4.11 (Debian's libudt), in both roles, as streams and as
//! messages, over clean and impaired paths.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod peer;
mod relay;
mod transfers;

use libtest_mimic::Arguments;
use std::process::ExitCode;

/// Where the library or a C++ compiler is missing, the tests count as ignored.
fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = peer::build().err();
    if let Some(reason) = &missing {
        assert!(!stall_retry::required(), "{reason}, and LONGHAUL_REQUIRE_PEERS=1 asks for it");
        eprintln!("{reason}: the tests against libudt are skipped");
    }
    let trials = transfers::TESTS
        .map(|(name, test)| stall_retry::trial(name, test).with_ignored_flag(missing.is_some()));
    stall_retry::run(&arguments, trials.into())
}
