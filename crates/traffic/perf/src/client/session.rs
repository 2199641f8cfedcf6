//! A test's control connection, from the cookie to IPERF_DONE.

use super::{
    ClientConfig, Report,
    measurement::{Ending, Evidence, ServerReport, assemble},
    policing::PolicingCheck,
    streams,
};
use crate::{
    Event, PerfError, StopFlag, auth,
    control::{Control, IDLE_TIMEOUT},
    event::started,
    extra::Extra,
    plan::{Plan, UdtPlan},
    sampler::{Outcome, Sampler, SamplerConfig, Silence},
    socket,
    stream::{DATAGRAM_DRAIN, DATAGRAM_TIMEOUT, Stream},
    traffic::{Closer, Traffic},
};
use host::{clock, cpu};
use iperf3_proto::{Cookie, Decoder, Role, State};
use record::{Direction, Protocol};
use std::{thread, time::Duration};

/// Timeout for a server's next message.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Samples kept per stream: 2 s at 100 per second and nine minutes at the default of ten per
/// second.
const MAX_SAMPLES: usize = 6_000;
/// Interval between checks of the byte count in a test that bytes end.
const LIMIT_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// CPU load above which a measurement may be affected.
const BUSY_SHARE: f64 = 0.5;

pub(super) fn run(
    config: &ClientConfig,
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Report, PerfError> {
    let mut notes = Vec::new();
    let busy =
        (!config.watch_load.is_zero()).then(|| cpu::machine_busy(config.watch_load)).flatten();
    if let Some(share) = busy.filter(|share| *share >= BUSY_SHARE) {
        notes.push(format!(
            "this host's CPU was {} busy before the test; stop other programs, or treat the rate as a lower bound",
            units::percent(share)
        ));
    }
    let mut ports = config.ports.clone();
    loop {
        let port = ports.next().unwrap_or(*config.ports.end());
        let attempt = Attempt { config, port, busy, notes: notes.clone() };
        match attempt.run(progress, stop) {
            // No test was started: the next port may be free.
            Err(PerfError::Busy { .. } | PerfError::Connect { .. }) if !ports.is_empty() => {}
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
    fn run(self, progress: &mut dyn FnMut(Event), stop: &StopFlag) -> Result<Report, PerfError> {
        let Attempt { config, port, busy, mut notes } = self;
        let cookie =
            Cookie::from_random(host::random::secret().map_err(PerfError::NoRandomNumbers)?);
        let local_end = socket::LocalEnd {
            bind: config.bind,
            device: config.device.clone(),
            mptcp: config.transport.tcp().is_some_and(|tcp| tcp.mptcp),
            port: 0,
        };
        let (stream, address) = socket::connect_by_name(
            &config.host,
            port,
            config.family,
            &local_end,
            config.connect_timeout,
            stop,
        )?;
        let keepalive = config.keepalive.unwrap_or_default();
        let mut control = Control::new(stream, address, Role::Client, keepalive, stop)?;
        // A busy server closes without reading; its reply can still be read.
        let _ = control.send(cookie.bytes());
        control.next(IDLE_TIMEOUT)?;
        let mut params = config.params(control.mss());
        let message = auth::signed_params(config, &cookie, &mut params, &control)?;
        control.send(&message)?;
        control.next(ANSWER_TIMEOUT)?;
        // Observers do not get the login.
        params.authtoken = None;
        let plan = Plan::of(&params);
        let plan = Plan {
            file: config.file.clone(),
            chunk: config.file_chunk.map_or(plan.chunk, |chunk| chunk.bytes() as usize),
            core: config.core,
            cookie: Some(cookie),
            udt: UdtPlan {
                path_mtu: config.transport.udt().and_then(|udt| udt.path_mtu),
                ..plan.udt
            },
            ..plan
        };
        let streams = streams::open(config, &plan, &mut control, &cookie, stop, &mut notes)?;
        control.next(ANSWER_TIMEOUT)?;
        control.next(ANSWER_TIMEOUT)?;
        let started_unix_s = clock::unix_seconds();
        let started = started(&control, &cookie, &params, &streams, notes.clone());
        progress(Event::Connected(Box::new(started)));
        let (outcome, ending) = run_traffic(config, &plan, &mut control, &streams, progress, stop)?;
        control.close_gently();
        let ours = outcome.results();
        let incomplete = match &ending {
            Ending::Failed(why) => Some(why.clone()),
            Ending::Completed(_) | Ending::Interrupted => None,
        };
        let evidence = Evidence { started_unix_s, busy, outcome, ending, notes };
        let (measurement, theirs) = assemble(config, &plan, port, evidence);
        Ok(Report { measurement, ours, theirs, incomplete })
    }
}

/// Why the traffic ended.
enum TestEnd {
    Completed,
    Interrupted,
    Failed(PerfError),
}

fn run_traffic(
    config: &ClientConfig,
    plan: &Plan,
    control: &mut Control,
    streams: &[Stream],
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<(Outcome, Ending), PerfError> {
    let sampling = SamplerConfig {
        opened: true,
        omit: plan.omit,
        limit: plan.limit,
        limits_unsent: plan.limits_unsent,
        sample_every: config.sample_every,
        report_every: config.report_every,
        max_samples: MAX_SAMPLES,
    };
    let traffic = Traffic::new(None);
    let report = &mut |interval| progress(Event::Interval(interval));
    thread::scope(|scope| {
        let _closer = Closer::new(&traffic, streams);
        let mut sampler = Sampler::begin(sampling, streams, &traffic);
        traffic.start_all(scope, streams, plan, sampler.began())?;
        let over = run_until_end(config, control, &mut sampler, report, stop);
        let over = over.or_else(|error| kept(config, error).map(TestEnd::Failed))?;
        let end_test = |control: &mut Control| match over {
            TestEnd::Completed => control.send_state(State::TestEnd),
            TestEnd::Interrupted | TestEnd::Failed(_) => Ok(()),
        };
        if config.receives() {
            // What the server sends until it reads TEST_END counts as sent and
            // not as received: TEST_END goes out before anything else is done.
            traffic.stop_sending();
            traffic.wait_for_senders();
            end_test(control)?;
            // Datagrams in flight are no loss: their receivers count until the results are exchanged.
            if config.transport.protocol() != Protocol::Udp {
                traffic.end();
            }
            sampler.end();
        } else {
            traffic.stop_sending();
            sampler.end();
            traffic.wait_for_senders();
            traffic.end();
            end_test(control)?;
        }
        traffic.keep_received(plan)?;
        let mut outcome = sampler.finish(report);
        let ending = match over {
            TestEnd::Completed => match exchange(control, &mut outcome, streams) {
                Ok(report) => return Ok((outcome, Ending::Completed(Box::new(report)))),
                Err(PerfError::Interrupted) => Ending::Interrupted,
                Err(error) => Ending::Failed(kept(config, error)?.to_string()),
            },
            TestEnd::Interrupted => Ending::Interrupted,
            TestEnd::Failed(error) => Ending::Failed(error.to_string()),
        };
        // The server may be gone as well; the test ends either way.
        let _ = control.send_state(State::ClientTerminate);
        Ok((outcome, ending))
    })
}

/// The error, if the test has a result nevertheless.
fn kept(config: &ClientConfig, error: PerfError) -> Result<PerfError, PerfError> {
    if config.keeps_incomplete && error.leaves_measurement() { Ok(error) } else { Err(error) }
}

/// Takes samples until the end of the test, and polls the control connection: the
/// server sends nothing now unless there is an error.
fn run_until_end(
    config: &ClientConfig,
    control: &mut Control,
    sampler: &mut Sampler<'_>,
    report: &mut dyn FnMut(crate::Interval),
    stop: &StopFlag,
) -> Result<TestEnd, PerfError> {
    let seconds = config.end.seconds();
    let mut silence = Silence::begin(config.receive_timeout);
    let mut stall = Silence::begin(config.receive_timeout);
    let stops_if_policed = config.transport.udt().is_some_and(|udt| udt.stops_if_policed);
    let mut policing = PolicingCheck::new(stops_if_policed);
    let train = config.transport.udp().and_then(|udp| udp.train);
    let most = seconds.or_else(|| train.map(|train| train.max_seconds)).unwrap_or(86_400.0);
    let length = Duration::from_secs_f64(most);
    loop {
        sampler.tick(report);
        if stop.is_raised() {
            return Ok(TestEnd::Interrupted);
        }
        let now = clock::now();
        let end = sampler.end_after(length);
        if now >= end || sampler.has_reached_limit() {
            return Ok(TestEnd::Completed);
        }
        if let Some((stream, reason)) = sampler.broken() {
            let broke = PerfError::StreamBroke {
                id: stream.id,
                address: stream.peer,
                reason: reason.to_owned(),
            };
            // The control connection may have the cause.
            return Err(match control.next(Duration::from_secs(1)) {
                Ok(_) | Err(PerfError::Silent { .. }) => broke,
                Err(known) => known,
            });
        }
        let counted = now.saturating_duration_since(sampler.start());
        if let Some(delivered) = policing.suspicion(counted, sampler.sent_samples()) {
            let _ = control.send_state(State::ClientTerminate);
            return Err(PerfError::Policed { address: control.address(), delivered });
        }
        let (role, address) = (Role::Server, control.address());
        if config.direction == Direction::Reverse
            && let Some(waited) = silence.over(sampler.received())
        {
            return Err(PerfError::NoData { role, address, waited });
        }
        // Nothing else ends it where nothing arrives.
        if seconds.is_none()
            && let Some(waited) = stall.over(sampler.progress())
            && !sampler.is_acknowledged()
        {
            return Err(PerfError::Stalled { role, address, waited });
        }
        let mut until = sampler.next_tick().min(end);
        if seconds.is_none() {
            until = until.min(now + LIMIT_POLL_INTERVAL);
        }
        // Any message is an error at this point.
        control.poll(until)?;
    }
}

fn exchange(
    control: &mut Control,
    outcome: &mut Outcome,
    streams: &[Stream],
) -> Result<ServerReport, PerfError> {
    control.next(ANSWER_TIMEOUT)?;
    // The server has stopped sending.
    if streams.iter().any(|stream| stream.arrivals().is_some()) {
        wait_for_late(streams);
        outcome.count_late(streams);
    }
    control.send_json("results", &outcome.results())?;
    let message = control.read_message("results", Decoder::for_results())?;
    let results = message.parse()?;
    let (extra, cut) = (Extra::read(message.decoder()), message.decoder().cut());
    drop(message);
    control.next(ANSWER_TIMEOUT)?;
    // The results are complete: it does no harm if the server closes first.
    let _ = control.send_state(State::IperfDone);
    Ok(ServerReport { results, extra, cut })
}

/// Waits until no datagram arrives any more.
fn wait_for_late(streams: &[Stream]) {
    let received = || streams.iter().filter_map(Stream::counts).map(|counts| counts.received).sum();
    let until = clock::now() + DATAGRAM_DRAIN;
    let (mut last, mut seen): (_, u64) = (clock::now(), received());
    while clock::now() < until.min(last + DATAGRAM_TIMEOUT) {
        thread::sleep(LIMIT_POLL_INTERVAL);
        let now = received();
        if now > seen {
            (last, seen) = (clock::now(), now);
        }
    }
}
