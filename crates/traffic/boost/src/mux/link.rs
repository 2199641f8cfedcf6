//! One connection of a session.

use crate::address_share::ShareTicket;
use crate::keys::KeyId;
use crate::lane_socket::LaneSocket;
use host::edge_poller::Edge;
use mux::ChunkReader;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Timeout of a connection until both ends have greeted.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of signs of life, and the silence after which a connection is given up.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(10);
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_secs(25);

/// A connection, and what has come of its greeting.
pub(crate) struct Link {
    pub(super) socket: LaneSocket,
    pub(super) peer: SocketAddr,
    /// Far: the key that near has proved.
    pub(super) key: Option<KeyId>,
    /// Far: counts it for near's address.
    pub(super) share: Option<ShareTicket>,
    /// Far: both boxes offer to compress on it.
    pub(super) compresses: bool,
    /// The session that it carries.
    pub(super) session: Option<usize>,
    /// Near: it is to carry its session beside others.
    pub(super) is_additional: bool,
    /// What it carries of the session.
    pub(super) chunks: ChunkReader,
    greeting: Vec<u8>,
    /// Bytes of the peer's greeting.
    wanted: usize,
    has_failed: bool,
    pub(super) since: Instant,
    /// Time until its greeting.
    pub(super) timeout: Duration,
    pub(super) last_heard: Instant,
    pub(super) last_keepalive: Instant,
    /// It is closed once what is queued was sent.
    pub(super) ends: bool,
    /// The other end of its socket is a thread with a UDT connection.
    is_udt: bool,
    /// The least RTT of the connection that has greeted, where that was another one.
    greeted_rtt: Option<Duration>,
}

impl Link {
    /// A connection that sends this greeting, and whose peer sends one of so many bytes.
    pub(super) fn new(
        mut socket: LaneSocket,
        peer: SocketAddr,
        greeting: &[u8],
        wanted: usize,
        now: Instant,
    ) -> Self {
        socket.queue().extend_from_slice(greeting);
        Link {
            socket,
            peer,
            key: None,
            share: None,
            compresses: false,
            session: None,
            is_additional: false,
            chunks: ChunkReader::default(),
            greeting: Vec::new(),
            wanted,
            has_failed: false,
            since: now,
            timeout: GREETING_TIMEOUT,
            last_heard: now,
            last_keepalive: now,
            ends: false,
            is_udt: false,
            greeted_rtt: None,
        }
    }

    /// One of a session, for which another connection has greeted.
    pub(super) fn carrying(socket: LaneSocket, greeted: &mut Link, now: Instant) -> Self {
        let share = greeted.share.take();
        Link {
            key: greeted.key,
            share,
            is_udt: true,
            greeted_rtt: greeted.socket.min_rtt(),
            ..Link::new(socket, greeted.peer, &[], 0, now)
        }
    }

    /// The least RTT to the other box.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.socket.min_rtt().or(self.greeted_rtt)
    }

    /// True if UDT carries it and nothing has arrived.
    pub(super) fn is_silent_udt(&self) -> bool {
        self.is_udt && self.last_heard == self.since
    }

    pub(super) const fn is_greeted(&self) -> bool {
        self.wanted == 0
    }

    pub(super) fn note(&mut self, edge: Edge) {
        self.socket.note(edge);
        self.has_failed |= edge.failed;
    }

    /// Sends what is queued, and reads the greeting: the whole of it, once.
    ///
    /// # Errors
    /// The reason that the connection is of no use.
    pub(super) fn greet(&mut self, now: Instant) -> Result<Option<Vec<u8>>, String> {
        self.check()?;
        self.socket.is_connected |= self.socket.is_writable();
        self.socket.flush().map_err(|error| error.to_string())?;
        while self.socket.readable && self.socket.is_connected && !self.is_greeted() {
            let mut buffer = [0; 64];
            let missing = self.wanted - self.greeting.len();
            let part = buffer.split_at_mut(missing.min(64)).0;
            match self.socket.read(part).map_err(|error| error.to_string())? {
                None => break,
                Some(0) => {
                    return Err("it closed the connection; its log has the reason".to_owned());
                }
                Some(count) => {
                    self.last_heard = now;
                    self.greeting.extend_from_slice(part.get(..count).unwrap_or_default());
                }
            }
            if self.greeting.len() >= self.wanted {
                self.wanted = 0;
                return Ok(Some(std::mem::take(&mut self.greeting)));
            }
        }
        Ok(None)
    }

    /// # Errors
    /// The connection was reset, or refused.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.has_failed {
            return Ok(());
        }
        let error = crate::sockets::connect_error(&self.socket.stream);
        Err(error.map_or_else(|| "the connection was reset".to_owned(), |error| error.to_string()))
    }

    /// Why it is to be given up.
    pub(super) fn overdue(&self, now: Instant) -> Option<&'static str> {
        let passed = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        if !self.is_greeted() || self.ends {
            return passed(self.since, self.timeout).then_some("it did not answer in time");
        }
        passed(self.last_heard, SILENCE_TIMEOUT).then_some("the other box does not answer")
    }
}
