//! One client's test, from its parameters to its goodbye.

use super::{
    accept::{Arrival, Hall},
    streams::Gathering,
    terms::{Terms, judge, watchdog},
    watch::Meter,
};
use crate::{
    ProbeError, ServerEvent, Summary,
    control::{Control, Keepalive},
    course::{Course, FlowOutcome, Outcome, Silence, Watch},
    event::{ServerOutput, started},
    extra::{Extra, ExtraStream, Who},
    flow::Flow,
    plan::Plan,
    traffic::{Closer, Traffic},
};
use host::clock;
use iperf3::{Cookie, Params, Refusal, Results, Role, State, framing};
use record::Protocol;
use std::{
    net::{Shutdown, SocketAddr, TcpStream},
    sync::mpsc::Receiver,
    thread,
    time::Duration,
};
use units::ByteCount;

/// Samples shared with the client for one stream, and for all of them: the
/// results stay below a megabyte, which a slow path must carry too.
const MOST_SAMPLES: usize = 600;
const MOST_SAMPLES_IN_ALL: usize = 4_800;
/// Time between samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for what has already arrived when the client ends the test.
const DRAIN: Duration = Duration::from_millis(100);
/// Longest pause between bytes still on their way, where bytes end the test.
const STALL: Duration = Duration::from_millis(200);
/// A client that goes on for longer, byte by byte, is not waited for.
const LONGEST_DRAIN: Duration = Duration::from_secs(60);
/// Datagrams that follow the news of the end come within so much of each other.
const LULL: Duration = Duration::from_millis(20);

/// How a session ended.
pub(super) struct Ended {
    /// Whether traffic ran.
    pub(super) ran: bool,
    pub(super) result: Result<Box<Summary>, ProbeError>,
    control: Option<Control>,
    /// The code for a client that asked for what cannot be.
    pub(super) refusal: Option<Refusal>,
}

/// Runs a session to its end, whatever that is. The connection is still open
/// then: whoever sees it closed may come back, and must find the place free.
pub(super) fn run(
    hall: &Hall<'_>,
    number: u64,
    connection: TcpStream,
    peer: SocketAddr,
    cookie: &Cookie,
    streams: &Receiver<Arrival>,
) -> Ended {
    let mut control =
        match Control::new(connection, peer, Role::Server, Keepalive::default(), hall.stop) {
            Ok(control) => control,
            Err(error) => {
                return Ended { ran: false, result: Err(error), control: None, refusal: None };
            }
        };
    let notes = Vec::new();
    let control_of = &mut control;
    let mut session =
        Session { hall, number, control: control_of, cookie, ran: false, refusal: None, notes };
    let result = session.converse(streams);
    let (ran, refusal) = (session.ran, session.refusal);
    Ended { ran, result, control: Some(control), refusal }
}

impl Ended {
    /// Tells the client what it can be told, and closes the connection.
    pub(super) fn close(self) {
        let (Err(error), Some(mut control)) = (&self.result, self.control) else { return };
        let refusal = match error {
            ProbeError::Interrupted => {
                let _ = control.say(State::ServerTerminate);
                return control.close_gently();
            }
            ProbeError::Frame { .. } => Refusal::PARAMETERS,
            ProbeError::Order { .. } => Refusal::UNEXPECTED,
            ProbeError::StreamsMissing { .. } | ProbeError::System { .. } => Refusal::STREAM_SETUP,
            ProbeError::Expired { .. } => Refusal::EXPIRED,
            ProbeError::OverLimit { .. } => Refusal::TOTAL_RATE,
            ProbeError::NoData { .. } => Refusal::NO_DATA,
            // Nobody is left to hear, unless the parameters were refused.
            _ => match self.refusal {
                Some(refusal) => refusal,
                None => return,
            },
        };
        control.refuse(refusal);
    }
}

struct Session<'a> {
    hall: &'a Hall<'a>,
    number: u64,
    control: &'a mut Control,
    cookie: &'a Cookie,
    ran: bool,
    refusal: Option<Refusal>,
    notes: Vec<String>,
}

