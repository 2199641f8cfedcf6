//! The cells that the simulator can run, and why it cannot run others.

use control::Algorithm;
use problem::Field;
use record::{Direction, Protocol};
use std::fmt;
use study::{Study, Test};
use units::Rtt;

/// Samples of all streams of a test: they take 0.7 KB each.
const MAX_SAMPLES: f64 = 500_000.0;

/// Samples of a stream in each second, after the first two.
const SAMPLES_PER_SECOND: f64 = 10.0;

/// Why the simulator cannot run a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSimulated {
    /// It runs between real hosts.
    RealHosts,
    /// It runs a program.
    Program(String),
    /// Its flows are not TCP.
    Protocol(Protocol),
    /// It sends a file from a disk.
    File,
    /// It runs over IPv6.
    Ipv6,
    /// It sets a sysctl of the hosts' kernel.
    Sysctl(String),
    /// It has a congestion control that the simulator does not have.
    Congestion(String),
    /// Its flows do not have one direction.
    Directions,
    /// Nothing limits its rate.
    Endless,
    /// It would have more samples than memory allows.
    Samples,
}

impl fmt::Display for NotSimulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSimulated::RealHosts => f.write_str("it runs between real hosts"),
            NotSimulated::Program(name) => write!(f, "it runs the program {name}"),
            NotSimulated::Protocol(protocol) => f.write_str(match protocol {
                Protocol::Tcp => "it sends TCP",
                Protocol::Udp => "it sends UDP",
                Protocol::Udt => "it sends UDT",
            }),
            NotSimulated::File => f.write_str("it sends a file from a disk"),
            NotSimulated::Ipv6 => f.write_str("it runs over IPv6"),
            NotSimulated::Sysctl(name) => write!(f, "it sets {name}"),
            NotSimulated::Congestion(name) => write!(f, "it uses the congestion control {name}"),
            NotSimulated::Directions => f.write_str("its flows have several directions"),
            NotSimulated::Endless => {
                f.write_str("its path has no rate, and neither windows nor bitrates limit it")
            }
            NotSimulated::Samples => {
                f.write_str("its streams and its duration give more than 500000 samples")
            }
        }
    }
}

/// Cells of a study that the simulator cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// How many there are.
    pub cells: usize,
    /// Cells of the study.
    pub all: usize,
    /// The values of the first one.
    pub first: String,
    /// The reason of the first one.
    pub reason: NotSimulated,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let controls: Vec<&str> = Algorithm::ALL.iter().map(|control| control.name()).collect();
        let Unsupported { cells, all, first, reason } = self;
        write!(
            f,
            "the simulator cannot run {cells} of {all} cells (the first, {first}: {reason}); it \
             runs TCP flows of longhaul over IPv4 in one direction, with {}",
            controls.join(", ")
        )?;
        if cells < all {
            write!(f, "; {} leaves those cells out", Field::SkipUnsupported)?;
        }
        Ok(())
    }
}

/// The cells of a study that the simulator cannot run; `None` if it can run all of them.
#[must_use]
pub fn unsupported(study: &Study) -> Option<Unsupported> {
    let mut found: Option<Unsupported> = None;
    for part in &study.parts {
        for number in 0..part.plan.cells() {
            let cell = part.plan.cell(number);
            let Ok(test) = part.plan.test(&cell) else { continue };
            let is_real = part.plan.real_hosts.is_some();
            let reason =
                if is_real { Some(NotSimulated::RealHosts) } else { refusal(&test) };
            let Some(reason) = reason else { continue };
            match &mut found {
                Some(found) => found.cells += 1,
                None => {
                    let label = part.plan.label(&cell);
                    let first =
                        [part.name.as_str(), &label].map(str::to_owned).join(" ").trim().to_owned();
                    found = Some(Unsupported { cells: 1, all: study.cells(), first, reason });
                }
            }
        }
    }
    found
}

/// Why the simulator cannot run a test; `None` if it can.
pub(crate) fn refusal(test: &Test) -> Option<NotSimulated> {
    // Optional sysctls are set where a testbed has them.
    if let Some(sysctl) = test.sysctls.iter().find(|sysctl| !sysctl.optional) {
        return Some(NotSimulated::Sysctl(sysctl.name.clone()));
    }
    for flow in &test.flows {
        if let Some(program) = &flow.program {
            return Some(NotSimulated::Program(program.name.clone()));
        }
        if flow.protocol != Protocol::Tcp {
            return Some(NotSimulated::Protocol(flow.protocol));
        }
        if flow.disk_limit().is_some() {
            return Some(NotSimulated::File);
        }
        if flow.ip == model::IpVersion::Ipv6 {
            return Some(NotSimulated::Ipv6);
        }
        if Algorithm::by_name(flow.congestion()).is_none() {
            return Some(NotSimulated::Congestion(flow.congestion().to_owned()));
        }
    }
    let mut directions = test.flows.iter().map(|flow| flow.direction);
    let first = directions.next();
    if first == Some(Direction::Both) || directions.any(|other| Some(other) != first) {
        return Some(NotSimulated::Directions);
    }
    let is_reverse = first == Some(Direction::Reverse);
    let rate = if is_reverse { test.spec.down_rate() } else { test.spec.rate() };
    let is_windowed = test.window.is_some() && test.spec.rtt() > Rtt::ZERO;
    let is_paced = test.flows.iter().all(|flow| flow.bitrate.or(flow.pacing).is_some());
    if rate.is_none() && !is_windowed && !is_paced {
        return Some(NotSimulated::Endless);
    }
    let samples =
        f64::from(test.streams()) * test.planned().as_secs_f64() * SAMPLES_PER_SECOND;
    (samples > MAX_SAMPLES).then_some(NotSimulated::Samples)
}
