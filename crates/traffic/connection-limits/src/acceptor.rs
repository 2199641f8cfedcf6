//! Accepts connections and reads their handshakes: one thread, and no call that blocks.

use crate::half_open::{HalfOpenLimits, HalfOpenTable, HandshakeCounts, HandshakeTicket};
use host::{address_key::AddressKey, clock, wait::Poller};
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

/// Pause in accepting when descriptors or memory are exhausted.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which handshakes are advanced that wait for something else than their peer.
const WAITING_POLL: Duration = Duration::from_millis(2);
/// Connections accepted before open ones are read again.
const ACCEPT_BATCH: usize = 32;
/// The listener's token; those of connections are numbered from 1 by arrival.
const LISTENER: usize = 0;

/// A handshake that is being read from a non-blocking connection.
pub trait Handshake {
    /// The result of the handshake.
    type Outcome;

    /// The connection.
    fn connection(&self) -> &TcpStream;

    /// Reads what is available, without blocking; `None` while the handshake is incomplete.
    fn advance(&mut self) -> Option<Self::Outcome>;

    /// True while it waits for something else than its peer: it is then advanced although
    /// nothing arrives.
    fn is_waiting(&self) -> bool {
        false
    }
}

/// The end of a handshake at the acceptor.
#[derive(Debug)]
pub enum Ended<H: Handshake> {
    /// It is complete; connections are numbered in order of arrival, from 1.
    Complete(u64, H, H::Outcome),
    /// The timeout of the handshake has passed.
    TimedOut(H),
    /// There were too many, and its address had the most.
    Evicted(H),
}

/// Creates the handshake of a connection, which holds the ticket.
type Begin<'a, H> = dyn Fn(TcpStream, SocketAddr, HandshakeTicket<'a>) -> H + 'a;

/// A listener with the handshakes of its connections.
pub struct Acceptor<'a, H> {
    listener: &'a TcpListener,
    poller: Poller,
    counts: &'a HandshakeCounts,
    table: HalfOpenTable<'a, H>,
    begin: Box<Begin<'a, H>>,
    arrivals: u64,
    /// Accepting resumes then; the listener is not polled until.
    paused_until: Option<Instant>,
}

