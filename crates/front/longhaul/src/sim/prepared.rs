//! A request that was checked: all that the simulation is made of.

use super::bounds::{self, Bounds};
use super::flow_group::{FlowGroup, MAX_FLOWS, OWN};
use super::plan::{self, SimPlan};
use super::schedule;
use super::{SimPath, SimRequest};
use crate::lab::parse_path;
use crate::{Fault, Field, Problem};
use control::Algorithm;
use link::Schedule;
use record::PathChange;
use std::path::{Path, PathBuf};
use std::time::Duration;
use topology::PathSpec;
use twin::{ConnectionConfig, HEADER_BYTES, Scenario};
use units::LossRatio;

/// The time that is simulated by default, s.
const DEFAULT_SECONDS: f64 = 30.0;

/// The seed by default: a simulation repeats unless another one is asked for.
const DEFAULT_SEED: u64 = 1;

/// Most processes of a program that controls flows.
const MAX_PROGRAMS: u32 = 64;

/// A simulation, ready to run.
pub(super) struct Prepared {
    /// The path from each moment on, the first at zero.
    pub(super) paths: Vec<(Duration, PathSpec)>,
    pub(super) changes: Vec<PathChange>,
    /// Never empty.
    pub(super) groups: Vec<FlowGroup>,
    /// Those of the flows of `groups`, in their order.
    pub(super) connections: Vec<ConnectionConfig>,
    pub(super) links: [Schedule; 2],
    pub(super) seconds: f64,
    pub(super) duration: Duration,
    pub(super) seed: u64,
    pub(super) bounds: Bounds,
    /// The program of the flows without a control of their own.
    pub(super) control: Option<PathBuf>,
}

impl Prepared {
    pub(super) fn of(request: &SimRequest) -> Result<Self, Problem> {
        let flows: Vec<FlowGroup> =
            request.flows.iter().map(|text| FlowGroup::parse(text)).collect::<Result<_, _>>()?;
        let plan = match &request.path {
            SimPath::Link(link) if link.is_empty() => {
                let accepted = "a path such as rate=100mbit,rtt=50ms, or a plan";
                return Err(Problem::field(Field::Link, "no path", accepted));
            }
            SimPath::Link(link) => {
                let paths = vec![(Duration::ZERO, parse_path(link)?)];
                SimPlan { paths, changes: Vec::new(), duration: None, flows: Vec::new() }
            }
            SimPath::Plan { file, text } => plan::read(file, text, !flows.is_empty())?,
        };
        let SimPlan { paths, changes, duration, flows: planned } = plan;
        let groups = match (flows.is_empty(), planned.is_empty()) {
            (false, _) => flows,
            (true, false) => planned,
            (true, true) if request.control.is_some() => vec![FlowGroup::parse(OWN)?],
            (true, true) => vec![FlowGroup::bulk(Algorithm::default())],
        };
        check_control(request.control.as_deref(), &groups)?;
        let last = groups.iter().filter_map(|group| group.stop).max();
        let planned_s = duration.or(last.filter(|_| matches!(request.path, SimPath::Plan { .. })));
        let planned_s = planned_s.map_or(DEFAULT_SECONDS, |time| time.as_secs_f64());
        let seconds = request.seconds.unwrap_or(planned_s);
        let duration = checked_duration(seconds)?;
        check_groups(&groups, duration)?;
        check_end(&paths, &groups)?;
        check_routers(&paths, &groups)?;
        let seed = request.seed.or_else(|| paths.first()?.1.seed()).unwrap_or(DEFAULT_SEED);
        let mss = mss(&paths)?;
        let delay = groups.iter().map(|group| group.delay).max().unwrap_or_default();
        let ample = bounds::ample(&paths, delay);
        let connections: Vec<ConnectionConfig> =
            groups.iter().flat_map(|group| group.connections(mss, ample)).collect();
        let bounds = Bounds::of(&paths, delay, connections.len(), seconds);
        bounds.check()?;
        let links = schedule::of(&paths, seed)
            .ok_or_else(|| Problem::new(Fault::Internal, "a path without settings"))?;
        let control = request.control.clone();
        Ok(Prepared {
            paths,
            changes,
            groups,
            connections,
            links,
            seconds,
            duration,
            seed,
            bounds,
            control,
        })
    }

