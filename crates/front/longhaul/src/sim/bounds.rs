//! What a simulation takes at most, known before it runs.

use crate::{Field, Problem};
use record::{ReceiverSample, Sample};
use std::time::Duration;
use topology::PathSpec;
use twin::{ConnectionTruth, TruthInterval};
use units::{BitRate, ByteCount, Rtt, significant};

/// The longest simulated time, s.
pub(super) const MAX_SECONDS: f64 = 100_000.0;

/// Most data packets of a simulation.
const MAX_PACKETS: u64 = 100_000_000_000;

/// Most data packets over a path whose rate does not bound them.
pub(super) const MAX_PACKETS_WITHOUT_RATE: u64 = 100_000_000;

/// Most memory of a simulation.
const MAX_MEMORY: ByteCount = ByteCount::from_bytes(4 << 30);

/// Samples of each flow and the ground truth: every 100 ms, and every 10 ms in the first 2 s.
const SAMPLES_PER_S: f64 = 10.0;
const RAMP_SAMPLES: f64 = 200.0;

/// Memory of a flow that has sent nothing.
const FLOW_BYTES: f64 = 4096.0;

/// Memory of a packet in flight.
const PACKET_BYTES: f64 = 64.0;

/// What a simulation takes at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    /// Data packets; `None`: the path has no rate.
    pub(super) packets: Option<u64>,
    pub(super) memory: ByteCount,
    /// The part of `memory` that packets in flight and in the queue take.
    in_flight: ByteCount,
}

impl Bounds {
    /// The bounds of `flows` connections over the paths that a link has from each moment on, with
    /// round trips up to `delay` longer.
    pub(super) fn of(
        paths: &[(Duration, PathSpec)],
        delay: Duration,
        flows: usize,
        seconds: f64,
    ) -> Self {
        let states = || paths.iter().flat_map(|(_, path)| path.states());
        let rates: Option<Vec<BitRate>> = states().map(|(_, [up, _])| up.rate()).collect();
        let rate = rates.and_then(|rates| rates.into_iter().max());
        let mtu = paths.iter().map(|(_, path)| path.mtu()).min().unwrap_or(1500);
        let packets = rate.map(|rate| rate.as_f64() / 8.0 / f64::from(mtu.max(1)) * seconds);
        let held = paths.iter().map(|(_, path)| {
            let longest = path
                .states()
                .map(|(_, [up, down])| up.delay().secs_f64() + down.delay().secs_f64());
            let in_flight = rate.map_or(0.0, |rate| {
                rate.as_f64() / 8.0 * (longest.fold(0.0, f64::max) + delay.as_secs_f64())
            });
            in_flight
                + path.states().map(|(_, [up, _])| up.queue_bytes().as_f64()).fold(0.0, f64::max)
        });
        let held = held.fold(0.0, f64::max) / f64::from(mtu.max(1));
        let samples = seconds * SAMPLES_PER_S + RAMP_SAMPLES;
        let flows = flows as f64;
        let sample =
            size_of::<Sample>() + size_of::<ReceiverSample>() + size_of::<ConnectionTruth>();
        let in_flight = held.min(1e12) * PACKET_BYTES;
        let memory = flows * (samples * sample as f64 + FLOW_BYTES)
            + samples * size_of::<TruthInterval>() as f64
            + in_flight;
        Bounds {
            packets: packets.map(|packets| packets.ceil() as u64),
            memory: ByteCount::from_f64(memory),
            in_flight: ByteCount::from_f64(in_flight),
        }
    }

    /// Refuses what would take too long or too much.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(packets) = self.packets.filter(|packets| *packets > MAX_PACKETS) {
            let what = format!("up to {packets} packets; a simulation has at most {MAX_PACKETS}");
            return Err(Problem::field(Field::Seconds, what, "a shorter time, or a lower rate"));
        }
        if self.memory > MAX_MEMORY {
            let (field, taken_by, remedy) = if self.in_flight.times(2) > self.memory {
                let remedy = "a lower rate, a shorter RTT, or a smaller queue";
                (Field::Link, "packets in flight and in the queue", remedy)
            } else {
                (Field::Seconds, "the samples of all flows", "a shorter time, or fewer flows")
            };
            let [needed, most] = [self.memory, MAX_MEMORY].map(gib);
            let what = format!(
                "{needed} of memory, most of it for {taken_by}; a simulation may take {most}"
            );
            return Err(Problem::field(field, what, remedy));
        }
        Ok(())
    }
}

fn gib(size: ByteCount) -> String {
    format!("{} GiB", significant(size.as_f64() / f64::from(1 << 30), 3))
}

/// A buffer that limits no flow whose round trip is at most `delay` longer than the path's: four
/// times BDP and queue, as `lab --tuned` sets it, and at least the kernel's default of 6 MiB.
pub(super) fn ample(paths: &[(Duration, PathSpec)], delay: Duration) -> ByteCount {
    let most = paths.iter().flat_map(|(_, path)| path.states()).map(|(_, [up, down])| {
        let path = Rtt::from_nanos(up.delay().nanos() + down.delay().nanos()).duration();
        let rtt = path + delay;
        let bdp = up.rate().map_or(ByteCount::from_bytes(1 << 28), |rate| rate.bytes_in(rtt));
        let queue = if up.rate().is_some() { up.queue_bytes() } else { ByteCount::ZERO };
        bdp.plus(queue)
    });
    let most = most.max().unwrap_or_default().times(4);
    most.clamp(ByteCount::from_bytes(6 << 20), ByteCount::from_bytes(1 << 34))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(link: &str, flows: usize, seconds: f64) -> Bounds {
        Bounds::of(&[(Duration::ZERO, link.parse().unwrap())], Duration::ZERO, flows, seconds)
    }

    #[test]
    fn packets_and_memory_are_known_before() {
        let one = bounds("rate=12mbit,rtt=20ms", 1, 10.0);
        assert_eq!(one.packets, Some(10_000));
        assert_eq!(one.check(), Ok(()));
        assert_eq!(bounds("rate=unlimited,rtt=20ms,loss=1%", 1, 10.0).packets, None);
        assert_eq!(bounds("rate=10gbit,rtt=100ms", 1, 1000.0).check(), Ok(()));
        let long = bounds("rate=100gbit,rtt=100ms", 1, 50_000.0).check().unwrap_err();
        assert!(long.to_string().contains("packets"), "{long}");
        let many = bounds("rate=10mbit,rtt=20ms", 1000, 3600.0).check().unwrap_err();
        assert!(many.to_string().contains("the samples of all flows"), "{many}");
        assert_eq!(many.fields(), [Field::Seconds]);
        let fat = bounds("rate=100tbit,rtt=400ms", 1, 1.0).check().unwrap_err();
        assert!(fat.to_string().contains("packets in flight and in the queue"), "{fat}");
        assert!(fat.to_string().contains("may take 4 GiB"), "{fat}");
        assert_eq!(fat.fields(), [Field::Link]);
    }
}
