//! When a receiver acknowledges at once.

use crate::arrange::{MSS, bottleneck, ms, scenario, unlimited};
use control::Algorithm;
use tcp::{Acknowledgement, Application, Segments, WindowSize};
use twin::{Host, Observer};
use units::{BitRate, ByteCount, Nanos};

/// When packets left and when their acknowledgements came.
#[derive(Default)]
struct Trace {
    sent: Vec<Segments>,
    acknowledged: Vec<(Nanos, Acknowledgement)>,
}

impl Observer for Trace {
    fn data(&mut self, _: Nanos, host: Host, _: u32, segments: &Segments, _: bool) {
        if host == Host::Sending {
            self.sent.push(*segments);
        }
    }

    fn acknowledgement(&mut self, now: Nanos, host: Host, _: u32, what: &Acknowledgement) {
        if host == Host::Sending {
            self.acknowledged.push((now, *what));
        }
    }
}

#[test]
fn the_end_of_a_write_is_acknowledged_at_once() {
    let mut scenario = scenario(unlimited(20), Algorithm::Cubic, 4);
    // Each 50 ms: a burst of two packets and a single one, which has none to wait for.
    let rate = BitRate::from_bps(3 * MSS * 8 * 20);
    let block = ByteCount::from_bytes(3 * MSS);
    scenario.connections[0].application = Application::Rate { rate, block };
    let mut trace = Trace::default();
    let outcome = twin::run_observed(&scenario, &mut trace);
    let written: Vec<&Segments> =
        trace.sent.iter().filter(|one| one.run.end.is_multiple_of(3)).collect();
    assert!(written.len() > 70 && outcome.senders[0].retransmits == 0);
    for end in written.iter().take(70) {
        let came = trace.acknowledged.iter().find(|(_, what)| what.next >= end.run.end).unwrap();
        assert!(end.pushed && came.0 <= end.sent.plus(ms(21)), "{end:?} by {came:?}");
    }
}

#[test]
fn each_packet_is_acknowledged_while_the_window_opens() {
    let mut scenario = scenario(bottleneck(10, 100, 4.0), Algorithm::Cubic, 2);
    scenario.connections[0].window = WindowSize::Auto(ByteCount::from_bytes(16 << 20));
    let mut trace = Trace::default();
    let outcome = twin::run_observed(&scenario, &mut trace);
    assert_eq!(outcome.senders[0].retransmits, 0);
    let steps = trace.acknowledged.windows(2).map(|pair| {
        let [before, after] = [&pair[0].1, &pair[1].1];
        (after.next - before.next, after.window.saturating_sub(before.window))
    });
    let (opening, steady): (Vec<_>, Vec<_>) = steps.partition(|(_, opened)| *opened > 0);
    assert!(opening.len() > 200, "{opening:?}");
    // The first may also acknowledge a packet that waited for another one.
    let single = opening.iter().filter(|(packets, _)| *packets == 1).count();
    assert!(single + 3 >= opening.len(), "{opening:?}");
    assert!(opening.iter().all(|(_, opened)| *opened <= 2), "{opening:?}");
    let pairs = steady.iter().filter(|(packets, _)| *packets == 2).count();
    assert!(pairs > 100, "{steady:?}");
}
