//! Tests that need namespaces: sandboxes, entering a running one, and devices and
//! routes in network namespaces.
//!
//! A sandbox needs a process with one thread, which a test is not: the program
//! starts itself again with the name of a role ([`role::play`]). Where the
//! system does not permit namespaces, the tests count as ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod confinement;
mod disk;
mod interception;
mod joining;
mod masquerading;
mod role;
mod routing;
mod transmit_times;

use libtest_mimic::{Arguments, Trial};
use std::path::Path;

/// What a test requires.
#[derive(Clone, Copy)]
enum Needs {
    Sandbox,
    /// TUN devices, and iproute2 to inspect them.
    Devices,
    /// TUN devices, and a kernel that can masquerade.
    Netfilter,
    /// FUSE.
    Fuse,
    /// Also root, to become an ordinary user.
    Root,
}

type Test = (&'static str, Needs, fn());

const TESTS: [Test; 19] = [
    ("a_program_joins_a_host", Needs::Sandbox, joining::a_program_joins_a_host),
    ("an_ordinary_user_joins", Needs::Root, joining::an_ordinary_user_joins),
    ("the_exit_code_and_signals_pass", Needs::Sandbox, joining::the_exit_code_and_signals_pass),
    (
        "a_program_ends_with_the_lab_and_with_us",
        Needs::Sandbox,
        joining::a_program_ends_with_the_lab_and_with_us,
    ),
    ("a_name_is_taken_once", Needs::Sandbox, joining::a_name_is_taken_once),
    ("strangers_are_refused", Needs::Root, joining::strangers_are_refused),
    ("an_impostor_is_detected", Needs::Root, joining::an_impostor_is_detected),
    ("more_clients_than_descriptors", Needs::Sandbox, joining::more_clients_than_descriptors),
    ("a_process_id_is_used_again", Needs::Sandbox, || role::passes("reuse")),
    ("programs_are_confined", Needs::Root, || role::passes("confined")),
    ("programs_of_an_ordinary_user_are_confined", Needs::Root, || {
        role::passes_as_user("confined");
    }),
    ("routes_are_many_and_right", Needs::Devices, || role::passes("routes")),
    ("transmit_times_are_those_of_the_packets", Needs::Devices, || {
        role::passes("transmit times");
    }),
    ("a_disk_has_its_rate", Needs::Fuse, || role::passes("disk")),
    ("connections_to_any_address_are_accepted", Needs::Netfilter, || {
        role::passes("interception");
    }),
    ("connections_of_an_ordinary_user_are_accepted", Needs::Root, || {
        role::passes_as_user("interception");
    }),
    ("a_gateway_accepts_connections_of_its_lan", Needs::Netfilter, || role::passes("gateway")),
    ("a_supervisor_cleans_up", Needs::Sandbox, || role::passes("supervisor")),
    ("masquerading_ends_with_its_owner", Needs::Netfilter, || role::passes("masquerade")),
];

fn main() {
    if role::is_asked() {
        std::process::exit(role::run());
    }
    // In the background of a script the tests ignore Ctrl-C; their children must not.
    host::signals::restore_interrupts();
    host::signals::restore_hangup();
    let arguments = Arguments::from_args();
    let look = !arguments.list;
    let (sandbox_available, root) = (!look || role::sandbox_available(), !look || role::root());
    let devices = !look || (sandbox_available && role::devices());
    if !sandbox_available {
        eprintln!("no namespaces can be made here: their tests are skipped");
    }
    if !root {
        eprintln!("not root, or without setpriv: tests of ordinary users are skipped");
    }
    let netfilter = !look || (devices && role::netfilter());
    if !netfilter {
        eprintln!("this kernel does not masquerade: the test of that is skipped");
    }
    if !devices {
        eprintln!("no TUN devices can be made here, or there is no `ip`: their tests are skipped");
    }
    let fuse = !look || Path::new("/dev/fuse").exists();
    if !fuse {
        eprintln!("there is no /dev/fuse: the test of a slow disk is skipped");
    }
    let required = std::env::var("LONGHAUL_REQUIRE_PEERS").as_deref() == Ok("1");
    assert!(!required || sandbox_available, "LONGHAUL_REQUIRE_PEERS=1 asks for namespaces");
    let trials = TESTS.into_iter().map(|(name, needs, test)| {
        let met = match needs {
            Needs::Sandbox => sandbox_available,
            Needs::Devices => sandbox_available && devices,
            Needs::Netfilter => sandbox_available && netfilter,
            Needs::Fuse => sandbox_available && fuse,
            Needs::Root => sandbox_available && root,
        };
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!met)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
