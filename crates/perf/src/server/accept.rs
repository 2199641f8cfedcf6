//! Accepts connections: one thread reads every handshake up to the parameters
//! and never blocks.
//!
//! ```text
//! accept ─> cookie ─┬─ of a test that waits for streams ─> its session
//!                   └─ unknown ─> PARAM_EXCHANGE ─> parameters ─> a session's thread:
//!                                                  authenticated, admitted, run
//! ```
//!
//! Until its thread has admitted it, a connection counts as half-open.

use super::{
    Server,
    admission::{Arrival, CookieOwner},
    half_open::{HalfOpenTable, HandshakeTicket},
    session,
    state::ServerState,
};
use crate::{PerfError, RefusalReason, ServerEvent, StopFlag, stream::unmapped};
use host::{address_key::AddressKey, clock, slice::ShortSlices, wait::Poller};
use iperf3_proto::{Cookie, Decoder, FrameError, State, cookie::COOKIE_LEN, framing};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::SyncSender,
    thread::{self, Scope},
    time::{Duration, Instant},
};

/// Interval between checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Pause in accepting when descriptors or memory are exhausted.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Connections accepted before open ones are read again.
const ACCEPT_BATCH: usize = 32;

/// Stack of a thread that reads parameters and runs a test's control connection.
const SESSION_STACK: usize = 512 * 1024;

/// The listener's token; those of connections are numbered from 1 by arrival.
const LISTENER: usize = 0;

