//! Real programs behind near: in a network of their own, through SOCKS5 and CONNECT, and clients that
//! attack.
//!
//! The program starts itself again in a sandbox, in a network without any way out, where it is near
//! and far, an HTTP server and a name server at once ([`stage`]). Where the system does not permit
//! namespaces, the tests count as ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod attacks;
mod gateways;
mod programs;
mod proxies;
mod stage;

use libtest_mimic::{Arguments, Trial};

/// What a test requires.
#[derive(Clone, Copy)]
enum Needs {
    /// Namespaces, nf_tables.
    Sandbox,
    /// Also root, to become an ordinary user.
    Root,
}

type Test = (&'static str, Needs, fn());

const TESTS: [Test; 18] = [
    ("connections_to_addresses_are_boosted", Needs::Sandbox, programs::addresses),
    ("names_resolve_at_far", Needs::Sandbox, programs::names_at_far),
    ("names_resolve_at_near", Needs::Sandbox, programs::names_at_near),
    ("listed_ports_need_no_netfilter", Needs::Sandbox, programs::listed_ports),
    ("an_ordinary_user_runs_programs", Needs::Root, programs::ordinary_user),
    ("exit_codes_and_signals_pass", Needs::Sandbox, programs::exit_codes),
    ("a_signal_ends_a_start", Needs::Sandbox, programs::interrupted),
    ("what_a_program_sent_before_its_end_arrives", Needs::Sandbox, programs::last_bytes),
    ("a_server_that_keeps_connections_holds_up_no_end", Needs::Sandbox, programs::kept_open),
    ("a_killed_box_leaves_nothing", Needs::Sandbox, programs::killed),
    ("refused_targets_and_udp", Needs::Sandbox, programs::refusals),
    ("curl_through_socks_and_connect", Needs::Sandbox, proxies::curl),
    ("private_addresses_are_refused", Needs::Sandbox, proxies::destinations),
    ("slow_and_huge_heads_are_closed", Needs::Sandbox, attacks::heads),
    ("many_idle_connections_hold_up_nobody", Needs::Sandbox, attacks::many),
    ("a_gateway_is_alone_and_leaves_its_own_addresses", Needs::Sandbox, gateways::alone),
    ("listeners_share_their_limits", Needs::Sandbox, attacks::two),
    ("dns_has_bounds", Needs::Sandbox, attacks::dns),
];

fn main() {
    if stage::is_asked() {
        std::process::exit(stage::run());
    }
    host::signals::restore_interrupts();
    let arguments = Arguments::from_args();
    let look = !arguments.list;
    let sandbox = !look || stage::is_available(false);
    let root = !look || stage::is_available(true);
    if !sandbox {
        eprintln!("no namespaces with nf_tables can be made here: tests are skipped");
    }
    let trials = TESTS.into_iter().map(|(name, needs, test)| {
        let met = match needs {
            Needs::Sandbox => sandbox,
            Needs::Root => sandbox && root,
        };
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!met)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
