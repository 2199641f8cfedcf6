//! UDP to a port where nobody should listen: routers and the host itself
//! answer with ICMP errors, which need no privilege to hear.

use crate::icmp;
use crate::prober::{Aim, Heard, Prober, What, is_news, twice};
use host::wait::Poller;
use host::{clock, stamps};
use socket2::{Protocol, Socket, Type};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// Times that a probe's payload says its number: 32 bytes.
const TIMES: usize = 16;

/// One socket for each number of hops. Each keeps its ports, so that a router
/// that spreads flows over several ways sends all its probes the same one.
#[derive(Debug)]
pub(crate) struct Datagrams {
    aim: Aim,
    /// By hops; with the number of the latest probe.
    sockets: HashMap<u8, (Socket, u16)>,
    poller: Poller,
    ready: Vec<usize>,
}

impl Datagrams {
    pub(crate) fn new(aim: Aim) -> io::Result<Self> {
        let (sockets, ready) = (HashMap::new(), Vec::new());
        Ok(Datagrams { aim, sockets, poller: Poller::new()?, ready })
    }
}

/// The number that a quoted payload says. Routers need not quote any of it
/// (RFC 792).
fn number(payload: &[u8]) -> Option<u16> {
    let mut words = payload.chunks_exact(2);
    let first = words.next().filter(|_| payload.len() >= 4)?;
    words.all(|word| word == first).then(|| u16::from_be_bytes([first[0], first[1]]))
}

impl Prober for Datagrams {
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant> {
        // Zero stands for as many as the system gives.
        let key = hops.unwrap_or(0);
        if !self.sockets.contains_key(&key) {
            let socket = self.aim.socket(Type::DGRAM, Protocol::UDP)?;
            if let Some(hops) = hops {
                self.aim.set_hops(&socket, hops)?;
            }
            socket.connect(&self.aim.to.into())?;
            self.poller.add(&socket, key.into())?;
            self.sockets.insert(key, (socket, seq));
        }
        let Some((socket, latest)) = self.sockets.get_mut(&key) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        *latest = seq;
        let payload = seq.to_be_bytes().repeat(TIMES);
        twice(|| {
            let at = clock::now();
            socket.send(&payload).map(|_| at)
        })
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        self.poller.wait(Some(timeout), &mut self.ready)
    }

    fn hear(&mut self, heard: &mut Vec<Heard>) -> io::Result<()> {
        let is_v6 = self.aim.is_v6();
        let mut buffer = [0; 2048];
        for token in std::mem::take(&mut self.ready) {
            let key = u8::try_from(token).unwrap_or_default();
            let Some((socket, latest)) = self.sockets.get(&key) else { continue };
            while let Some(received) = stamps::take_error(socket, &mut buffer)? {
                let at = clock::now() - received.waited;
                let Some(error) = received.error else { continue };
                let payload = buffer.get(..received.length).unwrap_or_default();
                let what = if icmp::is_expired(&error, is_v6) {
                    What::Expired
                } else if icmp::is_closed_port(&error, is_v6) && error.by == Some(self.aim.to.ip())
                {
                    What::Closed
                } else {
                    What::Unreached(icmp::meaning(&error, is_v6))
                };
                let (seq, ttl) = (number(payload).unwrap_or(*latest), received.ttl);
                heard.push(Heard { seq, what, from: error.by, ttl, bytes: received.length, at });
            }
            loop {
                let received = match stamps::take(socket, &mut buffer) {
                    Ok(Some(received)) => received,
                    Ok(None) => break,
                    Err(error) if is_news(&error) => continue,
                    Err(error) => return Err(error),
                };
                // Somebody listens after all, and answers in a way of its own.
                heard.push(Heard {
                    seq: *latest,
                    what: What::Reply,
                    from: Some(self.aim.to.ip()),
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
    fn a_quote_tells_its_number_only_where_it_says_it_throughout() {
        assert_eq!(number(&0x1234u16.to_be_bytes().repeat(TIMES)), Some(0x1234));
        assert_eq!(number(&[1, 2, 1, 2, 1]), Some(0x0102));
        for unclear in [&[][..], &[1, 2], &[1, 2, 1], &[1, 2, 1, 3], &[1, 2, 1, 2, 9, 9]] {
            assert_eq!(number(unclear), None, "{unclear:?}");
        }
    }
}
