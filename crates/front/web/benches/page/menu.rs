//! The actions that a path's goodput is measured with.

use crate::hosts::{Done, Hosts};
use bench_harness::Fallible;
use perf::client::{ClientConfig, EndAfter};
use record::Direction;
use serde_json::Value;
use simulator::Scenario;
use std::collections::BTreeMap;
use std::time::Duration;
use units::BitRate;

/// The seconds of a transfer.
const SECONDS: f64 = 8.0;
/// Runs of a lab that was not valid.
const ATTEMPTS: usize = 3;
/// The share of the path's rate that pacing allows.
const PACED: f64 = 0.95;

/// The goodput with each action, bit/s. Actions that set the same are measured once.
pub(crate) fn measure(case: &Scenario, path: &str) -> Fallible<BTreeMap<String, f64>> {
    let mut known: Vec<(Setting, f64)> = Vec::new();
    let mut goodput = BTreeMap::new();
    for action in MENU {
        let setting = action.setting(case, path)?;
        let found = known.iter().find(|(other, _)| *other == setting).map(|(_, rate)| *rate);
        let rate = match found {
            Some(rate) => rate,
            None => {
                let rate = setting.measure(case, path)?;
                known.push((setting, rate));
                rate
            }
        };
        goodput.insert(format!("{action:?}"), rate);
    }
    Ok(goodput)
}

/// What the hosts have, and how the client sends.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    sysctls: Vec<(String, String)>,
    congestion: &'static str,
    streams: u32,
    pacing: Option<BitRate>,
}

/// Something that may raise the goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Buffers,
    Bbr,
    Cubic,
    FourFlows,
    Pacing,
    /// fasterdata.es.net's: large buffers, and BBR.
    BuffersAndBbr,
}

/// What the best action is sought among; the last is a baseline only.
pub(crate) const MENU: [Action; 7] = [
    Action::Nothing,
    Action::Buffers,
    Action::Bbr,
    Action::Cubic,
    Action::FourFlows,
    Action::Pacing,
    Action::BuffersAndBbr,
];

impl Action {
    /// Of a remedy that the page shows.
    pub(crate) fn of(remedy: &Value) -> Self {
        match remedy["action"].as_str() {
            Some("receive-buffer" | "send-buffer") => Action::Buffers,
            Some("congestion-control") => match remedy["line"].as_str() {
                Some(line) if line.ends_with("bbr") => Action::Bbr,
                _ => Action::Cubic,
            },
            Some("flows") => Action::FourFlows,
            Some("pacing") => Action::Pacing,
            _ => Action::Nothing,
        }
    }

    fn setting(self, case: &Scenario, path: &str) -> Fallible<Setting> {
        let has_buffers = matches!(self, Action::Buffers | Action::BuffersAndBbr);
        let path: topology::PathSpec = path.parse()?;
        let rate = path.directions()[usize::from(case.reverse)].rate();
        Ok(Setting {
            sysctls: if has_buffers { large_buffers() } else { case.host_sysctls() },
            congestion: match self {
                Action::Bbr | Action::BuffersAndBbr => "bbr",
                Action::Cubic => "cubic",
                _ => case.congestion.name(),
            },
            streams: if self == Action::FourFlows { 4 } else { 1 },
            pacing: rate.filter(|_| self == Action::Pacing).map(|rate| rate.scaled(PACED)),
        })
    }
}

impl Setting {
    fn measure(&self, case: &Scenario, path: &str) -> Fallible<f64> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let Done { result, not_valid } = self.once(case, path)?;
            if not_valid.is_empty() {
                return Ok(result);
            }
            last = not_valid.into_iter().next();
        }
        Err(format!("no valid run: {}", last.unwrap_or_default()).into())
    }

    fn once(&self, case: &Scenario, path: &str) -> Fallible<Done<f64>> {
        let config = ClientConfig {
            end: EndAfter::Seconds(SECONDS),
            direction: if case.reverse { Direction::Reverse } else { Direction::Forward },
            streams: self.streams,
            fq_rate: self.pacing,
            sample_every: Duration::from_millis(50),
            watch_load: Duration::ZERO,
            ..ClientConfig::new("")
        };
        let hosts = Hosts::of(path, self.congestion, &self.sysctls)?;
        let done = hosts.over(|hosts| hosts.test(config))?;
        let result = diagnose::explain(&done.result).throughput_bps.as_f64();
        Ok(Done { result, not_valid: done.not_valid })
    }
}

/// 64 MiB, as fasterdata.es.net has for paths of 10 Gbit/s.
fn large_buffers() -> Vec<(String, String)> {
    let set = |key: &str, value: &str| (format!("net.ipv4.{key}"), value.to_owned());
    vec![set("tcp_rmem", "4096 131072 67108864"), set("tcp_wmem", "4096 65536 67108864")]
}
