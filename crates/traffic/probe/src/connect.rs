//! Probes by TCP connections: a host replies to a SYN whether or not the port is open.

use crate::icmp;
use crate::prober::{Outcome, Prober, Response, Target};
use host::tcp_info::TcpInfo;
use host::wait::Poller;
use host::{clock, recvmsg};
use socket2::{Protocol, Socket, Type};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// Maximum timeout. The kernel retransmits a SYN after a second (RFC 6298, section
/// 2.1); a later reply could be to either.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_millis(990);

/// Opens one connection per probe to one port.
#[derive(Debug)]
pub(crate) struct ConnectProber {
    target: Target,
    open: HashMap<u16, (Socket, Instant)>,
    poller: Poller,
    ready: Vec<usize>,
    /// Replies that came before `send` returned, as on loopback.
    immediate: Vec<Response>,
}

impl ConnectProber {
    pub(crate) fn new(target: Target) -> io::Result<Self> {
        let (open, ready, immediate) = (HashMap::new(), Vec::new(), Vec::new());
        Ok(ConnectProber { target, open, poller: Poller::new()?, ready, immediate })
    }

    /// The outcome of a connection attempt.
    fn outcome(&self, seq: u16, socket: &Socket, sent: Instant) -> io::Result<Response> {
        let is_v6 = self.target.is_v6();
        let (now, host) = (clock::now(), Some(self.target.to.ip()));
        let mut buffer = [0; 128];
        // The error queue has the ICMP error since Linux 5.9.
        let queued = recvmsg::take_error(socket, &mut buffer)?;
        if let Some((received, error)) =
            queued.and_then(|received| received.error.map(|error| (received, error)))
        {
            let outcome = if icmp::is_expired(&error, is_v6) {
                Outcome::Expired
            } else {
                Outcome::Unreachable(icmp::describe(&error, is_v6))
            };
            let at = now - received.waited;
            return Ok(Response { seq, outcome, from: error.by, ttl: received.ttl, bytes: 0, at });
        }
        let (outcome, from, at) = match socket.take_error()? {
            None => {
                // TCP_INFO has the RTT of the handshake; 0 means none.
                let rtt = TcpInfo::of(socket).map_or(0, |info| info.rtt_us);
                let rtt = Duration::from_micros(rtt.into());
                let is_valid = !rtt.is_zero() && rtt <= now - sent;
                (Outcome::Reply, host, if is_valid { sent + rtt } else { now })
            }
            Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                (Outcome::Closed, host, now)
            }
            Some(error) => (Outcome::Unreachable(error.to_string()), None, now),
        };
        Ok(Response { seq, outcome, from, ttl: None, bytes: 0, at })
    }
}

impl Prober for ConnectProber {
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant> {
        let socket = self.target.socket(Type::STREAM, Protocol::TCP)?;
        if let Some(hops) = hops {
            self.target.set_hops(&socket, hops)?;
        }
        let at = clock::now();
        match recvmsg::begin_connect(&socket, self.target.to) {
            Ok(()) => {
                self.poller.add_for_writing(&socket, seq.into())?;
                self.open.insert(seq, (socket, at));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let (from, now) = (Some(self.target.to.ip()), clock::now());
                let outcome = Outcome::Closed;
                self.immediate.push(Response { seq, outcome, from, ttl: None, bytes: 0, at: now });
            }
            Err(error) => return Err(error),
        }
        Ok(at)
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = if self.immediate.is_empty() { timeout } else { Duration::ZERO };
        self.poller.wait(Some(timeout), &mut self.ready)
    }

    fn receive(&mut self, responses: &mut Vec<Response>) -> io::Result<()> {
        responses.append(&mut self.immediate);
        for token in std::mem::take(&mut self.ready) {
            let Ok(seq) = u16::try_from(token) else { continue };
            if let Some((socket, sent)) = self.open.remove(&seq) {
                responses.push(self.outcome(seq, &socket, sent)?);
            }
        }
        let now = clock::now();
        self.open.retain(|_, (_, sent)| now.saturating_duration_since(*sent) < MAX_TIMEOUT);
        Ok(())
    }
}
