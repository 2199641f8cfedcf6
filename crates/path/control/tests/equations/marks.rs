//! DCTCP under marks of a steady share of packets.

use crate::path::{Connection, Path, within};
use control::{Arithmetic, Dctcp, Phase};

/// Packets from one mark to the next: uniformly random with a mean of 1/p, or always 1/p.
struct Marks {
    p: f64,
    random: bool,
    state: u64,
}

impl Marks {
    fn is_marked(&mut self, packet: u64) -> bool {
        if !self.random {
            return packet.is_multiple_of((1.0 / self.p) as u64);
        }
        // Knuth's MMIX generator; the upper bits are good enough for a mean.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 11) as f64 / (1_u64 << 53) as f64) < self.p
    }
}

/// Mean window times p, the first quarter left out.
fn product(arithmetic: Arithmetic, mut marks: Marks) -> f64 {
    const PACKETS: u64 = 800_000;
    let path = Path::of(0.01);
    let mut dctcp =
        Connection::new(Dctcp::new(arithmetic), arithmetic, path, (2.0 / marks.p) as u64);
    let mut end = 0;
    let mut from = None;
    for packet in 0..PACKETS {
        let marked = marks.is_marked(packet);
        if dctcp.phase == Phase::Recovery && dctcp.acked() >= end {
            dctcp.end_recovery();
        }
        if marked && dctcp.phase == Phase::Open {
            end = dctcp.acked() + dctcp.window() as u64;
            dctcp.congestion(0);
        }
        dctcp.ack(1, u64::from(marked));
        if packet == PACKETS / 4 {
            from = Some(dctcp.now_s);
        }
    }
    let packets = (PACKETS - PACKETS / 4) as f64;
    packets * path.rtt_s / (dctcp.now_s - from.unwrap()) * marks.p
}

#[test]
fn evenly_spaced_marks_hold_two_of_them_in_the_window() {
    // One packet of growth a round trip against a reduction by p / 2 in each: w = 2 / p.
    for p in [0.02, 0.005] {
        let product = product(Arithmetic::Paper, Marks { p, random: false, state: 1 });
        within(&format!("dctcp, even, p w, {p}"), product, 2.0, 0.03);
    }
}

#[test]
fn random_marks_hold_more_as_the_first_after_a_round_trip_has_to_come() {
    // A reduction each 1 + 1 / (p w) round trips: x = p w solves x^2 - 2 x - 2 = 0.
    let expected = 1.0 + f64::sqrt(3.0);
    for p in [0.02, 0.01] {
        let product = product(Arithmetic::Paper, Marks { p, random: true, state: 1 });
        within(&format!("dctcp, random, p w, {p}"), product, expected, 0.06);
    }
}

#[test]
fn the_kernel_reduces_less_as_it_loses_small_shares() {
    // A round trip adds F / 16 to alpha in whole 1/1024: below 1.6 % of marked packets nothing.
    let product = product(Arithmetic::Kernel, Marks { p: 0.02, random: true, state: 1 });
    println!("dctcp, kernel, random, p w: {product:.2}");
    assert!((3.0..5.0).contains(&product), "{product}");
}
