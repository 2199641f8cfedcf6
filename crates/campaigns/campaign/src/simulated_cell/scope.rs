//! The cells that the simulator can run, and why it cannot run others.

use super::connections::control;
use control::NamedControl;
use problem::Field;
use record::{Direction, Protocol, ReceiverSample, Sample};
use std::fmt;
use study::{Study, Test};
use twin::ConnectionTruth;
use units::Rtt;

/// Most memory of a simulated test, bytes; there is one on each core.
const MAX_MEMORY: f64 = 1e9;

/// Most data packets of one: an hour at 10 Gbit/s.
const MAX_PACKETS: f64 = 3e9;

/// The same over a path that has no rate.
const MAX_PACKETS_WITHOUT_RATE: u64 = 100_000_000;

/// Samples of a stream: in each second, and in the first two beside those.
const SAMPLES_PER_SECOND: f64 = 10.0;
const RAMP_SAMPLES: f64 = 200.0;

/// Memory of a sample of both ends, with the ground truth of its time, and of a packet in flight,
/// bytes.
const SAMPLE: f64 =
    (size_of::<Sample>() + size_of::<ReceiverSample>() + size_of::<ConnectionTruth>()) as f64;
const PACKET: f64 = 64.0;

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
    /// It uses XCP over a path without its router.
    NoXcpRouter,
    /// Its flows do not have one direction.
    Directions,
    /// Nothing limits its rate.
    Endless,
    /// It would take more memory than a simulation may.
    Memory,
    /// It would send more packets than a simulation may.
    Packets,
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
            NotSimulated::NoXcpRouter => {
                f.write_str("XCP needs a router that grants it its window: queue=xcp, and a rate")
            }
            NotSimulated::Directions => f.write_str("its flows have several directions"),
            NotSimulated::Endless => {
                f.write_str("its path has no rate, and neither windows nor bitrates limit it")
            }
            NotSimulated::Memory => f.write_str(
                "its samples and its packets in flight would take more than 1 GB of memory",
            ),
            NotSimulated::Packets => f.write_str("it would send more than 3 billion packets"),
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
        let controls = NamedControl::names();
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
            let reason = if is_real { Some(NotSimulated::RealHosts) } else { refusal(&test) };
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
        let Some(control) = NamedControl::by_name(flow.congestion()) else {
            return Some(NotSimulated::Congestion(flow.congestion().to_owned()));
        };
        if control.algorithm().needs_xcp_router() && !has_xcp_router(test, flow.direction) {
            return Some(NotSimulated::NoXcpRouter);
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
    too_large(test)
}

/// Whether the data of a direction passes a router with XCP all the time.
fn has_xcp_router(test: &Test, direction: Direction) -> bool {
    test.spec.states().all(|(_, [up, down])| {
        let data = if direction == Direction::Reverse { down } else { up };
        data.has_xcp_router()
    })
}

/// The bounds of memory and work.
fn too_large(test: &Test) -> Option<NotSimulated> {
    let samples = test.planned().as_secs_f64() * SAMPLES_PER_SECOND + RAMP_SAMPLES;
    let in_flight = test.spec.memory().as_f64() / f64::from(test.spec.mtu());
    let connections =
        |flow: &study::Traffic| f64::from(flow.streams) * f64::from(control(flow).connections());
    let connections =
        test.flows.iter().map(connections).sum::<f64>() * f64::from(test.hosts.clients);
    if connections * samples * SAMPLE + in_flight * PACKET > MAX_MEMORY {
        return Some(NotSimulated::Memory);
    }
    expected_packets(test).filter(|packets| *packets > MAX_PACKETS).map(|_| NotSimulated::Packets)
}

/// Packets of a test that fills its path; `None`: the path has no rate.
fn expected_packets(test: &Test) -> Option<f64> {
    let rates = [test.spec.rate(), test.spec.down_rate()];
    let rate = rates.into_iter().collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let seconds = test.planned().as_secs_f64();
    Some(rate.as_f64() / 8.0 / f64::from(test.spec.mtu()) * seconds)
}

/// The data packets after which a test's simulation ends without a result.
pub(super) fn most_packets(test: &Test) -> u64 {
    // Retransmissions too pass the bottleneck, and the rate can be higher than at the start.
    expected_packets(test)
        .map_or(MAX_PACKETS_WITHOUT_RATE, |packets| (packets * 4.0) as u64 + 100_000)
}