impl Session<'_> {
    fn converse(&mut self, arrivals: &Receiver<Arrival>) -> Result<Box<Summary>, ProbeError> {
        self.control.say(State::ParamExchange)?;
        let params: Params = self.control.read_json("parameters", framing::PARAMS_LIMIT)?;
        let (address, config) = (self.control.address(), self.hall.config);
        let terms = Terms { config, has_udp: self.hall.has_udp, cookie: self.cookie, address };
        judge(&params, &terms).map_err(|(refusal, error)| {
            self.refusal = Some(refusal);
            error
        })?;
        let plan = self.plan(&params);
        let gathering = Gathering {
            hall: self.hall,
            control: self.control,
            params: &params,
            plan: &plan,
            notes: &mut self.notes,
        };
        let flows = gathering.run(arrivals)?;
        self.hall.streams_are_complete(self.cookie);
        self.control.say(State::TestStart)?;
        self.control.say(State::TestRunning)?;
        self.ran = true;
        // A login is nobody else's business.
        let told = Params { authtoken: None, ..params.clone() };
        let started = started(self.control, self.cookie, &told, &flows, self.notes.clone());
        self.hall.tell(ServerEvent::Started { session: self.number, started: Box::new(started) });
        let outcome = self.run_traffic(&params, &plan, &flows)?;
        if params.longhaul.is_some() {
            // What still waits to be sent would only delay the results. A real
            // iperf3 takes the reset this makes for a failure.
            for flow in flows.iter().filter(|flow| flow.sending) {
                let _ = flow.socket.set_linger(Some(Duration::ZERO));
            }
        }
        drop(flows);
        let (ours, theirs) = self.exchange(&params, &plan, &outcome)?;
        Ok(Box::new(Summary {
            seconds: outcome.seconds,
            sent: ByteCount::from_bytes(outcome.bytes(true)),
            received: ByteCount::from_bytes(outcome.bytes(false)),
            ours,
            theirs,
        }))
    }

    /// The test as this server runs it: what it sends keeps to its own limit.
    fn plan(&self, params: &Params) -> Plan {
        let config = self.hall.config;
        let asked = params.server_affinity.and_then(|core| u32::try_from(core).ok());
        let mut plan =
            Plan { file: config.file.clone(), core: asked.or(config.core), ..Plan::of(params) };
        if let Some(limit) = config.limits.rate {
            let both = if params.bidirectional { 2.0 } else { 1.0 };
            let share = limit.scaled(1.0 / (f64::from(params.streams()) * both));
            if params.reverse || params.bidirectional {
                plan.rate = Some(plan.rate.map_or(share, |rate| rate.min(share)));
            }
        }
        plan
    }

    fn run_traffic(
        &mut self,
        params: &Params,
        plan: &Plan,
        flows: &[Flow],
    ) -> Result<Outcome, ProbeError> {
        let watch = Watch {
            opened: false,
            omit: plan.omit,
            limit: plan.limit,
            sample_every: SAMPLE_EVERY,
            report_every: self.hall.config.report_every,
            most_samples: (MOST_SAMPLES_IN_ALL / flows.len().max(1)).min(MOST_SAMPLES),
        };
        let traffic = Traffic::new();
        let (hall, session) = (self.hall, self.number);
        let tell = &mut |interval| hall.tell(ServerEvent::Interval { session, interval });
        thread::scope(|scope| {
            let _closer = Closer::new(&traffic, flows);
            let mut course = Course::begin(watch, flows, &traffic);
            traffic.start_all(scope, flows, plan, course.began())?;
            self.watch_over(params, &mut course, tell)?;
            traffic.end_sending();
            if flows.iter().any(|flow| !flow.sending) {
                drain(&course, &traffic, flows);
            }
            course.end();
            traffic.end();
            Ok(course.finish(tell))
        })
    }

    /// Waits for the client to end the test, as only it does.
    fn watch_over(
        &mut self,
        params: &Params,
        course: &mut Course<'_>,
        tell: &mut dyn FnMut(crate::Interval),
    ) -> Result<(), ProbeError> {
        let limits = &self.hall.config.limits;
        let limit = watchdog(params, limits);
        let expiry = course.began() + limit;
        let address = self.control.address();
        let mut meter = Meter::begin(limits);
        let mut heard = Silence::begin(limits.receive);
        let listens = !params.reverse && !params.bidirectional;
        loop {
            course.tick(tell);
            if self.hall.stop.is_raised() {
                return Err(ProbeError::Interrupted);
            }
            if clock::now() >= expiry {
                return Err(ProbeError::Expired { address, limit });
            }
            if let Some(limit) = meter.over(course.passed(), clock::now()) {
                return Err(ProbeError::OverLimit { address, limit });
            }
            if listens && let Some(waited) = heard.over(course.received()) {
                return Err(ProbeError::NoData { who: Who::Client, address, waited });
            }
            if let Some(State::TestEnd) = self.control.poll(course.next_tick().min(expiry))? {
                return Ok(());
            }
        }
    }

    fn exchange(
        &mut self,
        params: &Params,
        plan: &Plan,
        outcome: &Outcome,
    ) -> Result<(Results, Results), ProbeError> {
        self.control.say(State::ExchangeResults)?;
        let theirs: Results = self.control.read_json("results", framing::CLIENT_RESULTS_LIMIT)?;
        let ours = outcome.results();
        let mut sent = ours.clone();
        if params.longhaul.is_some() {
            sent.longhaul = serde_json::to_value(self.extra(plan, outcome)).ok();
        }
        if params.get_server_output {
            match self.hall.observer.output(self.number) {
                Some(ServerOutput::Text(text)) => sent.server_output_text = Some(text),
                Some(ServerOutput::Json(json)) => sent.server_output_json = Some(json),
                None => {}
            }
        }
        self.control.send_json("results", &sent)?;
        self.control.say(State::DisplayResults)?;
        // All is told: a client that leaves without its goodbye has what it came for.
        let _ = self.control.next(self.hall.config.limits.idle);
        Ok((ours, Results { longhaul: None, ..theirs }))
    }

    fn extra(&self, plan: &Plan, outcome: &Outcome) -> Extra {
        let stream = |stream: &FlowOutcome| {
            let datagrams = stream.datagrams.as_ref().filter(|_| !stream.sending);
            ExtraStream::new(
                stream.id,
                stream.congestion.clone(),
                datagrams.map(|books| books.received(plan.block)),
                &stream.sender,
                &stream.receiver,
            )
        };
        Extra {
            version: crate::VERSION.to_owned(),
            sender_cpu: outcome.sender_cpu.map(|cpu| cpu.used),
            sender_core_wait: outcome.sender_cpu.map(|cpu| cpu.waited),
            receiver_cpu: outcome.receiver_cpu.map(|cpu| cpu.used),
            receiver_core_wait: outcome.receiver_cpu.map(|cpu| cpu.waited),
            notes: self.notes.clone(),
            streams: outcome.streams.iter().map(stream).collect(),
        }
    }
}

/// Takes what has already arrived when the client ends the test. It stopped
/// sending first, so this is little; where bytes end the test, all of them are
/// awaited for as long as they keep coming.
fn drain(course: &Course<'_>, traffic: &Traffic, flows: &[Flow]) {
    let count = || course.received();
    let quiet_after = |pause: Duration, at_most: Duration| {
        let began = clock::now();
        let (mut seen, mut since) = (count(), began);
        while !course.has_reached_limit()
            && clock::now() < since + pause
            && clock::now() < began + at_most
        {
            thread::sleep(Duration::from_millis(2));
            if count() > seen {
                (seen, since) = (count(), clock::now());
            }
        }
    };
    if course.has_limit() {
        quiet_after(STALL, LONGEST_DRAIN);
    } else if flows.iter().any(|flow| flow.protocol == Protocol::Udp) {
        quiet_after(LULL, DRAIN);
    }
    if flows.iter().any(|flow| flow.protocol == Protocol::Udp) {
        return;
    }
    for flow in flows.iter().filter(|flow| !flow.sending) {
        // The kernel still hands out what it holds, then reports the end.
        let _ = flow.socket.shutdown(Shutdown::Read);
    }
    traffic.wait_for_receivers(DRAIN);
}
