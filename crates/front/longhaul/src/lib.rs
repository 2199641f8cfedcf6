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
//! A request is plain data, which [`Request::check`] checks before anything is opened; the request
//! and everything returned can be serialised. The library has no flags, no colours and no terminal
//! width, and it leaves signals to the caller: [`StopFlag::raise`] ends a run in good order.
//! The functions of the modules, which [`run`] calls, have the types of a single use case.

pub mod baseline;
pub mod boost;
pub mod calc;
pub mod capture;
pub mod copy;
pub mod cross_traffic;
pub mod demo;
pub mod doctor;
pub mod explain;
mod helper_process;
mod http_client;
pub mod http_host;
pub mod input;
pub mod iperf2;
pub mod lab;
pub mod metrics;
pub mod ndt7;
pub mod pcap;
pub mod ping;
pub mod responsiveness;
mod rtt_under_load;
pub mod secrets;
pub mod server;
pub mod sim;
pub mod study;
pub mod systemd_unit;
pub mod test;
pub mod trace;
pub mod tune;
pub mod watch;

pub use helper_process::init;
pub use host::stop::StopFlag;
pub use problem::{Fault, Field, Problem, Remedy, with_names};

use serde::{Deserialize, Serialize};

/// The use case to carry out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A thorough measurement of a path, for later comparison.
    Baseline(Box<baseline::BaselineRequest>),
    /// Packets of an interface, captured to files. Runs in a helper process, which gives up its
    /// privileges: see [`init`].
    Capture(capture::CaptureRequest),
    /// The limits of a file's transfers.
    Explain(explain::ExplainRequest),
    /// The interfaces that can be captured on, and their traffic.
    Interfaces,
    /// The contents of capture files.
    Pcap(pcap::PcapRequest),
    /// RTT and loss of probes to a host.
    Ping(ping::PingRequest),
    /// A download and an upload to an ndt7 server, and their limits.
    Ndt7(ndt7::Ndt7Request),
    /// Responsiveness to a server under load.
    Responsiveness(responsiveness::ResponsivenessRequest),
    /// Throughput to a server, and its limit.
    Test(Box<test::TestRequest>),
    /// One transfer, tuned, in a lab. Runs in a helper process: see [`init`].
    Demo(demo::DemoRequest),
    /// Programs in a lab. Runs in a helper process: see [`init`].
    Lab(lab::LabRequest),
    /// The accuracy of an emulated path. Runs in a helper process: see [`init`].
    LabCheck(lab::check::LabCheckRequest),
    /// A program on a host of a running lab. Runs in a helper process: see [`init`].
    LabExec(lab::running::ExecRequest),
    /// A link of a running lab, changed.
    LabSet(lab::running::SetRequest),
    /// Measurements of each combination of settings. In labs, runs in a helper process: see
    /// [`init`].
    Study(study::StudyRequest),
    /// The report of a study that ran, or is running.
    StudyReport(study::StudyReportRequest),
    /// Join the results of a study's shards.
    StudyMerge(study::StudyMergeRequest),
    /// Two studies compared.
    StudyCompare(study::StudyCompareRequest),
    /// The runs of a study as a table, or its plots.
    StudyExport(study::StudyExportRequest),
    /// The built-in studies.
    StudyList,
    /// The route to a host, with loss and RTT of each hop.
    Trace(trace::TraceRequest),
    /// Flows over a path in virtual time.
    Sim(sim::SimRequest),
    /// The congestion control that a path is best used with.
    SimAdvise(sim::AdviseRequest),
    /// The same flows in the simulator and in a lab. Runs in a helper process: see [`init`].
    SimCompare(sim::CompareRequest),
    /// This host's settings for a long path.
    Tune(tune::TuneRequest),
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
    /// A box of a pair that splits TCP connections.
    Boost(Box<boost::BoostRequest>),
    /// What would accelerate a transfer, by how much, and why not.
    BoostPlan(Box<boost::plan::PlanRequest>),
    /// A command as it is and through a pair, compared.
    BoostVerify(Box<boost::verify::BoostVerifyRequest>),
    /// An edge cache.
    Edge(Box<boost::edge::EdgeRequest>),
    /// A calculation.
    Calc(calc::CalcRequest),
    /// Bandwidth-delay product, window and buffers of a path.
    Bdp(calc::BdpQuestion),
    /// Running TCP connections of any program.
    Watch(watch::WatchRequest),
}

