//! Accepts connections: one thread reads every handshake up to the parameters
//! and never blocks.
//!
//! ```text
//! accept ─> cookie ─┬─ of a test that waits for streams ─> its session
//!                   └─ unknown ─> PARAM_EXCHANGE ─> parameters ─> a session's thread:
//!                                                  authenticated, admitted, run
//! ```
//!
//! Until its thread has admitted it, a connection counts as half-open, and takes one of the
//! slots for such threads: it waits for one with the others, and may be evicted there.

use super::{
    Server,
    admission::{Arrival, CookieOwner, Refused},
    session,
    state::ServerState,
};
use crate::{PerfError, RefusalReason, ServerEvent, StopFlag};
use connection_limits::{Acceptor, Ended, HalfOpenLimits, Handshake, HandshakeTicket, ThreadSlot};
use host::{clock, slice::ShortSlices};
use iperf3_proto::{Cookie, Decoder, FrameError, State, cookie::COOKIE_LEN, framing};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::mpsc::SyncSender,
    thread::{self, Scope},
    time::Duration,
};

/// Interval between checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Stack of a thread that reads parameters and runs a test's control connection.
const SESSION_STACK: usize = 512 * 1024;

pub(super) fn serve(
    server: &Server,
    stop: &StopFlag,
    observer: &dyn crate::Observer,
) -> Result<(), PerfError> {
    let has_udp = server.udp_listener.is_some();
    let state = ServerState::new(&server.config, has_udp, &server.half_open, stop, observer);
    let failed =
        |operation| move |source| PerfError::System { operation, address: server.address, source };
    let limits = &server.config.limits;
    let half_open = HalfOpenLimits {
        all: limits.half_open.max(1),
        per_address: limits.half_open_per_address(),
        timeout: limits.handshake,
    };
    // Control connections must not wait for the CPU behind hundreds of streams.
    let _short_slices = ShortSlices::begin();
    thread::scope(|scope| {
        if let Some(udp_listener) = &server.udp_listener {
            let work = || state.udp.serve(udp_listener, &state);
            let builder = thread::Builder::new().name("udp accept".to_owned());
            builder.spawn_scoped(scope, work).map_err(failed("start a thread for UDP"))?;
        }
        let _closes = ClosesAtEnd(&state);
        let state = &state;
        thread::scope(|scope| {
            let begin = move |connection, peer, ticket| HalfOpen {
                state,
                connection,
                peer,
                ticket,
                stage: Stage::new(),
            };
            let acceptor = Acceptor::new(&server.listener, state.handshakes, half_open, begin)
                .map_err(failed("wait for connections"))?;
            Accepting { state, scope }.run(acceptor, server.address)
        })
    })
}

/// Ends the thread that accepts UDP streams, however the sessions ended.
struct ClosesAtEnd<'a>(&'a ServerState<'a>);

impl Drop for ClosesAtEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A connection whose handshake is being read.
struct HalfOpen<'a> {
    state: &'a ServerState<'a>,
    connection: TcpStream,
    peer: SocketAddr,
    ticket: HandshakeTicket<'a>,
    stage: Stage,
}

enum Stage {
    Cookie {
        bytes: [u8; COOKIE_LEN],
        filled: usize,
    },
    Parameters {
        cookie: Cookie,
        decoder: Decoder,
    },
    /// Complete: it waits for a thread.
    Complete {
        cookie: Cookie,
        parameters: Option<Result<Decoder, FrameError>>,
    },
}

impl Stage {
    const fn new() -> Self {
        Stage::Cookie { bytes: [0; COOKIE_LEN], filled: 0 }
    }
}

/// The result of a handshake.
enum Outcome<'a> {
    /// A stream of a test that waits for it.
    Stream(SyncSender<Arrival>),
    /// A new client with its parameters, if they could be read, and a slot for its thread.
    Client(Cookie, Result<Decoder, FrameError>, ThreadSlot<'a>),
    Refused(Refused),
    Failed(String),
}

