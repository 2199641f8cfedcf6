//! The conversation with the server, from the cookie to the goodbye.

use super::{
    ClientConfig, Report,
    measurement::{Ending, Evidence, assemble},
    streams,
};
use crate::{
    Event, ProbeError, StopFlag, auth,
    control::{Control, IDLE},
    course::{Course, Outcome, Silence, Watch},
    event::started,
    extra::Who,
    flow::Flow,
    plan::Plan,
    socket,
    traffic::{Closer, Traffic},
};
use host::{clock, cpu};
use iperf3::{Cookie, Results, Role, State, framing};
use record::Direction;
use std::{
    hash::{BuildHasher, RandomState},
    thread,
    time::Duration,
};

/// Longest wait for a server that has work to do before it answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Samples kept for each stream: ten minutes at the usual ten a second.
const MOST_SAMPLES: usize = 6_000;
/// How often the byte count is looked at where bytes end the test.
const BYTE_LOOK: Duration = Duration::from_millis(5);
/// Longest wait for writers after the end.
const WRITERS: Duration = Duration::from_secs(2);
/// Load of the machine from which a measurement may suffer.
const BUSY: f64 = 0.5;

pub(super) fn run(
    config: &ClientConfig,
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Report, ProbeError> {
    let mut notes = Vec::new();
    let busy =
        (!config.watch_load.is_zero()).then(|| cpu::machine_busy(config.watch_load)).flatten();
    if let Some(share) = busy.filter(|share| *share >= BUSY) {
        notes.push(format!(
            "this machine was {:.0} % busy before the test; stop what else runs, or read the rate as a floor",
            share * 100.0
        ));
    }
    let mut ports = config.ports.clone();
    loop {
        let port = ports.next().unwrap_or(*config.ports.end());
        let attempt = Attempt { config, port, busy, notes: notes.clone() };
        match attempt.run(progress, stop) {
            // Nothing was told yet: the next port may be free.
            Err(ProbeError::Busy { .. } | ProbeError::Connect { .. }) if !ports.is_empty() => {}
            ended => return ended,
        }
    }
}

/// A test with the server on one port.
struct Attempt<'a> {
    config: &'a ClientConfig,
    port: u16,
    busy: Option<f64>,
    notes: Vec<String>,
}

impl Attempt<'_> {
    fn run(self, progress: &mut dyn FnMut(Event), stop: &StopFlag) -> Result<Report, ProbeError> {
        let Attempt { config, port, busy, mut notes } = self;
        let way = socket::Way {
            bind: config.bind,
            device: config.device.clone(),
            mptcp: config.mptcp,
            port: 0,
        };
        let (stream, address) = socket::connect_by_name(
            &config.host,
            port,
            config.family,
            &way,
            config.connect_timeout,
            stop,
        )?;
        let keepalive = config.keepalive.unwrap_or_default();
        let mut control = Control::new(stream, address, Role::Client, keepalive, stop)?;
        let cookie = Cookie::from_random(random());
        // A busy server closes without reading: what it said still waits to be read.
        let _ = control.send(cookie.bytes());
        control.next(IDLE)?;
        let mut params = config.params(control.mss());
        auth::sign(config, &cookie, &mut params)?;
        control.send_json("parameters", &params)?;
        control.next(PATIENCE)?;
        // A login is nobody else's business.
        params.authtoken = None;
        let plan = Plan { file: config.file.clone(), core: config.core, ..Plan::of(&params) };
        let flows = streams::open(config, &plan, &mut control, &cookie, stop, &mut notes)?;
        control.next(PATIENCE)?;
        control.next(PATIENCE)?;
        let started_unix_s = clock::unix_seconds();
        let started = started(&control, &cookie, &params, &flows, notes.clone());
        progress(Event::Connected(Box::new(started)));
        let (outcome, ending) = run_traffic(config, &plan, &mut control, &flows, progress, stop)?;
        control.close_gently();
        let ours = outcome.results();
        let theirs = match &ending {
            Ending::Whole(results) => Some(Results { longhaul: None, ..(**results).clone() }),
            Ending::Interrupted => None,
        };
        let evidence = Evidence { started_unix_s, busy, outcome, ending, notes };
        let measurement = assemble(config, &plan, port, evidence);
        Ok(Report { measurement, ours, theirs })
    }
}