impl<'a, H: Handshake> Acceptor<'a, H> {
    /// Accepts from a non-blocking listener. `begin` gets a connection, its peer (an
    /// IPv4-mapped address as IPv4) and the ticket that counts its handshake.
    ///
    /// # Errors
    /// The system error if descriptors have run out.
    pub fn new(
        listener: &'a TcpListener,
        counts: &'a HandshakeCounts,
        limits: HalfOpenLimits,
        begin: impl Fn(TcpStream, SocketAddr, HandshakeTicket<'a>) -> H + 'a,
    ) -> io::Result<Self> {
        let mut poller = Poller::new()?;
        poller.add(listener, LISTENER)?;
        let table = HalfOpenTable::new(counts, limits);
        let begin = Box::new(begin);
        Ok(Acceptor { listener, poller, counts, table, begin, arrivals: 0, paused_until: None })
    }

    /// Waits for connections and their data, at most `longest`, and reads them. `ended` gets
    /// every handshake that has ended.
    ///
    /// # Errors
    /// The system error of waiting.
    pub fn step(&mut self, longest: Duration, ended: &mut dyn FnMut(Ended<H>)) -> io::Result<()> {
        let is_acceptable = self.read_ready(self.timeout(longest), ended)?;
        self.advance_waiting(ended);
        self.close_overdue(ended);
        if is_acceptable {
            self.accept_batch(ended);
        }
        Ok(())
    }

    fn timeout(&self, longest: Duration) -> Duration {
        let now = clock::now();
        let due = [self.table.next_expiry(), self.paused_until].into_iter().flatten().min();
        let until_due = due.map_or(longest, |due| due.saturating_duration_since(now));
        let is_waiting = self.table.iter().any(|(_, handshake)| handshake.is_waiting());
        until_due.min(if is_waiting { WAITING_POLL } else { longest })
    }

    /// Reads from every readable connection; whether there are connections to accept.
    fn read_ready(
        &mut self,
        timeout: Duration,
        ended: &mut dyn FnMut(Ended<H>),
    ) -> io::Result<bool> {
        let mut ready = Vec::new();
        self.poller.wait(Some(timeout), &mut ready)?;
        let mut is_acceptable = false;
        for token in ready {
            if token == LISTENER {
                is_acceptable = true;
            } else if let Ok(arrival) = u64::try_from(token) {
                self.advance(arrival, ended);
            }
        }
        Ok(is_acceptable)
    }

    fn advance_waiting(&mut self, ended: &mut dyn FnMut(Ended<H>)) {
        let waiting = self.table.iter().filter(|(_, handshake)| handshake.is_waiting());
        let waiting: Vec<u64> = waiting.map(|(arrival, _)| arrival).collect();
        for arrival in waiting {
            self.advance(arrival, ended);
        }
    }

    fn advance(&mut self, arrival: u64, ended: &mut dyn FnMut(Ended<H>)) {
        let Some(handshake) = self.table.get_mut(arrival) else { return };
        let was_waiting = handshake.is_waiting();
        let outcome = handshake.advance();
        if outcome.is_some() || handshake.is_waiting() != was_waiting {
            // The descriptor stays open in a session and would be reported forever, as data
            // would that a waiting handshake does not read.
            let _ = self.poller.remove(handshake.connection());
        }
        let Some(outcome) = outcome else { return };
        if let Some(handshake) = self.table.remove(arrival) {
            ended(Ended::Complete(arrival, handshake, outcome));
        }
    }

    fn close_overdue(&mut self, ended: &mut dyn FnMut(Ended<H>)) {
        let now = clock::now();
        if self.paused_until.is_some_and(|until| now >= until) {
            let has_resumed = self.poller.add(self.listener, LISTENER).is_ok();
            self.paused_until = (!has_resumed).then(|| now + EXHAUSTED_PAUSE);
        }
        for expired in self.table.take_expired(now) {
            ended(Ended::TimedOut(expired));
        }
        for excess in self.table.take_over_share(now) {
            ended(Ended::Evicted(excess));
        }
    }

    fn accept_batch(&mut self, ended: &mut dyn FnMut(Ended<H>)) {
        for _ in 0..ACCEPT_BATCH {
            match self.listener.accept() {
                Ok((connection, peer)) => {
                    let peer = host::address::canonical(peer);
                    self.receive(connection, peer, ended);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if host::socket::is_exhausted(&error) => {
                    // A closed connection frees a descriptor.
                    if let Some(evicted) = self.table.take_from_busiest() {
                        ended(Ended::Evicted(evicted));
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

    fn receive(
        &mut self,
        connection: TcpStream,
        peer: SocketAddr,
        ended: &mut dyn FnMut(Ended<H>),
    ) {
        if connection.set_nonblocking(true).is_err() {
            return;
        }
        self.arrivals += 1;
        let (arrival, now) = (self.arrivals, clock::now());
        let key = AddressKey::of(peer.ip());
        let mut handshake = (self.begin)(connection, peer, self.counts.ticket(key));
        // Most handshakes arrive with the connection: these never enter the table.
        if let Some(outcome) = handshake.advance() {
            return ended(Ended::Complete(arrival, handshake, outcome));
        }
        self.make_room(ended);
        let token = usize::try_from(arrival).unwrap_or(usize::MAX);
        if handshake.is_waiting() || self.poller.add(handshake.connection(), token).is_ok() {
            self.table.insert(arrival, key, now, handshake);
        }
    }

    /// Closes half-open connections until the latest one fits.
    fn make_room(&mut self, ended: &mut dyn FnMut(Ended<H>)) {
        if self.counts.total() <= self.table.limits().all {
            return;
        }
        // Completed handshakes leave the table first.
        let _ = self.read_ready(Duration::ZERO, ended);
        while let Some(evicted) = self.table.take_excess() {
            ended(Ended::Evicted(evicted));
        }
    }
}
