//! The same transfers with less to go by: the less is known, the lower the confidence.

use crate::{
    segments::are_sound,
    transfer::{Transfer, every, older, over, receiver_only, sender_only, watched},
};
use diagnose::explain;
use record::{Confidence, Limit, Measurement};

/// Transfers that every vantage point tells apart, with their limits.
fn clear() -> [(Limit, Transfer); 7] {
    let path = over(40.0, 40.0, "queue=1bdp");
    [
        (Limit::ReceiveWindow, path.clone().receive_window(0.25)),
        (Limit::WindowScaling, over(100.0, 40.0, "queue=1bdp").unscaled()),
        (Limit::SendBuffer, path.clone().send_buffer(0.25)),
        (Limit::Application, path.clone().requested(0.3)),
        (Limit::PathRate, over(20.0, 40.0, "queue=2bdp")),
        (Limit::Loss, over(100.0, 30.0, "queue=1bdp,loss=0.2%")),
        (Limit::Aqm, over(20.0, 30.0, "queue=fq_codel,ecn=no")),
    ]
}

/// Never sure of a wrong limit; `named`: limits that it must name.
fn seen(named: &[Limit], view: impl Fn(Measurement) -> Measurement) {
    for (limit, transfer) in clear() {
        let finding = explain(&view(transfer.run(0)));
        are_sound(&finding);
        let context = format!("{limit:?}: {:?} {}", finding.posterior, finding.sentence);
        let right = finding.limit == Some(limit);
        assert!(right || finding.confidence != Some(Confidence::Sure), "{context}");
        assert!(right || !named.contains(&limit), "{context}");
    }
}

const BY_THE_TIMERS: [Limit; 3] = [Limit::ReceiveWindow, Limit::SendBuffer, Limit::Application];

#[test]
fn the_sender_alone() {
    seen(&[&BY_THE_TIMERS[..], &[Limit::PathRate, Limit::Loss]].concat(), sender_only);
}

#[test]
fn samples_of_a_tenth_of_a_second() {
    let all = [Limit::WindowScaling, Limit::PathRate, Limit::Loss];
    seen(&[&BY_THE_TIMERS[..], &all].concat(), |m| every(m, 0.1));
}

#[test]
fn files_without_the_newer_fields() {
    // Without the window scale, a window below 64 KiB may be one without scaling.
    seen(&[Limit::SendBuffer, Limit::PathRate], older);
}

#[test]
fn samples_of_a_second() {
    seen(&BY_THE_TIMERS, |m| every(m, 1.0));
}

#[test]
fn a_watched_connection() {
    seen(&BY_THE_TIMERS, watched);
    for (_, transfer) in clear() {
        let sentence = explain(&watched(transfer.run(0))).sentence;
        for option in ["-w ", "-b ", "-C ", "-P ", "test"] {
            assert!(!sentence.contains(option), "{sentence}");
        }
        assert!(sentence.len() < 200, "{sentence}");
    }
}

#[test]
fn the_receiver_alone() {
    seen(&[], receiver_only);
    let finding = explain(&receiver_only(clear()[0].1.run(0)));
    assert_eq!(finding.shares, None);
    assert!(finding.throughput_bps.as_f64() > 9e6, "{finding:?}");
}

/// An application that writes at a constant rate looks like a bottleneck from there.
#[test]
fn the_receiver_of_a_watched_connection_names_only_its_own_limits() {
    let paced = over(100.0, 2.0, "queue=2bdp").requested(0.5);
    for transfer in clear().map(|(_, transfer)| transfer).into_iter().chain([paced]) {
        let mut m = receiver_only(transfer.run(0));
        m.streams.iter_mut().for_each(|stream| stream.watched = true);
        m.spec.rate_bps = None;
        let finding = explain(&m);
        let own = [Limit::ReceiveWindow, Limit::WindowScaling, Limit::SlowReceiver];
        assert!(finding.limit.is_none_or(|limit| own.contains(&limit)), "{finding:?}");
    }
}
