//! What needs namespaces: worlds, the way into a running one, and devices and
//! routes in networks of their own.
//!
//! A world needs a process with one thread, which a test's is not: the program
//! starts itself again with the name of a role ([`role::play`]). Where the
//! system allows no namespaces the tests are counted as ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod joining;
mod masquerading;
mod role;
mod routing;

use libtest_mimic::{Arguments, Trial};

/// What a test needs.
#[derive(Clone, Copy)]
enum Needs {
    World,
    /// TUN devices, and iproute2 to look at them.
    Devices,
    /// TUN devices, and a kernel with masquerading.
    Netfilter,
    /// Root too, to become an ordinary user.
    Root,
}

type Test = (&'static str, Needs, fn());

const TESTS: [Test; 9] = [
    ("a_program_joins_a_host", Needs::World, joining::a_program_joins_a_host),
    ("an_ordinary_user_joins", Needs::Root, joining::an_ordinary_user_joins),
    ("the_exit_code_and_signals_pass", Needs::World, joining::the_exit_code_and_signals_pass),
    ("it_ends_with_the_lab_and_with_us", Needs::World, joining::it_ends_with_the_lab_and_with_us),
    ("a_name_is_taken_once", Needs::World, joining::a_name_is_taken_once),
    ("strangers_are_refused", Needs::Root, joining::strangers_are_refused),
    ("an_impostor_is_told", Needs::Root, joining::an_impostor_is_told),
    ("routes_are_many_and_right", Needs::Devices, || role::passes("routes")),
    ("masquerading_ends_with_its_owner", Needs::Netfilter, || role::passes("masquerade")),
];

fn main() {
    if role::is_asked() {
        std::process::exit(role::play());
    }
    // In a script's background the tests ignore Ctrl-C; what they start must not.
    host::signals::heed_interrupts();
    let arguments = Arguments::from_args();
    let look = !arguments.list;
    let (world, root) = (!look || role::world(), !look || role::root());
    let devices = !look || (world && role::devices());
    if !world {
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
    let required = std::env::var("LONGHAUL_REQUIRE_PEERS").as_deref() == Ok("1");
    assert!(!required || world, "LONGHAUL_REQUIRE_PEERS=1 asks for namespaces");
    let trials = TESTS.into_iter().map(|(name, needs, test)| {
        let met = match needs {
            Needs::World => world,
            Needs::Devices => world && devices,
            Needs::Netfilter => world && netfilter,
            Needs::Root => world && root,
        };
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!met)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
