//! Connections before their clients have proved a key. One thread reads all preambles; a
//! connection whose preamble names a known key gets a thread, in which TLS proves it. Knowing
//! the name of a key is no proof, as whoever records a preamble can replay it: both are bounded,
//! in total and per address, and where one is full, the oldest connection of the address with
//! the most is closed.

use super::listener::{Known, Lanes, Purpose};
use crate::CopyError;
use crate::hello::{PREAMBLE_BYTES, parse_preamble};
use connection_limits::{
    Acceptor, Ended, HalfOpenLimits, HalfOpenTable, Handshake, HandshakeCounts, HandshakeTicket,
};
use host::address_key::AddressKey;
use host::clock;
use host::lock::lock;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Timeout of a whole handshake, from the connection to the client's first line.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// The interval at which a stop is noticed.
pub(super) const POLL: Duration = Duration::from_millis(100);
/// Connections without a preamble: a descriptor each.
const PREAMBLES: HalfOpenLimits =
    HalfOpenLimits { all: 256, per_address: 16, timeout: Duration::from_secs(3) };
/// Connections whose preamble names a known key, with a thread each: of those that ask for a
/// copy, and of those that carry one. A client may open as many at once as a copy has.
const PROOFS: HalfOpenLimits = HalfOpenLimits { all: 128, per_address: 64, timeout: HANDSHAKE };

/// The reason for closing a connection to admit another one.
const EVICTED: &str = "too many connections without a proven key, and its address had the most";

/// A connection whose preamble is read.
struct Preamble<'a> {
    lanes: &'a Lanes,
    connection: TcpStream,
    from: SocketAddr,
    began: Instant,
    bytes: [u8; PREAMBLE_BYTES],
    filled: usize,
    _ticket: HandshakeTicket<'a>,
}

impl Handshake for Preamble<'_> {
    type Outcome = Result<Known, CopyError>;

    fn connection(&self) -> &TcpStream {
        &self.connection
    }

    fn advance(&mut self) -> Option<Self::Outcome> {
        while self.filled < PREAMBLE_BYTES {
            match (&self.connection).read(&mut self.bytes[self.filled..]) {
                Ok(0) => return Some(Err(CopyError::Connection("closed".into()))),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Some(Err(CopyError::socket(error))),
            }
        }
        let wrong = || CopyError::Protocol("not a client of longhaul copy".into());
        let id = parse_preamble(&self.bytes).ok_or_else(wrong);
        Some(id.and_then(|id| self.lanes.find(&id).ok_or(CopyError::Authentication)))
    }
}

/// A connection whose preamble named a known key.
pub(super) struct Named<'p, 'a> {
    pub(super) connection: TcpStream,
    pub(super) from: SocketAddr,
    pub(super) known: Known,
    /// Deadline of the whole handshake.
    pub(super) until: Instant,
    pub(super) pass: Pass<'p, 'a>,
}

/// Accepts connections until `stop`: `named` gets those whose preamble names a known key,
/// `refused` the others with the reason. No call of theirs may block.
pub(super) fn accept<'p, 'a>(
    listener: &TcpListener,
    lanes: &Lanes,
    proofs: &'p Proofs<'a>,
    stop: impl Fn() -> bool,
    mut named: impl FnMut(Named<'p, 'a>),
    mut refused: impl FnMut(SocketAddr, String),
) {
    let counts = HandshakeCounts::default();
    let begin = |connection, from, ticket| Preamble {
        lanes,
        connection,
        from,
        began: clock::now(),
        bytes: [0; PREAMBLE_BYTES],
        filled: 0,
        _ticket: ticket,
    };
    let _ = listener.set_nonblocking(true);
    let acceptor = Acceptor::new(listener, &counts, PREAMBLES, begin);
    let Ok(mut acceptor) = acceptor else { return };
    let mut ended = |ended: Ended<Preamble<'_>>| match ended {
        Ended::Complete(_, Preamble { connection, from, began, .. }, Ok(known)) => {
            let proofs = proofs.of(&known.purpose);
            match proofs.enter(&connection, from) {
                Ok(pass) => {
                    let until = began + HANDSHAKE;
                    named(Named { connection, from, known, until, pass });
                }
                Err(error) => refused(from, error.to_string()),
            }
        }
        Ended::Complete(_, preamble, Err(error)) => refused(preamble.from, error.to_string()),
        Ended::TimedOut(preamble) => refused(preamble.from, "no preamble arrived".into()),
        Ended::Evicted(preamble) => refused(preamble.from, EVICTED.into()),
    };
    while !stop() {
        if acceptor.step(POLL, &mut ended).is_err() {
            std::thread::sleep(POLL);
        }
    }
}

