//! The interfaces that can be captured on, and their traffic.

use crate::{Fault, Problem};
use host::clock;
use host::interfaces::{self, Interface};
use record::{INTERFACES_SCHEMA, InterfaceTraffic, InterfacesReport};
use std::time::Duration;
use units::BitRate;

/// Over which rates are measured.
const INTERVAL: Duration = Duration::from_secs(1);

/// The interfaces with their addresses, and their traffic over a second.
///
/// # Errors
/// The system does not list them.
pub fn interfaces() -> Result<InterfacesReport, Problem> {
    let failed =
        |error| Problem::new(Fault::Internal, format!("cannot list the interfaces: {error}"));
    let before = interfaces::list().map_err(failed)?;
    let began = clock::now();
    std::thread::sleep(INTERVAL);
    let after = interfaces::list().map_err(failed)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(InterfacesReport {
        schema: INTERFACES_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seconds,
        interfaces: after.iter().map(|it| traffic(it, &before, seconds)).collect(),
    })
}

/// An interface's traffic since `before`; one that is new has none.
fn traffic(now: &Interface, before: &[Interface], seconds: f64) -> InterfaceTraffic {
    let before =
        before.iter().find(|it| it.index == now.index).map_or(now.counters, |it| it.counters);
    let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let rate = |now, before| {
        let bps = 8.0 * per_second(now, before);
        (bps >= 1.0).then(|| BitRate::from_bps_f64(bps))
    };
    let counters = now.counters;
    InterfaceTraffic {
        name: now.name.clone(),
        up: now.up,
        addresses: now
            .addresses
            .iter()
            .map(|(address, length)| format!("{address}/{length}"))
            .collect(),
        received_bps: rate(counters.received_bytes, before.received_bytes),
        sent_bps: rate(counters.sent_bytes, before.sent_bytes),
        received_packets_per_s: per_second(counters.received_packets, before.received_packets),
        sent_packets_per_s: per_second(counters.sent_packets, before.sent_packets),
    }
}
