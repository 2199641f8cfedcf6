//! Acknowledgements of pushed segments.

use crate::arrange::{MSS, ms, scenario, unlimited};
use control::Algorithm;
use std::ops::ControlFlow;
use std::time::Duration;
use tcp::{Acknowledgement, Application, Segments};
use twin::{Host, Observer};
use units::{BitRate, ByteCount, Nanos};

/// When packets left and when their acknowledgements came.
#[derive(Default)]
struct Seen {
    sent: Vec<Segments>,
    acknowledged: Vec<(Nanos, u64)>,
}

impl Observer for Seen {
    fn data(&mut self, _: Nanos, host: Host, _: u32, segments: &Segments, _: bool) {
        if host == Host::Sending {
            self.sent.push(*segments);
        }
    }

    fn acknowledgement(&mut self, now: Nanos, host: Host, _: u32, what: &Acknowledgement) {
        if host == Host::Sending {
            self.acknowledged.push((now, what.next));
        }
    }

    fn passed(&mut self, _: Nanos, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn the_end_of_a_write_is_not_acknowledged_late() {
    let mut scenario = scenario(unlimited(20), Algorithm::Cubic, 4);
    let block = ByteCount::from_bytes(3 * MSS);
    // A write each 50 ms.
    let rate = BitRate::from_bps(3 * MSS * 8 * 20);
    scenario.connections[0].application = Application::Rate { rate, block };
    let mut seen = Seen::default();
    twin::run_observed(&scenario, &mut seen);
    let writes: Vec<_> = seen.sent.iter().filter(|one| one.run.end.is_multiple_of(3)).collect();
    assert!(writes.len() > 70 && writes.iter().all(|one| one.pushed), "{writes:?}");
    for write in writes {
        let limit = write.sent.plus(Duration::from_micros(20_100));
        let end = Nanos(0).plus(scenario.duration);
        let came = seen.acknowledged.iter().find(|(_, next)| *next >= write.run.end);
        let is_prompt = came.map_or(limit > end, |(at, _)| *at <= limit);
        assert!(is_prompt, "{write:?} by {came:?}");
    }
    assert!(scenario.duration > ms(3_000));
}
