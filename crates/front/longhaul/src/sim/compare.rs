//! The same flows in the simulator and under this machine's kernel, in alternation.

mod agreement;
mod lab_run;

use super::event::SimEvent;
use super::figures::rtts_ms;
use super::prepared::Prepared;
use super::{SimRequest, run};
use crate::{Fault, Field, Problem, StopFlag};
use lab_run::LabRun;
use model::statistics::percentile;
use record::{Measurement, SIM_COMPARISON_SCHEMA, SimComparison, SimRunFigures, Stream};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Streams of a test at most.
const MAX_STREAMS: u32 = 128;

/// The longest run in a lab, s.
const MAX_SECONDS: f64 = 3600.0;

/// Most runs of each kind.
const MAX_RUNS: u32 = 100;

/// Runs in the lab that do not count, before the comparison gives up on a seed.
const ATTEMPTS: u32 = 3;

/// A simulation that is held against the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareRequest {
    /// The flows and their path.
    pub sim: SimRequest,
    /// Runs of each kind, 1 to 100; the seed of the path differs from run to run.
    pub runs: u32,
    /// Deviation of the goodput up to which both agree, as a share: 0.1.
    pub tolerance: f64,
}

impl CompareRequest {
    /// Five runs, and a tolerance of 10 %.
    #[must_use]
    pub const fn new(sim: SimRequest) -> Self {
        CompareRequest { sim, runs: 5, tolerance: 0.1 }
    }

    /// Checks the request. What the kernel lacks is found when the first lab starts.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.prepared().map(drop)
    }

    fn prepared(&self) -> Result<Prepared, Problem> {
        if !(1..=MAX_RUNS).contains(&self.runs) {
            let what = format!("{} runs", self.runs);
            return Err(Problem::field(Field::Repeat, what, format!("1 to {MAX_RUNS}")));
        }
        if !(self.tolerance > 0.0 && self.tolerance < 1.0) {
            let what = format!("a tolerance of {}", self.tolerance);
            return Err(Problem::field(Field::Ratio, what, "a share above 0 and below 1"));
        }
        let prepared = Prepared::of(&self.sim)?;
        check_lab(&prepared)?;
        if prepared.seconds > MAX_SECONDS {
            let what = format!("{} s in a lab", prepared.seconds);
            return Err(Problem::field(Field::Seconds, what, format!("at most {MAX_SECONDS} s")));
        }
        if !prepared.changes.is_empty() {
            let what = "a comparison takes no [[change]]";
            return Err(Problem::field(
                Field::Link,
                what,
                "the change in the path, as in @5s.loss=1%",
            ));
        }
        if let Some(group) =
            prepared.groups.iter().find(|group| group.connection_count() > MAX_STREAMS)
        {
            let what = format!("'{}' has more than {MAX_STREAMS} connections", group.spec);
            return Err(Problem::field(
                Field::Flows,
                what,
                "several groups, such as 100xcubic twice",
            ));
        }
        Ok(prepared)
    }
}

/// Refuses what a lab cannot have.
fn check_lab(prepared: &Prepared) -> Result<(), Problem> {
    for group in &prepared.groups {
        if let Some(reason) = control::simulated_only(group.kernel_control()) {
            return Err(Problem::field(
                Field::Flows,
                reason,
                "one that this kernel has, such as cubic",
            ));
        }
        if !group.delay.is_zero() {
            let what = format!("'{}': a lab has one round trip for all flows", group.spec);
            return Err(Problem::field(Field::Flows, what, "flows without delay"));
        }
    }
    if prepared.path().is_some_and(|path| path.directions().iter().any(|one| one.has_xcp_router()))
    {
        let what = "queue=xcp answers headers that no kernel writes";
        return Err(Problem::field(Field::Link, what, "a queue of a lab, such as queue=1bdp"));
    }
    Ok(())
}

