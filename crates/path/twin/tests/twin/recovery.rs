//! Losses, reordering, outages.

use crate::arrange::{bottleneck, goodput_share, listed, ms, packet_rate, scenario, unlimited};
use control::Algorithm;
use link::{Blackhole, LinkConfig, Loss, Reorder};
use record::SenderState;
use tcp::Application;
use twin::TruthInterval;
use units::{BitRate, ByteCount};

#[test]
fn one_loss_is_repaired_within_a_round_trip_and_without_a_timeout() {
    let (forward, reverse) = unlimited(100);
    let forward = LinkConfig { loss: listed(&[100]), ..forward };
    let outcome = twin::run(&scenario((forward, reverse), Algorithm::NewReno, 2));
    let samples = &outcome.measurement.streams[0].sender;
    assert_eq!(samples.last().unwrap().retransmits, 1);
    // Packets 80 to 160 leave 0.3 s after the start: the loss is known at 0.4 s and
    // repaired at 0.5 s.
    let acked = |t: f64| samples.iter().find(|sample| sample.t_s >= t).unwrap().acked_bytes / 1448;
    assert_eq!(acked(0.47), 99);
    assert!(acked(0.53) >= 150, "{}", acked(0.53));
}

#[test]
fn many_losses_of_one_window_are_repaired_within_a_round_trip() {
    let (forward, reverse) = unlimited(100);
    let lost: Vec<u64> = (320..480).step_by(2).collect();
    let forward = LinkConfig { loss: listed(&lost), ..forward };
    let outcome = twin::run(&scenario((forward, reverse), Algorithm::NewReno, 3));
    let samples = &outcome.measurement.streams[0].sender;
    assert_eq!(samples.last().unwrap().retransmits, 80);
    let mut stalled = samples.iter().filter(|sample| sample.acked_bytes / 1448 == 319);
    let seconds = -stalled.next().unwrap().t_s + stalled.next_back().unwrap().t_s;
    // The window is halved: the retransmissions take a little over a round trip.
    assert!(seconds < 0.25, "{seconds}");
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe_before_the_timeout() {
    let (forward, reverse) = unlimited(50);
    // Twenty packets, of which the last two are lost: nothing follows them.
    let forward = LinkConfig { loss: listed(&[19, 20]), ..forward };
    let mut scenario = scenario((forward, reverse), Algorithm::NewReno, 1);
    let block = ByteCount::from_bytes(20 * 1448);
    scenario.connections[0].application =
        Application::Rate { rate: BitRate::from_bps(1_000), block };
    let outcome = twin::run(&scenario);
    let samples = &outcome.measurement.streams[0].sender;
    // The last acknowledgement comes at 0.1 s, the probe leaves two RTTs later. The
    // timeout would be at 0.35 s, and repair one packet by 0.4 s.
    let repaired = samples.iter().find(|sample| sample.acked_bytes / 1448 >= 20).unwrap();
    assert!(repaired.t_s < 0.33, "{}", repaired.t_s);
    assert!(outcome.senders[0].cwnd >= 5, "{:?}", outcome.senders[0]);
}

#[test]
fn a_blackhole_ends_with_a_timeout_and_slow_start() {
    let (forward, reverse) = bottleneck(50, 50, 1.0);
    let blackhole = Some(Blackhole { length: ms(2_000), every: ms(10_000) });
    let forward = LinkConfig { blackhole, ..forward };
    let outcome = twin::run(&scenario((forward, reverse), Algorithm::Cubic, 14));
    let samples = &outcome.measurement.streams[0].sender;
    let at = |t: f64| samples.iter().find(|sample| sample.t_s >= t).unwrap();
    assert_eq!(at(9.9).cwnd_bytes, 1448);
    assert!(packet_rate(&outcome, 0, 8.5, 10.0) < 1.0);
    // The timeouts are backed off during the outage, 250 ms, 500 ms, 1 s: all is well
    // again within two seconds.
    let share = goodput_share(&outcome, 50, 12.5, 14.0);
    assert!(share > 0.9, "{share}");
    assert!(outcome.truth.iter().map(|interval| interval.drops.blackhole).sum::<u64>() > 100);
    let state =
        |t: f64| outcome.truth.iter().find(|one| one.to_s >= t).unwrap().connections[0].state;
    assert_eq!([state(0.2), state(9.5)], [SenderState::SlowStart, SenderState::Loss]);
    let avoids = |one: &TruthInterval| one.connections[0].state == SenderState::CongestionAvoidance;
    assert!(outcome.truth.iter().filter(|one| avoids(one)).count() > 40);
}

#[test]
fn bbr_has_states_of_its_own() {
    for algorithm in [Algorithm::Bbr, Algorithm::Bbr3] {
        let outcome = twin::run(&scenario(bottleneck(50, 50, 1.0), algorithm, 12));
        let of = |state| move |one: &&TruthInterval| one.connections[0].state == state;
        let share = |state| outcome.truth.iter().filter(of(state)).count();
        let usual = share(SenderState::ProbeBandwidth);
        assert!(usual > 80, "{algorithm:?}: {usual}");
        assert!(share(SenderState::Startup) > 0 && share(SenderState::ProbeRtt) > 0);
        assert_eq!(share(SenderState::CongestionAvoidance), 0, "{algorithm:?}");
        let is_told = |one: &TruthInterval| {
            let truth = &one.connections[0];
            truth.slow_start == (truth.state == SenderState::Startup)
        };
        assert!(outcome.truth.iter().all(is_told), "{algorithm:?}: startup is slow start");
    }
}

#[test]
fn reordering_does_not_collapse_the_rate() {
    for by_ms in [2, 10] {
        let (forward, reverse) = bottleneck(50, 50, 1.0);
        let share = "1%".parse().unwrap();
        let reorder = Some(Reorder { share, by: ms(by_ms) });
        let forward = LinkConfig { reorder, ..forward };
        let outcome = twin::run(&scenario((forward, reverse), Algorithm::Cubic, 20));
        let share = goodput_share(&outcome, 50, 5.0, 20.0);
        assert!(share > 0.85, "{by_ms} ms: {share}");
    }
}

#[test]
fn random_loss_does_not_lead_to_timeouts() {
    let (forward, reverse) = unlimited(50);
    let forward = LinkConfig { loss: Loss::Bernoulli("1%".parse().unwrap()), ..forward };
    let outcome = twin::run(&scenario((forward, reverse), Algorithm::NewReno, 60));
    let samples = &outcome.measurement.streams[0].sender;
    // A timeout leaves a window of one packet.
    let collapsed = samples.iter().filter(|sample| sample.cwnd_bytes == 1448).count();
    assert!(collapsed * 50 < samples.len(), "{collapsed} of {}", samples.len());
    let lost = outcome.truth.iter().map(|interval| interval.lost).sum::<u64>();
    let resent = outcome.senders[0].retransmits;
    assert!(resent.abs_diff(lost) <= lost / 20 + 2, "{resent} retransmitted, {lost} lost");
}
