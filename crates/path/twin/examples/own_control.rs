//! Congestion control of one's own, beside CUBIC, over every built-in path.
//!
//! `cargo run --release -p longhaul-twin --example own_control [SECONDS]` downloads over each
//! path for 20 s of virtual time, or that many.

use control::{Ack, Algorithm, Congestion, CongestionControl, INITIAL_WINDOW, Phase};
use std::time::Duration;
use topology::{PATHS, PathSpec};
use twin::{ConnectionConfig, HEADER_BYTES, Outcome, Scenario};
use units::Nanos;

/// Slow start, then one packet a round trip; seven eighths of the window at a loss.
struct Aimd {
    cwnd: f64,
    ssthresh: Option<f64>,
}

impl CongestionControl for Aimd {
    fn name(&self) -> &str {
        "aimd"
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.phase == Phase::Recovery || !ack.cwnd_limited {
            return;
        }
        let slow_start = self.ssthresh.is_none_or(|threshold| self.cwnd < threshold);
        let acked = ack.newly_acked as f64;
        self.cwnd += if slow_start { acked } else { acked / self.cwnd };
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if congestion.is_new {
            self.ssthresh = Some((self.cwnd * 7.0 / 8.0).max(2.0));
        }
    }

    fn on_recovery_end(&mut self, _now: Nanos) {
        self.cwnd = self.ssthresh.unwrap_or(self.cwnd);
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.on_congestion(congestion);
        self.cwnd = 1.0;
    }

    fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh.map(|threshold| threshold as u64)
    }
}

/// A download over a path.
fn scenario(path: &PathSpec, seconds: u64) -> Scenario {
    let [up, down] = path.schedules(1);
    let connection = ConnectionConfig {
        algorithm: Algorithm::Cubic,
        mss: path.mtu() - HEADER_BYTES,
        ..ConnectionConfig::default()
    };
    Scenario {
        connections: vec![connection],
        ..Scenario::new(down, up, Duration::from_secs(seconds))
    }
}

fn print(path: &str, rtt_ms: f64, outcome: &Outcome) {
    for stream in &outcome.measurement.streams {
        let goodput = stream.received_bytes as f64 * 8.0 / stream.received_seconds / 1e6;
        let rtts = stream.sender.iter().map(|sample| f64::from(sample.rtt_us) / 1e3);
        let mean_ms = rtts.sum::<f64>() / stream.sender.len().max(1) as f64;
        println!(
            "{path:27} {:6} {goodput:9.2} {:9.1} {:11}",
            stream.congestion.as_deref().unwrap_or_default(),
            (mean_ms - rtt_ms).max(0.0),
            stream.retransmits.unwrap_or(0),
        );
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    println!("{:27} {:6} {:>9} {:>9} {:>11}", "path", "", "Mbit/s", "queue, ms", "retransmits");
    for named in PATHS {
        let path: PathSpec = named.name.parse()?;
        let rtt_ms = path.mean_rtt().as_secs_f64() * 1e3;
        let scenario = scenario(&path, seconds);
        let own = |_: usize| -> Option<Box<dyn CongestionControl + Send>> {
            Some(Box::new(Aimd { cwnd: INITIAL_WINDOW as f64, ssthresh: None }))
        };
        print(named.name, rtt_ms, &twin::run_with(&scenario, own)?);
        print("", rtt_ms, &twin::run(&scenario));
    }
    Ok(())
}
