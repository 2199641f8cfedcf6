//! Probes by UDP datagrams to a port that should be closed: routers and the host reply
//! with ICMP errors, which can be received without privilege.

use crate::icmp;
use crate::prober::{Outcome, Prober, Response, Target, is_icmp_error, send_with_retry};
use host::wait::Poller;
use host::{clock, recvmsg};
use socket2::{Protocol, Socket, Type};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// How often the payload repeats the sequence number: 32 bytes in all.
const REPEATS: usize = 16;

/// One socket for each TTL. Its ports stay the same, so that ECMP routers forward all
/// its probes on the same path.
#[derive(Debug)]
pub(crate) struct UdpProber {
    target: Target,
    /// By TTL; with the sequence number of the latest probe.
    sockets: HashMap<u8, (Socket, u16)>,
    poller: Poller,
    ready: Vec<usize>,
}

impl UdpProber {
    pub(crate) fn new(target: Target) -> io::Result<Self> {
        let (sockets, ready) = (HashMap::new(), Vec::new());
        Ok(UdpProber { target, sockets, poller: Poller::new()?, ready })
    }
}

/// The sequence number in a quoted payload, which routers may truncate (RFC 792).
fn sequence_number(payload: &[u8]) -> Option<u16> {
    let mut words = payload.chunks_exact(2);
    let first = words.next().filter(|_| payload.len() >= 4)?;
    words.all(|word| word == first).then(|| u16::from_be_bytes([first[0], first[1]]))
}

impl Prober for UdpProber {
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant> {
        // Zero stands for the system's default TTL.
        let key = hops.unwrap_or(0);
        if !self.sockets.contains_key(&key) {
            let socket = self.target.socket(Type::DGRAM, Protocol::UDP)?;
            if let Some(hops) = hops {
                self.target.set_hops(&socket, hops)?;
            }
            socket.connect(&self.target.to.into())?;
            self.poller.add(&socket, key.into())?;
            self.sockets.insert(key, (socket, seq));
        }
        let Some((socket, latest)) = self.sockets.get_mut(&key) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        *latest = seq;
        let payload = seq.to_be_bytes().repeat(REPEATS);
        send_with_retry(|| {
            let at = clock::now();
            socket.send(&payload).map(|_| at)
        })
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        self.poller.wait(Some(timeout), &mut self.ready)
    }

    fn receive(&mut self, responses: &mut Vec<Response>) -> io::Result<()> {
        let is_v6 = self.target.is_v6();
        let mut buffer = [0; 2048];
        for token in std::mem::take(&mut self.ready) {
            let key = u8::try_from(token).unwrap_or_default();
            let Some((socket, latest)) = self.sockets.get(&key) else { continue };
            while let Some(received) = recvmsg::take_error(socket, &mut buffer)? {
                let at = clock::now() - received.waited;
                let Some(error) = received.error else { continue };
                let payload = buffer.get(..received.length).unwrap_or_default();
                let outcome = if icmp::is_expired(&error, is_v6) {
                    Outcome::Expired
                } else if icmp::is_closed_port(&error, is_v6)
                    && error.by == Some(self.target.to.ip())
                {
                    Outcome::Closed
                } else {
                    Outcome::Unreachable(icmp::describe(&error, is_v6))
                };
                let (seq, ttl) = (sequence_number(payload).unwrap_or(*latest), received.ttl);
                responses.push(Response {
                    seq,
                    outcome,
                    from: error.by,
                    ttl,
                    bytes: received.length,
                    at,
                });
            }
            loop {
                let received = match recvmsg::take(socket, &mut buffer) {
                    Ok(Some(received)) => received,
                    Ok(None) => break,
                    Err(error) if is_icmp_error(&error) => continue,
                    Err(error) => return Err(error),
                };
                // The port is open, and the application replied.
                responses.push(Response {
                    seq: *latest,
                    outcome: Outcome::Reply,
                    from: Some(self.target.to.ip()),
                    ttl: received.ttl,
                    bytes: received.length,
                    at: clock::now() - received.waited,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_must_be_consistent() {
        assert_eq!(sequence_number(&0x1234u16.to_be_bytes().repeat(REPEATS)), Some(0x1234));
        assert_eq!(sequence_number(&[1, 2, 1, 2, 1]), Some(0x0102));
        for inconsistent in [&[][..], &[1, 2], &[1, 2, 1], &[1, 2, 1, 3], &[1, 2, 1, 2, 9, 9]] {
            assert_eq!(sequence_number(inconsistent), None, "{inconsistent:?}");
        }
    }
}
