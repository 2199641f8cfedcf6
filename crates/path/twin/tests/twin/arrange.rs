//! Paths and figures of the tests.

use control::Algorithm;
use link::{Limit, LinkConfig, Loss, PacketList, Queue, Rate};
use std::sync::Arc;
use std::time::Duration;
use twin::{ConnectionConfig, Outcome, Scenario};
use units::{BitRate, ByteCount};

pub(crate) const MSS: u64 = 1448;

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// No queue ever: its limit is not reached.
pub(crate) fn deep() -> Queue {
    Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(1 << 40)))
}

/// A path with that round trip, without a bottleneck.
pub(crate) fn unlimited(rtt_ms: u64) -> (LinkConfig, LinkConfig) {
    let one_way = Duration::from_micros(rtt_ms * 500);
    let link = LinkConfig::new(Rate::Unlimited, one_way, deep());
    (link.clone(), link)
}

/// A bottleneck of `mbit` with a drop-tail queue of `bdp` times the BDP.
pub(crate) fn bottleneck(mbit: u64, rtt_ms: u64, bdp: f64) -> (LinkConfig, LinkConfig) {
    let rate = BitRate::from_bps(mbit * 1_000_000);
    let product = rate.bytes_in(ms(rtt_ms)).bytes() as f64;
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes((product * bdp) as u64)));
    let one_way = Duration::from_micros(rtt_ms * 500);
    (
        LinkConfig::new(Rate::Constant(rate), one_way, queue),
        LinkConfig::new(Rate::Constant(rate), one_way, deep()),
    )
}

/// One connection with that control.
pub(crate) fn scenario(
    (forward, reverse): (LinkConfig, LinkConfig),
    algorithm: Algorithm,
    seconds: u64,
) -> Scenario {
    let connection = ConnectionConfig { algorithm, ..ConnectionConfig::default() };
    Scenario {
        connections: vec![connection],
        ..Scenario::new(forward, reverse, Duration::from_secs(seconds))
    }
}

/// Every `every`-th packet is lost, from the first of them on.
pub(crate) fn evenly(every: u64) -> Loss {
    let list: PacketList = (1..200_000).map(|n| n * every..=n * every).collect();
    Loss::List(Arc::new(list))
}

/// Just these packets are lost, by number from 1.
pub(crate) fn listed(packets: &[u64]) -> Loss {
    let list: PacketList = packets.iter().map(|packet| *packet..=*packet).collect();
    Loss::List(Arc::new(list))
}

/// Goodput of a connection between two moments, in packets a second.
pub(crate) fn packet_rate(outcome: &Outcome, stream: usize, from_s: f64, to_s: f64) -> f64 {
    let samples = &outcome.measurement.streams[stream].receiver;
    let at = |t: f64| samples.iter().rfind(|sample| sample.t_s <= t + 1e-9).unwrap();
    let (first, last) = (at(from_s), at(to_s));
    (last.received_bytes - first.received_bytes) as f64 / MSS as f64 / (last.t_s - first.t_s)
}

/// The same as a share of the most that a bottleneck of `mbit` carries.
pub(crate) fn goodput_share(outcome: &Outcome, mbit: u64, from_s: f64, to_s: f64) -> f64 {
    let most = mbit as f64 * 1e6 / 8.0 / 1500.0;
    packet_rate(outcome, 0, from_s, to_s) / most
}

/// The largest bytes queued at the bottleneck from a moment on.
pub(crate) fn peak_queue(outcome: &Outcome, from_s: f64) -> u64 {
    let later = outcome.truth.iter().filter(|interval| interval.to_s > from_s);
    later.map(|interval| interval.peak_queue_bytes).max().unwrap()
}
