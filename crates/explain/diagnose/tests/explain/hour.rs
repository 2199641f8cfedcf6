//! The time for a long test. That the work is bounded is a unit test of `segments`.

#![expect(clippy::disallowed_methods, reason = "measures the time on demand")]

use crate::transfer::over;
use diagnose::explain;
use record::{Measurement, Sample};
use std::time::{Duration, Instant};

/// A test of that many seconds with `streams`: a sawtooth with losses every few seconds,
/// sampled every 100 ms.
fn long(seconds: u32, streams: usize) -> Measurement {
    let mut m = over(5.0, 40.0, "queue=1bdp").seconds(1.0).run(0);
    m.spec.seconds = f64::from(seconds);
    let stream = &mut m.streams[0];
    let first = stream.sender.last().copied().unwrap_or_default();
    let received = stream.receiver.last().copied().unwrap_or_default();
    stream.sender.clear();
    stream.receiver.clear();
    let (mut bytes, mut lost) = (0, 0);
    for index in 0..=u64::from(seconds) * 10 {
        let phase = index % 47;
        let rtt_us = 40_000 + 700 * phase as u32;
        lost += if phase == 0 { 1 + index % 3 } else { 0 };
        bytes += 58_000 + (index * 7 % 11) * 300;
        let t_s = index as f64 / 10.0;
        stream.sender.push(Sample {
            t_s,
            delivered_bytes: bytes,
            acked_bytes: bytes,
            written_bytes: bytes + 500_000,
            cwnd_bytes: 25_000 + 450 * phase,
            in_flight_bytes: 25_000 + 450 * phase,
            ssthresh_bytes: Some(25_000),
            rtt_us,
            retransmits: lost,
            busy_us: (t_s * 1e6) as u64,
            ..first
        });
        stream.receiver.push(record::ReceiverSample { t_s, received_bytes: bytes, ..received });
    }
    stream.received_seconds = f64::from(seconds);
    stream.sent_seconds = f64::from(seconds);
    (stream.received_bytes, stream.sent_bytes) = (bytes, bytes);
    m.streams = vec![m.streams[0].clone(); streams];
    m
}

/// The shortest of three runs.
fn time(m: &Measurement) -> Duration {
    let once = || {
        let start = Instant::now();
        std::hint::black_box(explain(m));
        start.elapsed()
    };
    once().min(once()).min(once())
}

#[test]
#[ignore = "prints times"]
fn an_hour() {
    for (seconds, streams) in [(15, 1), (60, 1), (600, 1), (3_600, 1), (3_600, 8)] {
        println!("{seconds} s, {streams} streams: {:?}", time(&long(seconds, streams)));
    }
}
