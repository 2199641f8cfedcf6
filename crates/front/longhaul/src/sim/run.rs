//! One simulation.

use super::event::SimEvent;
use super::prepared::Prepared;
use super::{SimRequest, figures, path_report};
use crate::{Fault, Field, Problem, StopFlag};
use control::CongestionControl;
use host::clock;
use program_control::{ControlProgram, FlowParameters, ProgramController, ProgramError};
use record::{Measurement, SimMoment, SimReport};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tcp::{Acknowledgement, Segments};
use twin::{ConnectionConfig, Host, Observer, Outcome};
use units::Nanos;

/// Interval of reports on the progress; the first one follows after it.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// Why an early interruption leaves no result.
const NOTHING_SENT: &str = "interrupted before any packet was sent";

/// The result of a simulation; serialised, its report.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimResult {
    /// The document.
    #[serde(flatten)]
    pub report: SimReport,
    /// The measurement that the report is about, with every sample.
    #[serde(skip)]
    pub measurement: Measurement,
    /// Senders' states and the queue, every 100 ms.
    #[serde(skip)]
    pub trace: Vec<SimMoment>,
}

/// Simulates the flows of a request. A raised flag ends the simulation; what was simulated before
/// is in the result.
///
/// # Errors
/// An invalid field, a plan that needs real hosts, more packets or memory than a simulation may
/// take, a flag that was raised before anything was simulated.
pub fn run(
    request: &SimRequest,
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Result<SimResult, Problem> {
    let prepared = Prepared::of(request)?;
    let bounds = prepared.bounds;
    on_event(SimEvent::Started { packets: bounds.packets, memory: bounds.memory });
    let outcome = simulate(&prepared, on_event, stop)?;
    let Some(path) = prepared.path().filter(|_| outcome.packets > 0) else {
        let (fault, why) = match outcome.interrupted {
            true => (Fault::Interrupted, NOTHING_SENT),
            false => (Fault::Request, "no packet was sent"),
        };
        return Err(Problem::new(fault, why));
    };
    let path = path_report::of(path, &prepared, &outcome);
    Ok(figures::result(&prepared, path, outcome))
}

/// Simulates what is prepared.
///
/// # Errors
/// The program that controls flows cannot be started, or fails.
pub(super) fn simulate(
    prepared: &Prepared,
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Result<Outcome, Problem> {
    let mut own = programs(prepared, stop)?;
    let mut progress = Progress { on_event, stop, seconds: prepared.seconds, last: clock::now() };
    let control = |index: usize| own.get_mut(index).and_then(Option::take);
    twin::run_observed_with(&prepared.scenario(), &mut progress, control)
        .map_err(|failed| Problem::new(Fault::Peer, failed.to_string()))
}

/// The program of each connection that it controls.
fn programs(
    prepared: &Prepared,
    stop: &StopFlag,
) -> Result<Vec<Option<Box<dyn CongestionControl + Send>>>, Problem> {
    let Some(file) = &prepared.control else { return Ok(Vec::new()) };
    let program = ControlProgram::new(file);
    let start = |(number, (is_own, connection)): (u64, (bool, &ConnectionConfig))| {
        let seed = prepared.seed.wrapping_add(number);
        let flow = FlowParameters { number, mss: connection.mss, seed };
        let started =
            is_own.then(|| ProgramController::start(&program, flow, &|| stop.is_raised()));
        let started = started.transpose().map_err(|failed| match failed.error {
            ProgramError::Interrupted => Problem::new(Fault::Interrupted, NOTHING_SENT),
            _ => {
                let accepted = "a program as longhaul_control.h describes it";
                Problem::field(Field::ControlProgram, failed.to_string(), accepted)
            }
        })?;
        Ok(started.map(|one| Box::new(one) as Box<dyn CongestionControl + Send>))
    };
    (1..).zip(prepared.is_own().zip(&prepared.connections)).map(start).collect()
}

/// Reports the progress, and ends the simulation when the flag is raised.
struct Progress<'a> {
    on_event: &'a mut dyn FnMut(SimEvent),
    stop: &'a StopFlag,
    seconds: f64,
    /// The last report, or the start.
    last: Instant,
}

impl Observer for Progress<'_> {
    fn data(&mut self, _: Nanos, _: Host, _: u32, _: &Segments, _: bool) {}

    fn acknowledgement(&mut self, _: Nanos, _: Host, _: u32, _: &Acknowledgement) {}

    fn passed(&mut self, now: Nanos, packets: u64) -> ControlFlow<()> {
        if self.stop.is_raised() {
            return ControlFlow::Break(());
        }
        if self.last.elapsed() >= REPORT_EVERY {
            self.last = clock::now();
            let (at_s, of_s) = (now.secs_f64(), self.seconds);
            (self.on_event)(SimEvent::Simulated { at_s, of_s, packets });
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Limit, SenderLimit, SimEnd};

    fn request(link: &str, flows: &[&str], seconds: f64) -> SimRequest {
        let flows = flows.iter().map(|flow| (*flow).to_owned()).collect();
        SimRequest { flows, seconds: Some(seconds), ..SimRequest::over(link) }
    }

    fn result(request: &SimRequest) -> SimResult {
        run(request, &mut |_| (), &StopFlag::new()).unwrap()
    }

    #[test]
    fn a_run_repeats_and_its_measurement_is_explained_alike() {
        let request = request("rate=20mbit,rtt=40ms,queue=1bdp", &["cubic"], 10.0);
        let first = result(&request);
        assert_eq!(first, result(&request));
        let report = &first.report;
        assert_eq!(report.finding.limit, Some(Limit::PathRate), "{}", report.finding.sentence);
        assert_eq!(diagnose::explain(&first.measurement), report.finding);
        assert!(report.goodput_bps.bps() > 17_000_000, "{}", report.goodput_bps);
        assert_eq!((report.jain, report.flows[0].share), (None, 1.0));
        assert_eq!(report.flows[0].limited_by, Some(SenderLimit::Cwnd));
        assert!(report.bottleneck.queue_p95_ms.is_some_and(|ms| ms > 5.0 && ms < 45.0));
        let next = report.next.as_ref().unwrap();
        assert!(next.command.starts_with("longhaul sim advise --link "), "{}", next.command);
    }

    #[test]
    fn flows_share_while_all_are_active_and_the_others_do_not_count() {
        let flows = ["2xcubic", "reno,start=2s,stop=8s", "cubic,start=1s,bytes=100KB"];
        let report = result(&request("rate=20mbit,rtt=20ms", &flows, 10.0)).report;
        let ids: Vec<u32> = report.flows.iter().map(|flow| flow.id).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
        let [.., reno, short] = report.flows.as_slice() else { panic!("{report:?}") };
        assert_eq!((reno.start_s, reno.spec.as_str()), (2.0, flows[1]));
        assert!(reno.finished_s.is_some_and(|end| (8.0..8.5).contains(&end)), "{reno:?}");
        assert_eq!(short.received_bytes.bytes(), 70 * 1448);
        // The short flow is over before the third begins: they were never all active.
        assert_eq!(report.jain, None);
        let all: f64 = report.flows.iter().map(|flow| flow.share).sum();
        assert!((all - 1.0).abs() < 1e-9, "{all}");
    }

    #[test]
    fn a_flow_that_begins_late_is_judged_from_its_start() {
        let report = result(&request("rate=20mbit,rtt=40ms", &["cubic,start=5s"], 15.0)).report;
        assert_eq!(report.finding.limit, Some(Limit::PathRate), "{}", report.finding.sentence);
        assert_eq!(report.flows[0].limited_by, Some(SenderLimit::Cwnd));
        assert!(report.flows[0].limited_share > 0.9, "{:?}", report.flows[0]);
    }

    #[test]
    fn flows_that_differ_have_no_limit_together_also_once_they_are_saved() {
        let second = ["reno,rate=1mbit", "cubic,start=2s", "cubic,stop=3s", "bbr,bytes=500KB"];
        for second in second {
            let of = result(&request("rate=20mbit,rtt=40ms", &["cubic", second], 5.0));
            assert_eq!(of.report.finding.limit, None, "{second}");
            assert_eq!(diagnose::explain(&of.measurement), of.report.finding, "{second}");
        }
        for alike in [["cubic", "reno"], ["cubic,rate=1mbit", "reno,rate=2mbit"]] {
            let report = result(&request("rate=20mbit,rtt=40ms", &alike, 5.0)).report;
            assert!(report.finding.limit.is_some(), "{alike:?}: {}", report.finding.sentence);
        }
    }

    #[test]
    fn a_queue_takes_the_time_that_its_link_needs_then() {
        let path = "rate=20mbit,rtt=40ms,queue=100p,@3s.rate=2mbit";
        let bottleneck = result(&request(path, &["cubic"], 20.0)).report.bottleneck;
        // 100 packets of 1500 bytes take 600 ms at 2 Mbit/s.
        assert!(bottleneck.queue_median_ms.is_some_and(|ms| (400.0..600.0).contains(&ms)));
    }

    #[test]
    fn psockets_are_several_reno_connections_in_one_row() {
        let link = "rate=100mbit,rtt=40ms,loss=1%";
        let of = |flows: &[&str], seconds: f64| result(&request(link, flows, seconds));
        let (one, eight) = (of(&["reno"], 60.0), of(&["psockets", "cubic,start=19s"], 20.0));
        let [striped, cubic] = eight.report.flows.as_slice() else { panic!("{:?}", eight.report) };
        assert_eq!((striped.control.as_str(), striped.connections), ("psockets", 8));
        assert_eq!((cubic.id, eight.measurement.streams.len()), (9, 9));
        assert_eq!(striped.streams(&eight.measurement.streams).len(), 8);
        let all: u64 =
            eight.measurement.streams[..8].iter().map(|stream| stream.received_bytes).sum();
        assert_eq!(striped.received_bytes.bytes(), all);
        let ratio = striped.goodput_bps.as_f64() / one.report.flows[0].goodput_bps.as_f64();
        assert!((7.2..8.8).contains(&ratio), "eight times one while the link is not full: {ratio}");
        let full = of(&["psockets:60"], 10.0).report;
        assert!(full.bottleneck.utilization > 0.9, "{:?}", full.bottleneck);
        assert_eq!((full.flows.len(), full.jain), (1, None));
        let short = result(&request(link, &["psockets:3,bytes=1MB"], 20.0)).report;
        assert!(short.flows[0].finished_s.is_some_and(|end| end < 10.0), "{:?}", short.flows);
        assert_eq!(short.flows[0].received_bytes.bytes() / 1_000_000, 1);
    }

    #[test]
    fn own_flows_have_a_program_and_a_program_has_own_flows() {
        let with = |flows: &[&str], control: Option<&str>| {
            let request = request("rate=20mbit,rtt=40ms", flows, 1.0);
            let request = SimRequest { control: control.map(Into::into), ..request };
            run(&request, &mut |_| (), &StopFlag::new()).unwrap_err().to_string()
        };
        assert!(with(&["own"], None).contains("'own' needs a program"));
        assert!(with(&["cubic"], Some("/bin/true")).contains("no flow has"));
        let problem = with(&[], Some("/none/at/all"));
        assert!(problem.contains("'all' of flow 1: cannot start it"), "{problem}");
        let problem = with(&["cubic", "own"], Some("/bin/true"));
        assert!(problem.contains("'true' of flow 2: it ended"), "{problem}");
        let stop = StopFlag::new();
        stop.raise();
        let request = request("rate=20mbit,rtt=40ms", &["own"], 1.0);
        // It never answers.
        let silent = SimRequest { control: Some("/usr/bin/yes".into()), ..request };
        let problem = run(&silent, &mut |_| (), &stop).unwrap_err();
        assert_eq!(problem.fault, Fault::Interrupted, "{problem}");
    }

    #[test]
    fn an_interruption_keeps_what_was_simulated() {
        let request = request("rate=20mbit,rtt=20ms", &[], 1000.0);
        let stop = StopFlag::new();
        stop.raise();
        let nothing = run(&request, &mut |_| (), &stop).unwrap_err();
        assert_eq!(nothing.fault, Fault::Interrupted);
        let prepared = Prepared::of(&request).unwrap();
        let mut count = 0;
        struct After<'a>(&'a mut u32);
        impl Observer for After<'_> {
            fn data(&mut self, _: Nanos, _: Host, _: u32, _: &Segments, _: bool) {}
            fn acknowledgement(&mut self, _: Nanos, _: Host, _: u32, _: &Acknowledgement) {}
            fn passed(&mut self, _: Nanos, _: u64) -> ControlFlow<()> {
                *self.0 += 1;
                if *self.0 > 230 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        }
        let outcome = twin::run_observed(&prepared.scenario(), &mut After(&mut count));
        assert!(outcome.interrupted);
        let path = path_report::of(prepared.path().unwrap(), &prepared, &outcome);
        let report = figures::result(&prepared, path, outcome).report;
        assert_eq!(report.ended, SimEnd::Interrupted);
        assert!((4.5..5.5).contains(&report.seconds), "{}", report.seconds);
        assert!(report.goodput_bps.bps() > 15_000_000 && report.notes.len() == 1, "{report:?}");
    }
}
