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

pub mod calc;
pub mod copy;
pub mod doctor;
pub mod iperf2;
pub mod ping;
pub mod secrets;
pub mod server;
pub mod trace;
pub mod watch;

pub use host::stop::StopFlag;
pub use problem::{Fault, Field, Problem, Remedy};

use serde::{Deserialize, Serialize};

/// What is to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// RTT and loss of probes to a host.
    Ping(ping::PingRequest),
    /// The route to a host, with loss and RTT of each hop.
    Trace(trace::TraceRequest),
    /// This host checked against a target.
    Doctor(doctor::DoctorRequest),
    /// The checks of another host, as commands.
    DoctorCommands(doctor::CommandsRequest),
    /// Counters that another tool printed.
    Pasted(doctor::PastedRequest),
    /// Tests and copies served to others.
    Server(Box<server::ServerRequest>),
    /// Files copied to or from another host.
    Copy(copy::CopyRequest),
    /// A calculation.
    Calc(calc::CalcRequest),
    /// Bandwidth-delay product, window and buffers of a path.
    Bdp(calc::BdpQuestion),
    /// Running TCP connections of any program.
    Watch(watch::WatchRequest),
}

/// What happens meanwhile.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Of [`ping::run`].
    Ping(ping::PingEvent),
    /// Of [`trace::run`]: the report so far.
    Trace(record::TraceReport),
    /// Of [`doctor::run`].
    Doctor(doctor::DoctorEvent),
    /// Of [`server::run`].
    Server(Box<server::ServerEvent>),
    /// Of [`copy::run`].
    Copy(copy::CopyEvent),
    /// Of [`watch::run`].
    Watch(watch::WatchEvent),
}

/// What comes out: what `--json` of the program prints.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// Of [`ping::run`].
    Ping(record::PingReport),
    /// Of [`trace::run`].
    Trace(record::TraceReport),
    /// Of [`doctor::run`].
    Doctor(Box<doctor::DoctorDocument>),
    /// Of [`doctor::commands`].
    DoctorCommands(doctor::DoctorCommands),
    /// Of [`doctor::pasted`].
    Pasted(doctor::PastedReport),
    /// Of [`server::run`], whose events say all.
    Server,
    /// Of [`copy::run`].
    Copy(copy::CopyDocument),
    /// Of [`calc::run`].
    Calc(calc::CalcResult),
    /// Of [`calc::bdp`].
    Bdp(calc::BdpReport),
    /// Of [`watch::run`]: the last report.
    Watch(record::WatchReport),
}

impl Request {
    /// Judges the request, as [`run`] does before it opens anything.
    ///
    /// # Errors
    /// The field that is wrong, and what it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        match self {
            Request::Ping(request) => request.check()?,
            Request::Trace(request) => request.check()?,
            Request::Doctor(request) => request.check()?,
            Request::DoctorCommands(request) => request.check()?,
            Request::Pasted(_) => {}
            Request::Server(request) => request.check()?,
            Request::Copy(request) => request.check()?,
            Request::Watch(request) => request.check()?,
            Request::Calc(request) => request.check()?,
            Request::Bdp(question) => drop(calc::bdp(question)?),
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
        Request::Ping(request) => {
            Document::Ping(ping::run(&request, &mut |event| on_event(Event::Ping(event)), stop)?)
        }
        Request::Trace(request) => Document::Trace(trace::run(
            &request,
            &mut |report| on_event(Event::Trace(report.clone())),
            stop,
        )?),
        Request::Doctor(request) => Document::Doctor(Box::new(doctor::run(
            &request,
            &mut |event| on_event(Event::Doctor(event)),
            stop,
        )?)),
        Request::DoctorCommands(request) => Document::DoctorCommands(doctor::commands(&request)?),
        Request::Pasted(request) => Document::Pasted(doctor::pasted(&request)?),
        Request::Server(request) => {
            let on_event = &mut |event| on_event(Event::Server(Box::new(event)));
            server::run(&request, on_event, stop)?;
            Document::Server
        }
        Request::Copy(request) => {
            Document::Copy(copy::run(&request, &mut |event| on_event(Event::Copy(event)), stop)?)
        }
        Request::Calc(request) => Document::Calc(calc::run(&request)?),
        Request::Bdp(question) => Document::Bdp(calc::bdp(&question)?),
        Request::Watch(request) => {
            Document::Watch(watch::run(&request, &mut |event| on_event(Event::Watch(event)), stop)?)
        }
    })
}
