//! CPU time of a packet in the link, in nanoseconds.
//!
//! `cargo bench -p longhaul-link` prints one line per configuration. The path is
//! 10 Gbit/s, the traffic trains of 45 packets of 1500 bytes, as produced by
//! segmentation offload. For comparison: 10 Gbit/s are 833 000 packets a second, so
//! 100 ns per packet are 8 % of a core.

#![expect(clippy::disallowed_methods, reason = "a measurement of time asks the system's clock")]

use link::{CoDel, Fifo, FqCoDel, Limit, Link, LinkConfig, Loss, Pie, Queue, Rate, Red, Train};
use std::rc::Rc;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, Nanos};

/// Packets per measurement.
const PACKETS: u64 = 450_000;

/// Number of measurements; the fastest counts, as the others were disturbed.
const REPEATS: usize = 30;

/// Serialisation time of 45 packets of 1500 bytes at 10 Gbit/s, in ns.
const TRAIN: u64 = 54_000;

fn main() {
    // `cargo test --benches` runs this, too; once is enough then.
    let quick = !std::env::args().any(|argument| argument == "--bench");
    let room = Limit::Bytes(ByteCount::from_bytes(1 << 30));
    let codel = CoDel {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        limit: room,
        ecn: false,
    };
    let plain = |queue| {
        let rate = Rate::Constant(BitRate::from_bps(10_000_000_000));
        LinkConfig::new(rate, Duration::from_millis(1), queue)
    };
    let drop_tail = || plain(Queue::drop_tail(room));
    let lossy = LinkConfig { loss: Loss::Bernoulli(chance("0.1%")), ..drop_tail() };
    let marking = Fifo { limit: room, mark: Some(Limit::Packets(65)) };
    let red = Red {
        min: ByteCount::from_bytes(300_000),
        max: ByteCount::from_bytes(900_000),
        probability: chance("10%").into(),
        weight: 9,
        limit: room,
        ecn: false,
    };
    let pie = Pie {
        target: Duration::from_millis(15),
        update: Duration::from_millis(15),
        burst: Duration::from_millis(150),
        limit: room,
        ecn: false,
    };
    println!("ns per packet, least of {REPEATS} times {PACKETS} packets");
    for (name, config, watch) in [
        ("drop-tail", drop_tail(), false),
        ("drop-tail, watched", drop_tail(), true),
        ("drop-tail, loss 0.1 %", lossy, false),
        ("drop-tail, step marking", plain(Queue::DropTail(marking)), false),
        ("codel", plain(Queue::CoDel(codel)), false),
        ("fq_codel", plain(Queue::FqCoDel(FqCoDel { codel, flows: 1024, quantum: 1514 })), false),
        ("red", plain(Queue::Red(red)), false),
        ("pie", plain(Queue::Pie(pie)), false),
    ] {
        let repeats = if quick { 1 } else { REPEATS };
        let packets = if quick { PACKETS / 10 } else { PACKETS };
        let least = (0..repeats).map(|_| measure(&config, watch, packets)).fold(f64::MAX, f64::min);
        println!("{name:28} {least:6.1}");
    }
}

/// Sends trains at the bottleneck rate behind a standing queue of ten trains;
/// returns nanoseconds per packet.
#[expect(clippy::cast_precision_loss, reason = "a few million nanoseconds fit 53 bits")]
fn measure(config: &LinkConfig, watch: bool, packets: u64) -> f64 {
    let mut link = Link::new(config.clone());
    link.watch(watch);
    let train = Train::segmented(52, 45 * 1448, 1448);
    let bytes = Rc::new([0u8; 64]);
    let trains = packets / u64::from(train.packets());
    let begin = Instant::now();
    let mut came = 0;
    for number in 0..trains {
        let now = Nanos(number.saturating_sub(10) * TRAIN);
        let flow = (number % 4) as u32;
        link.arrive(now, train.of_flow(flow), Rc::clone(&bytes));
        while let Some(delivery) = link.release(now) {
            came += delivery.packets.len();
        }
        came += link.fates().count();
    }
    let spent = begin.elapsed();
    assert!(came > 0, "nothing came through");
    spent.as_nanos() as f64 / (trains * u64::from(train.packets())) as f64
}

fn chance(text: &str) -> units::LossRatio {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
