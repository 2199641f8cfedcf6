//! Which congestion control a path is best used with: every control alone and beside a CUBIC flow.

mod matrix;
mod verdict;

use super::SimRequest;
use super::event::SimEvent;
use super::prepared::Prepared;
use crate::{Fault, Field, Problem, StopFlag};
use control::{Algorithm, NamedControl};
use matrix::Job;
use record::{CommandHost, NextCommand, SIM_ADVICE_SCHEMA, SimAdvice, command_line};
use serde::{Deserialize, Serialize};
use topology::PathSpec;
use units::Rtt;

/// Most runs with each control.
const MAX_RUNS: u32 = 50;

/// A run lasts as many round trips, within these bounds, s.
const ROUND_TRIPS: f64 = 300.0;
const SHORTEST: f64 = 20.0;
const LONGEST: f64 = 120.0;

/// Data packets of a run by default: a faster path is run for a shorter time.
const PACKETS: f64 = 20e6;

/// The question which congestion control a path is best used with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviseRequest {
    /// The path: a name, `KEY=VALUE,…` or both. It needs a rate.
    pub link: String,
    /// The time of each run, s; by default 300 round trips, 20 to 120 s, and at most 20 million
    /// packets.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Runs with each control, 1 to 50.
    pub runs: u32,
    /// The first seed; the others follow.
    pub seed: u64,
}

impl AdviseRequest {
    /// Five runs with each control.
    pub fn new(link: impl Into<String>) -> Self {
        AdviseRequest { link: link.into(), seconds: None, runs: 5, seed: 1 }
    }

    /// Checks the request.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.settled().map(drop)
    }

    /// The request of one run, with its time.
    fn settled(&self) -> Result<SimRequest, Problem> {
        if !(1..=MAX_RUNS).contains(&self.runs) {
            let what = format!("{} runs", self.runs);
            return Err(Problem::field(Field::Repeat, what, format!("1 to {MAX_RUNS}")));
        }
        let path = crate::lab::parse_path(&self.link)?;
        let Some(rate) = path.rate() else {
            let what = "a path without a rate: no queue, and no neighbour that could be harmed";
            return Err(Problem::field(Field::Link, what, "a rate, such as rate=1gbit"));
        };
        if path.rtt() == Rtt::ZERO {
            let what = "a path without an RTT";
            return Err(Problem::field(Field::Link, what, "an RTT, such as rtt=50ms"));
        }
        let packets_a_second = rate.as_f64() / 8.0 / f64::from(path.mtu());
        let enough = (ROUND_TRIPS * path.rtt().secs_f64()).clamp(SHORTEST, LONGEST);
        let seconds = self.seconds.unwrap_or(enough.min(PACKETS / packets_a_second).max(1.0));
        let one = SimRequest { seconds: Some(seconds), ..SimRequest::over(&*self.link) };
        Prepared::of(&one)?;
        Ok(one)
    }
}

