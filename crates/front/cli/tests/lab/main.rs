//! Everything that needs a lab: namespaces, TUN devices, real kernel TCP, and
//! a real iperf3 as the other end. Most labs wait for their path and run beside each
//! other; those of [`ALONE`] load the machine, or measure what a load would change, and
//! run one at a time after the others.
//!
//! Where the system allows no lab, or iperf3 is missing, the tests that need
//! them count as ignored; so does a test that scheduler stalls left undecided.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod addresses;
mod baseline;
mod boosting;
mod capturing;
mod closed_loop;
mod copying;
mod deciding;
mod doctor;
mod drops;
mod effects;
mod ends;
mod holding;
mod many;
mod merging;
mod native;
mod output_files;
mod path;
mod ping_trace;
#[path = "../cli/private.rs"]
mod private;
mod program;
mod real_hosts;
mod stalls;
mod state;
mod studies;
mod tuning;
mod udp_safeguard;
mod udt;
mod user;
mod verify;
mod watching;
mod wire;

use libtest_mimic::{Arguments, Trial};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Labs beside each other, for each core: most wait for their paths. A lab of some Mbit/s takes a
/// tenth of a core.
const LABS_PER_CORE: usize = 4;

/// Tests that nothing may run beside.
const ALONE: [&str; 9] = [
    "the_idle_round_trip_is_as_asked",
    "the_rate_is_as_asked",
    "loss_is_binomial_on_the_wire",
    "latency_under_load",
    "the_highest_rate_is_found",
    "trains_are_dropped_packet_by_packet",
    "packets_that_the_emulator_does_not_read_are_lost",
    "our_client_its_server",
    "its_client_our_server",
];

/// What a test needs beside a lab.
#[derive(PartialEq)]
enum Needs {
    Nothing,
    Iperf3,
    RootAndDevices,
    Tcpdump,
    Root,
    Duckdb,
    /// That the kernel can hold packets.
    Held,
    HeldAndRoot,
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(LABS_PER_CORE * cores);
    if arguments.list {
        return stall_retry::run(&arguments, trials(true, true, true, true));
    }
    // In a script's background the tests ignore Ctrl-C; what they start must not.
    host::signals::restore_interrupts();
    host::signals::restore_hangup();
    let probe = program::lab("rate=1gbit,rtt=1ms", &["true"]);
    // A busy machine has labs, too, if none that is valid.
    let lab = program::worked(&probe, 0);
    let iperf3 = Command::new("iperf3").arg("--version").output().is_ok();
    if !lab {
        eprintln!("no lab can be made here ({}): its tests are skipped", probe.stderr.trim());
    }
    let held = lab && holding::is_possible();
    if lab && !held {
        eprintln!("the kernel cannot hold packets (NFQUEUE): the tests of that are skipped");
    }
    if !iperf3 {
        eprintln!("iperf3 is not installed: the tests against it are skipped");
    }
    if !Path::new(studies::DUCKDB).exists() {
        eprintln!("DuckDB is not installed: the test with it is skipped");
    }
    let required = stall_retry::required();
    assert!(!required || (lab && iperf3), "LONGHAUL_REQUIRE_PEERS=1 asks for a lab and for iperf3");
    stall_retry::run(&arguments, trials(lab, iperf3, user::can_be_made(), held))
}

