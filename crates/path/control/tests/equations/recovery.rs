//! Time from the end of one loss's recovery until the window is what it was, at 10 Gbit/s over
//! 100 ms: 83 333 packets.

use crate::path::{Connection, Path, within};
use control::{
    Arithmetic, Bic, CubicPaper, FastConvergence, HighSpeed, Htcp, Illinois, Law, NewReno, Scalable,
};

const FULL: u64 = 83_333;
const RTT_S: f64 = 0.1;

/// Seconds until that window.
fn seconds<L: Law + Copy>(connection: &mut Connection<L>, window: u64) -> f64 {
    connection.lose();
    let began_s = connection.now_s;
    let each = connection.window() as u64 / connection.acks;
    // Well above the longest.
    while connection.window() < window as f64 && connection.now_s - began_s < 10_000.0 {
        connection.ack(each.max(1), 0);
    }
    connection.now_s - began_s
}

fn recovers<L: Law + Copy>(name: &str, law: L, expected_s: f64) {
    let mut connection = Connection::new(law, Arithmetic::Paper, Path::of(RTT_S), FULL);
    within(&format!("{name}, s"), seconds(&mut connection, FULL), expected_s, 0.02);
}

#[test]
fn the_full_window_returns_after_the_time_by_theory() {
    recovers("reno", NewReno, 4_167.0);
    recovers("cubic", CubicPaper::new(FastConvergence::On), 39.7);
    recovers("htcp", Htcp::default(), 25.3);
    recovers("highspeed", HighSpeed::default(), 12.0);
    recovers("scalable", Scalable, 1.34);
}

#[test]
fn illinois_needs_a_tenth_of_the_lost_window_in_round_trips() {
    let mut connection =
        Connection::new(Illinois::default(), Arithmetic::Paper, Path::of(RTT_S), FULL - 20);
    // Two round trips show that there is no delay.
    connection.acknowledge(2 * FULL);
    let full = connection.window();
    within("illinois, s", seconds(&mut connection, full as u64), full / 8.0 / 10.0 * RTT_S, 0.02);
}

#[test]
fn bic_in_the_kernel_grows_by_31_packets_a_round_trip_up_to_the_binary_search() {
    // At 1 Gbit/s; at 10 Gbit/s the same takes ten times as many round trips. Smax is 16, but the
    // average of packets per acknowledgement begins at 2 and, rounded down, stays at 31/16 where
    // each acknowledgement covers one packet: 54 s at 10 Gbit/s, not 104.
    let mut connection =
        Connection::new(Bic::default(), Arithmetic::Kernel, Path::of(RTT_S), FULL / 10);
    connection.acks = u64::MAX;
    connection.acknowledge(200);
    let full = connection.control.window().cwnd();
    let lost = full - full * 819 / 1_024;
    let rounds = (lost - 64) as f64 / 31.0;
    within("bic, kernel, s", seconds(&mut connection, full - 64), rounds * RTT_S, 0.02);
}
