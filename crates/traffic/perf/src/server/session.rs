//! One client's session, from its parameters to IPERF_DONE.

use super::{
    ServerConfig,
    accept::ReceivedHandshake,
    admission::{AdmittedTest, Cost, Refused},
    check::{CheckContext, check, watchdog},
    drain::drain,
    state::ServerState,
    streams::StreamSetup,
};
use crate::{
    PerfError, RefusalReason, ServerEvent, Summary,
    control::{Control, Keepalive},
    event::{ServerOutput, started},
    extra::{ExtendedResults, ExtraMessage, RESULTS_FORMAT, StreamMessage},
    plan::Plan,
    quota::Quota,
    sampler::{Outcome, Sampler, SamplerConfig, Silence, StreamOutcome},
    stream::Stream,
    traffic::{Closer, Traffic},
};
use connection_limits::{HandshakeTicket, ThreadSlot};
use host::{clock, listener_congestion};
use iperf3_proto::{Cookie, Decoder, FrameError, Params, Refusal, Results, Role, State, framing};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use units::ByteCount;

/// Samples sent to the client for one stream, and for all streams: keeps the
/// results below 1 MB, as slow paths must carry them too.
const MAX_STREAM_SAMPLES: usize = 600;
const MAX_SAMPLES: usize = 4_800;
/// Time between samples after the first 2 s.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// How a session ended.
struct Ended<'a> {
    /// Session number and admission, once admitted.
    admitted: Option<(u64, AdmittedTest<'a>)>,
    /// Whether traffic was started.
    ran: bool,
    result: Result<Box<Summary>, PerfError>,
    /// The reply to a refused client.
    reply: Option<Reply>,
    /// Where it was not admitted.
    unadmitted: Option<Unadmitted<'a>>,
}

/// Counts a client that is not admitted, or no longer: as half-open, and its thread.
type Unadmitted<'a> = (HandshakeTicket<'a>, ThreadSlot<'a>);

/// How a client is refused.
#[derive(Debug, Clone, Copy)]
enum Reply {
    /// `ACCESS_DENIED`: a limit is reached.
    Denied(RefusalReason),
    /// `SERVER_ERROR` with this code.
    Refused(Refusal),
}

/// Runs a client's session from its parameters to its end, whatever that is.
pub(super) fn serve<'a>(state: &'a ServerState<'a>, handshake: ReceivedHandshake<'a>) {
    let ReceivedHandshake { connection, peer, cookie, parameters, ticket, slot } = handshake;
    listener_congestion::restore_default(&connection);
    let keepalive = Keepalive::default();
    let mut control = match Control::new(connection, peer, Role::Server, keepalive, state.stop) {
        Ok(control) => control,
        Err(error) => {
            let why = error.to_string();
            return state.emit(ServerEvent::Failed { session: None, peer, why });
        }
    };
    control.note_sent(State::ParamExchange);
    control.account_to(Arc::clone(&state.message_memory));
    let address = ticket.key();
    let ended = run(state, &mut control, &cookie, parameters, (ticket, slot));
    let session = ended.admitted.as_ref().map(|(number, _)| *number);
    if ended.ran {
        state.test_ran();
    }
    // Telling a client why takes a moment, and counts like a handshake until it is over. Where its
    // address does much of that already, the connection is closed at once.
    let closing = match ended.result {
        Ok(_) => None,
        Err(_) => ended.unadmitted.or_else(|| {
            let slot = state.threads.take(address)?;
            Some((state.handshakes.ticket(address), slot))
        }),
    };
    // A client that sees the connection closed may reconnect at once: free its slot first.
    drop(ended.admitted);
    match (ended.result, ended.reply) {
        (Ok(summary), _) => {
            state.emit(ServerEvent::Finished { session: session.unwrap_or(0), peer, summary });
        }
        (Err(error), reply) => {
            let reason = match reply {
                Some(Reply::Denied(reason)) => Some(reason),
                Some(Reply::Refused(Refusal::AUTHENTICATION | Refusal::TOKEN)) => {
                    Some(RefusalReason::Authentication)
                }
                Some(Reply::Refused(Refusal::NOT_OFFERED)) => Some(RefusalReason::NotOffered),
                Some(Reply::Refused(_)) => Some(RefusalReason::Limit),
                None => None,
            };
            match (&error, reason) {
                (PerfError::NotOffered { what, .. }, Some(reason)) => {
                    state.refuse(peer, reason, &format!("it requested {what}"));
                }
                (PerfError::NotAdmitted { why, .. }, Some(reason)) => {
                    state.refuse(peer, reason, why);
                }
                _ => {
                    let why = error.to_string();
                    state.emit(ServerEvent::Failed { session, peer, why });
                }
            }
            if closing.is_some() {
                close(control, &error, reply);
            }
        }
    }
    drop(closing);
}