fn trials(lab: bool, iperf3: bool, devices: bool, held: bool) -> Vec<Trial> {
    let tests: [(&str, Needs, fn()); 106] = [
        // The longest first, so that the others end beside them.
        ("edge_cloud_windows_hold", Needs::Nothing, studies::edge_cloud_windows_hold),
        ("the_loop_closes", Needs::Nothing, closed_loop::the_loop_closes),
        (
            "a_small_window_fills_a_long_path",
            Needs::Nothing,
            boosting::a_small_window_fills_a_long_path,
        ),
        (
            "a_command_is_compared_with_itself_boosted",
            Needs::Nothing,
            boosting::a_command_is_compared_with_itself_boosted,
        ),
        (
            "a_pair_is_verified_in_its_own_lab",
            Needs::Nothing,
            boosting::a_pair_is_verified_in_its_own_lab,
        ),
        (
            "policed_udt_switches_to_tcp_where_that_carries_more",
            Needs::Nothing,
            udt::policed_udt_switches_to_tcp_where_that_carries_more,
        ),
        (
            "copies_move_to_tcp_where_udp_is_policed",
            Needs::Nothing,
            copying::copies_move_to_tcp_where_udp_is_policed,
        ),
        ("what_helps_is_kept", Needs::Nothing, verify::what_helps_is_kept),
        (
            "listed_losses_are_counted_exactly",
            Needs::Iperf3,
            drops::listed_losses_are_counted_exactly,
        ),
        (
            "packets_that_are_too_long_are_named",
            Needs::Nothing,
            stalls::packets_that_are_too_long_are_named,
        ),
        (
            "udp_that_stops_arriving_is_lost",
            Needs::Nothing,
            stalls::udp_that_stops_arriving_is_lost,
        ),
        (
            "a_test_that_stops_names_the_outage",
            Needs::Nothing,
            stalls::a_test_that_stops_names_the_outage,
        ),
        ("the_loop_can_be_interrupted", Needs::Nothing, closed_loop::it_can_be_interrupted),
        ("the_command_has_the_terminal", Needs::Nothing, path::the_command_has_the_terminal),
        ("the_idle_round_trip_is_as_asked", Needs::Nothing, path::the_idle_round_trip_is_as_asked),
        (
            "packets_that_are_read_late_are_not_late",
            Needs::Nothing,
            path::packets_that_are_read_late_are_not_late,
        ),
        ("hosts_are_set_as_asked", Needs::Nothing, path::hosts_are_set_as_asked),
        ("what_was_not_carried_is_not_valid", Needs::Nothing, path::what_was_not_carried),
        ("a_transfer_is_explained", Needs::Nothing, path::a_transfer_is_explained),
        ("the_rate_is_as_asked", Needs::Iperf3, path::the_rate_is_as_asked),
        ("loss_is_binomial_on_the_wire", Needs::Iperf3, path::loss_is_binomial),
        ("exit_codes", Needs::Nothing, ends::exit_codes),
        ("killed_outside", Needs::Nothing, ends::killed_outside),
        ("killed_inside", Needs::Nothing, ends::killed_inside),
        ("interrupted", Needs::Nothing, ends::interrupted),
        ("orphans_end_too", Needs::Nothing, ends::orphans_end_too),
        ("an_ordinary_user_has_a_lab", Needs::RootAndDevices, user::has_a_lab),
        ("a_chroot_has_a_lab", Needs::RootAndDevices, user::has_a_lab_in_a_chroot),
        ("a_closed_device_names_the_remedy", Needs::RootAndDevices, user::closed_device),
        ("held_packets_arrive_as_sent", Needs::Held, holding::held_packets_arrive_as_sent),
        (
            "trains_are_dropped_packet_by_packet",
            Needs::Held,
            holding::trains_are_dropped_packet_by_packet,
        ),
        ("short_packets_are_counted", Needs::Held, holding::short_packets_are_counted),
        (
            "what_is_left_of_a_train_is_whole",
            Needs::Held,
            holding::what_is_left_of_a_train_is_whole,
        ),
        ("the_driver_is_chosen", Needs::Held, holding::the_driver_is_chosen),
        (
            "packets_that_the_emulator_does_not_read_are_lost",
            Needs::HeldAndRoot,
            holding::packets_that_the_emulator_does_not_read_are_lost,
        ),
        ("two_labs_hold_packets_at_once", Needs::Held, holding::two_labs_hold_packets_at_once),
        (
            "dropped_packets_take_bounded_memory",
            Needs::HeldAndRoot,
            holding::dropped_packets_take_bounded_memory,
        ),
        (
            "a_report_covers_what_was_declared",
            Needs::Nothing,
            holding::a_report_covers_what_was_declared,
        ),
        ("fair_queues_keep_pings_short", Needs::Nothing, effects::fair_queues_keep_pings_short),
        ("a_middlebox_strips_scaling", Needs::Nothing, effects::a_middlebox_strips_window_scaling),
        ("packets_are_corrupted", Needs::Nothing, effects::packets_are_corrupted_and_doubled),
        ("marks_take_the_place_of_drops", Needs::Nothing, effects::marks_take_the_place_of_drops),
        ("ways_differ_and_change", Needs::Nothing, effects::ways_differ_and_change),
        ("losses_are_replayed", Needs::Nothing, effects::losses_are_replayed),
        ("paths_have_names", Needs::Nothing, effects::paths_have_names),
        ("hosts_reach_each_other", Needs::Nothing, many::hosts_reach_each_other),
        ("sixty_four_hosts", Needs::Nothing, many::sixty_four_hosts),
        ("ways_in", Needs::Nothing, many::ways_in),
        ("a_run_as_json", Needs::Nothing, many::a_run_as_json),
        ("the_next_command_starts_the_lab", Needs::Nothing, many::the_next_command_starts_the_lab),
        ("captures_tell_fates", Needs::Nothing, many::captures_tell_fates),
        (
            "losses_and_delays_are_those_of_the_fates",
            Needs::Nothing,
            merging::losses_and_delays_are_those_of_the_fates,
        ),
        ("super_segments_are_matched", Needs::Tcpdump, merging::super_segments_are_matched),
        ("every_packet_is_in_the_file", Needs::Nothing, capturing::every_packet_is_in_the_file),
        (
            "files_are_whole_however_a_capture_ends",
            Needs::Nothing,
            capturing::files_are_whole_however_a_capture_ends,
        ),
        ("privileges_are_gone", Needs::Nothing, capturing::privileges_are_gone),
        (
            "captures_in_a_lab_and_what_is_refused",
            Needs::Nothing,
            capturing::captures_in_a_lab_and_what_is_refused,
        ),
        ("a_test_keeps_its_packets", Needs::Nothing, capturing::a_test_keeps_its_packets),
        ("killed_while_up", Needs::Nothing, many::killed_while_up),
        ("a_program_fails", Needs::Nothing, many::a_program_fails),
        ("bad_plans", Needs::Nothing, many::bad_plans),
        ("a_link_is_checked", Needs::Nothing, many::a_link_is_checked),
        ("the_machine_at_the_far_end", Needs::Nothing, many::the_machine_at_the_far_end),
        (
            "the_network_behind_the_machine",
            Needs::RootAndDevices,
            many::the_network_behind_the_machine,
        ),
        ("round_trips_are_as_asked", Needs::Nothing, ping_trace::round_trips_are_as_asked),
        ("pings_tell_loss_and_lateness", Needs::Nothing, ping_trace::pings_tell_loss_and_lateness),
        ("a_way_is_listed_in_order", Needs::Nothing, ping_trace::a_way_is_listed_in_order),
        (
            "what_does_not_arrive_says_why",
            Needs::Nothing,
            ping_trace::what_does_not_arrive_says_why,
        ),
        ("pings_can_be_interrupted", Needs::Nothing, ping_trace::pings_can_be_interrupted),
        ("a_path_is_seen_as_it_is", Needs::Nothing, doctor::a_path_is_seen_as_it_is),
        (
            "a_device_is_read_as_it_was_made",
            Needs::Nothing,
            doctor::a_device_is_read_as_it_was_made,
        ),
        ("middleboxes_are_found_out", Needs::Nothing, doctor::middleboxes_are_found_out),
        ("latency_under_load", Needs::Nothing, native::latency_under_load_is_the_queues),
        ("repeats_are_compared", Needs::Nothing, native::repeats_are_compared),
        (
            "a_window_is_found_and_an_earlier_baseline_compared",
            Needs::Nothing,
            baseline::a_window_is_found_and_an_earlier_baseline_compared,
        ),
        (
            "an_interrupted_baseline_keeps_its_tests",
            Needs::Iperf3,
            baseline::an_interrupted_baseline_keeps_its_tests,
        ),
        ("the_highest_rate_is_found", Needs::Nothing, native::the_highest_rate_is_found),
        ("no_privilege_is_needed", Needs::RootAndDevices, ping_trace::no_privilege_is_needed),
        ("a_killed_study_resumes", Needs::Nothing, studies::a_killed_study_resumes),
        ("a_full_disk_stops_a_study", Needs::Root, studies::a_full_disk_stops_a_study),
        ("a_disk_limits_a_study", Needs::Nothing, studies::a_disk_limits_a_study),
        (
            "exports_are_files_and_parquet_is_read_by_duckdb",
            Needs::Duckdb,
            studies::exports_are_files_and_parquet_is_read_by_duckdb,
        ),
        ("programs_are_traffic", Needs::Nothing, studies::programs_are_traffic),
        ("state_that_others_can_change_is_refused", Needs::Root, state::refused),
        ("earlier_journals_are_moved_and_planted_ones_are_not", Needs::Root, state::moved),
        (
            "planted_links_lead_no_output_of_roots_elsewhere",
            Needs::Root,
            output_files::planted_links_lead_no_output_of_roots_elsewhere,
        ),
        (
            "captures_have_the_rights_of_the_caller",
            Needs::Root,
            output_files::captures_have_the_rights_of_the_caller,
        ),
        ("killed_while_tuning", Needs::Root, tuning::killed_while_tuning),
        ("killed_while_changing_routes", Needs::Root, tuning::killed_while_changing_routes),
        (
            "a_route_is_tuned_for_programs_that_know_nothing_of_it",
            Needs::Root,
            tuning::a_route_is_tuned_for_programs_that_know_nothing_of_it,
        ),
        ("sysctls_of_hosts_are_reverted", Needs::Root, real_hosts::sysctls_of_hosts_are_reverted),
        (
            "udp_to_others_is_warned_about",
            Needs::Root,
            udp_safeguard::udp_to_others_is_warned_about,
        ),
        ("a_file_for_each_boot", Needs::Root, tuning::a_file_for_each_boot),
        ("a_labs_host_is_tuned", Needs::Nothing, tuning::a_labs_host_is_tuned),
        ("a_small_window_is_seen", Needs::Nothing, watching::a_small_window_is_seen),
        ("a_labs_host_is_watched", Needs::Nothing, watching::a_labs_host_is_watched),
        (
            "a_test_has_the_congestion_control_it_asked_for",
            Needs::Nothing,
            verify::a_test_has_the_congestion_control_it_asked_for,
        ),
        (
            "copies_survive_losses_and_blocked_udp",
            Needs::Nothing,
            copying::copies_survive_losses_and_blocked_udp,
        ),
        (
            "blocked_udt_switches_to_tcp_unless_it_is_encrypted",
            Needs::Nothing,
            udt::blocked_udt_switches_to_tcp_unless_it_is_encrypted,
        ),
        (
            "copies_pass_where_full_size_packets_vanish",
            Needs::Nothing,
            copying::copies_pass_where_full_size_packets_vanish,
        ),
        (
            "link_local_addresses_work_with_their_interface",
            Needs::Root,
            addresses::link_local_addresses_work_with_their_interface,
        ),
        (
            "answers_come_from_the_address_that_was_asked",
            Needs::Root,
            addresses::answers_come_from_the_address_that_was_asked,
        ),
        ("a_train_decides", Needs::Nothing, deciding::a_train_decides),
        ("what_is_broken_off_is_put_back", Needs::Nothing, verify::what_is_broken_off_is_put_back),
        ("our_client_its_server", Needs::Iperf3, wire::our_client_its_server),
        ("its_client_our_server", Needs::Iperf3, wire::its_client_our_server),
    ];
    let duckdb = Path::new(studies::DUCKDB).exists();
    let tcpdump = Command::new("tcpdump").arg("--version").output().is_ok();
    let trial = |(name, needs, test): (&'static str, Needs, fn())| {
        let met = match needs {
            Needs::Nothing => lab,
            Needs::Iperf3 => lab && iperf3,
            Needs::RootAndDevices => lab && devices,
            Needs::Tcpdump => lab && tcpdump,
            Needs::Root => tuning::can_be_done(),
            Needs::Duckdb => lab && duckdb,
            Needs::Held => lab && held,
            Needs::HeldAndRoot => lab && held && tuning::can_be_done(),
        };
        let trial = if is_alone(name) {
            stall_retry::trial_alone(name, test)
        } else {
            stall_retry::trial(name, test)
        };
        trial.with_ignored_flag(!met)
    };
    let (alone, beside): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| is_alone(test.0));
    assert_eq!(alone.len(), ALONE.len(), "a name in ALONE is of no test");
    beside.into_iter().chain(alone).map(trial).collect()
}

fn is_alone(name: &str) -> bool {
    ALONE.contains(&name)
}