/// Simulates every congestion control over the path, on all cores.
///
/// # Errors
/// An invalid field, an interruption.
pub fn advise(
    request: &AdviseRequest,
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Result<SimAdvice, Problem> {
    let one = request.settled()?;
    let prepared = Prepared::of(&one)?;
    let Some(path) = prepared.path() else {
        return Err(Problem::new(Fault::Internal, "a path without settings"));
    };
    let seeds: Vec<u64> =
        (0..u64::from(request.runs)).map(|number| request.seed.wrapping_add(number)).collect();
    let compared = compared(path);
    let jobs = Job::all(&compared, &seeds);
    let done = matrix::run(&prepared, path, &jobs, on_event, stop)
        .ok_or_else(|| Problem::new(Fault::Interrupted, "interrupted"))?;
    let controls = matrix::controls(&compared, &jobs, &done);
    let answer = verdict::of(&controls);
    let link = request.link.clone();
    let next = next(&link, answer.best.as_deref());
    Ok(SimAdvice {
        schema: SIM_ADVICE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seconds: prepared.seconds,
        seeds,
        packets: done.iter().map(|one| one.packets).sum(),
        setting: answer.best.as_deref().map(setting),
        notes: notes(answer.best.as_deref(), prepared.seconds, path.rtt()),
        best: answer.best,
        sentence: answer.sentence,
        price: answer.price,
        controls,
        next: Some(next),
        link,
    })
}

/// The controls that a host on the Internet may be given: those that Linux has, BBR version 3 and
/// PSockets, and Prague where the queue is for L4S too. DCTCP is for data centres alone (RFC 8257,
/// section 5).
fn compared(path: &PathSpec) -> Vec<NamedControl> {
    let is_l4s = path.directions()[0].has_l4s_queue();
    let is_fit = |one: &NamedControl| match one.algorithm() {
        Algorithm::Bbr3 => true,
        Algorithm::Prague => is_l4s,
        Algorithm::Dctcp => false,
        other => other.is_in_linux(),
    };
    NamedControl::all().filter(is_fit).collect()
}

fn setting(best: &str) -> String {
    let control = NamedControl::by_name(best);
    let connections = control.map_or(1, NamedControl::connections);
    match control.map(NamedControl::algorithm).filter(|_| connections > 1) {
        Some(each) => format!(
            "{connections} parallel connections, each with {}, as of: longhaul test -P \
             {connections} -C {}",
            each.name(),
            each.name()
        ),
        None => format!("sysctl -w net.ipv4.tcp_congestion_control={best}"),
    }
}

fn next(link: &str, best: Option<&str>) -> NextCommand {
    let is_in_linux = |one: NamedControl| one.algorithm().is_in_linux();
    let in_lab = best.filter(|name| NamedControl::by_name(name).is_some_and(is_in_linux));
    let words = ["longhaul", "sim", "compare", "--link", link, "--flow", in_lab.unwrap_or("cubic")];
    let why = "runs that control under this machine's kernel, in a lab";
    NextCommand { command: command_line(words), on: CommandHost::Here, why: why.to_owned() }
}

fn notes(best: Option<&str>, seconds: f64, rtt: Rtt) -> Vec<String> {
    let mut notes = Vec::new();
    match best {
        Some("bbr3") => notes.push(
            "no released kernel has BBRv3: it is in Google's branch of Linux".to_owned(),
        ),
        Some("prague") => notes.push(
            "no released kernel has Prague: it is in the L4S team's branch of Linux; both ends need \
             AccECN"
                .to_owned(),
        ),
        Some(name) if !matches!(name, "cubic" | "reno" | "psockets") => notes.push(format!(
            "a kernel may lack it: modprobe tcp_{name}; sysctl net.ipv4.tcp_available_congestion_control lists what it has"
        )),
        _ => {}
    }
    if seconds < ROUND_TRIPS * rtt.secs_f64() {
        notes.push(format!(
            "each run lasts {seconds:.3} s, which is {:.0} round trips; slow controls may not have settled",
            seconds / rtt.secs_f64()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_needs_rate_and_rtt() {
        let good = AdviseRequest::new("rate=10mbit,rtt=20ms");
        assert_eq!(good.check(), Ok(()));
        for (request, field) in [
            (AdviseRequest::new("rate=unlimited,rtt=20ms,loss=1%"), Field::Link),
            (AdviseRequest::new("rate=10mbit"), Field::Link),
            (AdviseRequest { runs: 51, ..good.clone() }, Field::Repeat),
            (AdviseRequest { seconds: Some(-1.0), ..good.clone() }, Field::Seconds),
        ] {
            assert_eq!(request.check().unwrap_err().fields().first(), Some(&field), "{request:?}");
        }
    }

    #[test]
    fn prague_is_compared_where_the_queue_is_for_l4s() {
        let advice = |link: &str| {
            let request =
                AdviseRequest { seconds: Some(20.0), runs: 1, ..AdviseRequest::new(link) };
            advise(&request, &mut |_| (), &StopFlag::new()).unwrap()
        };
        let l4s = advice("rate=20mbit,rtt=20ms,queue=dualpi2");
        let of = |name: &str| l4s.controls.iter().find(|one| one.control == name).unwrap();
        let (prague, cubic) = (of("prague"), of("cubic"));
        assert!(prague.queueing_ms.median < cubic.queueing_ms.median / 2.0, "{prague:?}");
        assert!(prague.goodput_bps.median > cubic.goodput_bps.median * 0.95, "{prague:?}");
        let classic = compared(&"rate=20mbit,rtt=20ms,queue=pie".parse().unwrap());
        assert!(classic.iter().all(|one| one.name() != "prague"), "{classic:?}");
    }

    #[test]
    fn every_control_is_run_alone_and_beside_cubic() {
        let request = AdviseRequest {
            seconds: Some(4.0),
            runs: 2,
            ..AdviseRequest::new("rate=5mbit,rtt=20ms,loss=0.5%")
        };
        let mut runs = 0;
        let mut count =
            |event: SimEvent| runs += usize::from(matches!(event, SimEvent::Run { .. }));
        let advice = advise(&request, &mut count, &StopFlag::new()).unwrap();
        let compared = compared(&request.link.parse().unwrap());
        assert_eq!(runs, 4 * compared.len());
        assert_eq!(advice.controls.len(), compared.len());
        let of = |name: &str| advice.controls.iter().find(|one| one.control == name).unwrap();
        assert!(of("bbr").goodput_bps.median > of("reno").goodput_bps.median);
        assert!((0.0..=1.0).contains(&of("bbr").harm.median), "{:?}", of("bbr").harm);
        assert_eq!(advice, advise(&request, &mut |_| (), &StopFlag::new()).unwrap());
        let stop = StopFlag::new();
        stop.raise();
        let stopped = advise(&request, &mut |_| (), &stop).unwrap_err();
        assert_eq!(stopped.fault, Fault::Interrupted);
    }
}