pub(super) fn serve(
    server: &Server,
    stop: &StopFlag,
    observer: &dyn crate::Observer,
) -> Result<(), PerfError> {
    let has_udp = server.udp_listener.is_some();
    let state = ServerState::new(&server.config, has_udp, &server.half_open, stop, observer);
    let failed =
        |operation| move |source| PerfError::System { operation, address: server.address, source };
    let mut poller = Poller::new().map_err(failed("wait for connections"))?;
    poller.add(&server.listener, LISTENER).map_err(failed("wait for connections"))?;
    // Control connections must not wait for the CPU behind hundreds of streams.
    let _short_slices = ShortSlices::begin();
    thread::scope(|scope| {
        if let Some(udp_listener) = &server.udp_listener {
            let work = || state.udp.serve(udp_listener, &state);
            let builder = thread::Builder::new().name("udp accept".to_owned());
            builder.spawn_scoped(scope, work).map_err(failed("start a thread for UDP"))?;
        }
        let _closes = ClosesAtEnd(&state);
        thread::scope(|sessions| {
            let table = HalfOpenTable::new(
                &state.handshakes,
                server.config.limits.half_open_per_address(),
                server.config.limits.handshake,
            );
            let acceptor = Acceptor {
                state: &state,
                scope: sessions,
                listener: &server.listener,
                poller,
                table,
                arrivals: 0,
                paused_until: None,
            };
            acceptor.run(server.address)
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
    connection: TcpStream,
    peer: SocketAddr,
    ticket: HandshakeTicket<'a>,
    stage: Stage,
}

enum Stage {
    Cookie { bytes: [u8; COOKIE_LEN], filled: usize },
    Parameters { cookie: Cookie, decoder: Decoder },
}

/// Result of reading from a connection.
enum Progress {
    /// The handshake is incomplete.
    Pending,
    /// A stream of a test that waits for it.
    Stream(SyncSender<Arrival>),
    /// A new client with its parameters, if they could be read.
    Client(Cookie, Result<Decoder, FrameError>),
    Refused(RefusalReason, &'static str),
    Failed(String),
}

/// A client whose parameters were received.
pub(super) struct Handshake<'a> {
    pub(super) connection: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) cookie: Cookie,
    pub(super) parameters: Result<Decoder, FrameError>,
    /// Counts it as half-open until it is admitted.
    pub(super) ticket: HandshakeTicket<'a>,
}

struct Acceptor<'scope, 'env> {
    state: &'scope ServerState<'scope>,
    scope: &'scope Scope<'scope, 'env>,
    listener: &'scope TcpListener,
    poller: Poller,
    table: HalfOpenTable<'scope, HalfOpen<'scope>>,
    arrivals: u64,
    /// Accepting resumes then; the listener is not polled until.
    paused_until: Option<Instant>,
}

impl<'scope> Acceptor<'scope, '_> {
    fn run(mut self, address: SocketAddr) -> Result<(), PerfError> {
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
            let acceptable = self.read_ready(self.poll_timeout()).map_err(|source| {
                PerfError::Listen { address, source, remedy: "restart the server" }
            })?;
            self.close_overdue();
            if acceptable {
                self.accept_batch();
            }
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Duration {
        let now = clock::now();
        let due = [self.table.next_expiry(), self.paused_until].into_iter().flatten().min();
        due.map_or(POLL_INTERVAL, |due| due.saturating_duration_since(now)).min(POLL_INTERVAL)
    }

    /// Reads from every readable connection; whether there are connections to accept.
    fn read_ready(&mut self, timeout: Duration) -> io::Result<bool> {
        let mut ready = Vec::new();
        self.poller.wait(Some(timeout), &mut ready)?;
        let mut acceptable = false;
        for token in ready {
            if token == LISTENER {
                acceptable = true;
            } else if let Ok(arrival) = u64::try_from(token) {
                self.advance(arrival);
            }
        }
        Ok(acceptable)
    }

    fn close_overdue(&mut self) {
        let now = clock::now();
        if self.paused_until.is_some_and(|until| now >= until) {
            let resumed = self.poller.add(self.listener, LISTENER).is_ok();
            self.paused_until = (!resumed).then(|| now + EXHAUSTED_PAUSE);
        }
        let timeout = self.state.config.limits.handshake;
        for expired in self.table.take_expired(now) {
            let why = match expired.stage {
                Stage::Cookie { .. } => "no cookie",
                Stage::Parameters { .. } => "no test parameters",
            };
            let why = format!(
                "handshake timeout: {why} within {} s; check that it is iperf3 or longhaul",
                timeout.as_secs()
            );
            let peer = expired.peer;
            // Closed before it is reported: an observer may reconnect at once.
            drop(expired);
            self.state.emit(ServerEvent::Failed { session: None, peer, why });
        }
        for excess in self.table.take_over_share(now) {
            self.refuse_half_open(excess);
        }
    }

    /// Closes a connection, then reports it.
    fn refuse_half_open(&self, connection: HalfOpen<'_>) {
        let why = "too many half-open connections, and its address had the most";
        let peer = connection.peer;
        drop(connection);
        self.state.refuse(peer, RefusalReason::HalfOpen, why);
    }

    fn accept_batch(&mut self) {
        for _ in 0..ACCEPT_BATCH {
            match self.listener.accept() {
                Ok((connection, peer)) => self.receive(connection, unmapped(peer)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if host::socket::is_exhausted(&error) => {
                    // A closed connection frees a descriptor.
                    if let Some(evicted) = self.table.take_from_busiest() {
                        self.refuse_half_open(evicted);
                    }
                    if self.poller.remove(self.listener).is_ok() {
                        self.paused_until = Some(clock::now() + EXHAUSTED_PAUSE);
                    }
                    return;
                }
                // A connection that was reset before it was accepted.
                Err(_) => {}
            }
        }
    }

    fn receive(&mut self, connection: TcpStream, peer: SocketAddr) {
        if connection.set_nonblocking(true).is_err() {
            return;
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        let now = clock::now();
        let ticket = self.state.handshakes.ticket(AddressKey::of(peer.ip()));
        let key = ticket.key();
        let stage = Stage::Cookie { bytes: [0; COOKIE_LEN], filled: 0 };
        let mut half_open = HalfOpen { connection, peer, ticket, stage };
        // Most cookies arrive with the connection: these never enter the table.
        let progress = half_open.advance(self.state);
        if !matches!(progress, Progress::Pending) {
            self.finish(arrival, half_open, progress);
            return;
        }
        if !self.make_room() {
            self.refuse_half_open(half_open);
            return;
        }
        let token = usize::try_from(arrival).unwrap_or(usize::MAX);
        if self.poller.add(&half_open.connection, token).is_ok() {
            self.table.insert(arrival, key, now, half_open);
        }
    }

    /// Closes half-open connections until the latest one fits; false where only
    /// connections are left that are being authenticated.
    fn make_room(&mut self) -> bool {
        let most = self.state.config.limits.half_open.max(1);
        if self.state.handshakes.total() <= most {
            return true;
        }
        // Completed handshakes leave the table first.
        let _ = self.read_ready(Duration::ZERO);
        while self.state.handshakes.total() > most {
            match self.table.take_from_busiest() {
                Some(evicted) => self.refuse_half_open(evicted),
                None => return false,
            }
        }
        true
    }

    fn advance(&mut self, arrival: u64) {
        let Some(half_open) = self.table.get_mut(arrival) else { return };
        let progress = half_open.advance(self.state);
        if matches!(progress, Progress::Pending) {
            return;
        }
        if let Some(half_open) = self.table.remove(arrival) {
            // The descriptor stays open in a session and would be reported forever.
            let _ = self.poller.remove(&half_open.connection);
            self.finish(arrival, half_open, progress);
        }
    }

    /// Hands over a connection after its handshake.
    fn finish(&self, arrival: u64, half_open: HalfOpen<'scope>, progress: Progress) {
        let HalfOpen { connection, peer, ticket, .. } = half_open;
        match progress {
            Progress::Pending => {}
            Progress::Stream(session) => {
                let joined = connection.set_nonblocking(false).is_ok()
                    && session.try_send((arrival, connection)).is_ok();
                if !joined {
                    let why = "it opened more streams than it requested";
                    self.state.refuse(peer, RefusalReason::ExtraStream, why);
                }
            }
            Progress::Client(cookie, parameters) => {
                self.begin_session(Handshake { connection, peer, cookie, parameters, ticket });
            }
            Progress::Refused(reason, why) => {
                self.state.refuse(peer, reason, why);
                let _ = (&connection).write(&[State::AccessDenied.byte()]);
            }
            Progress::Failed(why) => {
                self.state.emit(ServerEvent::Failed { session: None, peer, why });
            }
        }
    }

    fn begin_session(&self, handshake: Handshake<'scope>) {
        let (state, peer) = (self.state, handshake.peer);
        let builder = thread::Builder::new().name(format!("from {peer}")).stack_size(SESSION_STACK);
        if builder.spawn_scoped(self.scope, move || session::serve(state, handshake)).is_err() {
            let why = "the system's limit on threads is reached";
            state.refuse(peer, RefusalReason::Capacity, why);
        }
    }
}

impl HalfOpen<'_> {
    /// Reads what is available, up to the end of the handshake: later bytes
    /// belong to the session.
    fn advance(&mut self, state: &ServerState<'_>) -> Progress {
        loop {
            let mut piece = [0; 4096];
            let want = match &self.stage {
                Stage::Cookie { filled, .. } => COOKIE_LEN - filled,
                Stage::Parameters { decoder, .. } => decoder.missing().min(piece.len()),
            };
            let got = match (&self.connection).read(&mut piece[..want]) {
                Ok(0) => return Progress::Failed(self.closed()),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Progress::Pending;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Progress::Failed(format!("its connection failed: {error}")),
            };
            if let Some(progress) = self.take(&piece[..got], state) {
                return progress;
            }
        }
    }

    fn take(&mut self, piece: &[u8], state: &ServerState<'_>) -> Option<Progress> {
        match &mut self.stage {
            Stage::Cookie { bytes, filled } => {
                bytes[*filled..*filled + piece.len()].copy_from_slice(piece);
                *filled += piece.len();
                if *filled < COOKIE_LEN {
                    return None;
                }
                let cookie = Cookie::from_wire(*bytes);
                self.take_cookie(cookie, state)
            }
            Stage::Parameters { cookie, decoder } => match decoder.take(piece) {
                Ok(_) if decoder.missing() > 0 => None,
                Ok(_) => {
                    let decoder = std::mem::replace(decoder, Decoder::new(0));
                    Some(Progress::Client(*cookie, Ok(decoder)))
                }
                Err(error) => Some(Progress::Client(*cookie, Err(error))),
            },
        }
    }

    fn take_cookie(&mut self, cookie: Cookie, state: &ServerState<'_>) -> Option<Progress> {
        match state.admission.owner_of(&cookie) {
            CookieOwner::Waiting(session) => return Some(Progress::Stream(session)),
            CookieOwner::Complete => {
                let why = "its test already has all streams";
                return Some(Progress::Refused(RefusalReason::ExtraStream, why));
            }
            CookieOwner::Unknown => {}
        }
        if let Err((reason, why)) = state.check_address(self.ticket.key()) {
            return Some(Progress::Refused(reason, why));
        }
        // The first byte always fits in the send buffer.
        if let Err(error) = (&self.connection).write_all(&[State::ParamExchange.byte()]) {
            return Some(Progress::Failed(format!("its connection failed: {error}")));
        }
        self.stage = Stage::Parameters { cookie, decoder: Decoder::new(framing::PARAMS_LIMIT) };
        None
    }

    fn closed(&self) -> String {
        let before = match self.stage {
            Stage::Cookie { .. } => "its cookie",
            Stage::Parameters { .. } => "its test parameters",
        };
        format!("it closed the connection before sending {before}")
    }
}
