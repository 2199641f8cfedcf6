//! The XCP router against the equations of its paper (Katabi, Handley, Rohrs, SIGCOMM 2002).

use crate::arrange::{MILLISECOND, ROOM, SECOND, ms, queueing};
use link::{CongestionHeader, Link, Queue, Train, Xcp};
use units::{Nanos, WindowChange};

/// At 12 Mbit/s a packet of 1500 bytes takes 1 ms.
const RATE: u64 = 12_000_000;
const SIZE: u32 = 1_500;

fn router() -> Link<u32> {
    queueing(RATE, Queue::Xcp(Xcp { limit: ROOM }))
}

/// A sender of packets at equal distances.
struct Source {
    every_us: u64,
    header: Option<CongestionHeader>,
}

fn source(every_us: u64, rtt_ms: u64, window: u64) -> Source {
    Source { every_us, header: Some(CongestionHeader::new(ms(rtt_ms), window)) }
}

/// What each source is granted with the packets that arrive within a span, in packets.
fn granted(link: &mut Link<u32>, sources: &[Source], from_s: f64, to_s: f64) -> Vec<f64> {
    let mut sums = vec![WindowChange::NONE; sources.len()];
    let span = (from_s * SECOND as f64) as u64..(to_s * SECOND as f64) as u64;
    for us in 0..span.end / 1_000 {
        let now = Nanos(us * 1_000);
        for (at, source) in sources.iter().enumerate() {
            if us % source.every_us == 0 {
                let train = Train::single(SIZE).with_congestion_header(source.header);
                link.arrive(now, train, at as u32);
            }
        }
        while let Some(delivery) = link.release(now) {
            if span.contains(&now.0) {
                let sum = &mut sums[delivery.payload as usize];
                *sum = *sum + delivery.feedback.of_all(1);
            }
        }
    }
    sums.into_iter().map(WindowChange::packets).collect()
}

fn near(measured: f64, expected: f64) {
    assert!((measured / expected - 1.0).abs() < 0.05, "{measured} where {expected} is expected");
}

#[test]
fn spare_rate_is_granted_by_four_tenths_a_round_trip() {
    // 10 packets in each RTT of 100 ms, of the 100 that the link carries: phi is 0.4 of 90, in
    // each of ten intervals.
    let sums = granted(&mut router(), &[source(10_000, 100, 10)], 1.0, 2.0);
    near(sums[0], 0.4 * 90.0 * 10.0);
}

#[test]
fn packets_without_a_header_take_their_part_and_are_told_nothing() {
    let plain = Source { every_us: 2_000, header: None };
    let sums = granted(&mut router(), &[source(10_000, 100, 10), plain], 1.0, 2.0);
    near(sums[0], 0.4 * 40.0 * 10.0);
    assert_eq!(sums[1], 0.0);
}

#[test]
fn spare_rate_is_shared_equally_whatever_the_round_trips() {
    // Both send 200 packets a second. In a round trip ten times as long, a window grows by ten
    // times as much for the same rate, over ten times fewer round trips: a window has to grow by
    // R times what the rate grows by.
    let sources = [source(5_000, 50, 10), source(5_000, 500, 100)];
    let sums = granted(&mut router(), &sources, 2.0, 6.0);
    near(sums[1] / sums[0], 10.0);
}

#[test]
fn a_standing_queue_is_taken_back() {
    // 1.25 times the rate: the spare rate is -250 packets/s, and the queue grows by 250 a second,
    // to 375 in the middle of the second one. Four packets leave while five arrive, so that four
    // fifths of phi are told.
    let sums = granted(&mut router(), &[source(800, 100, 125)], 1.0, 2.0);
    let (spare, queue) = (0.4 * 0.1 * -250.0, -0.226 * 375.0);
    near(sums[0], (spare + queue) * 0.8 * 10.0);
}

#[test]
fn a_full_link_shuffles_a_tenth_from_the_faster_to_the_slower_flow() {
    // 750 and 250 packets a second, of 1000.
    let sources = [source(1_333, 100, 75), source(4_000, 100, 25)];
    let sums = granted(&mut router(), &sources, 2.0, 4.0);
    let all: f64 = sums.iter().sum();
    // 10 packets are shuffled an interval: of each gift a half, of each loss three quarters.
    near(sums[1], (5.0 - 2.5) * 20.0);
    near(sums[0], (5.0 - 7.5) * 20.0);
    assert!(all.abs() < 5.0, "{all}");
}

#[test]
fn a_pause_is_no_queue_and_no_traffic() {
    let mut link = router();
    let header = Some(CongestionHeader::new(ms(100), 10));
    let train = Train::single(SIZE).with_congestion_header(header);
    link.arrive(Nanos(0), train, 0);
    link.arrive(Nanos(50 * SECOND), train, 0);
    let last = Nanos(50 * SECOND + 100 * MILLISECOND);
    let told: Vec<f64> = std::iter::from_fn(|| link.release(last))
        .map(|delivery| delivery.feedback.of_all(1).packets())
        .collect();
    assert_eq!(told.len(), 2);
    // The first one's sums are those of an interval of 50 s; a single packet has all of it.
    assert!(told[0] == 0.0 && told[1].is_finite() && told[1] >= 0.0, "{told:?}");
}
