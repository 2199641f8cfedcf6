//! Segments a second that the analysis takes, on one core: one long transfer, and 100,000
//! short flows. Dissection is not part of it; segments are dissected before the clock runs.

use capture::LinkType;
use capture::conversations::StreamNumber;
use capture::dissect::{Layers, TcpSegment, dissect};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tcp_analysis::{Rules, Streams};

/// The promised rate.
const PROMISED: f64 = 10e6;

fn packet(from_b: bool, port: u16, seq: u32, ack: u32, len: u16) -> Vec<u8> {
    let (from, to) = if from_b { (2, 1) } else { (1, 2) };
    let mut bytes = vec![0x45, 0];
    bytes.extend((52 + len).to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    let ports = if from_b { [5201, port] } else { [port, 5201] };
    ports.iter().for_each(|port: &u16| bytes.extend(port.to_be_bytes()));
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([0x80, 0x10, 0x20, 0x00, 0, 0, 0, 0, 1, 1, 8, 10]);
    bytes.extend((seq / 1000).to_be_bytes());
    bytes.extend((ack / 1000).to_be_bytes());
    bytes
}

fn segments(packets: &[Vec<u8>], len: u32) -> Vec<TcpSegment<'_>> {
    let mut layers = Layers::new();
    let each = packets.iter().map(|bytes| {
        dissect(LinkType::RAW, bytes, bytes.len() as u32 + len, &mut layers);
        layers.tcp(bytes)
    });
    each.flatten().collect()
}

fn elapsed(run: impl FnOnce()) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    let start = Instant::now();
    run();
    start.elapsed()
}

fn report(name: &str, count: usize, took: Duration) {
    let rate = count as f64 / took.as_secs_f64();
    println!("{name}: {:.1} million segments/s (promised {:.0})", rate / 1e6, PROMISED / 1e6);
}

fn main() {
    one_transfer("one transfer", 0);
    one_transfer("one transfer, 1 % retransmitted", 100);
    replayed();
    many_flows();
}

/// A transfer whose last segment is never acknowledged, five times on the same ports with the
/// same numbers: from the second time on, all segments are retransmissions.
fn replayed() {
    let mut packets = Vec::new();
    let steps = 140_000_u32;
    for _ in 0..5 {
        for step in 1..steps {
            packets.push(packet(false, 40_000, step * 1448, 1, 1448));
            if step % 2 == 1 && step > 1000 {
                packets.push(packet(true, 40_000, 1, (step - 1000) * 1448, 0));
            }
        }
    }
    let transfer = segments(&packets, 1448);
    let best = (0..3).map(|_| analysed(&transfer)).min();
    report("one transfer, replayed four times", transfer.len(), best.unwrap_or_default());
}

/// Time to analyse the segments of one stream.
fn analysed(transfer: &[TcpSegment<'_>]) -> Duration {
    elapsed(|| {
        let mut streams = Streams::new(Rules::default());
        for (number, segment) in (1..).zip(transfer) {
            let stream = StreamNumber { number: 0, is_new: false, reuses_ports: false };
            black_box(streams.add(stream, number, number * 1000, segment));
        }
    })
}

/// A window of 1000 segments, an ACK for every second one; one of `every` is retransmitted.
fn one_transfer(name: &str, every: u32) {
    let mut packets = Vec::new();
    for step in 1..700_000_u32 {
        packets.push(packet(false, 40_000, step * 1448, 1, 1448));
        if every > 0 && step % every == 0 && step > 1000 {
            packets.push(packet(false, 40_000, (step - 900) * 1448, 1, 1448));
        }
        if step % 2 == 1 && step > 1000 {
            packets.push(packet(true, 40_000, 1, (step - 1000) * 1448, 0));
        }
    }
    let transfer = segments(&packets, 1448);
    let best = (0..5).map(|_| analysed(&transfer));
    report(name, transfer.len(), best.min().unwrap_or_default());
}

fn many_flows() {
    let mut packets = Vec::new();
    for step in 0..10_u32 {
        packets.push(packet(false, 40_000, 1 + step * 100, 1 + step * 100, 100));
        packets.push(packet(true, 40_000, 1 + step * 100, 101 + step * 100, 100));
    }
    let small = segments(&packets, 100);
    const FLOWS: u32 = 100_000;
    let took = elapsed(|| {
        let mut streams = Streams::new(Rules::default());
        let mut number = 0;
        for segment in &small {
            for flow in 0..FLOWS {
                number += 1;
                let stream = StreamNumber { number: flow, is_new: false, reuses_ports: false };
                black_box(streams.add(stream, number, number * 100, segment));
            }
        }
    });
    report("100,000 flows in turn", small.len() * FLOWS as usize, took);
}
