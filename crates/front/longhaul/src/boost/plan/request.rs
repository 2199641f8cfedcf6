//! What a plan is asked for.

use crate::explain::ExplainRequest;
use crate::{Field, Problem};
use model::Congestion;
use record::RoutePrefix;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::{BitRate, ByteCount, Rtt};

/// The most that text shrinks with zstd, and more than any mixture of files.
const MAX_REDUCTION: f64 = 1000.0;
/// Maximum duration of the test to a host, s.
const MAX_SECONDS: f64 = 300.0;

/// Options that would accelerate transfers. [`PlanRequest::new`] has the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// What the path is known from.
    pub source: PlanSource,
    /// The bottleneck's rate in IP bytes, where a file or a test does not show it.
    #[serde(default)]
    pub rate: Option<BitRate>,
    /// The sender's congestion control, where a file does not show it.
    #[serde(default)]
    pub congestion: Option<Congestion>,
    /// What the options are computed with.
    #[serde(default)]
    pub settings: PlanSettings,
}

/// What a path is known from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanSource {
    /// A path.
    Link(PlannedLink),
    /// A file.
    File(PlannedFile),
    /// A test to a server.
    Host(PlannedHost),
}

/// A path, and the hosts at its ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedLink {
    /// The path in the syntax of a lab's link.
    pub path: String,
    /// True for data from the path's far end.
    #[serde(default)]
    pub reverse: bool,
    /// The smaller one of send and receive window of each connection; `None`: the part of Linux's
    /// default send buffer that is in flight.
    #[serde(default)]
    pub window: Option<ByteCount>,
    /// What the program keeps in flight on each connection.
    #[serde(default)]
    pub program_window: Option<ByteCount>,
    /// The sending host's congestion control.
    #[serde(default = "cubic")]
    pub congestion: Congestion,
    /// Parallel connections.
    #[serde(default = "one")]
    pub streams: u32,
}

const fn cubic() -> Congestion {
    Congestion::Cubic
}

const fn one() -> u32 {
    1
}

impl PlannedLink {
    /// A path with hosts that have CUBIC and Linux's default buffers.
    pub fn new(path: impl Into<String>) -> Self {
        PlannedLink {
            path: path.into(),
            reverse: false,
            window: None,
            program_window: None,
            congestion: cubic(),
            streams: one(),
        }
    }
}

/// A file to explain.
pub type PlannedFile = ExplainRequest;

/// A test to a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlannedHost {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// True for data from the server.
    pub reverse: bool,
    /// Duration of the test, s.
    pub seconds: f64,
    /// Parallel connections.
    pub streams: u32,
    /// The congestion control; `None` for the host's.
    pub congestion: Option<String>,
    /// Socket buffers; `None` for autotuning.
    pub window: Option<ByteCount>,
}

impl Default for PlannedHost {
    fn default() -> Self {
        PlannedHost::new("")
    }
}

impl PlannedHost {
    /// Ten seconds of one connection.
    pub fn new(host: impl Into<String>) -> Self {
        PlannedHost {
            host: host.into(),
            port: 5201,
            reverse: false,
            seconds: 10.0,
            streams: 1,
            congestion: None,
            window: None,
        }
    }
}

/// The name of a file or a host, with what was given beside it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedTarget {
    /// The name: that of a file if it exists, or has several components.
    pub target: PathBuf,
    /// The connection of a file with several.
    pub connection: Option<String>,
    /// The server's port.
    pub port: Option<u16>,
    /// True for data from the server.
    pub reverse: bool,
    /// Duration of the test, s.
    pub seconds: Option<f64>,
    /// Parallel connections of the test.
    pub streams: Option<u32>,
    /// The congestion control of the test.
    pub congestion: Option<Congestion>,
    /// The test's socket buffers.
    pub window: Option<ByteCount>,
}