/// Sends the client the matching error code, and closes the connection.
fn close(mut control: Control, error: &PerfError, reply: Option<Reply>) {
    let refusal = match (error, reply) {
        (PerfError::Interrupted, _) => {
            let _ = control.send_state(State::ServerTerminate);
            return control.close_gently();
        }
        (_, Some(Reply::Denied(_)))
        | (PerfError::NotAdmitted { .. } | PerfError::Evicted { .. }, None) => {
            let _ = control.send_state(State::AccessDenied);
            return control.close_gently();
        }
        (_, Some(Reply::Refused(refusal))) => refusal,
        (PerfError::Frame { .. } | PerfError::OutOfMessageMemory { .. }, None) => {
            Refusal::PARAMETERS
        }
        (PerfError::Order { .. }, None) => Refusal::UNEXPECTED,
        (
            PerfError::StreamsMissing { .. } | PerfError::System { .. } | PerfError::File { .. },
            None,
        ) => Refusal::STREAM_SETUP,
        (PerfError::Expired { .. }, None) => Refusal::EXPIRED,
        (PerfError::OverLimit { .. }, None) => Refusal::TOTAL_RATE,
        (PerfError::NoData { .. }, None) => Refusal::NO_DATA,
        // The connection is closed already.
        (_, None) => return,
    };
    control.refuse(refusal);
}

/// Authenticates the client, admits its test and runs it.
fn run<'a>(
    state: &'a ServerState<'a>,
    control: &mut Control,
    cookie: &Cookie,
    parameters: Result<Decoder, FrameError>,
    unadmitted: Unadmitted<'a>,
) -> Ended<'a> {
    let key = unadmitted.0.key();
    let refused = |error, reply, unadmitted| Ended {
        admitted: None,
        ran: false,
        result: Err(error),
        reply,
        unadmitted: Some(unadmitted),
    };
    let address = control.address();
    let read = parameters.and_then(|decoder| Ok((decoder.finish::<Params>()?, decoder)));
    let (params, decoder) = match read {
        Ok(read) => read,
        Err(source) => return refused(control.frame_error("parameters", source), None, unadmitted),
    };
    let context = CheckContext {
        config: state.config,
        has_udp: state.has_udp,
        cookie,
        address,
        local: control.local(),
        text: decoder.text(),
    };
    if let Err((refusal, error)) = check(&params, &context) {
        return refused(error, Some(Reply::Refused(refusal)), unadmitted);
    }
    drop(decoder);
    let plan = Plan { cookie: Some(*cookie), ..plan(state.config, &params) };
    let cost = Cost::of(&params, &plan);
    let admitted = match state.admit(cookie, key, cost) {
        Ok(admitted) => admitted,
        Err(Refused { reason, refusal, why }) => {
            let reply = refusal.map_or(Reply::Denied(reason), Reply::Refused);
            let error = PerfError::NotAdmitted { address, why };
            return refused(error, Some(reply), unadmitted);
        }
    };
    drop(unadmitted);
    let number = state.next_session();
    let notes = Vec::new();
    let mut session = Session { state, number, control, cookie, ran: false, notes };
    let result = session.run_test(&params, &plan, &admitted);
    let ran = session.ran;
    Ended { admitted: Some((number, admitted)), ran, result, reply: None, unadmitted: None }
}

/// The test as this server runs it, with its own rate limit applied to what it sends.
fn plan(config: &ServerConfig, params: &Params) -> Plan {
    let requested = params.server_affinity.and_then(|core| u32::try_from(core).ok());
    let mut plan = Plan {
        file: config.file.clone(),
        core: requested.or(config.core),
        // A longhaul client counts every byte until it ends the test.
        finish_block: params.longhaul.is_none(),
        ..Plan::of(params)
    };
    if let Some(limit) = config.limits.rate {
        let both = if params.bidirectional { 2.0 } else { 1.0 };
        let share = limit.scaled(1.0 / (f64::from(params.streams()) * both));
        if params.reverse || params.bidirectional {
            plan.rate = Some(plan.rate.map_or(share, |rate| rate.min(share)));
        }
    }
    plan
}

