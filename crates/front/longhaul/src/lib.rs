//! Every use case of Longhaul as a function: a request in, events out, a document back.
//!
//! ```no_run
//! use longhaul::{Document, Event, Request, StopFlag, ping::PingRequest};
//!
//! let request = Request::Ping(PingRequest::new("192.0.2.1"));
//! let on_event = &mut |event: Event| eprintln!("{event:?}");
//! match longhaul::run(request, on_event, &StopFlag::new()) {
//!     Ok(Document::Ping(report)) => println!("{:?}", report.round_trips),
//!     Ok(_) => unreachable!("the document is the request's"),
//!     Err(problem) => eprintln!("{problem}"),
//! }
//! ```
//!
//! A request is plain data, which [`Request::check`] judges before anything is opened; it and all
//! that comes back can be serialised. There is no flag, no colour and no width of a
//! terminal in here, and signals are the caller's: [`StopFlag::raise`] ends a run in good order.
//! The functions of the modules, which [`run`] calls, have the types of one use case alone.

pub mod capture;
pub mod explain;
pub mod pcap;
pub mod ping;
pub mod trace;

pub use host::stop::StopFlag;
pub use problem::{Fault, Field, Problem, Remedy};

use serde::{Deserialize, Serialize};

/// What is to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Packets of an interface, captured to files. The process gives up its privileges.
    Capture(capture::CaptureRequest),
    /// What limited the transfers of a file.
    Explain(explain::ExplainRequest),
    /// The interfaces that can be captured on, and their traffic.
    Interfaces,
    /// What is in capture files.
    Pcap(pcap::PcapRequest),
    /// RTT and loss of probes to a host.
    Ping(ping::PingRequest),
    /// The route to a host, with loss and RTT of each hop.
    Trace(trace::TraceRequest),
}

/// What happens meanwhile.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Of [`capture::run`].
    Capture(capture::CaptureEvent),
    /// Of [`explain::run`].
    Explain(explain::ExplainEvent),
    /// Of [`pcap::run`].
    Pcap(pcap::PcapEvent),
    /// Of [`ping::run`].
    Ping(ping::PingEvent),
    /// Of [`trace::run`]: the report so far.
    Trace(record::TraceReport),
}

/// What comes out: what `--json` of the program prints.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// Of [`capture::run`].
    Capture(capture::CaptureDocument),
    /// Of [`explain::run`].
    Explain(explain::ExplainDocument),
    /// Of [`capture::interfaces`].
    Interfaces(record::InterfacesReport),
    /// Of [`pcap::run`].
    Pcap(pcap::PcapDocument),
    /// Of [`ping::run`].
    Ping(record::PingReport),
    /// Of [`trace::run`].
    Trace(record::TraceReport),
}

impl Request {
    /// Judges the request, as [`run`] does before it opens anything.
    ///
    /// # Errors
    /// The field that is wrong, and what it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        match self {
            Request::Capture(request) => request.check()?,
            Request::Explain(request) => request.check()?,
            Request::Interfaces => {}
            Request::Pcap(request) => request.check()?,
            Request::Ping(request) => request.check()?,
            Request::Trace(request) => request.check()?,
        }
        Ok(())
    }
}

/// Carries out a request. Blocks until it is done, or until `stop` is raised.
///
/// # Errors
/// What is wrong and whose fault it is.
pub fn run(
    request: Request,
    on_event: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Document, Problem> {
    request.check()?;
    Ok(match request {
        Request::Capture(request) => Document::Capture(capture::run(
            &request,
            &mut |event| on_event(Event::Capture(event)),
            stop,
        )?),
        Request::Explain(request) => Document::Explain(explain::run(
            &request,
            &mut |event| on_event(Event::Explain(event)),
            stop,
        )?),
        Request::Interfaces => Document::Interfaces(capture::interfaces()?),
        Request::Pcap(request) => {
            Document::Pcap(pcap::run(&request, &mut |event| on_event(Event::Pcap(event)), stop)?)
        }
        Request::Ping(request) => {
            Document::Ping(ping::run(&request, &mut |event| on_event(Event::Ping(event)), stop)?)
        }
        Request::Trace(request) => Document::Trace(trace::run(
            &request,
            &mut |report| on_event(Event::Trace(report.clone())),
            stop,
        )?),
    })
}
