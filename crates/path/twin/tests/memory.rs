//! The memory of a simulation: less than 4 KB for a connection that does nothing, and 64
//! bytes more for a packet in flight. The allocator counts, so this test has a program of
//! its own.

#![expect(unsafe_code, reason = "an allocator is unsafe to implement; this one only counts")]

use control::Algorithm;
use link::{Limit, LinkConfig, Queue, Rate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use twin::{ConnectionConfig, Granularity, Scenario};
use units::{BitRate, ByteCount};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    PEAK.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: likewise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large blocks grow where they are, or by remapping their pages: there is no copy.
        HELD.fetch_sub(layout.size(), Relaxed);
        grow(size);
        // SAFETY: likewise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The peak of the memory that a simulation takes, bytes, and packets in flight at its end.
fn peak(scenario: &Scenario) -> (usize, u64) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let outcome = twin::run(scenario);
    let in_flight = outcome.senders.iter().map(|sender| sender.in_flight).sum();
    (PEAK.load(Relaxed) - before, in_flight)
}

/// Connections at a fixed rate over 10 Gbit/s x 100 ms, without samples.
fn scenario(starts: impl Iterator<Item = Duration>, granularity: Granularity) -> Scenario {
    let rate = BitRate::from_bps(10_000_000_000);
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(1 << 30)));
    let link = LinkConfig::new(Rate::Constant(rate), Duration::from_millis(50), queue);
    let connections = starts.map(|start| ConnectionConfig {
        start,
        measured: false,
        algorithm: Algorithm::FixedRate(BitRate::from_bps(9_000_000_000)),
        ..ConnectionConfig::default()
    });
    Scenario {
        connections: connections.collect(),
        granularity,
        truth: false,
        ..Scenario::new(link.clone(), link, Duration::from_millis(400))
    }
}

/// One test: what others allocate meanwhile would be counted.
#[test]
fn memory_is_bounded_by_connections_and_packets_in_flight() {
    let never = Duration::from_secs(9);
    let idle = scenario((0..1_000).map(|_| never), Granularity::Exact);
    let (bytes, _) = peak(&idle);
    assert!(bytes < 4_000 * 1_000, "{} bytes an idle connection", bytes / 1_000);
    for granularity in [Granularity::Trains, Granularity::Exact] {
        let busy = scenario(std::iter::once(Duration::ZERO), granularity);
        let (bytes, packets) = peak(&busy);
        assert!(packets > 70_000, "{packets} packets in flight");
        let each = (bytes - 4_000) as f64 / packets as f64;
        println!("{granularity:?}: {each:.1} bytes a packet in flight");
        assert!(each < 64.0, "{granularity:?}: {each:.1} bytes a packet in flight");
    }
}