/// 36 bytes that nobody else can foresee: the standard library seeds its hash
/// keys from the system's own source.
fn random() -> [u8; 36] {
    let source = RandomState::new();
    std::array::from_fn(|at| source.hash_one(at).to_le_bytes()[0])
}

/// Why the traffic ended.
enum Over {
    AsAsked,
    Interrupted,
}

fn run_traffic(
    config: &ClientConfig,
    plan: &Plan,
    control: &mut Control,
    flows: &[Flow],
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<(Outcome, Ending), ProbeError> {
    let watch = Watch {
        opened: true,
        omit: plan.omit,
        limit: plan.limit,
        sample_every: config.sample_every,
        report_every: config.report_every,
        most_samples: MOST_SAMPLES,
    };
    let traffic = Traffic::new();
    let tell = &mut |interval| progress(Event::Interval(interval));
    thread::scope(|scope| {
        let _closer = Closer::new(&traffic, flows);
        let mut course = Course::begin(watch, flows, &traffic);
        traffic.start_all(scope, flows, plan, course.began())?;
        let over = watch_over(config, control, &mut course, tell, stop)?;
        course.end();
        traffic.end();
        if !config.receives() {
            // Each comes back from the kernel soon, unless the machine is stalled.
            traffic.wait(WRITERS);
        }
        let outcome = course.finish(tell);
        if let Over::AsAsked = over {
            match exchange(control, &outcome) {
                Ok(results) => return Ok((outcome, Ending::Whole(Box::new(results)))),
                Err(ProbeError::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        // The server may be gone as well; the user asked for the end either way.
        let _ = control.say(State::ClientTerminate);
        Ok((outcome, Ending::Interrupted))
    })
}

/// Waits for the end of the test while the samples are taken and the server is
/// listened to: it has nothing to say now unless something is wrong.
fn watch_over(
    config: &ClientConfig,
    control: &mut Control,
    course: &mut Course<'_>,
    tell: &mut dyn FnMut(crate::Interval),
    stop: &StopFlag,
) -> Result<Over, ProbeError> {
    let timed = config.is_timed();
    let mut heard = Silence::begin(config.receive_timeout);
    let length = Duration::from_secs_f64(if timed { config.seconds } else { 86_400.0 });
    loop {
        course.tick(tell);
        if stop.is_raised() {
            return Ok(Over::Interrupted);
        }
        let now = clock::now();
        let end = course.end_after(length);
        if now >= end || course.has_reached_limit() {
            return Ok(Over::AsAsked);
        }
        if let Some((flow, reason)) = course.broken() {
            let broke = ProbeError::StreamBroke {
                id: flow.id,
                address: flow.peer,
                reason: reason.to_owned(),
            };
            // The control connection may know better what happened.
            return Err(match control.next(Duration::from_secs(1)) {
                Ok(_) | Err(ProbeError::Silent { .. }) => broke,
                Err(known) => known,
            });
        }
        if config.direction == Direction::Reverse
            && let Some(waited) = heard.over(course.received())
        {
            let (who, address) = (Who::Server, control.address());
            return Err(ProbeError::NoData { who, address, waited });
        }
        let mut until = course.next_tick().min(end);
        if !timed {
            until = until.min(now + BYTE_LOOK);
        }
        // Whatever belongs here is an error; the order of messages sees to the rest.
        control.poll(until)?;
    }
}

fn exchange(control: &mut Control, outcome: &Outcome) -> Result<Results, ProbeError> {
    control.say(State::TestEnd)?;
    control.next(PATIENCE)?;
    control.send_json("results", &outcome.results())?;
    let results = control.read_json("results", framing::RESULTS_LIMIT)?;
    control.next(PATIENCE)?;
    // All is known: a server that leaves without waiting for the goodbye does no harm.
    let _ = control.say(State::IperfDone);
    Ok(results)
}