/// A client whose parameters were received.
pub(super) struct ReceivedHandshake<'a> {
    pub(super) connection: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) cookie: Cookie,
    pub(super) parameters: Result<Decoder, FrameError>,
    /// Counts it as half-open until it is admitted.
    pub(super) ticket: HandshakeTicket<'a>,
    /// Its thread, until then.
    pub(super) slot: ThreadSlot<'a>,
}

struct Accepting<'scope, 'env> {
    state: &'scope ServerState<'scope>,
    scope: &'scope Scope<'scope, 'env>,
}

impl<'scope> Accepting<'scope, '_> {
    fn run(
        &self,
        mut acceptor: Acceptor<'scope, HalfOpen<'scope>>,
        address: SocketAddr,
    ) -> Result<(), PerfError> {
        let config = self.state.config;
        let began = clock::now();
        let idle_timeout = config.idle_timeout.filter(|_| config.one_off);
        let mut draining = false;
        while !self.state.stop.is_raised() && !self.state.has_served() {
            if config.drain.is_raised() {
                // Tests that were admitted may still open streams.
                let sessions = self.state.admission.count();
                if !draining {
                    self.state.emit(ServerEvent::Draining { sessions });
                }
                draining = true;
                if sessions == 0 {
                    return Ok(());
                }
            }
            let waited = clock::now() - began;
            if idle_timeout.is_some_and(|timeout| waited > timeout)
                && self.state.admission.count() == 0
            {
                return Ok(());
            }
            acceptor.step(POLL_INTERVAL, &mut |ended| self.finish(ended)).map_err(|source| {
                PerfError::Listen { address, source, remedy: "restart the server" }
            })?;
        }
        Ok(())
    }

    fn finish(&self, ended: Ended<HalfOpen<'scope>>) {
        match ended {
            Ended::Complete(arrival, half_open, outcome) => {
                self.hand_over(arrival, half_open, outcome);
            }
            Ended::TimedOut(expired) => {
                let peer = expired.peer;
                let why = expired.timed_out();
                // Closed before it is reported: an observer may reconnect at once.
                drop(expired);
                self.state.emit(ServerEvent::Failed { session: None, peer, why });
            }
            Ended::Evicted(evicted) => {
                let why = "too many half-open connections, and its address had the most";
                let peer = evicted.peer;
                drop(evicted);
                self.state.refuse(peer, RefusalReason::HalfOpen, why);
            }
        }
    }

    /// Hands over a connection after its handshake.
    fn hand_over(&self, arrival: u64, half_open: HalfOpen<'scope>, outcome: Outcome<'scope>) {
        let HalfOpen { connection, peer, ticket, .. } = half_open;
        match outcome {
            Outcome::Stream(session) => {
                let joined = connection.set_nonblocking(false).is_ok()
                    && session.try_send((arrival, connection)).is_ok();
                if !joined {
                    let why = "it opened more streams than it requested";
                    self.state.refuse(peer, RefusalReason::ExtraStream, why);
                }
            }
            Outcome::Client(cookie, parameters, slot) => {
                let handshake =
                    ReceivedHandshake { connection, peer, cookie, parameters, ticket, slot };
                self.begin_session(handshake);
            }
            Outcome::Refused(refused) => {
                self.state.refuse(peer, refused.reason, &refused.why);
                let _ = (&connection).write(&[State::AccessDenied.byte()]);
            }
            Outcome::Failed(why) => {
                self.state.emit(ServerEvent::Failed { session: None, peer, why });
            }
        }
    }

    fn begin_session(&self, handshake: ReceivedHandshake<'scope>) {
        let (state, peer) = (self.state, handshake.peer);
        let builder = thread::Builder::new().name(format!("from {peer}")).stack_size(SESSION_STACK);
        if builder.spawn_scoped(self.scope, move || session::serve(state, handshake)).is_err() {
            let why = "the system's limit on threads is reached";
            state.refuse(peer, RefusalReason::Capacity, why);
        }
    }
}