/// Runs the flows in the simulator and in a lab, with one seed after the other. An interruption
/// ends it; what was compared before counts.
///
/// To be called in a sandbox ([`host::sandbox::run`]) whose process has one thread;
/// [`crate::run`] does so.
///
/// # Errors
/// An invalid field, no privilege for a lab, a congestion control that the kernel lacks.
pub fn compare(
    request: &CompareRequest,
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Result<SimComparison, Problem> {
    let prepared = request.prepared()?;
    let Some(path) = prepared.path() else {
        return Err(Problem::new(Fault::Internal, "a path without settings"));
    };
    let total = 2 * request.runs as usize;
    let (mut simulated, mut lab, mut kernel) = (Vec::new(), Vec::new(), String::new());
    for number in 0..request.runs {
        let seed = prepared.seed.wrapping_add(u64::from(number));
        let announce = |on_event: &mut dyn FnMut(SimEvent), place: &str, at: usize| {
            on_event(SimEvent::Run {
                number: at,
                of: total,
                what: format!("{place}, seed {seed}"),
            });
        };
        announce(on_event, "simulator", 2 * number as usize + 1);
        let one = SimRequest { seed: Some(seed), ..request.sim.clone() };
        let outcome = run::simulate(&Prepared::of(&one)?, &mut |_| (), stop)?;
        if stop.is_raised() {
            break;
        }
        simulated.push(figures(&prepared, seed, &[outcome.measurement], Vec::new()));
        announce(on_event, "lab", 2 * number as usize + 2);
        let valid = lab_run::valid(&prepared, path, seed, on_event, stop)?;
        let Some(LabRun { measurements, not_valid }) = valid else {
            simulated.pop();
            break;
        };
        if let Some(first) = measurements.first() {
            kernel.clone_from(&first.host.kernel);
        }
        lab.push(figures(&prepared, seed, &measurements, not_valid));
    }
    if lab.is_empty() {
        return Err(Problem::new(Fault::Interrupted, "interrupted before the first run in a lab"));
    }
    let names: Vec<&str> = prepared.groups.iter().map(|group| group.spec.as_str()).collect();
    let figures = agreement::of(&names, &simulated, &lab);
    let (verdict, sentence) = agreement::verdict(&figures, &lab, request.tolerance);
    Ok(SimComparison {
        schema: SIM_COMPARISON_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        link: path.to_spec(),
        flows: names.into_iter().map(str::to_owned).collect(),
        kernel,
        seconds: prepared.seconds,
        simulated,
        lab,
        figures,
        tolerance: request.tolerance,
        verdict,
        sentence,
    })
}

/// The figures of a run: one measurement of all groups, or one of each.
fn figures(
    prepared: &Prepared,
    seed: u64,
    measurements: &[Measurement],
    not_valid: Vec<String>,
) -> SimRunFigures {
    let mut streams = measurements.iter().flat_map(|one| &one.streams);
    let all: Vec<&Stream> = streams.clone().collect();
    let goodput_bps = prepared.groups.iter().map(|group| {
        let own = streams.by_ref().take(group.connection_count() as usize);
        own.fold(BitRate::ZERO, |sum, stream| BitRate::from_bps(sum.bps() + goodput(stream).bps()))
    });
    let goodput_bps = goodput_bps.collect();
    let rtts: Vec<f64> = all.iter().flat_map(|stream| rtts_ms(stream)).collect();
    let bytes = all.iter().map(|stream| stream.received_bytes).sum();
    SimRunFigures {
        seed,
        all_bps: BitRate::of(ByteCount::from_bytes(bytes), prepared.duration),
        goodput_bps,
        retransmits: all.iter().filter_map(|stream| stream.retransmits).sum(),
        rtt_median_ms: percentile(&rtts, 0.5),
        not_valid,
    }
}

fn goodput(stream: &Stream) -> BitRate {
    let time = Duration::try_from_secs_f64(stream.received_seconds).unwrap_or_default();
    match time.is_zero() {
        true => BitRate::ZERO,
        false => BitRate::of(ByteCount::from_bytes(stream.received_bytes), time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lab_cannot_run_is_refused_before() {
        let good = CompareRequest::new(SimRequest::over("rate=10mbit,rtt=20ms"));
        assert_eq!(good.check(), Ok(()));
        let sim = |flow: &str, seconds| SimRequest {
            flows: vec![flow.to_owned()],
            seconds: Some(seconds),
            ..good.sim.clone()
        };
        for (request, field) in [
            (CompareRequest { runs: 0, ..good.clone() }, Field::Repeat),
            (CompareRequest { tolerance: f64::NAN, ..good.clone() }, Field::Ratio),
            (CompareRequest::new(sim("cubic", 3601.0)), Field::Seconds),
            (CompareRequest::new(sim("129xcubic", 5.0)), Field::Flows),
            (CompareRequest::new(sim("cubic,delay=10ms", 5.0)), Field::Flows),
            (CompareRequest::new(SimRequest::over("rate=10mbit,rtt=20ms,queue=xcp")), Field::Link),
        ] {
            assert_eq!(request.check().unwrap_err().fields().first(), Some(&field), "{request:?}");
        }
    }
}
