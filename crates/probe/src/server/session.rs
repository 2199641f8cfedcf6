//! One client's test, from its parameters to its goodbye.

use super::{
    accept::{Arrival, Hall},
    terms::{client_name, judge, seconds, watchdog},
};
use crate::{
    ProbeError, ServerEvent, SessionSummary, StreamAddress,
    control::Control,
    course::{Course, Outcome, Watch},
    extra::{Extra, ExtraStream, Who},
    socket,
    traffic::{Closer, Flow, Traffic, payload},
};
use host::{clock, tcp_info};
use iperf3::{Cookie, Params, Refusal, Results, Role, State, framing};
use socket2::SockRef;
use std::{
    net::{Shutdown, SocketAddr, TcpStream},
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};
use units::{BitRate, ByteCount};

/// Longest all streams together may take to arrive: 128 over a round trip of 600 ms.
const ALL_STREAMS: Duration = Duration::from_secs(120);
/// Samples shared with the client for one stream, and for all of them: the
/// results stay below a megabyte, which a slow path must carry too.
const MOST_SAMPLES: usize = 600;
const MOST_SAMPLES_IN_ALL: usize = 4_800;
/// Time between samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for bytes that have already arrived when the client ends the test.
const DRAIN: Duration = Duration::from_millis(100);
/// Longest pause between bytes still on their way, where bytes end the test.
const STALL: Duration = Duration::from_millis(200);
/// How often the client's connection is looked at while its streams are awaited.
const LOOK: Duration = Duration::from_millis(50);

