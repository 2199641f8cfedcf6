//! The interfaces that can be captured on, and their traffic.

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use host::clock;
use host::interfaces::{self, Interface};
use record::{INTERFACES_SCHEMA, InterfaceTraffic, InterfacesReport};
use report::terminal;
use std::time::Duration;
use units::BitRate;

/// Over which rates are measured.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(json: bool, console: &mut Console) -> Outcome {
    let failed = |error| Failure::work(format!("cannot list the interfaces: {error}"));
    let before = interfaces::list().map_err(failed)?;
    let began = clock::now();
    console.live("measuring traffic for 1 s");
    std::thread::sleep(INTERVAL);
    let after = interfaces::list().map_err(failed)?;
    let seconds = began.elapsed().as_secs_f64();
    let report = InterfacesReport {
        schema: INTERFACES_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seconds,
        interfaces: after.iter().map(|it| traffic(it, &before, seconds)).collect(),
    };
    let text = if json {
        console::json(&report)?
    } else {
        terminal::interfaces(&report, &console.out)
            + "\nlonghaul capture IFACE -w FILE captures one of them, or any for all\n"
    };
    console.print(&text);
    Ok(DONE)
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