/// Events of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Events of [`baseline::run`].
    Baseline(baseline::BaselineEvent),
    /// Events of [`boost::run`].
    Boost(boost::BoostEvent),
    /// Events of [`boost::plan::run`].
    BoostPlan(boost::plan::PlanEvent),
    /// Events of [`boost::verify::run`].
    BoostVerify(boost::verify::BoostVerifyEvent),
    /// Events of [`boost::edge::run`].
    Edge(boost::edge::EdgeEvent),
    /// Events of [`capture::run`].
    Capture(capture::CaptureEvent),
    /// Events of [`explain::run`].
    Explain(explain::ExplainEvent),
    /// Events of [`pcap::run`].
    Pcap(pcap::PcapEvent),
    /// Events of [`ping::run`].
    Ping(ping::PingEvent),
    /// Events of [`ndt7::run`].
    Ndt7(ndt7::Ndt7Event),
    /// Events of [`responsiveness::run`].
    Responsiveness(responsiveness::ResponsivenessEvent),
    /// Events of [`test::run`].
    Test(test::TestEvent),
    /// Events of [`demo::run`].
    Demo(demo::DemoEvent),
    /// Events of [`lab::run`].
    Lab(lab::LabEvent),
    /// Events of [`lab::check::run`].
    LabCheck(lab::check::LabCheckEvent),
    /// Events of the functions of [`sim`].
    Sim(sim::SimEvent),
    /// Events of [`study::run`].
    Study(study::StudyEvent),
    /// Events of [`trace::run`]: the report so far.
    Trace(record::TraceReport),
    /// Events of [`tune::run`].
    Tune(tune::TuneEvent),
    /// Events of [`doctor::run`].
    Doctor(doctor::DoctorEvent),
    /// Events of [`server::run`].
    Server(Box<server::ServerEvent>),
    /// Events of [`copy::run`].
    Copy(copy::CopyEvent),
    /// Events of [`watch::run`].
    Watch(watch::WatchEvent),
}

/// The result, which `--json` of the program prints.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// Document of [`baseline::run`].
    Baseline(Box<record::BaselineReport>),
    /// Document of [`boost::run`].
    Boost(boost::BoostDocument),
    /// Document of [`boost::plan::run`].
    BoostPlan(Box<record::BoostPlan>),
    /// Document of [`boost::verify::run`].
    BoostVerify(Box<record::BoostVerification>),
    /// Document of [`boost::edge::run`].
    Edge(Box<boost::edge::EdgeDocument>),
    /// Document of [`capture::run`].
    Capture(capture::CaptureDocument),
    /// Document of [`explain::run`].
    Explain(explain::ExplainDocument),
    /// Document of [`capture::interfaces`].
    Interfaces(record::InterfacesReport),
    /// Document of [`pcap::run`].
    Pcap(pcap::PcapDocument),
    /// Document of [`ping::run`].
    Ping(record::PingReport),
    /// Document of [`ndt7::run`].
    Ndt7(Box<ndt7::Ndt7Document>),
    /// Document of [`responsiveness::run`].
    Responsiveness(Box<responsiveness::ResponsivenessDocument>),
    /// Document of [`test::run`].
    Test(test::TestDocument),
    /// Document of [`demo::run`].
    Demo(Box<record::LoopReport>),
    /// Document of [`lab::run`].
    Lab(lab::LabDocument),
    /// Document of [`lab::check::run`].
    LabCheck(record::PathReport),
    /// Document of [`lab::running::exec`].
    LabExec(lab::ExecDocument),
    /// Document of [`lab::running::set`].
    LabSet(lab::SetDocument),
    /// Document of [`sim::run`].
    Sim(Box<sim::SimResult>),
    /// Document of [`sim::advise`].
    SimAdvise(record::SimAdvice),
    /// Document of [`sim::compare`].
    SimCompare(record::SimComparison),
    /// Document of [`study::run`] and [`study::report`].
    Study(record::StudyReport),
    /// Document of [`study::compare`].
    StudyCompare(record::StudyComparison),
    /// Document of [`study::export`].
    StudyExport(study::Exported),
    /// Document of [`study::list`].
    StudyList(study::StudyList),
    /// Document of [`trace::run`].
    Trace(record::TraceReport),
    /// Document of [`tune::run`].
    Tune(tune::TuneDocument),
    /// Document of [`doctor::run`].
    Doctor(Box<doctor::DoctorDocument>),
    /// Document of [`doctor::commands`].
    DoctorCommands(doctor::DoctorCommands),
    /// Document of [`doctor::pasted`].
    Pasted(doctor::PastedReport),
    /// Document of [`server::run`], whose events say all.
    Server,
    /// Document of [`copy::run`].
    Copy(copy::CopyDocument),
    /// Document of [`calc::run`].
    Calc(calc::CalcResult),
    /// Document of [`calc::bdp`].
    Bdp(calc::BdpReport),
    /// Document of [`watch::run`]: the last report.
    Watch(record::WatchReport),
}

