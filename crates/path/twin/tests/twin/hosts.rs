//! Hosts that pause, and what a receiver samples.

use crate::arrange::{MSS, bottleneck, evenly, ms, scenario, unlimited};
use control::Algorithm;
use record::ReceiverSample;
use twin::{HostPauses, Outcome, Scenario};

/// Pauses of 5 ms, 50 ms apart.
fn pauses() -> Option<HostPauses> {
    Some(HostPauses::Random { every: ms(50), length: ms(5), seed: 7 })
}

fn received(outcome: &Outcome) -> &[ReceiverSample] {
    &outcome.measurement.streams[0].receiver
}

/// Acknowledgements then come in bursts, which a queue of 20 packets does not hold.
#[test]
fn a_receiver_that_pauses_makes_the_sender_burst() {
    let path = || bottleneck(50, 40, 0.12);
    let steady = twin::run(&scenario(path(), Algorithm::Cubic, 20));
    let paused =
        twin::run(&Scenario { receiving_host: pauses(), ..scenario(path(), Algorithm::Cubic, 20) });
    let [one, other] = [&steady, &paused].map(|o| (o.read[0], o.forward.queue_drops));
    assert!(other.0 < one.0 && other.1 > one.1, "{one:?} {other:?}");
}

#[test]
fn a_sender_that_pauses_sends_less_but_goes_on() {
    let path = || unlimited(20);
    let bulk = |sending_host| {
        let mut scenario = Scenario { sending_host, ..scenario(path(), Algorithm::NewReno, 10) };
        scenario.connections[0].window =
            tcp::WindowSize::Fixed(units::ByteCount::from_bytes(200 * MSS));
        twin::run(&scenario).read[0]
    };
    let (steady, paused) = (bulk(None), bulk(pauses()));
    let share = paused as f64 / steady as f64;
    assert!((0.6..0.99).contains(&share), "{share}");
}

/// 200 packets of window over 40 ms and no queue; then the same behind a queue.
#[test]
fn a_receiver_estimates_the_round_trip_with_its_queue() {
    let rtt_ms = |outcome: &Outcome| {
        let rtts = received(outcome).iter().filter(|s| s.t_s > 5.0).filter_map(|s| s.rtt_us);
        let rtts: Vec<f64> = rtts.map(|us| f64::from(us) / 1e3).collect();
        rtts.iter().sum::<f64>() / rtts.len() as f64
    };
    let idle = twin::run(&scenario(unlimited(40), Algorithm::Bbr, 2));
    assert!(received(&idle).iter().all(|s| s.min_rtt_us == Some(40_000)));
    let mut small = scenario(bottleneck(50, 40, 4.0), Algorithm::Cubic, 10);
    small.connections[0].window = tcp::WindowSize::Fixed(units::ByteCount::from_bytes(100 * MSS));
    let unqueued = rtt_ms(&twin::run(&small));
    assert!((39.0..44.0).contains(&unqueued), "{unqueued}");
    let queued = rtt_ms(&twin::run(&scenario(bottleneck(50, 40, 4.0), Algorithm::Cubic, 10)));
    assert!(queued > 80.0, "{queued}");
}

#[test]
fn what_follows_a_loss_arrives_out_of_order() {
    let last = |outcome: &Outcome| *received(outcome).last().unwrap();
    let clean = last(&twin::run(&scenario(bottleneck(10, 20, 40.0), Algorithm::Cubic, 5)));
    assert_eq!((clean.out_of_order, clean.unread_bytes), (Some(0), Some(0)));
    let (mut forward, reverse) = bottleneck(10, 20, 40.0);
    forward.loss = evenly(1_000);
    let lossy = last(&twin::run(&scenario((forward, reverse), Algorithm::Cubic, 5)));
    let (late, segments) = (lossy.out_of_order.unwrap(), lossy.segments.unwrap());
    assert!(late > 20 && late < segments / 4, "{late} of {segments}");
}
