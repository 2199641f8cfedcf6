//! TCP connects: a SYN is answered by the host whether or not anybody listens.

use crate::icmp;
use crate::prober::{Aim, Heard, Prober, What};
use host::tcp_info::TcpInfo;
use host::wait::Poller;
use host::{clock, stamps};
use socket2::{Protocol, Socket, Type};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// The kernel sends a SYN again after a second (RFC 6298, section 2.1); an
/// answer after that would be to either.
pub(crate) const PATIENCE: Duration = Duration::from_millis(990);

/// Connections to one port, each begun by a probe.
#[derive(Debug)]
pub(crate) struct Connects {
    aim: Aim,
    open: HashMap<u16, (Socket, Instant)>,
    poller: Poller,
    ready: Vec<usize>,
    /// What was answered before `send` returned, as on the loopback.
    at_once: Vec<Heard>,
}

impl Connects {
    pub(crate) fn new(aim: Aim) -> io::Result<Self> {
        let (open, ready, at_once) = (HashMap::new(), Vec::new(), Vec::new());
        Ok(Connects { aim, open, poller: Poller::new()?, ready, at_once })
    }

    /// What became of a connection that is ready.
    fn outcome(&self, seq: u16, socket: &Socket, sent: Instant) -> io::Result<Heard> {
        let is_v6 = self.aim.is_v6();
        let (now, host) = (clock::now(), Some(self.aim.to.ip()));
        let mut buffer = [0; 128];
        // The kernel leaves the router's word since Linux 5.9.
        let said = stamps::take_error(socket, &mut buffer)?;
        if let Some((received, error)) = said.and_then(|said| said.error.map(|error| (said, error)))
        {
            let what = if icmp::is_expired(&error, is_v6) {
                What::Expired
            } else {
                What::Unreached(icmp::meaning(&error, is_v6))
            };
            let at = now - received.waited;
            return Ok(Heard { seq, what, from: error.by, ttl: received.ttl, bytes: 0, at });
        }
        let (what, from, at) = match socket.take_error()? {
            None => {
                // The kernel took the handshake's time; it counts from one microsecond.
                let rtt = TcpInfo::of(socket).map_or(0, |info| info.rtt_us);
                let rtt = Duration::from_micros(rtt.into());
                let told = !rtt.is_zero() && rtt <= now - sent;
                (What::Reply, host, if told { sent + rtt } else { now })
            }
            Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                (What::Closed, host, now)
            }
            Some(error) => (What::Unreached(error.to_string()), None, now),
        };
        Ok(Heard { seq, what, from, ttl: None, bytes: 0, at })
    }
}

impl Prober for Connects {
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant> {
        let socket = self.aim.socket(Type::STREAM, Protocol::TCP)?;
        if let Some(hops) = hops {
            self.aim.set_hops(&socket, hops)?;
        }
        let at = clock::now();
        match stamps::begin_connect(&socket, self.aim.to) {
            Ok(()) => {
                self.poller.add_connecting(&socket, seq.into())?;
                self.open.insert(seq, (socket, at));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let (from, now) = (Some(self.aim.to.ip()), clock::now());
                let what = What::Closed;
                self.at_once.push(Heard { seq, what, from, ttl: None, bytes: 0, at: now });
            }
            Err(error) => return Err(error),
        }
        Ok(at)
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = if self.at_once.is_empty() { timeout } else { Duration::ZERO };
        self.poller.wait(Some(timeout), &mut self.ready)
    }

    fn hear(&mut self, heard: &mut Vec<Heard>) -> io::Result<()> {
        heard.append(&mut self.at_once);
        for token in std::mem::take(&mut self.ready) {
            let Ok(seq) = u16::try_from(token) else { continue };
            if let Some((socket, sent)) = self.open.remove(&seq) {
                heard.push(self.outcome(seq, &socket, sent)?);
            }
        }
        let now = clock::now();
        self.open.retain(|_, (_, sent)| now.saturating_duration_since(*sent) < PATIENCE);
        Ok(())
    }
}
