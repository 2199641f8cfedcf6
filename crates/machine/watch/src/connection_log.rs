//! Every sample of every connection of a network namespace, from both of its ends if there
//! are two such logs.

use crate::track;
use host::clock;
use host::sock_diag::{Connection, SockDiag};
use record::ConnectionSample;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// The most connections: later ones are not logged.
const MAX_CONNECTIONS: usize = 1_000;

/// The most samples of all connections together, 20 MB: when there are as many, every second
/// one is dropped, and from then on only every second poll is done.
const MAX_SAMPLES: usize = 50_000;

/// The samples of the connections of one network namespace.
pub struct ConnectionLog {
    diag: SockDiag,
    /// Time zero of the samples.
    origin: Instant,
    connections: BTreeMap<u64, LoggedConnection>,
    samples: usize,
    polls: u64,
    /// One in so many polls is done.
    stride: u64,
}

/// One connection of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedConnection {
    /// Its end here.
    pub local: SocketAddr,
    /// The other one.
    pub remote: SocketAddr,
    /// The congestion control of this end.
    pub congestion: Option<String>,
    /// Oldest first.
    pub samples: Vec<ConnectionSample>,
}

impl ConnectionLog {
    /// A log of the calling thread's network namespace, whose samples have the time since
    /// `origin`.
    ///
    /// # Errors
    /// The system error: the kernel lacks sock_diag.
    pub fn open(origin: Instant) -> io::Result<Self> {
        let diag = SockDiag::open()?;
        let connections = BTreeMap::new();
        Ok(ConnectionLog { diag, origin, connections, samples: 0, polls: 0, stride: 1 })
    }

    /// Takes a sample of each connection.
    ///
    /// # Errors
    /// The system error.
    pub fn poll(&mut self) -> io::Result<()> {
        self.polls += 1;
        if !self.polls.is_multiple_of(self.stride) {
            return Ok(());
        }
        let t_s = clock::now().saturating_duration_since(self.origin).as_secs_f64();
        let (connections, samples) = (&mut self.connections, &mut self.samples);
        self.diag.connections(|found| *samples += add(connections, t_s, found))?;
        if self.samples > MAX_SAMPLES {
            self.thin();
        }
        Ok(())
    }

    /// The connections, in the order of their beginning.
    #[must_use]
    pub fn into_connections(self) -> Vec<LoggedConnection> {
        let mut all: Vec<_> = self.connections.into_values().collect();
        let began =
            |one: &LoggedConnection| one.samples.first().map_or(0.0, |first| first.sent.t_s);
        all.sort_by(|a, b| began(a).total_cmp(&began(b)));
        all
    }

    fn thin(&mut self) {
        self.stride *= 2;
        for connection in self.connections.values_mut() {
            let mut keep = false;
            connection.samples.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.samples = self.connections.values().map(|one| one.samples.len()).sum();
    }
}

/// The number of samples added: none of a connection that the kernel has yet to establish,
/// which has no `TCP_INFO`.
fn add(
    connections: &mut BTreeMap<u64, LoggedConnection>,
    t_s: f64,
    found: &Connection<'_>,
) -> usize {
    if found.info.is_none() {
        return 0;
    }
    if connections.len() >= MAX_CONNECTIONS && !connections.contains_key(&found.cookie) {
        return 0;
    }
    let known = connections.entry(found.cookie).or_insert_with(|| LoggedConnection {
        local: found.local,
        remote: found.remote,
        congestion: found.congestion.map(str::to_owned),
        samples: Vec::new(),
    });
    // A dump may have a connection twice.
    if known.samples.last().is_some_and(|last| last.sent.t_s >= t_s) {
        return 0;
    }
    known.samples.push(track::sample(t_s, found));
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::stream_of_both_ends;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_make_one_stream() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let mut log = ConnectionLog::open(clock::now()).unwrap();
        for _ in 0..4 {
            log.poll().unwrap();
            near.write_all(&[7; 10_000]).unwrap();
            far.read_exact(&mut [0; 10_000]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let (local, remote) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
        let all = log.into_connections();
        let end = |local, remote| {
            let found = all.iter().find(|one| (one.local, one.remote) == (local, remote));
            found.unwrap().samples.as_slice()
        };
        let (sender, receiver) = (end(local, remote), end(remote, local));
        let stream = stream_of_both_ends(sender, receiver).unwrap();
        // The last 10 000 bytes came after the last poll.
        assert_eq!((stream.received_bytes, stream.receiver.len()), (30_000, 4));
        assert!(stream.watched && stream.sent_bytes <= 30_000 && stream.received_seconds > 0.0);
        // The other direction has nothing.
        assert!(stream_of_both_ends(receiver, sender).is_none());
    }

    #[test]
    fn a_full_log_keeps_every_second_sample() {
        let mut log = ConnectionLog::open(clock::now()).unwrap();
        let samples = (0..9).map(|number| {
            let mut sample = ConnectionSample::default();
            sample.sent.t_s = f64::from(number);
            sample
        });
        let end = "127.0.0.1:1".parse().unwrap();
        let samples = samples.collect();
        let one = LoggedConnection { local: end, remote: end, congestion: None, samples };
        log.connections.insert(1, one);
        log.thin();
        let times: Vec<f64> = log.connections[&1].samples.iter().map(|one| one.sent.t_s).collect();
        assert_eq!((times, log.samples, log.stride), (vec![0.0, 2.0, 4.0, 6.0, 8.0], 5, 2));
    }
}
