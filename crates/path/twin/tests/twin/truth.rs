//! The ground truth counts what the links and the receivers counted.

use crate::arrange::{bottleneck, scenario};
use control::Algorithm;
use link::Reorder;
use twin::{ConnectionConfig, Outcome};

fn sum(outcome: &Outcome, of: impl Fn(&twin::TruthInterval) -> u64) -> u64 {
    outcome.truth.iter().map(of).sum()
}

#[test]
fn drops_are_those_of_the_connection_whose_packet_it_was() {
    let mut shared = scenario(bottleneck(20, 20, 0.3), Algorithm::Cubic, 5);
    shared.connections.push(ConnectionConfig { measured: false, ..ConnectionConfig::default() });
    let outcome = twin::run(&shared);
    let of = |index: usize| sum(&outcome, |i| i.connections[index].drops.queue);
    assert!(of(0) > 0 && of(1) > 0);
    assert_eq!(of(0) + of(1), outcome.forward.queue_drops);
    // Every dropped packet was retransmitted, except for the last drops.
    let again = sum(&outcome, |i| i.connections[0].retransmits);
    assert!(again.abs_diff(of(0)) <= 2 + of(0) / 10, "{again} for {}", of(0));
    assert!(outcome.truth.iter().all(|i| i.connections[0].measured && !i.connections[1].measured));
    assert_eq!(sum(&outcome, |i| i.sent_bytes), outcome.forward.sent_bytes);
    assert_eq!(sum(&outcome, |i| i.reverse.arrived), outcome.reverse.arrived);
    assert!(sum(&outcome, |i| i.connections[0].reductions) > 2);
}

#[test]
fn needless_retransmissions_are_those_that_arrive_twice() {
    let (mut forward, reverse) = bottleneck(20, 40, 4.0);
    let by = std::time::Duration::from_millis(200);
    forward.reorder = Some(Reorder { share: "0.5%".parse().unwrap(), by });
    let outcome = twin::run(&scenario((forward, reverse), Algorithm::Cubic, 30));
    let twice = sum(&outcome, |i| i.connections[0].duplicates);
    assert!(twice > 10, "{twice}");
    assert_eq!(sum(&outcome, |i| i.lost + i.drops.queue), 0);
    assert_eq!(sum(&outcome, |i| i.connections[0].retransmits), outcome.senders[0].retransmits);
    assert!(outcome.senders[0].reductions.undone > 0);
}