/// Counts of the connections that are to prove their key.
#[derive(Default)]
pub(super) struct ProofCounts {
    bootstraps: HandshakeCounts,
    lanes: HandshakeCounts,
}

/// Connections that are to prove their key. Those that carry a copy are apart: whoever replays
/// the preamble of a token, which lasts, does not reach them.
pub(super) struct Proofs<'a> {
    bootstraps: Gate<'a>,
    lanes: Gate<'a>,
}

impl<'a> Proofs<'a> {
    pub(super) fn new(counts: &'a ProofCounts) -> Self {
        Proofs { bootstraps: Gate::new(&counts.bootstraps), lanes: Gate::new(&counts.lanes) }
    }

    const fn of(&self, purpose: &Purpose) -> &Gate<'a> {
        match purpose {
            Purpose::Bootstrap => &self.bootstraps,
            Purpose::Lane(..) => &self.lanes,
        }
    }
}

/// A limited number of connections, each with a thread of its own.
struct Gate<'a> {
    counts: &'a HandshakeCounts,
    inside: Mutex<HalfOpenTable<'a, Inside<'a>>>,
    arrivals: AtomicU64,
}

/// A second descriptor of a connection, to shut it down.
struct Inside<'a> {
    connection: TcpStream,
    _ticket: HandshakeTicket<'a>,
}

/// The place of a connection in a gate, until dropped.
pub(super) struct Pass<'p, 'a> {
    gate: &'p Gate<'a>,
    arrival: u64,
}

impl<'a> Gate<'a> {
    fn new(counts: &'a HandshakeCounts) -> Self {
        let inside = Mutex::new(HalfOpenTable::new(counts, PROOFS));
        Gate { counts, inside, arrivals: AtomicU64::new(0) }
    }

    /// Admits a connection; others are shut down where there are too many, which ends their
    /// threads.
    fn enter(&self, connection: &TcpStream, from: SocketAddr) -> std::io::Result<Pass<'_, 'a>> {
        let connection = connection.try_clone()?;
        let arrival = self.arrivals.fetch_add(1, Ordering::Relaxed);
        let (key, now) = (AddressKey::of(from.ip()), clock::now());
        let ticket = self.counts.ticket(key);
        let mut inside = lock(&self.inside);
        inside.insert(arrival, key, now, Inside { connection, _ticket: ticket });
        let mut evicted: Vec<TcpStream> = Vec::new();
        evicted.extend(inside.take_over_share(now).into_iter().map(|over| over.connection));
        // The ticket of each is returned before the next one is looked for.
        while let Some(next) = inside.take_excess() {
            evicted.push(next.connection);
        }
        drop(inside);
        for connection in evicted {
            let _ = connection.shutdown(Shutdown::Both);
        }
        Ok(Pass { gate: self, arrival })
    }
}

impl Pass<'_, '_> {
    /// The reason why the connection failed: its eviction, if it was evicted.
    pub(super) fn reason(&self, error: &CopyError) -> String {
        let is_inside = lock(&self.gate.inside).get_mut(self.arrival).is_some();
        if is_inside { error.to_string() } else { EVICTED.to_owned() }
    }
}

impl Drop for Pass<'_, '_> {
    fn drop(&mut self) {
        let left = lock(&self.gate.inside).remove(self.arrival);
        drop(left);
    }
}
