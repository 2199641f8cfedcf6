//! Each limit in transfers where nothing else comes near it.

use crate::transfer::{Transfer, over};
use control::Algorithm;
use diagnose::{deciding::DROPPING_ALIKE, explain};
use record::{Confidence, Decided, Finding, Limit};
use twin::Ecn;

/// Asserts the limit of the first `seeds` variations. A finding far from certain would be an
/// accident of the fit.
fn limited(limit: Limit, seeds: u64, transfer: &Transfer) -> Vec<Finding> {
    let explained = |seed| {
        let finding = explain(&transfer.run(seed));
        let context = format!("seed {seed}: {:?} {}", finding.posterior, finding.sentence);
        assert_eq!(finding.limit, Some(limit), "{context}");
        assert!(finding.posterior[0].probability > 0.6, "{context}");
        finding
    };
    (0..seeds).map(explained).collect()
}

/// The same of most variations, for limits that a draw may hide.
fn mostly(limit: Limit, least: usize, seeds: u64, transfer: &Transfer) {
    let findings: Vec<Finding> = (0..seeds).map(|seed| explain(&transfer.run(seed))).collect();
    let is_right =
        |finding: &&Finding| finding.limit == Some(limit) && finding.posterior[0].probability > 0.6;
    let right = findings.iter().filter(is_right).count();
    let sentences: Vec<&str> = findings.iter().map(|finding| finding.sentence.as_str()).collect();
    assert!(right >= least, "{right} of {seeds}: {sentences:#?}");
}

/// [`limited`] with the highest confidence.
fn surely(limit: Limit, transfer: &Transfer) -> Vec<Finding> {
    let found = limited(limit, 2, transfer);
    assert!(found.iter().any(|finding| finding.confidence == Some(Confidence::Sure)), "{found:?}");
    found
}

#[test]
fn a_receive_window_of_a_quarter_of_the_bdp() {
    for rtt_ms in [40.0, 200.0] {
        let path = over(40.0, rtt_ms, "queue=1bdp");
        surely(Limit::ReceiveWindow, &path.clone().receive_window(0.25));
        surely(Limit::ReceiveWindow, &path.receive_window(0.06).streams(4));
    }
    let bbr = over(40.0, 80.0, "queue=1bdp").congestion(Algorithm::Bbr);
    surely(Limit::ReceiveWindow, &bbr.receive_window(0.25));
}

#[test]
fn a_window_without_scaling() {
    for path in [over(50.0, 100.0, "queue=1bdp"), over(100.0, 40.0, "queue=1bdp")] {
        surely(Limit::WindowScaling, &path.unscaled());
    }
}

#[test]
fn a_send_buffer_of_a_part_of_the_bdp() {
    surely(Limit::SendBuffer, &over(40.0, 40.0, "queue=1bdp").send_buffer(0.25));
    surely(Limit::SendBuffer, &over(60.0, 150.0, "queue=1bdp").send_buffer(0.125));
    let bbr = over(60.0, 80.0, "queue=1bdp").congestion(Algorithm::Bbr);
    surely(Limit::SendBuffer, &bbr.send_buffer(0.25));
}

#[test]
fn an_application_that_writes_less_than_the_bottleneck_carries() {
    surely(Limit::Application, &over(50.0, 40.0, "queue=1bdp").requested(0.3));
    surely(Limit::Application, &over(100.0, 5.0, "queue=1bdp").requested(0.1));
}

#[test]
fn a_socket_paced_below_the_bottleneck() {
    surely(Limit::Pacing, &over(50.0, 40.0, "queue=1bdp").paced(0.3));
    surely(Limit::Pacing, &over(80.0, 20.0, "queue=1bdp").paced(0.1).streams(4));
}

#[test]
fn a_slow_receiving_application() {
    let slow = over(50.0, 80.0, "queue=1bdp").read_at(0.2).receive_window(2.0);
    limited(Limit::SlowReceiver, 2, &slow);
}

#[test]
fn a_test_that_ends_within_slow_start() {
    surely(Limit::Ramp, &over(500.0, 150.0, "queue=1bdp").seconds(1.0));
    surely(Limit::Ramp, &over(400.0, 250.0, "queue=1bdp").seconds(1.5));
}

#[test]
fn a_saturated_bottleneck_with_a_deep_queue() {
    for path in [over(20.0, 40.0, "queue=2bdp"), over(10.0, 20.0, "queue=4bdp")] {
        limited(Limit::PathRate, 2, &path.clone().seconds(8.0));
        limited(Limit::PathRate, 2, &path.congestion(Algorithm::NewReno).seconds(8.0));
    }
    limited(Limit::PathRate, 2, &over(40.0, 20.0, "queue=2bdp").streams(4));
    limited(Limit::PathRate, 2, &over(40.0, 40.0, "queue=2bdp").congestion(Algorithm::Bbr));
}

