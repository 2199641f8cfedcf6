//! One flow whose congestion control counts in its paper's arithmetic, as a measurement in JSON.
//!
//! `cargo run -p longhaul-twin --example paper_arithmetic PATH CONTROL SECONDS` uploads over a
//! path of the lab (`rate=10mbit,rtt=40ms`). `longhaul sim run` counts as Linux does, and
//! `scripts/ns3-peer` sets both beside ns-3.

use control::{Algorithm, Arithmetic};
use std::error::Error;
use std::time::Duration;
use topology::PathSpec;
use twin::{ConnectionConfig, Ecn, HEADER_BYTES, Scenario};

/// Seed of the path's draws.
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, control, seconds] = arguments.as_slice() else {
        return Err("write PATH CONTROL SECONDS".into());
    };
    let path: PathSpec = path.parse()?;
    let Some(algorithm) = Algorithm::by_name(control) else {
        return Err(format!("no congestion control '{control}'").into());
    };
    let [up, down] = path.schedules(SEED);
    let connection = ConnectionConfig {
        algorithm,
        arithmetic: Arithmetic::Paper,
        mss: path.mtu() - HEADER_BYTES,
        ecn: Ecn::needed_by(algorithm),
        ..ConnectionConfig::default()
    };
    let scenario = Scenario {
        connections: vec![connection],
        truth: false,
        ..Scenario::new(up, down, Duration::from_secs(seconds.parse()?))
    };
    serde_json::to_writer(std::io::stdout().lock(), &twin::run(&scenario).measurement)?;
    println!();
    Ok(())
}