impl<'a> Handshake for HalfOpen<'a> {
    type Outcome = Outcome<'a>;

    fn connection(&self) -> &TcpStream {
        &self.connection
    }

    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Complete { .. })
    }

    /// Reads what is available, up to the end of the handshake: later bytes
    /// belong to the session.
    fn advance(&mut self) -> Option<Outcome<'a>> {
        loop {
            let mut piece = [0; 4096];
            let want = match &self.stage {
                Stage::Cookie { filled, .. } => COOKIE_LEN - filled,
                Stage::Parameters { decoder, .. } => decoder.missing().min(piece.len()),
                Stage::Complete { .. } => return self.take_slot(),
            };
            let got = match (&self.connection).read(&mut piece[..want]) {
                Ok(0) => return Some(Outcome::Failed(self.closed())),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Some(Outcome::Failed(format!("its connection failed: {error}")));
                }
            };
            if let Some(outcome) = self.take(&piece[..got]) {
                return Some(outcome);
            }
        }
    }
}

impl<'a> HalfOpen<'a> {
    fn take(&mut self, piece: &[u8]) -> Option<Outcome<'a>> {
        match &mut self.stage {
            Stage::Cookie { bytes, filled } => {
                bytes[*filled..*filled + piece.len()].copy_from_slice(piece);
                *filled += piece.len();
                if *filled < COOKIE_LEN {
                    return None;
                }
                let cookie = Cookie::from_wire(*bytes);
                return self.take_cookie(cookie);
            }
            Stage::Parameters { cookie, decoder } => {
                let parameters = match decoder.take(piece) {
                    Ok(_) if decoder.missing() > 0 => return None,
                    Ok(_) => Ok(std::mem::replace(decoder, Decoder::new(0))),
                    Err(error) => Err(error),
                };
                self.stage = Stage::Complete { cookie: *cookie, parameters: Some(parameters) };
            }
            Stage::Complete { .. } => {}
        }
        None
    }

    fn take_cookie(&mut self, cookie: Cookie) -> Option<Outcome<'a>> {
        match self.state.admission.owner_of(&cookie) {
            CookieOwner::Waiting(session) => return Some(Outcome::Stream(session)),
            CookieOwner::Complete => {
                let why = "its test already has all streams";
                return Some(Outcome::Refused(Refused::now(RefusalReason::ExtraStream, why)));
            }
            CookieOwner::Unknown => {}
        }
        if let Err(refused) = self.state.check_address(self.ticket.key()) {
            return Some(Outcome::Refused(refused));
        }
        // The first byte always fits in the send buffer.
        if let Err(error) = (&self.connection).write_all(&[State::ParamExchange.byte()]) {
            return Some(Outcome::Failed(format!("its connection failed: {error}")));
        }
        self.stage = Stage::Parameters { cookie, decoder: Decoder::new(framing::PARAMS_LIMIT) };
        None
    }

    /// The client, once there is a slot for its thread.
    fn take_slot(&mut self) -> Option<Outcome<'a>> {
        let Stage::Complete { cookie, parameters } = &mut self.stage else { return None };
        let slot = self.state.threads.take(self.ticket.key())?;
        Some(Outcome::Client(*cookie, parameters.take()?, slot))
    }

    fn timed_out(&self) -> String {
        let what = match self.stage {
            Stage::Cookie { .. } => "no cookie",
            Stage::Parameters { .. } => "no test parameters",
            Stage::Complete { .. } => "no thread was free",
        };
        let seconds = self.state.config.limits.handshake.as_secs();
        format!("handshake timeout: {what} within {seconds} s; check that it is iperf3 or longhaul")
    }

    fn closed(&self) -> String {
        let before = match self.stage {
            Stage::Cookie { .. } => "its cookie",
            Stage::Parameters { .. } | Stage::Complete { .. } => "its test parameters",
        };
        format!("it closed the connection before sending {before}")
    }
}