#[test]
fn a_managed_queue() {
    for queue in ["fq_codel", "codel"] {
        let path = over(20.0, 30.0, &format!("queue={queue},ecn=no"));
        limited(Limit::Aqm, 3, &path.seconds(8.0));
    }
}

#[test]
fn a_queue_that_marks() {
    let mut marked = over(50.0, 30.0, "queue=fq_codel,ecn=yes");
    marked.stream.ecn = Ecn::Classic;
    surely(Limit::EcnMarks, &marked);
}

#[test]
fn a_shallow_queue() {
    let reno = over(50.0, 30.0, "queue=0.1bdp").congestion(Algorithm::NewReno);
    limited(Limit::ShallowQueue, 2, &reno.seconds(8.0));
    limited(Limit::ShallowQueue, 2, &over(60.0, 40.0, "queue=0.15bdp").seconds(8.0));
}

#[test]
fn a_policer() {
    limited(Limit::Policer, 2, &over(80.0, 20.0, "queue=2bdp,police=15mbit:300000").seconds(8.0));
}

/// They drop the same packets, so no statistic is sure, and a train makes it so.
#[test]
fn a_policer_or_a_queue_is_sure_with_a_train_only() {
    let policed = over(80.0, 20.0, "queue=2bdp,police=15mbit:300000").seconds(8.0);
    let reno = over(50.0, 30.0, "queue=0.1bdp").congestion(Algorithm::NewReno).seconds(8.0);
    let [policer, queue] = DROPPING_ALIKE;
    let (mut likely, mut sure) = (0, 0);
    for (transfer, limit, other) in [(policed, policer, queue), (reno, queue, policer)] {
        for seed in 0..4 {
            let mut m = transfer.run(seed);
            let before = explain(&m);
            assert_ne!(before.confidence, Some(Confidence::Sure), "{}", before.sentence);
            assert!(before.segments.iter().all(|part| part.confidence != Some(Confidence::Sure)
                || !DROPPING_ALIKE.contains(&part.limit)));
            likely += u32::from(before.sentence.contains("a second test"));
            let probability = |finding: &Finding, of| {
                let found = finding.posterior.iter().find(|one| one.limit == of);
                found.map_or(0.0, |one| one.probability)
            };
            let both = probability(&before, limit) + probability(&before, other);
            // Against what the samples seem to say, too.
            for (shown, excluded) in [(limit, other), (other, limit)] {
                m.decided = Some(Decided {
                    between: vec![other, limit],
                    options: None,
                    throughput_bps: None,
                    limit: Some(shown),
                    sentence: String::new(),
                });
                let after = explain(&m);
                assert_eq!(after.limit, Some(shown), "{}", after.sentence);
                assert!(probability(&after, excluded) <= 0.01, "{:?}", after.posterior);
                assert!((probability(&after, shown) - both).abs() < 0.05, "{:?}", after.posterior);
                assert!(!after.sentence.contains("train of datagrams"), "{}", after.sentence);
                sure += u32::from(after.confidence == Some(Confidence::Sure));
            }
        }
    }
    assert!(likely >= 6 && sure >= 2, "{likely} {sure}");
}

#[test]
fn flows_that_share_the_bottleneck() {
    let shared = over(40.0, 30.0, "queue=1bdp").shared_with(&[0.0, 0.3, 0.6, 0.9]);
    limited(Limit::SharedBottleneck, 2, &shared.seconds(10.0));
}

#[test]
fn independent_loss() {
    limited(Limit::Loss, 3, &over(100.0, 60.0, "queue=1bdp,loss=0.5%").seconds(10.0));
    limited(Limit::Loss, 3, &over(100.0, 30.0, "queue=1bdp,loss=0.2%").seconds(10.0));
}

#[test]
fn clustered_loss() {
    let path = over(100.0, 20.0, "queue=1bdp,loss=ge:0.1%:10%:100%");
    mostly(Limit::ClusteredLoss, 8, 12, &path.seconds(10.0));
}

#[test]
fn reordering() {
    // Of 2 % the sender soon knows enough to fill the link.
    let path = over(100.0, 40.0, "queue=4bdp,reorder=5%:60ms");
    limited(Limit::Reordering, 2, &path.seconds(8.0));
}

#[test]
fn a_slow_path_of_the_acknowledgements() {
    let path = over(100.0, 30.0, "queue=1bdp,down.rate=500kbit,down.queue=100p");
    limited(Limit::AckPath, 2, &path.seconds(4.0));
}

#[test]
fn growth_after_a_single_early_loss() {
    let path = over(300.0, 200.0, "queue=1bdp,up.loss=list:300-302");
    let path = path.congestion(Algorithm::NewReno).seconds(8.0);
    mostly(Limit::CongestionAvoidance, 4, 5, &path);
}
