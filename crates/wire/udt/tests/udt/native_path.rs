//! Two ends in native mode, and the path between them.

use crate::path::{ms, pattern};
use control::Algorithm;
use link::{Link, LinkConfig, Train};
use std::time::Duration;
use udt::{Identity, NativeConfig, NativeConnection, PeerAddress, PublicKey};
use units::Nanos;

pub(crate) const CLIENT: PeerAddress = PeerAddress { address: [1; 16], port: 7_000, zone: 0 };
pub(crate) const SERVER: PeerAddress = PeerAddress { address: [2; 16], port: 5_201, zone: 0 };

pub(crate) fn identity(seed: u8) -> Identity {
    Identity::new(&[seed; 32]).unwrap()
}

pub(crate) fn key(seed: u8) -> PublicKey {
    identity(seed).public_key()
}

pub(crate) fn config(secret: u8, algorithm: Algorithm) -> NativeConfig {
    NativeConfig {
        packet_bytes: NativeConfig::IPV4_PACKET_BYTES,
        max_buffer: 350_000,
        algorithm,
        secret: [secret; 32],
    }
}

/// A datagram under way, and where it comes from.
pub(crate) type Datagram = (PeerAddress, Vec<u8>);

/// A client, a server, and what the path does to their datagrams.
pub(crate) struct NativePath {
    pub(crate) now: Nanos,
    pub(crate) client: NativeConnection,
    pub(crate) server: NativeConnection,
    /// Where the client's datagrams come from.
    pub(crate) client_address: PeerAddress,
    links: [Link<Datagram>; 2],
    /// Datagrams that the client sent, and calls that gave some.
    pub(crate) packets: u64,
    pub(crate) trains: u64,
    /// Bytes that the server sent to each address that is not the client's first.
    pub(crate) sent_elsewhere: usize,
    /// Called with each datagram to the server before it is sent; it may change it.
    pub(crate) tamper: fn(&mut Vec<u8>),
    /// The same of datagrams to the client.
    pub(crate) tamper_reverse: fn(&mut Vec<u8>),
}

impl NativePath {
    pub(crate) fn new(links: [LinkConfig; 2], algorithm: Algorithm) -> Self {
        NativePath::with_keys(links, algorithm, (key(2), key(1)))
    }

    /// With the keys that the client and the server expect.
    pub(crate) fn with_keys(
        links: [LinkConfig; 2],
        algorithm: Algorithm,
        (of_server, of_client): (PublicKey, PublicKey),
    ) -> Self {
        let now = Nanos(0);
        let client = config(3, algorithm);
        NativePath {
            now,
            client: NativeConnection::client(now, client, SERVER, &identity(1), of_server).unwrap(),
            server: NativeConnection::server(now, config(4, algorithm), identity(2), of_client),
            client_address: CLIENT,
            links: links.map(Link::new),
            packets: 0,
            trains: 0,
            sent_elsewhere: 0,
            tamper: |_| {},
            tamper_reverse: |_| {},
        }
    }

    pub(crate) fn established(links: [LinkConfig; 2], algorithm: Algorithm) -> Self {
        let mut path = NativePath::new(links, algorithm);
        path.run_until(|path| path.client.is_established() && path.server.is_established());
        path
    }

    /// Lets time pass until `done`, at most ten minutes.
    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut NativePath) -> bool) {
        while !done(self) {
            assert!(self.now.0 < 600_000_000_000, "not done after ten minutes");
            self.step(None);
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration, mut each: impl FnMut(&mut NativePath)) {
        let end = self.now.plus(time);
        while self.now < end {
            each(self);
            self.step(Some(end));
        }
    }

    fn step(&mut self, end: Option<Nanos>) {
        self.transmit();
        let next = [
            self.links[0].next_due(),
            self.links[1].next_due(),
            self.client.next_timeout(),
            self.server.next_timeout(),
            end,
        ];
        let next = next.into_iter().flatten().min().unwrap_or(self.now.plus(ms(1)));
        self.now = self.now.max(next);
        self.deliver();
        self.client.on_timeout(self.now);
        self.server.on_timeout(self.now);
    }

    fn transmit(&mut self) {
        let mut out = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(self.now, 64, &mut out) {
            self.trains += 1;
            self.packets += out.len().div_ceil(transmit.packet_bytes) as u64;
            for datagram in out.chunks(transmit.packet_bytes) {
                let mut datagram = datagram.to_vec();
                (self.tamper)(&mut datagram);
                self.links[0].arrive(self.now, train(&datagram), (self.client_address, datagram));
            }
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, 64, &mut out) {
            let to = transmit.to.unwrap();
            if to != CLIENT {
                self.sent_elsewhere += out.len();
            }
            if to != self.client_address {
                continue;
            }
            for datagram in out.chunks(transmit.packet_bytes) {
                let mut datagram = datagram.to_vec();
                (self.tamper_reverse)(&mut datagram);
                self.links[1].arrive(self.now, train(&datagram), (SERVER, datagram));
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.links[0].release(self.now) {
            let (from, datagram) = &delivery.payload;
            self.server.receive(self.now, self.now, *from, [&datagram[..]]);
        }
        while let Some(delivery) = self.links[1].release(self.now) {
            let (from, datagram) = &delivery.payload;
            self.client.receive(self.now, self.now, *from, [&datagram[..]]);
        }
    }

    /// Sends `total` bytes of the pattern, ends the stream, and checks each byte that
    /// arrives; gives the time, s.
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
            if written == total {
                path.client.finish();
            }
            loop {
                let count = path.server.read(&mut buffer);
                if count == 0 {
                    break;
                }
                assert!(buffer[..count] == pattern(received, count), "at byte {received}");
                received += count as u64;
            }
            path.server.is_finished()
        });
        assert_eq!(received, total);
        self.now.nanos_since(start) as f64 / 1e9
    }

    /// Sends as fast as the connection allows for that time; gives the goodput, bit/s.
    pub(crate) fn saturate(&mut self, time: Duration) -> f64 {
        let zeros = vec![0; 1 << 16];
        let mut bytes = 0;
        self.run_for(time, |path| {
            while path.client.write(&zeros) == zeros.len() {}
            bytes += path.server.discard();
        });
        bytes as f64 * 8.0 / time.as_secs_f64()
    }
}

fn train(datagram: &[u8]) -> Train {
    // IPv4 and UDP.
    Train::single(28 + datagram.len() as u32)
}