    /// The path at the start.
    pub(super) fn path(&self) -> Option<&PathSpec> {
        self.paths.first().map(|(_, path)| path)
    }

    /// Whether each connection is controlled by the program.
    pub(super) fn is_own(&self) -> impl Iterator<Item = bool> {
        let of = |group: &FlowGroup| {
            std::iter::repeat_n(group.control.is_none(), group.connection_count() as usize)
        };
        self.groups.iter().flat_map(of)
    }

    pub(super) fn scenario(&self) -> Scenario {
        let [forward, reverse] = self.links.clone();
        // Retransmissions too pass the bottleneck: what is lost behind it has counted there.
        let most = self.bounds.packets.map_or(bounds::MAX_PACKETS_WITHOUT_RATE, |packets| {
            packets.saturating_mul(2).saturating_add(100_000)
        });
        Scenario {
            connections: self.connections.clone(),
            max_packets: most,
            ..Scenario::new(forward, reverse, self.duration)
        }
    }
}

fn checked_duration(seconds: f64) -> Result<Duration, Problem> {
    let accepted = format!("more than 0 and at most {} s", bounds::MAX_SECONDS);
    let wrong = || Problem::field(Field::Seconds, format!("{seconds} s"), accepted.clone());
    if !(seconds > 0.0 && seconds <= bounds::MAX_SECONDS) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

fn check_groups(groups: &[FlowGroup], duration: Duration) -> Result<(), Problem> {
    let count: u64 = groups.iter().map(|group| u64::from(group.connection_count())).sum();
    if count > u64::from(MAX_FLOWS) {
        let what = format!("{count} connections");
        return Err(Problem::field(Field::Flows, what, format!("at most {MAX_FLOWS} in all")));
    }
    if let Some(late) = groups.iter().find(|group| group.start >= duration) {
        let what = format!("'{}' starts after the end, {} s", late.spec, duration.as_secs_f64());
        return Err(Problem::field(Field::Seconds, what, "a longer time, or an earlier start"));
    }
    Ok(())
}

/// Flows named `own` have a program, and a program has such flows.
fn check_control(program: Option<&Path>, groups: &[FlowGroup]) -> Result<(), Problem> {
    let own = groups.iter().find(|group| group.control.is_none());
    match (program, own) {
        (Some(_), None) => {
            let what = format!("no flow has the congestion control '{OWN}', the program's");
            Err(Problem::field(Field::Flows, what, format!("{OWN} among the flows")))
        }
        (None, Some(group)) => {
            let what = format!("'{}' needs a program that controls it", group.spec);
            Err(Problem::field(Field::ControlProgram, what, "an executable file"))
        }
        _ => Ok(()),
    }?;
    let programs: u32 =
        groups.iter().filter(|one| one.control.is_none()).map(|one| one.count).sum();
    if programs > MAX_PROGRAMS {
        let what = format!("{programs} flows with a program each");
        return Err(Problem::field(Field::Flows, what, format!("at most {MAX_PROGRAMS}")));
    }
    Ok(())
}

/// XCP needs a router that has it, all the time.
fn check_routers(paths: &[(Duration, PathSpec)], groups: &[FlowGroup]) -> Result<(), Problem> {
    let needs = |group: &&FlowGroup| {
        group.control.is_some_and(|control| control.algorithm().needs_xcp_router())
    };
    let Some(group) = groups.iter().find(needs) else { return Ok(()) };
    let mut states = paths.iter().flat_map(|(_, path)| path.states());
    if states.all(|(_, [up, _])| up.has_xcp_router()) {
        return Ok(());
    }
    let what = format!("'{}' needs an XCP router, which grants it its window", group.spec);
    Err(Problem::field(Field::Link, what, "queue=xcp and a rate, such as rate=100mbit,queue=xcp"))
}

/// A flow that nothing limits over a path without a rate grows without end.
fn check_end(paths: &[(Duration, PathSpec)], groups: &[FlowGroup]) -> Result<(), Problem> {
    let states = || paths.iter().flat_map(|(_, path)| path.states());
    let is_endless = |direction: &topology::PathDirection| {
        direction.rate().is_none()
            && direction.mean_loss() == LossRatio::NONE
            && direction.config().policer.is_none()
    };
    let endless = states().any(|(_, [up, _])| is_endless(up));
    match groups.iter().find(|group| group.is_unlimited()).filter(|_| endless) {
        None => Ok(()),
        Some(group) => Err(Problem::field(
            Field::Link,
            format!("nothing limits '{}' over a path without rate and loss", group.spec),
            "a rate, such as rate=1gbit",
        )),
    }
}

/// Payload of a packet: that of the smallest MTU.
fn mss(paths: &[(Duration, PathSpec)]) -> Result<u32, Problem> {
    let mtus = paths.iter().flat_map(|(_, path)| {
        let links = path.states().filter_map(|(_, [up, _])| up.config().mtu);
        links.chain([path.mtu()]).collect::<Vec<u32>>()
    });
    let mtu = mtus.min().unwrap_or_default();
    mtu.checked_sub(HEADER_BYTES).filter(|mss| *mss >= 128).ok_or_else(|| {
        let what = format!("an MTU of {mtu} bytes");
        Problem::field(Field::Link, what, format!("an MTU of at least {}", 128 + HEADER_BYTES))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: &SimRequest) -> String {
        Prepared::of(request).err().map_or(String::new(), |problem| problem.to_string())
    }

    #[test]
    fn contradictions_are_refused_before_anything_runs() {
        let good = SimRequest::over("rate=10mbit,rtt=20ms");
        assert_eq!(line(&good), "");
        let flows = |flows: &[&str]| SimRequest {
            flows: flows.iter().map(|flow| (*flow).to_owned()).collect(),
            ..good.clone()
        };
        for (request, part) in [
            (SimRequest::over("rate=unlimited,rtt=20ms"), "nothing limits 'cubic'"),
            (SimRequest::over("rate=10mbit,rtt=20ms,@5s.rate=unlimited"), "without rate and loss"),
            (SimRequest::over("rate=10xbit"), "rate"),
            (SimRequest { seconds: Some(0.0), ..good.clone() }, "more than 0"),
            (SimRequest { seconds: Some(f64::NAN), ..good.clone() }, "more than 0"),
            (SimRequest { seconds: Some(1e9), ..good.clone() }, "at most 100000 s"),
            (flows(&["600xcubic", "600xreno"]), "at most 1000 in all"),
            (flows(&["126xpsockets"]), "at most 1000 in all"),
            (flows(&["cubic", "xcp"]), "'xcp' needs an XCP router"),
            (flows(&["cubic,start=31s"]), "starts after the end"),
        ] {
            assert!(line(&request).contains(part), "{request:?}: {}", line(&request));
        }
        let with_router = SimRequest::over("rate=10mbit,rtt=20ms,queue=xcp,@5s.rate=5mbit");
        assert_eq!(line(&SimRequest { flows: vec!["xcp".into()], ..with_router }), "");
        let without = SimRequest::over("rate=10mbit,rtt=20ms,queue=xcp,@5s.queue=codel");
        let without = SimRequest { flows: vec!["xcp".into()], ..without };
        assert!(line(&without).contains("needs an XCP router"), "{}", line(&without));
        let limited = SimRequest {
            flows: vec!["cubic,rate=10mbit".into()],
            ..SimRequest::over("rate=unlimited,rtt=20ms")
        };
        assert_eq!(line(&limited), "");
    }
}
