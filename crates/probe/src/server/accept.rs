//! Accepting connections and finding out whose they are.
//!
//! Every connection is given a thread of its own that reads its cookie; the
//! cookie of a session that waits for streams hands the connection over, a new
//! one begins a session. A connection that stalls here costs one of a bounded
//! number of places for a bounded time, and no one else waits for it.

use super::{Server, ServerConfig, door::Door, session};
use crate::{Observer, ProbeError, RefusalReason, ServerEvent, StopFlag, flow::unmapped};
use host::{clock, slice::Prompt, wait};
use iperf3::{Cookie, Refusal, State, cookie::COOKIE_LEN};
use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How long a connection keeps its place among those that have not said who
/// they are, however many more wait: a client sends its cookie at once, so this
/// is for the machine to get round to reading it.
const FAIR: Duration = Duration::from_millis(250);

/// A stream on its way to its session, with its place in the order of arrival:
/// streams are numbered by it, and the threads that read cookies may overtake.
pub(super) type Arrival = (u64, TcpStream);

/// Connections that have not said who they are, by arrival.
type HalfOpen = BTreeMap<u64, (Instant, TcpStream)>;

/// What the threads of one server share.
pub(super) struct Hall<'a> {
    pub(super) config: &'a ServerConfig,
    pub(super) stop: &'a StopFlag,
    pub(super) observer: &'a dyn Observer,
    /// Whether UDP streams can be opened.
    pub(super) has_udp: bool,
    pub(super) door: Door,
    sessions: Mutex<HashMap<Cookie, Entry>>,
    half_open: Mutex<HalfOpen>,
    /// How many those are, for whoever counts.
    half_open_count: &'a AtomicUsize,
    numbers: AtomicU64,
    /// A one-off server has served.
    served: AtomicBool,
    /// The last session has ended.
    closed: AtomicBool,
}

/// A session, as those who accept connections see it.
struct Entry {
    client: IpAddr,
    /// Takes its streams; gone once it has them.
    streams: Option<SyncSender<Arrival>>,
}

pub(super) fn serve(
    server: &Server,
    stop: &StopFlag,
    observer: &dyn Observer,
) -> Result<(), ProbeError> {
    let hall = Hall {
        config: &server.config,
        stop,
        observer,
        has_udp: server.greetings.is_some(),
        door: Door::default(),
        sessions: Mutex::default(),
        half_open: Mutex::default(),
        half_open_count: &server.half_open,
        numbers: AtomicU64::new(0),
        served: AtomicBool::new(false),
        closed: AtomicBool::new(false),
    };
    // Who converses must not wait for hundreds of streams of others.
    let _prompt = Prompt::begin();
    thread::scope(|scope| {
        if let Some(greetings) = &server.greetings {
            scope.spawn(|| hall.door.serve(greetings, &hall));
        }
        let _closes = Closes(&hall.closed);
        thread::scope(|sessions| {
            let result = hall.accept_until_stopped(sessions, &server.listener, server.address);
            // Nobody waits for a connection that never said who it is.
            for (_, connection) in lock(&hall.half_open).values() {
                let _ = connection.shutdown(Shutdown::Both);
            }
            result
        })
    })
}