/// How a session ended.
pub(super) struct Ended {
    /// Whether traffic ran.
    pub(super) ran: bool,
    pub(super) result: Result<SessionSummary, ProbeError>,
    control: Option<Control>,
    /// The code for a client that asked for what cannot be.
    refusal: Option<Refusal>,
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
    let mut control = match Control::new(connection, peer, Role::Server, hall.stop) {
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
    fn converse(&mut self, streams: &Receiver<Arrival>) -> Result<SessionSummary, ProbeError> {
        self.control.say(State::ParamExchange)?;
        let params: Params = self.control.read_json("parameters", framing::PARAMS_LIMIT)?;
        let address = self.control.address();
        judge(&params, &self.hall.config.limits, address).map_err(|(refusal, error)| {
            self.refusal = Some(refusal);
            error
        })?;
        self.control.say(State::CreateStreams)?;
        let flows = self.gather(&params, streams)?;
        self.hall.streams_are_complete(self.cookie);
        self.control.say(State::TestStart)?;
        self.control.say(State::TestRunning)?;
        self.ran = true;
        self.hall.tell(ServerEvent::Started {
            session: self.number,
            peer: self.control.address(),
            streams: flows
                .iter()
                .map(|flow| StreamAddress { id: flow.id, local: flow.local, peer: flow.peer })
                .collect(),
            client: client_name(&params),
            sending: params.reverse,
        });
        let outcome = self.run_traffic(&params, &flows)?;
        if params.reverse && params.longhaul.is_some() {
            // What still waits to be sent would only delay the results. A real
            // iperf3 takes the reset this makes for a failure.
            for flow in &flows {
                let _ = SockRef::from(&flow.socket).set_linger(Some(Duration::ZERO));
            }
        }
        drop(flows);
        self.exchange(&params, &outcome)?;
        Ok(SessionSummary {
            bytes: ByteCount::from_bytes(outcome.bytes()),
            seconds: outcome.seconds,
            sending: params.reverse,
        })
    }

    /// Waits for the client's streams.
    fn gather(
        &mut self,
        params: &Params,
        streams: &Receiver<Arrival>,
    ) -> Result<Vec<Flow>, ProbeError> {
        let asked = params.streams();
        let wanted = usize::try_from(asked).unwrap_or(usize::MAX);
        let address = self.control.address();
        let whole = clock::now() + ALL_STREAMS;
        let mut until = clock::now() + self.hall.config.limits.handshake;
        let mut arrived: Vec<Arrival> = Vec::new();
        while arrived.len() < wanted {
            match streams.recv_timeout(LOOK) {
                Ok(stream) => {
                    arrived.push(stream);
                    until = (clock::now() + self.hall.config.limits.handshake).min(whole);
                }
                Err(RecvTimeoutError::Timeout) => {
                    // The client has nothing to say now, unless it gives up.
                    self.control.poll(clock::now())?;
                    if self.hall.stop.is_raised() {
                        return Err(ProbeError::Interrupted);
                    }
                    if clock::now() >= until {
                        return Err(ProbeError::StreamsMissing {
                            address,
                            arrived: arrived.len(),
                            asked,
                        });
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ProbeError::Interrupted),
            }
        }
        arrived.sort_by_key(|(arrival, _)| *arrival);
        let mut flows = Vec::new();
        for (index, (_, stream)) in (0..).zip(arrived) {
            self.prepare(params, &stream, index == 0);
            let flow = Flow::new(iperf3::stream_id(index), stream).map_err(|source| {
                ProbeError::System { operation: "set up a stream", address, source }
            })?;
            flows.push(flow);
        }
        Ok(flows)
    }

    /// Gives a stream what the client asked for; what the kernel refuses is
    /// noted, as it is with iperf3, and the test goes on without.
    fn prepare(&mut self, params: &Params, stream: &TcpStream, first: bool) {
        let socket = SockRef::from(stream);
        let mut notes = Vec::new();
        if let Some(window) = u64::try_from(params.window).ok().filter(|window| *window > 0) {
            let window = ByteCount::from_bytes(window);
            if socket::set_window(&socket, window).is_ok() {
                notes.extend(socket::clamp_note(stream, window, params.reverse, Who::Server));
            }
        }
        if let Some(name) = params.congestion.as_ref().filter(|_| params.reverse)
            && let Err(error) = tcp_info::set_congestion(stream, name)
        {
            notes.push(format!("on the server: {error}"));
        }
        if params.nodelay {
            let _ = stream.set_nodelay(true);
        }
        if let Some(mss) = u32::try_from(params.mss).ok().filter(|mss| *mss > 0) {
            let _ = socket.set_tcp_mss(mss);
        }
        if first {
            self.notes = notes;
        }
    }

    fn run_traffic(&mut self, params: &Params, flows: &[Flow]) -> Result<Outcome, ProbeError> {
        let sending = params.reverse;
        let watch = Watch {
            sending,
            opened: false,
            omit: seconds(params.omit),
            limit: params.bytes_limit(),
            sample_every: SAMPLE_EVERY,
            report_every: self.hall.config.report_every,
            most_samples: (MOST_SAMPLES_IN_ALL / flows.len().max(1)).min(MOST_SAMPLES),
        };
        let block = payload(if sending { params.block() as usize } else { 0 });
        let rate =
            u64::try_from(params.bandwidth).ok().filter(|bps| *bps > 0).map(BitRate::from_bps);
        let traffic = Traffic::new();
        let (hall, session) = (self.hall, self.number);
        let tell = &mut |interval| hall.tell(ServerEvent::Interval { session, interval });
        thread::scope(|scope| {
            let _closer = Closer::new(&traffic, flows);
            let mut course = Course::begin(watch, flows, &traffic);
            for flow in flows {
                let started = if sending {
                    traffic.start_writer(scope, flow, &block, rate, course.began())
                } else {
                    traffic.start_reader(scope, flow)
                };
                started.map_err(|source| ProbeError::System {
                    operation: "start a thread for a stream",
                    address: flow.peer,
                    source,
                })?;
            }
            self.watch_over(params, &mut course, tell)?;
            if sending {
                course.end();
                traffic.end();
                traffic.wait_for_writers();
            } else {
                drain(&course, &traffic, flows);
                course.end();
                traffic.end();
            }
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
        let limit = watchdog(params, &self.hall.config.limits);
        let expiry = course.began() + limit;
        loop {
            course.tick(tell);
            if self.hall.stop.is_raised() {
                return Err(ProbeError::Interrupted);
            }
            if clock::now() >= expiry {
                return Err(ProbeError::Expired { address: self.control.address(), limit });
            }
            if let Some(State::TestEnd) = self.control.poll(course.next_tick().min(expiry))? {
                return Ok(());
            }
        }
    }

    fn exchange(&mut self, params: &Params, outcome: &Outcome) -> Result<(), ProbeError> {
        self.control.say(State::ExchangeResults)?;
        let _theirs: Results = self.control.read_json("results", framing::CLIENT_RESULTS_LIMIT)?;
        let mut results = outcome.results(params.reverse);
        if params.longhaul.is_some() {
            results.longhaul = serde_json::to_value(self.extra(outcome)).ok();
        }
        self.control.send_json("results", &results)?;
        self.control.say(State::DisplayResults)?;
        // All is told: a client that leaves without its goodbye has what it came for.
        let _ = self.control.next(self.hall.config.limits.idle);
        Ok(())
    }

    fn extra(&self, outcome: &Outcome) -> Extra {
        Extra {
            version: crate::VERSION.to_owned(),
            cpu: outcome.cpu,
            notes: self.notes.clone(),
            streams: outcome
                .streams
                .iter()
                .map(|s| ExtraStream::new(s.id, s.congestion.clone(), &s.sender, &s.receiver))
                .collect(),
        }
    }
}

/// Takes what has already arrived when the client ends the test. It stopped
/// sending first, so this is little; where bytes end the test, all of them are
/// awaited for as long as they keep coming.
fn drain(course: &Course<'_>, traffic: &Traffic, flows: &[Flow]) {
    let count = || flows.iter().map(Flow::bytes).sum::<u64>();
    if course.has_limit() {
        let (mut seen, mut since) = (count(), clock::now());
        while !course.has_reached_limit() && clock::now() < since + STALL {
            thread::sleep(Duration::from_millis(2));
            if count() > seen {
                (seen, since) = (count(), clock::now());
            }
        }
    }
    for flow in flows {
        // The kernel still hands out what it holds, then reports the end.
        let _ = flow.socket.shutdown(Shutdown::Read);
    }
    traffic.wait(DRAIN);
}
