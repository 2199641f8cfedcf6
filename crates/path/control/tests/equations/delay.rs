//! Controls by delay at a bottleneck with an endless queue.

use crate::path::{Connection, Path, within};
use control::{Arithmetic, Fast, Law, Vegas, Westwood};

/// 100 Mbit/s over 50 ms: 417 packets.
const BDP: f64 = 8_333.0 * 0.05;
const PATH: Path = Path { rtt_s: 0.05, bottleneck: Some(8_333.0) };

/// Packets queued after a thousand round trips from an empty path.
fn queued<L: Law + Copy>(law: L, arithmetic: Arithmetic) -> f64 {
    let mut connection = Connection::new(law, arithmetic, PATH, 100);
    connection.acknowledge(1_000 * BDP as u64);
    connection.window() - BDP
}

#[test]
fn vegas_keeps_two_to_four_packets_queued() {
    for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
        let queued = queued(Vegas::default(), arithmetic);
        println!("vegas, {arithmetic:?}: {queued:.2}");
        // In whole packets queued plus window.
        assert!((1.0..=5.0).contains(&queued), "{arithmetic:?}: {queued}");
    }
}

#[test]
fn fast_keeps_its_backlog_queued() {
    for backlog in [5, 20, 200] {
        let queued = queued(Fast::new(backlog), Arithmetic::Paper);
        within(&format!("fast, {backlog} packets"), queued, f64::from(backlog), 0.02);
    }
}

#[test]
fn westwood_falls_to_bandwidth_times_minimum_rtt() {
    for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
        let mut connection = Connection::new(Westwood::new(1_448), arithmetic, PATH, 100);
        while connection.window() < 1.6 * BDP {
            connection.acknowledge(100);
        }
        connection.lose();
        // The kernel rounds the minimum RTT of 50 ms up to 13 ticks of 4 ms.
        let (expected, tolerance) = match arithmetic {
            Arithmetic::Kernel => (BDP * 52.0 / 50.0, 0.06),
            Arithmetic::Paper => (BDP, 0.02),
        };
        within(&format!("westwood, {arithmetic:?}"), connection.window(), expected, tolerance);
    }
}