struct Session<'a> {
    state: &'a ServerState<'a>,
    number: u64,
    control: &'a mut Control,
    cookie: &'a Cookie,
    ran: bool,
    notes: Vec<String>,
}

impl Session<'_> {
    fn run_test(
        &mut self,
        params: &Params,
        plan: &Plan,
        test: &AdmittedTest<'_>,
    ) -> Result<Box<Summary>, PerfError> {
        let setup = StreamSetup {
            state: self.state,
            control: self.control,
            params,
            plan,
            notes: &mut self.notes,
            test,
        };
        let streams = setup.run()?;
        test.streams_are_complete();
        self.control.send_state(State::TestStart)?;
        self.control.send_state(State::TestRunning)?;
        self.ran = true;
        // Observers do not get the login.
        let told = Params { authtoken: None, ..params.clone() };
        let started = started(self.control, self.cookie, &told, &streams, self.notes.clone());
        self.state.emit(ServerEvent::Started { session: self.number, started: Box::new(started) });
        let outcome = self.run_traffic(params, plan, &streams)?;
        if params.longhaul.is_some() {
            // Unsent data would only delay the results. iperf3 would report the
            // resulting reset as a failure.
            for stream in streams.iter().filter(|stream| stream.sending) {
                let _ = stream.socket.set_linger(Some(Duration::ZERO));
            }
        }
        drop(streams);
        let (ours, theirs) = self.exchange(params, plan, &outcome)?;
        Ok(Box::new(Summary {
            seconds: outcome.seconds,
            sent: ByteCount::from_bytes(outcome.bytes(true)),
            received: ByteCount::from_bytes(outcome.bytes(false)),
            ours,
            theirs,
        }))
    }

    fn run_traffic(
        &mut self,
        params: &Params,
        plan: &Plan,
        streams: &[Stream],
    ) -> Result<Outcome, PerfError> {
        let sampling = SamplerConfig {
            opened: false,
            omit: plan.omit,
            limit: plan.limit,
            limits_unsent: plan.limits_unsent,
            sample_every: SAMPLE_INTERVAL,
            report_every: self.state.config.report_every,
            max_samples: (MAX_SAMPLES / streams.len().max(1)).min(MAX_STREAM_SAMPLES),
        };
        let limits = &self.state.config.limits;
        let blocks = (plan.block as u64).saturating_mul(plan.burst.max(1).into());
        let blocks = ByteCount::from_bytes(blocks.saturating_mul(streams.len() as u64));
        let quota = Quota::new(limits.rate, limits.bytes, blocks, clock::now());
        let for_client = plan.limit.filter(|_| params.bidirectional).unwrap_or(0);
        let for_client = ByteCount::from_bytes(for_client);
        let traffic = Traffic::new(quota.map(|quota| quota.reserving(for_client)));
        let (state, session) = (self.state, self.number);
        let report = &mut |interval| state.emit(ServerEvent::Interval { session, interval });
        thread::scope(|scope| {
            let _closer = Closer::new(&traffic, streams);
            let mut sampler = Sampler::begin(sampling, streams, &traffic);
            traffic.start_all(scope, streams, plan, sampler.began())?;
            self.run_until_end(params, &mut sampler, &traffic, report)?;
            if streams.iter().all(|stream| stream.sending) {
                // The client counts nothing after TEST_END: neither does the time.
                traffic.stop_sending();
                sampler.end();
                traffic.wait_for_senders();
            } else {
                traffic.stop_sending();
                traffic.wait_for_senders();
                let expiry = sampler.began() + watchdog(params, limits);
                let last_arrival = drain(&sampler, &traffic, streams, (expiry, self.state.stop));
                sampler.end_at(last_arrival);
            }
            let incomplete = match sampler.broken() {
                Some((_, reason)) => Some(reason.to_owned()),
                None if traffic.has_received_all() => None,
                None => Some("still being written".to_owned()),
            };
            traffic.end();
            self.check_quota(&traffic)?;
            let file = plan.file.clone().filter(|_| traffic.keeps_file());
            if let (Some(path), Some(reason)) = (file, incomplete) {
                let why = format!("the received data is incomplete ({reason}), and not kept");
                return Err(PerfError::File { path, source: io::Error::other(why) });
            }
            traffic.keep_received(plan)?;
            Ok(sampler.finish(report))
        })
    }

    /// Waits for the client to end the test.
    fn run_until_end(
        &mut self,
        params: &Params,
        sampler: &mut Sampler<'_>,
        traffic: &Traffic,
        report: &mut dyn FnMut(crate::Interval),
    ) -> Result<(), PerfError> {
        let limits = &self.state.config.limits;
        let limit = watchdog(params, limits);
        let expiry = sampler.began() + limit;
        let address = self.control.address();
        let mut silence = Silence::begin(limits.receive);
        let receives_only = !params.reverse && !params.bidirectional;
        loop {
            sampler.tick(report);
            if self.state.stop.is_raised() {
                return Err(PerfError::Interrupted);
            }
            if clock::now() >= expiry {
                return Err(PerfError::Expired { address, limit });
            }
            self.check_quota(traffic)?;
            if receives_only && let Some(waited) = silence.over(sampler.received()) {
                return Err(PerfError::NoData { role: Role::Client, address, waited });
            }
            if let Some(State::TestEnd) = self.control.poll(sampler.next_tick().min(expiry))? {
                return Ok(());
            }
        }
    }

    fn check_quota(&self, traffic: &Traffic) -> Result<(), PerfError> {
        let address = self.control.address();
        traffic
            .exceeded()
            .map_or(Ok(()), |limit| Err(PerfError::OverLimit { address, limit: limit.to_string() }))
    }

    fn exchange(
        &mut self,
        params: &Params,
        plan: &Plan,
        outcome: &Outcome,
    ) -> Result<(Results, Results), PerfError> {
        self.control.send_state(State::ExchangeResults)?;
        let theirs: Results = self.control.read_json("results", framing::CLIENT_RESULTS_LIMIT)?;
        let ours = outcome.results();
        let mut sent = ours.clone();
        if params.get_server_output {
            match self.state.observer.output(self.number) {
                Some(ServerOutput::Text(text)) => sent.server_output_text = Some(text),
                Some(ServerOutput::Json(json)) => sent.server_output_json = Some(json),
                None => {}
            }
        }
        // A datagram of a train takes a sixteenth of a sample.
        let count = |s: &StreamOutcome| s.sender.len() + s.receiver.len() + s.train.len() / 16;
        let samples = outcome.streams.iter().map(count).sum();
        let memory = self.control.reserve_samples(samples)?;
        let longhaul = params.longhaul.as_ref().filter(|_| memory.is_some());
        let longhaul = longhaul.map(|_| extra(&self.notes, plan, outcome));
        self.control.send_json("results", &ExtendedResults { results: &sent, longhaul })?;
        drop(memory);
        self.control.send_state(State::DisplayResults)?;
        // The client has everything: a missing IPERF_DONE does no harm.
        let _ = self.control.next(self.state.config.limits.idle);
        Ok((ours, theirs))
    }
}

/// What a longhaul client receives beyond iperf3's results.
fn extra<'a>(notes: &'a [String], plan: &Plan, outcome: &'a Outcome) -> ExtraMessage<'a> {
    let stream = |stream: &'a StreamOutcome| {
        let datagrams = stream.datagrams.as_ref().filter(|_| !stream.sending);
        StreamMessage {
            id: stream.id,
            congestion: stream.congestion.as_deref(),
            unsent_limit_bytes: stream.unsent_limit.map(ByteCount::bytes),
            datagrams: datagrams.map(|books| books.received(plan.block)),
            train: &stream.train,
            sender: &stream.sender,
            receiver: &stream.receiver,
        }
    };
    ExtraMessage {
        version: crate::VERSION,
        format: RESULTS_FORMAT,
        sender_cpu: outcome.sender_cpu.map(|cpu| cpu.used),
        sender_core_wait: outcome.sender_cpu.map(|cpu| cpu.waited),
        receiver_cpu: outcome.receiver_cpu.map(|cpu| cpu.used),
        receiver_core_wait: outcome.receiver_cpu.map(|cpu| cpu.waited),
        notes,
        streams: outcome.streams.iter().map(stream).collect(),
    }
}