impl Request {
    /// Checks the request, as [`run`] does before it opens anything.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        match self {
            Request::Baseline(request) => request.check()?,
            Request::Boost(request) => request.check()?,
            Request::BoostPlan(request) => request.check()?,
            Request::BoostVerify(request) => request.check()?,
            Request::Edge(request) => request.check()?,
            Request::Capture(request) => request.check()?,
            Request::Explain(request) => request.check()?,
            Request::Interfaces => {}
            Request::Pcap(request) => request.check()?,
            Request::Demo(request) => request.check()?,
            Request::Lab(request) => request.check()?,
            Request::LabCheck(request) => request.check()?,
            Request::Sim(request) => request.check()?,
            Request::SimAdvise(request) => request.check()?,
            Request::SimCompare(request) => request.check()?,
            Request::Study(request) => request.check()?,
            Request::LabExec(request) => request.check()?,
            Request::LabSet(request) => request.check()?,
            Request::StudyReport(_)
            | Request::StudyMerge(_)
            | Request::StudyCompare(_)
            | Request::StudyExport(_)
            | Request::StudyList => {}
            Request::Ping(request) => request.check()?,
            Request::Ndt7(request) => request.check()?,
            Request::Responsiveness(request) => request.check()?,
            Request::Test(request) => request.check()?,
            Request::Trace(request) => request.check()?,
            Request::Tune(request) => request.check()?,
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
/// The error, and whose fault it is.
pub fn run(
    request: Request,
    on_event: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Document, Problem> {
    request.check()?;
    Ok(match request {
        Request::Baseline(request) => Document::Baseline(Box::new(baseline::run(
            &request,
            &mut |event| on_event(Event::Baseline(event)),
            stop,
        )?)),
        Request::BoostPlan(request) => {
            let on_event = &mut |event| on_event(Event::BoostPlan(event));
            Document::BoostPlan(Box::new(boost::plan::run(&request, on_event, stop)?))
        }
        Request::BoostVerify(request) => {
            let on_event = &mut |event| on_event(Event::BoostVerify(event));
            Document::BoostVerify(Box::new(boost::verify::run(&request, on_event, stop)?))
        }
        Request::Boost(request) => {
            let on_event = &mut |event| on_event(Event::Boost(event));
            Document::Boost(boost::run(&request, on_event, stop)?)
        }
        Request::Edge(request) => {
            let on_event = &mut |event| on_event(Event::Edge(event));
            Document::Edge(Box::new(boost::edge::run(&request, on_event, stop)?))
        }
        Request::Capture(_) => {
            let mut observe = |event| on_event(Event::Capture(event));
            Document::Capture(helper_process::run(&request, &mut observe, stop)?)
        }
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
        Request::Ndt7(request) => Document::Ndt7(Box::new(ndt7::run(
            &request,
            &mut |event| on_event(Event::Ndt7(event)),
            stop,
        )?)),
        Request::Responsiveness(request) => {
            Document::Responsiveness(Box::new(responsiveness::run(
                &request,
                &mut |event| on_event(Event::Responsiveness(event)),
                stop,
            )?))
        }
        Request::Test(request) => {
            Document::Test(test::run(&request, &mut |event| on_event(Event::Test(event)), stop)?)
        }
        Request::Demo(_) => {
            let mut observe = |event| on_event(Event::Demo(event));
            Document::Demo(helper_process::run(&request, &mut observe, stop)?)
        }
        Request::Lab(_) => {
            let mut observe = |event| on_event(Event::Lab(event));
            Document::Lab(helper_process::run(&request, &mut observe, stop)?)
        }
        Request::LabCheck(_) => {
            let mut observe = |event| on_event(Event::LabCheck(event));
            Document::LabCheck(helper_process::run(&request, &mut observe, stop)?)
        }
        Request::LabExec(_) => {
            Document::LabExec(helper_process::run(&request, &mut |()| {}, stop)?)
        }
        Request::LabSet(request) => Document::LabSet(lab::running::set(&request)?),
        Request::Sim(request) => {
            let on_event = &mut |event| on_event(Event::Sim(event));
            Document::Sim(Box::new(sim::run(&request, on_event, stop)?))
        }
        Request::SimAdvise(request) => {
            let on_event = &mut |event| on_event(Event::Sim(event));
            Document::SimAdvise(sim::advise(&request, on_event, stop)?)
        }
        Request::SimCompare(_) => {
            let mut observe = |event| on_event(Event::Sim(event));
            Document::SimCompare(helper_process::run(&request, &mut observe, stop)?)
        }
        Request::Study(ref study) => {
            let mut observe = |event| on_event(Event::Study(event));
            Document::Study(match study.needs_sandbox() {
                true => helper_process::run(&request, &mut observe, stop)?,
                false => study::run(study, &mut observe, stop)?,
            })
        }
        Request::StudyReport(request) => Document::Study(study::report(&request)?),
        Request::StudyMerge(request) => Document::Study(study::merge(&request)?),
        Request::StudyCompare(request) => Document::StudyCompare(study::compare(&request)?),
        Request::StudyExport(request) => Document::StudyExport(study::export(&request)?),
        Request::StudyList => Document::StudyList(study::list()),
        Request::Trace(request) => Document::Trace(trace::run(
            &request,
            &mut |report| on_event(Event::Trace(report.clone())),
            stop,
        )?),
        Request::Tune(request) => {
            let mut observe = |event| on_event(Event::Tune(event));
            Document::Tune(tune::run(&request, &mut observe, stop)?)
        }
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