/// Tells the thread at the door that it is over, however the sessions ended.
struct Closes<'a>(&'a AtomicBool);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Hall<'_> {
    fn accept_until_stopped<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        listener: &TcpListener,
        address: SocketAddr,
    ) -> Result<(), ProbeError> {
        let mut arrivals = 0u64;
        let began = clock::now();
        let patience = self.config.idle_timeout.filter(|_| self.config.one_off);
        let mut draining = false;
        while !self.stop.is_raised() && !self.served.load(Ordering::Relaxed) {
            if self.config.drain.is_raised() {
                // Those that are there may still open streams; others are told.
                let sessions = lock(&self.sessions).len();
                if !draining {
                    self.tell(ServerEvent::Draining { sessions });
                }
                draining = true;
                if sessions == 0 {
                    return Ok(());
                }
            }
            let waited = clock::now() - began;
            if patience.is_some_and(|patience| waited > patience) && lock(&self.sessions).is_empty()
            {
                return Ok(());
            }
            let ready = wait::readable([listener.as_fd()], Some(LOOK)).map_err(|source| {
                ProbeError::Listen { address, source, remedy: "restart the server" }
            })?;
            if ready != [true] {
                continue;
            }
            match listener.accept() {
                Ok((connection, peer)) => {
                    arrivals += 1;
                    self.receive(scope, connection, unmapped(peer), arrivals);
                }
                // Out of descriptors or memory for now: sessions that end give some back.
                Err(error) if !is_passing(&error) => thread::sleep(LOOK),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Takes a new connection to where it belongs: at once where its cookie is
    /// here already and names a session that waits for it, as under load most
    /// do; else a thread of its own reads on.
    fn receive<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        connection: TcpStream,
        peer: SocketAddr,
        arrival: u64,
    ) {
        let mut greeting = Greeting { bytes: [0; COOKIE_LEN], at: 0 };
        if greeting.take(&connection)
            && let Some(session) = self.session_that_waits(&greeting.cookie())
        {
            self.join(&session, connection, peer, arrival);
            return;
        }
        let Ok(handle) = connection.try_clone() else { return };
        self.make_room();
        self.with_half_open(|half_open| half_open.insert(arrival, (clock::now(), handle)));
        let work = move || {
            let cookie = self.read_cookie(&connection, greeting);
            // What is taken out is closed here, not under the lock: see `place`.
            let kept = self.with_half_open(|half_open| half_open.remove(&arrival)).is_some();
            match cookie {
                Ok(cookie) if kept => self.place(connection, peer, arrival, cookie),
                _ if self.stop.is_raised() => {}
                _ if !kept => {
                    let why = "too many connections came at once";
                    self.refuse(peer, RefusalReason::HalfOpen, why);
                }
                Ok(_) => {}
                Err(why) => self.tell(ServerEvent::Failed { session: None, peer, why }),
            }
        };
        let name = format!("from {peer}");
        if thread::Builder::new()
            .name(name)
            .stack_size(512 * 1024)
            .spawn_scoped(scope, work)
            .is_err()
        {
            let gone = self.with_half_open(|half_open| half_open.remove(&arrival));
            drop(gone);
        }
    }

    fn with_half_open<T>(&self, act: impl FnOnce(&mut HalfOpen) -> T) -> T {
        let mut half_open = lock(&self.half_open);
        let result = act(&mut half_open);
        self.half_open_count.store(half_open.len(), Ordering::Relaxed);
        result
    }

    /// Sees to it that there is a place for one more connection: those behind
    /// wait in the kernel's backlog while the oldest has its fair time, then
    /// it is closed.
    fn make_room(&self) {
        while !self.stop.is_raised() {
            {
                let mut half_open = lock(&self.half_open);
                if half_open.len() < self.config.limits.half_open.max(1) {
                    return;
                }
                if let Some(oldest) = half_open.first_entry()
                    && oldest.get().0 + FAIR <= clock::now()
                {
                    // Its thread reads the end of the connection and leaves.
                    let (_, connection) = oldest.remove();
                    let _ = connection.shutdown(Shutdown::Both);
                    return;
                }
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn read_cookie(
        &self,
        connection: &TcpStream,
        mut greeting: Greeting,
    ) -> Result<Cookie, String> {
        let limit = self.config.limits.handshake;
        let until = clock::now() + limit;
        while greeting.at < COOKIE_LEN {
            let left = until.saturating_duration_since(clock::now());
            let ready = wait::readable([connection.as_fd()], Some(left));
            if left.is_zero() || ready.is_err() {
                return Err(format!(
                    "it connected and did not say who it is within {} s: no iperf3 client",
                    limit.as_secs()
                ));
            }
            if matches!(ready, Ok([false])) {
                continue;
            }
            match greeting.read(connection) {
                Ok(0) => return Err("it closed the connection before saying who it is".to_owned()),
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(format!("its connection broke: {error}")),
            }
        }
        Ok(greeting.cookie())
    }

    /// The session with this cookie, if it still waits for streams.
    fn session_that_waits(&self, cookie: &Cookie) -> Option<SyncSender<Arrival>> {
        lock(&self.sessions).get(cookie)?.streams.clone()
    }

    fn join(
        &self,
        session: &SyncSender<Arrival>,
        stream: TcpStream,
        peer: SocketAddr,
        arrival: u64,
    ) {
        if session.try_send((arrival, stream)).is_err() {
            let why = "it opened more streams than it asked for";
            self.refuse(peer, RefusalReason::ExtraStream, why);
        }
    }

    /// Hands a connection to the session it belongs to, or begins one with it.
    ///
    /// No system call is made under the lock: where hundreds of threads want the
    /// processor, its holder would lose it there, and all the others wait for it
    /// in turn.
    fn place(&self, connection: TcpStream, peer: SocketAddr, arrival: u64, cookie: Cookie) {
        let placed = {
            let mut sessions = lock(&self.sessions);
            let entry = sessions.get(&cookie).map(|entry| &entry.streams);
            match entry {
                Some(Some(session)) => Ok(Placed::Joins(session.clone())),
                Some(None) => Err((
                    RefusalReason::ExtraStream,
                    "a connection came for a session that has its streams",
                )),
                None if self.config.drain.is_raised() => {
                    Err((RefusalReason::Draining, "the server ends with the tests that run"))
                }
                None if sessions.len() >= self.most_sessions() => {
                    Err((RefusalReason::Busy, "as many tests as the limit allows are running"))
                }
                None if sessions.values().filter(|entry| entry.client == peer.ip()).count()
                    >= self.most_per_address() =>
                {
                    Err((
                        RefusalReason::AddressBusy,
                        "as many tests as one address may have are running",
                    ))
                }
                None => {
                    let (session, streams) = sync_channel(self.most_streams());
                    let entry = Entry { client: peer.ip(), streams: Some(session) };
                    sessions.insert(cookie, entry);
                    Ok(Placed::Begins(streams))
                }
            }
        };
        match placed {
            Ok(Placed::Joins(session)) => self.join(&session, connection, peer, arrival),
            Ok(Placed::Begins(streams)) => self.run_session(connection, peer, &cookie, &streams),
            Err((reason, why)) => {
                let _ = (&connection).write_all(&[State::AccessDenied.byte()]);
                self.refuse(peer, reason, why);
            }
        }
    }

    fn run_session(
        &self,
        connection: TcpStream,
        peer: SocketAddr,
        cookie: &Cookie,
        streams: &Receiver<Arrival>,
    ) {
        // Removes the cookie however the session ends.
        let place = Place { hall: self, cookie };
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let ended = session::run(self, number, connection, peer, cookie, streams);
        if self.config.one_off && ended.ran {
            self.served.store(true, Ordering::Relaxed);
        }
        drop(place);
        match &ended.result {
            Ok(summary) => {
                let summary = summary.clone();
                self.tell(ServerEvent::Finished { session: number, peer, summary });
            }
            Err(ProbeError::NotOffered { what, .. }) => {
                let reason = match ended.refusal {
                    Some(Refusal::AUTHENTICATION) => RefusalReason::Authentication,
                    Some(Refusal::NOT_OFFERED) => RefusalReason::NotOffered,
                    _ => RefusalReason::Limit,
                };
                self.refuse(peer, reason, &format!("it asked for {what}"));
            }
            Err(error) => {
                let why = error.to_string();
                self.tell(ServerEvent::Failed { session: Some(number), peer, why });
            }
        }
        ended.close();
    }

    /// The session has its streams: later connections with its cookie are refused.
    pub(super) fn streams_are_complete(&self, cookie: &Cookie) {
        let taken = lock(&self.sessions).get_mut(cookie).and_then(|entry| entry.streams.take());
        // Closed here, after the lock.
        drop(taken);
    }

    /// Whether the server has come to its end.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(super) fn tell(&self, event: ServerEvent) {
        self.observer.event(event);
    }

    fn refuse(&self, peer: SocketAddr, reason: RefusalReason, why: &str) {
        self.tell(ServerEvent::Refused { peer, reason, why: why.to_owned() });
    }

    fn most_sessions(&self) -> usize {
        let limit = if self.config.one_off { 1 } else { self.config.limits.sessions };
        usize::try_from(limit).unwrap_or(usize::MAX)
    }

    fn most_streams(&self) -> usize {
        // Both directions may be asked for at once.
        2 * usize::try_from(self.config.limits.streams.clamp(1, 128)).unwrap_or(128)
    }

    fn most_per_address(&self) -> usize {
        usize::try_from(self.config.limits.sessions_per_address).unwrap_or(usize::MAX)
    }
}

/// As much as has come of a connection's cookie.
struct Greeting {
    bytes: [u8; COOKIE_LEN],
    at: usize,
}

impl Greeting {
    fn read(&mut self, mut connection: &TcpStream) -> io::Result<usize> {
        let got = connection.read(&mut self.bytes[self.at..])?;
        self.at += got;
        Ok(got)
    }

    /// Takes what is here already; whether that is all.
    fn take(&mut self, connection: &TcpStream) -> bool {
        let here = wait::readable([connection.as_fd()], Some(Duration::ZERO));
        // Its end and errors are found again by whoever reads on.
        if matches!(here, Ok([true])) {
            let _ = self.read(connection);
        }
        self.at == COOKIE_LEN
    }

    /// Whose it is, once all has come.
    fn cookie(&self) -> Cookie {
        Cookie::from_wire(self.bytes)
    }
}

/// What a connection that said who it is does.
enum Placed {
    Begins(Receiver<Arrival>),
    /// A stream of a session that runs.
    Joins(SyncSender<Arrival>),
}

/// A session's entry among the cookies.
struct Place<'a> {
    hall: &'a Hall<'a>,
    cookie: &'a Cookie,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let entry = lock(&self.hall.sessions).remove(self.cookie);
        drop(entry);
    }
}

/// A panic of one session must not take the others along; the tables are sound
/// after every single statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