impl PlannedTarget {
    /// The file, or the test to the host.
    ///
    /// # Errors
    /// Something that the other one has.
    pub fn source(self) -> Result<PlanSource, Problem> {
        if self.target.exists() || self.target.components().count() > 1 {
            let of_tests = [
                (Field::Port, self.port.is_some()),
                (Field::Reverse, self.reverse),
                (Field::Seconds, self.seconds.is_some()),
                (Field::Streams, self.streams.is_some()),
                (Field::Window, self.window.is_some()),
            ];
            if let Some((field, _)) = of_tests.into_iter().find(|(_, is_given)| *is_given) {
                let message = "a file shows the transfer as it was";
                return Err(Problem::field(field, message, "only for a host or a path"));
            }
            let PlannedTarget { target: file, connection, .. } = self;
            return Ok(PlanSource::File(PlannedFile { file, connection }));
        }
        if self.connection.is_some() {
            let message = "a test has one transfer";
            return Err(Problem::field(Field::Connection, message, "only for a file"));
        }
        let name = self.target.to_str().ok_or_else(|| {
            Problem::field(Field::Host, "the name is not UTF-8", "a host's name or address")
        })?;
        let host = PlannedHost::new(name);
        Ok(PlanSource::Host(PlannedHost {
            port: self.port.unwrap_or(host.port),
            reverse: self.reverse,
            seconds: self.seconds.unwrap_or(host.seconds),
            streams: self.streams.unwrap_or(host.streams),
            congestion: self.congestion.map(|name| name.name().to_owned()),
            window: self.window,
            ..host
        }))
    }
}

/// What the options are computed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanSettings {
    /// RTT between hosts and boxes.
    pub lan_rtt: Rtt,
    /// Rate between them; `None` if it is no limit.
    pub lan_rate: Option<BitRate>,
    /// The ratio by which the data shrinks with zstd; `None` leaves compression out.
    pub compressible: Option<f64>,
    /// RTT to an edge cache; `None` leaves it out.
    pub edge_rtt: Option<Rtt>,
    /// Size of an object of the edge.
    pub object: ByteCount,
    /// The destination of the transfer, for the settings of its route.
    pub route: Option<RoutePrefix>,
}

impl Default for PlanSettings {
    fn default() -> Self {
        PlanSettings {
            lan_rtt: Rtt::from_micros(200),
            lan_rate: None,
            compressible: None,
            edge_rtt: None,
            object: ByteCount::from_bytes(1_000_000),
            route: None,
        }
    }
}

impl PlanRequest {
    /// With the default settings.
    #[must_use]
    pub fn new(source: PlanSource) -> Self {
        PlanRequest { source, rate: None, congestion: None, settings: PlanSettings::default() }
    }

    /// Checks the fields before anything is opened.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let wrong = |field, message: &str, accepted: &str| {
            Err(Problem::field(field, message, accepted.to_owned()))
        };
        let PlanSettings { lan_rtt, lan_rate, compressible, edge_rtt, object, .. } = self.settings;
        if compressible.is_some_and(|ratio| !(1.0..=MAX_REDUCTION).contains(&ratio)) {
            return wrong(Field::Compressible, "the ratio is out of range", "1 to 1000, as in 2.5");
        }
        for (field, rtt) in [(Field::LanRtt, Some(lan_rtt)), (Field::EdgeRtt, edge_rtt)] {
            if rtt == Some(Rtt::ZERO) {
                return wrong(field, "an RTT of zero", "a time such as 0.2ms");
            }
        }
        for (field, rate) in [(Field::Rate, self.rate), (Field::LanRate, lan_rate)] {
            if rate == Some(BitRate::ZERO) {
                return wrong(field, "a rate of zero", "a rate such as 100mbit");
            }
        }
        if object == ByteCount::ZERO {
            return wrong(Field::Object, "an object without bytes", "a size such as 1MB");
        }
        match &self.source {
            PlanSource::Link(link) => {
                let windows =
                    [(Field::Window, link.window), (Field::ProgramWindow, link.program_window)];
                for (field, window) in windows {
                    if window == Some(ByteCount::ZERO) {
                        return wrong(field, "a window of zero", "a size such as 64KiB");
                    }
                }
            }
            PlanSource::File(file) => file.check()?,
            PlanSource::Host(host) => {
                if host.window == Some(ByteCount::ZERO) {
                    return wrong(Field::Window, "a window of zero", "a size such as 64KiB");
                }
                if !(host.seconds > 0.0 && host.seconds <= MAX_SECONDS) {
                    return wrong(Field::Seconds, "the duration is out of range", "1 to 300 s");
                }
            }
        }
        Ok(())
    }
}
