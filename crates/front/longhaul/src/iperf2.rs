//! One test against a server of iperf 2, as a document.
//!
//! ```no_run
//! use longhaul::{StopFlag, iperf2::{self, ClientConfig}};
//!
//! let document = iperf2::run(&ClientConfig::new("192.0.2.1"), &StopFlag::new())?;
//! println!("{document:?}");
//! # Ok::<(), longhaul::Problem>(())
//! ```

pub use ::iperf2::client::ClientConfig;

use crate::{Fault, Problem, StopFlag};
use ::iperf2::{Event, IntervalReport, Iperf2Error, client};
use host::lock::{into_inner, lock};
use iperf2_proto::ServerReport;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Runs one test.
///
/// # Errors
/// The configuration is wrong, the connection fails, or the test is aborted.
pub fn run(config: &ClientConfig, stop: &StopFlag) -> Result<Iperf2Document, Problem> {
    let document = Mutex::new(Iperf2Document::new(config));
    let on_event = |event| lock(&document).take(&event);
    client::run(config, &on_event, stop).map_err(problem)?;
    Ok(into_inner(document))
}

fn problem(error: Iperf2Error) -> Problem {
    let fault = match &error {
        Iperf2Error::Interrupted => Fault::Interrupted,
        error if error.is_usage() => Fault::Request,
        _ => Fault::Peer,
    };
    Problem::new(fault, error)
}

/// A test and its reports.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct Iperf2Document {
    schema: &'static str,
    asked: Asked,
    streams: Vec<Stream>,
    intervals: Vec<Interval>,
    totals: Vec<Interval>,
    server_reports: Vec<Report>,
}

/// The parameters of the test.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
struct Asked {
    host: String,
    port: u16,
    protocol: &'static str,
    mode: String,
    streams: u32,
}

#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
struct Stream {
    id: u32,
    local: SocketAddr,
    peer: SocketAddr,
    mss_bytes: Option<u32>,
    handshake_rtt_us: Option<u32>,
}

#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
struct Interval {
    /// `None` for sums.
    id: Option<u32>,
    sent: bool,
    from_s: f64,
    to_s: f64,
    bytes: u64,
    rate_bps: f64,
    datagrams: Option<u64>,
    lost: Option<u64>,
    late: Option<u64>,
    jitter_us: Option<f64>,
}

#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
struct Report {
    id: u32,
    seconds: f64,
    bytes: u64,
    datagrams: u64,
    lost: u64,
    late: u64,
    jitter_us: f64,
}

impl Iperf2Document {
    fn new(config: &ClientConfig) -> Self {
        Iperf2Document {
            schema: "longhaul.iperf2/1",
            asked: Asked {
                host: config.host.clone(),
                port: config.port,
                protocol: if config.udp { "UDP" } else { "TCP" },
                mode: format!("{:?}", config.mode),
                streams: config.streams,
            },
            streams: Vec::new(),
            intervals: Vec::new(),
            totals: Vec::new(),
            server_reports: Vec::new(),
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            &Event::Connected { label, local, peer, tcp, .. } => self.streams.push(Stream {
                id: label.id,
                local,
                peer,
                mss_bytes: tcp.map(|tcp| tcp.mss),
                handshake_rtt_us: tcp.map(|tcp| tcp.rtt_us),
            }),
            Event::Interval(report) if report.whole => self.totals.push(report.into()),
            Event::Interval(report) => self.intervals.push(report.into()),
            Event::Report { label, report, .. } => {
                self.server_reports.push(Report::new(label.id, report));
            }
            _ => {}
        }
    }
}

impl From<&IntervalReport> for Interval {
    fn from(report: &IntervalReport) -> Self {
        let seconds = report.to.saturating_sub(report.from).as_secs_f64();
        let received = report.received;
        Interval {
            id: report.label.map(|label| label.id),
            sent: report.sending,
            from_s: report.from.as_secs_f64(),
            to_s: report.to.as_secs_f64(),
            bytes: report.bytes,
            rate_bps: if seconds > 0.0 { report.bytes as f64 * 8.0 / seconds } else { 0.0 },
            datagrams: received.map(|received| received.datagrams),
            lost: received.map(|received| received.lost),
            late: received.map(|received| received.late),
            jitter_us: received.and_then(|received| received.jitter).map(micros),
        }
    }
}

impl Report {
    fn new(id: u32, report: &ServerReport) -> Self {
        Report {
            id,
            seconds: report.time.as_secs_f64(),
            bytes: report.bytes,
            datagrams: report.datagrams,
            lost: report.lost,
            late: report.late,
            jitter_us: micros(report.jitter),
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
