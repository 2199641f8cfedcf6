//! What would accelerate a transfer, by how much, and why not.
//!
//! ```
//! use longhaul::StopFlag;
//! use longhaul::boost::plan::{self, PlanRequest, PlanSource, PlannedLink};
//!
//! let mut link = PlannedLink::new("rate=100mbit,rtt=173ms");
//! link.window = Some("64KiB".parse()?);
//! let request = PlanRequest::new(PlanSource::Link(link));
//! let plan = plan::run(&request, &mut |_| (), &StopFlag::new())?;
//! for option in &plan.transfers[0].options {
//!     println!("{}: {:?}", option.kind.name(), option.goodput_bps);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod commands;
mod file;
mod measured;
mod options;
mod programs;
mod reasons;
mod request;
mod situation;
#[cfg(test)]
mod tests;
mod traffic;
mod verdict;

pub use request::{
    PlanRequest, PlanSettings, PlanSource, PlannedFile, PlannedHost, PlannedLink, PlannedTarget,
};

use crate::pcap::ReadProgress;
use crate::test::{self, EndAfter, TestDocument, TestEvent, TestRequest};
use crate::{Problem, StopFlag, lab};
use record::{BOOST_PLAN_SCHEMA, BoostPlan, BoostSource, BoostTransfer, Direction, TrafficShares};
use serde::Serialize;
use situation::{Asked, Situation};

/// Events of a plan.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanEvent {
    /// A capture is read.
    Progress(ReadProgress),
    /// Events of the test to a host.
    Test(TestEvent),
}

/// Transfers, and what else their source shows.
struct Sourced {
    situations: Vec<Situation>,
    traffic: Option<TrafficShares>,
    notes: Vec<String>,
}

/// Predicts each option for the transfers of a path, a file or a test.
///
/// # Errors
/// An invalid field; a file that cannot be read; a host without a server.
pub fn run(
    request: &PlanRequest,
    on_event: &mut dyn FnMut(PlanEvent),
    stop: &StopFlag,
) -> Result<BoostPlan, Problem> {
    request.check()?;
    let of_file = matches!(request.source, PlanSource::File(_));
    let congestion = request.congestion.filter(|_| of_file);
    let asked = Asked { rate: request.rate, congestion };
    let (source, sourced) = match &request.source {
        PlanSource::Link(link) => (BoostSource::Link(link.path.clone()), of_link(link)?),
        PlanSource::File(file) => (
            BoostSource::File(file.file.display().to_string()),
            file::read(file, &asked, on_event, stop)?,
        ),
        PlanSource::Host(host) => {
            let sourced = of_host(host, &asked, on_event, stop)?;
            (BoostSource::Host(host.host.clone()), sourced)
        }
    };
    let transfer = |situation: &Situation| {
        let options = options::options(situation, &request.settings);
        let recommended = options::recommended(&options);
        BoostTransfer {
            name: situation.name.clone(),
            limit: situation.limit,
            confidence: situation.confidence,
            finding: situation.finding.clone(),
            path: situation.document(),
            options,
            recommended,
            programs: situation.path.iter().flat_map(programs::programs).collect(),
        }
    };
    Ok(BoostPlan {
        schema: BOOST_PLAN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        source,
        transfers: sourced.situations.iter().map(transfer).collect(),
        traffic: sourced.traffic,
        notes: sourced.notes,
    })
}

fn of_link(link: &PlannedLink) -> Result<Sourced, Problem> {
    let path = lab::parse_path(&link.path)?;
    let situation = Situation::of_link(&path, link)?;
    Ok(Sourced { situations: vec![situation], traffic: None, notes: Vec::new() })
}

/// A short test, and the options for what it finds.
fn of_host(
    host: &PlannedHost,
    asked: &Asked,
    on_event: &mut dyn FnMut(PlanEvent),
    stop: &StopFlag,
) -> Result<Sourced, Problem> {
    let mut request = TestRequest::new(&host.host);
    request.transfer.ports = host.port..=host.port;
    request.transfer.end = EndAfter::Seconds(host.seconds);
    request.transfer.streams = host.streams;
    request.transfer.congestion.clone_from(&host.congestion);
    request.transfer.window = host.window;
    if host.reverse {
        request.transfer.direction = Direction::Reverse;
    }
    let document = test::run(&request, &mut |event| on_event(PlanEvent::Test(event)), stop)
        .map_err(without_server)?;
    let TestDocument::Once(result) = document else {
        return Err(Problem::new(crate::Fault::Internal, "one test has another result"));
    };
    let measurement = &result.measurement;
    let situations = Situation::of_measurement("", measurement, None, asked)?;
    let notes = measurement.notes.clone();
    Ok(Sourced { situations, traffic: None, notes })
}

/// The problem of a test, with what a plan can be made from instead.
fn without_server(problem: Problem) -> Problem {
    if problem.fault != crate::Fault::Peer {
        return problem;
    }
    let message = format!("{}; or plan from a file or for a path, without a test", problem.message);
    Problem { message, ..problem }
}
