//! The conversation with the server, from the cookie to the goodbye.

use super::{
    ClientConfig,
    measurement::{Ending, Evidence, assemble},
};
use crate::{
    Event, ProbeError, StopFlag, StreamAddress,
    control::{Control, IDLE},
    course::{Course, Outcome, Watch},
    extra::Who,
    socket,
    traffic::{Closer, Flow, Traffic, payload},
};
use host::{clock, cpu, tcp_info};
use iperf3::{Cookie, Results, Role, State, framing};
use record::{Direction, Measurement};
use std::{
    hash::{BuildHasher, RandomState},
    io::Write,
    thread,
    time::Duration,
};

/// Longest wait for a server that has work to do before it answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Samples kept for each stream: ten minutes at the usual ten a second.
const MOST_SAMPLES: usize = 6_000;
/// How often the byte count is looked at where bytes end the test.
const BYTE_LOOK: Duration = Duration::from_millis(5);
/// Load of the machine from which a measurement may suffer.
const BUSY: f64 = 0.5;

pub(super) fn run(
    config: &ClientConfig,
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Measurement, ProbeError> {
    let mut notes = Vec::new();
    let busy =
        (!config.watch_load.is_zero()).then(|| cpu::machine_busy(config.watch_load)).flatten();
    if let Some(share) = busy.filter(|share| *share >= BUSY) {
        notes.push(format!(
            "this machine was {:.0} % busy before the test; stop what else runs, or read the rate as a floor",
            share * 100.0
        ));
    }
    let (stream, address) = socket::connect_by_name(
        &config.host,
        config.port,
        config.family,
        config.bind,
        config.connect_timeout,
        stop,
    )?;
    let mut control = Control::new(stream, address, Role::Client, stop)?;
    let cookie = Cookie::from_random(random());
    // A busy server closes without reading: what it said still waits to be read.
    let _ = control.send(cookie.bytes());
    control.next(IDLE)?;
    control.send_json("parameters", &config.params())?;
    control.next(PATIENCE)?;
    let flows = open_streams(config, &control, &cookie, stop, &mut notes)?;
    control.next(PATIENCE)?;
    control.next(PATIENCE)?;
    let started_unix_s = clock::unix_seconds();
    progress(Event::Connected {
        peer: address,
        streams: flows
            .iter()
            .map(|flow| StreamAddress { id: flow.id, local: flow.local, peer: flow.peer })
            .collect(),
        notes: notes.clone(),
    });
    let (outcome, ending) = run_traffic(config, &mut control, &flows, progress, stop)?;
    control.close_gently();
    let evidence = Evidence { started_unix_s, busy, outcome, ending, notes };
    Ok(assemble(config, evidence))
}

/// 36 bytes that nobody else can foresee: the standard library seeds its hash
/// keys from the system's own source.
fn random() -> [u8; 36] {
    let source = RandomState::new();
    std::array::from_fn(|at| source.hash_one(at).to_le_bytes()[0])
}

/// One after the other: the server numbers streams in the order they arrive.
fn open_streams(
    config: &ClientConfig,
    control: &Control,
    cookie: &Cookie,
    stop: &StopFlag,
    notes: &mut Vec<String>,
) -> Result<Vec<Flow>, ProbeError> {
    let address = control.address();
    let sending = config.direction == Direction::Forward;
    let failed = |operation| move |source| ProbeError::System { operation, address, source };
    let mut flows = Vec::new();
    for index in 0..config.streams {
        if stop.is_raised() {
            return Err(ProbeError::Interrupted);
        }
        let stream = socket::connect(address, config.bind, config.connect_timeout, |socket| {
            if let Some(window) = config.window {
                socket::set_window(socket, window).map_err(failed("set the socket buffers"))?;
            }
            if let Some(name) = config.congestion.as_ref().filter(|_| sending) {
                tcp_info::set_congestion(socket, name)?;
            }
            Ok(())
        })?;
        if index == 0
            && let Some(window) = config.window
        {
            notes.extend(socket::clamp_note(&stream, window, sending, Who::Client));
        }
        (&stream).write_all(cookie.bytes()).map_err(failed("open a stream"))?;
        let flow = Flow::new(iperf3::stream_id(index), stream).map_err(failed("open a stream"))?;
        flows.push(flow);
    }
    Ok(flows)
}

/// Why the traffic ended.
enum Over {
    AsAsked,
    Interrupted,
}

fn run_traffic(
    config: &ClientConfig,
    control: &mut Control,
    flows: &[Flow],
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<(Outcome, Ending), ProbeError> {
    let sending = config.direction == Direction::Forward;
    let block = config.block.and_then(|block| usize::try_from(block.bytes()).ok());
    let block = payload(block.unwrap_or(iperf3::DEFAULT_BLOCK as usize));
    let watch = Watch {
        sending,
        opened: true,
        omit: Duration::from_secs(u64::from(config.omit_seconds)),
        limit: config.bytes.map(units::ByteCount::bytes),
        sample_every: config.sample_every,
        report_every: config.report_every,
        most_samples: MOST_SAMPLES,
    };
    let traffic = Traffic::new();
    let tell = &mut |interval| progress(Event::Interval(interval));
    thread::scope(|scope| {
        let _closer = Closer::new(&traffic, flows);
        let mut course = Course::begin(watch, flows, &traffic);
        for flow in flows {
            let started = if sending {
                traffic.start_writer(scope, flow, &block, config.rate, course.began())
            } else {
                traffic.start_reader(scope, flow)
            };
            started.map_err(|source| ProbeError::System {
                operation: "start a thread for a stream",
                address: flow.peer,
                source,
            })?;
        }
        let over = watch_over(config, control, &mut course, tell, stop)?;
        course.end();
        traffic.end();
        if sending {
            traffic.wait_for_writers();
        }
        let outcome = course.finish(tell);
        if let Over::AsAsked = over {
            match exchange(control, &outcome, sending) {
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
    let timed = config.bytes.is_none();
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
        let mut until = course.next_tick().min(end);
        if !timed {
            until = until.min(now + BYTE_LOOK);
        }
        // Whatever belongs here is an error; the order of messages sees to the rest.
        control.poll(until)?;
    }
}

fn exchange(
    control: &mut Control,
    outcome: &Outcome,
    sending: bool,
) -> Result<Results, ProbeError> {
    control.say(State::TestEnd)?;
    control.next(PATIENCE)?;
    control.send_json("results", &outcome.results(sending))?;
    let results = control.read_json("results", framing::RESULTS_LIMIT)?;
    control.next(PATIENCE)?;
    // All is known: a server that leaves without waiting for the goodbye does no harm.
    let _ = control.say(State::IperfDone);
    Ok(results)
}
