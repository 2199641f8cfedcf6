//! Two ends and the path between them.

use control::{Algorithm, UdtRules};
use link::{Limit, Link, LinkConfig, Queue, Rate, Train};
use std::time::Duration;
use udt::{Config, Connection, HEADER_BYTES, Incoming, Listener, Packet, PeerAddress, Sequence};
use units::{BitRate, ByteCount, Nanos};

pub(crate) const PAYLOAD: u64 = 1_456;
pub(crate) const CLIENT: PeerAddress = PeerAddress { address: [1; 16], port: 7_000, zone: 0 };
pub(crate) const NATIVE: Algorithm = Algorithm::Udt(UdtRules::Udt);

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Pseudo-random bytes that a position determines.
pub(crate) fn pattern(from: u64, length: usize) -> Vec<u8> {
    (from..from + length as u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Both directions with that RTT, without a bottleneck.
pub(crate) fn unlimited(rtt_ms: u64) -> [LinkConfig; 2] {
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(1 << 40)));
    let link = LinkConfig::new(Rate::Unlimited, Duration::from_micros(rtt_ms * 500), queue);
    [link.clone(), link]
}

/// A bottleneck forward, with a drop-tail queue of `bdp` times the BDP.
pub(crate) fn bottleneck(mbit: u64, rtt_ms: u64, bdp: f64) -> [LinkConfig; 2] {
    let rate = BitRate::from_bps(mbit * 1_000_000);
    let product = rate.bytes_in(ms(rtt_ms)).bytes() as f64;
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes((product * bdp) as u64)));
    let [_, reverse] = unlimited(rtt_ms);
    [LinkConfig::new(Rate::Constant(rate), reverse.delay, queue), reverse]
}

pub(crate) fn config(id: u32, algorithm: Algorithm) -> Config {
    Config { seed: 1, ..Config::new(id, Sequence::new(77), algorithm) }
}

/// A client, a server, and what the path does to their datagrams.
pub(crate) struct Path {
    pub(crate) now: Nanos,
    pub(crate) client: Connection,
    pub(crate) server: Option<Connection>,
    pub(crate) listener: Listener,
    pub(crate) accepts: Config,
    forward: Link<Vec<u8>>,
    reverse: Link<Vec<u8>>,
    /// Datagrams that the client has sent.
    pub(crate) sent: u64,
}

impl Path {
    pub(crate) fn new([forward, reverse]: [LinkConfig; 2], ours: Config, accepts: Config) -> Self {
        Path {
            now: Nanos(0),
            client: Connection::client(Nanos(0), ours),
            server: None,
            listener: Listener::new([9; 32], 4),
            accepts,
            forward: Link::new(forward),
            reverse: Link::new(reverse),
            sent: 0,
        }
    }

    /// An established connection.
    pub(crate) fn established(links: [LinkConfig; 2], ours: Config) -> Self {
        let accepts = Config { socket_id: 2, ..ours };
        let mut path = Path::new(links, ours, accepts);
        path.run_until(|path| path.client.is_established() && path.server.is_some());
        path
    }

    pub(crate) fn server(&mut self) -> &mut Connection {
        self.server.as_mut().unwrap()
    }

    /// Lets time pass until `done`, at most ten minutes.
    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut Path) -> bool) {
        while !done(self) {
            assert!(self.now.0 < 600_000_000_000, "not done after ten minutes");
            self.step(None);
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration, mut each: impl FnMut(&mut Path)) {
        let end = self.now.plus(time);
        while self.now < end {
            each(self);
            self.step(Some(end));
        }
    }

    fn step(&mut self, end: Option<Nanos>) {
        self.transmit();
        let next = [
            self.forward.next_due(),
            self.reverse.next_due(),
            self.client.next_timeout(),
            self.server.as_ref().and_then(Connection::next_timeout),
            end,
        ];
        let next = next.into_iter().flatten().min().unwrap();
        self.now = self.now.max(next);
        self.deliver();
        self.client.on_timeout(self.now);
        if let Some(server) = &mut self.server {
            server.on_timeout(self.now);
        }
    }

    fn transmit(&mut self) {
        let mut out = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(self.now, 64, &mut out) {
            for datagram in out.chunks(transmit.packet_bytes) {
                self.sent += 1;
                self.forward.arrive(self.now, train(datagram), datagram.to_vec());
            }
        }
        let Some(server) = &mut self.server else { return };
        while let Some(transmit) = server.poll_transmit(self.now, 64, &mut out) {
            for datagram in out.chunks(transmit.packet_bytes) {
                self.reverse.arrive(self.now, train(datagram), datagram.to_vec());
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.forward.release(self.now) {
            // The checksum of a corrupted one does not hold.
            if delivery.flip.is_none() {
                self.arrive_at_server(&delivery.payload);
            }
        }
        while let Some(delivery) = self.reverse.release(self.now) {
            if delivery.flip.is_none() {
                self.client.receive(self.now, self.now, [&delivery.payload[..]]);
            }
        }
    }

    /// A datagram arrives at the server's socket.
    pub(crate) fn arrive_at_server(&mut self, datagram: &[u8]) {
        let handshake = match Packet::parse(datagram) {
            Ok(Packet::Control(header, udt::Control::Handshake(handshake)))
                if header.destination == 0 =>
            {
                handshake
            }
            _ => {
                if let Some(server) = &mut self.server {
                    server.receive(self.now, self.now, [datagram]);
                }
                return;
            }
        };
        let incoming = self.listener.on_handshake(self.now, &CLIENT, &handshake, &self.accepts);
        let answer = match incoming {
            Incoming::Ignore => return,
            Incoming::Reply(answer) => answer,
            Incoming::Accept(answer, connection) => {
                self.server = Some(*connection);
                answer
            }
        };
        assert!(answer.len() <= datagram.len(), "no amplification");
        self.reverse.arrive(self.now, train(&answer), answer);
    }

    /// Sends `total` bytes of the pattern and checks each that arrives; gives the time, s.
    pub(crate) fn transfer(&mut self, total: u64) -> f64 {
        let (start, mut written, mut received) = (self.now, 0, 0);
        let mut buffer = vec![0; 1 << 16];
        self.run_until(|path| {
            while written < total {
                let more = pattern(written, (total - written).min(1 << 14) as usize);
                let count = path.client.write(&more);
                written += count as u64;
                if count < more.len() {
                    break;
                }
            }
            loop {
                let count = path.server().read(&mut buffer);
                if count == 0 {
                    break;
                }
                assert!(buffer[..count] == pattern(received, count), "at byte {received}");
                received += count as u64;
            }
            received == total
        });
        self.now.nanos_since(start) as f64 / 1e9
    }

    /// Sends as fast as the connection allows for that time; gives the rate of arrivals in
    /// packets a second.
    pub(crate) fn saturate(&mut self, time: Duration) -> f64 {
        let zeros = vec![0; 1 << 16];
        let mut bytes = 0;
        self.run_for(time, |path| {
            while path.client.write(&zeros) == zeros.len() {}
            bytes += path.server().discard();
        });
        bytes as f64 / PAYLOAD as f64 / time.as_secs_f64()
    }
}

fn train(datagram: &[u8]) -> Train {
    // IPv4 and UDP.
    Train::single(28 + datagram.len() as u32)
}

pub(crate) const fn bytes_of(packets: u64) -> u64 {
    packets * PAYLOAD
}

pub(crate) const fn wire_bytes() -> usize {
    HEADER_BYTES + PAYLOAD as usize
}
