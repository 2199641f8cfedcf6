//! The thread of one connection.

use crate::{Application, Next, peer_address};
use host::{clock, packet_info, udp, wait};
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use udt::{Endpoint, PeerAddress, Transmit};
use units::{ByteCount, Nanos, nanos};

/// Messages that one call receives: datagrams, or trains of them.
const SLOTS: usize = 32;
const SLOT_BYTES: usize = 65_536;
/// Trains that are sent before the socket is read again.
const MAX_TRAINS: usize = 32;
/// Messages that are received before anything else is sent.
const MAX_RECEIVES: usize = 4;
/// Bytes of one train at most: one UDP payload before segmentation.
const MAX_TRAIN_BYTES: usize = 65_000;
/// Pause while the device's queue is full.
const FULL_PAUSE: Duration = Duration::from_micros(50);
/// The socket's buffers at least: 30 ms at 1 Gbit/s, for a receiving thread that has to
/// wait for its core.
pub const SOCKET_BUFFER: ByteCount = ByteCount::from_bytes(4 << 20);

/// Pauses for one train: 10 ms.
const MAX_PAUSES: u32 = 200;
/// A datagram has waited no longer than this, ns, whatever happens to the wall clock.
const MAX_WAITED_NS: u64 = 1_000_000_000;

/// Where several messages arrive within this time, the thread sleeps it through and takes
/// them together, as network adapters moderate interrupts. Arrival times are the kernel's.
const MODERATION: Duration = Duration::from_micros(200);
/// Time over which messages are counted for it.
const RATE_INTERVAL: Duration = Duration::from_millis(2);

/// A socket, and what its thread needs.
#[derive(Debug)]
pub struct Driver {
    socket: UdpSocket,
    inbox: udp::Inbox,
    out: Vec<u8>,
    began: Instant,
    /// Bytes into which the kernel splits what is written; zero: it does not.
    segment_bytes: usize,
    /// Segmentation was not refused.
    can_segment: bool,
    messages: MessageRate,
    /// The peer that the socket is connected to, else where the last datagram came from.
    connected: bool,
    last_source: Option<SocketAddr>,
    /// This host's address that the peer sends to.
    asked: Option<IpAddr>,
}

impl Driver {
    /// A driver for a socket, which may be connected to the peer. Only one that is not can
    /// follow a peer whose address changes.
    ///
    /// # Errors
    /// The system error if the socket cannot be set up.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        enlarge_buffers(&socket);
        // Without it, each datagram is a message of its own.
        let _ = udp::coalesce(&socket);
        // Without it, datagrams count as arrived when they are read.
        let _ = udp::timestamps(&socket);
        Ok(Driver {
            socket,
            inbox: udp::Inbox::new(SLOTS, SLOT_BYTES),
            out: Vec::with_capacity(SLOT_BYTES),
            began: clock::now(),
            segment_bytes: 0,
            can_segment: true,
            messages: MessageRate::default(),
            connected: false,
            last_source: None,
            asked: None,
        })
    }

    /// Sends every packet whole, whatever the kernel takes for the path's MTU: for connections that
    /// find out themselves what arrives.
    pub fn forbid_fragments(&self) {
        // Without it, probes of the path MTU may arrive as fragments.
        let _ = host::socket::set_mtu_probing(&self.socket, false);
        if self.socket.local_addr().is_ok_and(|local| local.is_ipv6()) {
            let _ = host::socket::set_mtu_probing(&self.socket, true);
        }
    }

    /// The time on the clock of its connections.
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(nanos(clock::now() - self.began))
    }

    /// The socket.
    #[must_use]
    pub const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Carries a connection until it is closed or the application wants no more.
    ///
    /// # Errors
    /// The system error of the socket.
    pub fn run<E: Endpoint>(
        &mut self,
        connection: &mut E,
        application: &mut impl Application<E>,
    ) -> io::Result<()> {
        wait::precise_timers();
        self.last_source = self.socket.peer_addr().ok();
        self.connected = self.last_source.is_some();
        if !self.connected {
            self.inbox.record_sources();
            let is_ipv6 = self.socket.local_addr().is_ok_and(|local| local.is_ipv6());
            // Without it, the kernel chooses the address that answers.
            let _ = packet_info::record(&self.socket, is_ipv6);
        }
        loop {
            let now = self.now();
            connection.on_timeout(now);
            let next = application.poll(now, connection);
            self.transmit(connection)?;
            if next == Next::Never || connection.closed().is_some() {
                // What the application wrote last, and the end of the connection.
                return self.transmit(connection);
            }
            if self.receive(connection)? == 0 {
                self.wait(connection, next, application.input())?;
            }
        }
    }

    /// Sends what may be sent now, some trains at most.
    fn transmit(&mut self, connection: &mut impl Endpoint) -> io::Result<()> {
        for _ in 0..MAX_TRAINS {
            let now = self.now();
            let max_segments = MAX_TRAIN_BYTES / connection.packet_bytes();
            let max_segments = max_segments.clamp(1, udp::MAX_SEGMENTS);
            let transmit = connection.poll_transmit(now, max_segments, &mut self.out);
            let Some(transmit) = transmit else { break };
            self.send(transmit)?;
        }
        Ok(())
    }

    fn send(&mut self, transmit: Transmit) -> io::Result<()> {
        let size = transmit.packet_bytes;
        let is_train = self.out.len() > size && !transmit.is_pair;
        // What is longer than a segment is split, a single packet too.
        let is_split = self.segment_bytes > 0 && size > self.segment_bytes;
        if (is_train || is_split) && self.can_segment && size != self.segment_bytes {
            self.segment_bytes = size;
            let offload = u16::try_from(size).map(|size| udp::segment(&self.socket, size));
            if !matches!(offload, Ok(Ok(()))) {
                // Refused: nothing is to be split at the size before.
                let _ = udp::segment(&self.socket, 0);
                self.segment_bytes = 0;
            }
        }
        let to = if self.connected {
            None
        } else {
            let Some(to) = transmit.to.and_then(|to| self.socket_address(to)) else {
                return Ok(());
            };
            Some(to)
        };
        let (mut pauses, mut repeats) = (0, 0);
        loop {
            let is_whole = self.out.len() <= size || (is_train && self.segment_bytes == size);
            let sent = match to {
                None if is_whole => self.socket.send(&self.out),
                None => udp::send_each(&self.socket, &self.out, size),
                Some(to) => {
                    let bytes = if is_whole { &self.out[..] } else { &self.out[..size] };
                    packet_info::send(&self.socket, bytes, to, self.asked)
                }
            };
            match sent {
                Ok(sent) if sent < self.out.len() => {
                    self.out.drain(..sent);
                }
                Ok(_) => return Ok(()),
                Err(error) if udp::is_full(&error) && pauses < MAX_PAUSES => {
                    pauses += 1;
                    std::thread::sleep(FULL_PAUSE);
                }
                // A queue that stays full: lost, as on the path.
                Err(error) if udp::is_full(&error) => return Ok(()),
                // Segmentation where the device or the route does not support it.
                Err(error)
                    if is_train && self.segment_bytes > 0 && refuses_segmentation(&error) =>
                {
                    udp::segment(&self.socket, 0)?;
                    self.segment_bytes = 0;
                    self.can_segment = false;
                }
                // An ICMP message about an earlier datagram: once more. On a path with a
                // smaller MTU, the kernel then fragments.
                Err(error) if is_transient(&error) && repeats == 0 => repeats += 1,
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// A peer's address for this socket.
    fn socket_address(&self, peer: PeerAddress) -> Option<SocketAddr> {
        let address = Ipv6Addr::from(peer.address);
        let is_ipv4 = self.socket.local_addr().ok()?.is_ipv4();
        match address.to_ipv4_mapped() {
            Some(v4) if is_ipv4 => Some((v4, peer.port).into()),
            None if is_ipv4 => None,
            _ => Some(SocketAddrV6::new(address, peer.port, 0, peer.zone).into()),
        }
    }

    /// Receives what has arrived, some messages at most, and gives their number.
    fn receive(&mut self, connection: &mut impl Endpoint) -> io::Result<usize> {
        let mut total = 0;
        for _ in 0..MAX_RECEIVES {
            let count = match self.inbox.receive(&self.socket) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_transient(&error) => 0,
                Err(error) => return Err(error),
            };
            let now = self.now();
            for index in 0..count {
                let waited = nanos(self.inbox.waited(index)).min(MAX_WAITED_NS);
                let arrived = Nanos(now.0.saturating_sub(waited));
                self.last_source = self.inbox.source(index).or(self.last_source);
                if !connection.is_established() {
                    // Later ones may be forged: it stays what the handshake was sent to.
                    self.asked = self.inbox.local(index).or(self.asked);
                }
                let Some(from) = self.last_source else { continue };
                connection.receive(now, arrived, peer_address(from), self.inbox.message(index));
            }
            self.messages.count(count);
            total += count;
            if count < 2 {
                break;
            }
        }
        Ok(total)
    }

    /// Waits for a datagram, a timer, or the application's time or input.
    fn wait(
        &mut self,
        connection: &impl Endpoint,
        next: Next,
        input: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let wish = match next {
            Next::At(at) => Some(at),
            Next::OnEvent | Next::Never => None,
        };
        let until = [connection.next_timeout(), wish].into_iter().flatten().min();
        let now = self.now();
        let mut timeout = until.map(|until| until.since(now));
        if self.messages.is_dense(now) {
            let pause = timeout.unwrap_or(MODERATION).min(MODERATION);
            std::thread::sleep(pause);
            timeout = timeout.map(|timeout| timeout.saturating_sub(pause));
        }
        if timeout != Some(Duration::ZERO) {
            let socket = self.socket.as_fd();
            match input {
                Some(input) => wait::readable([socket, input], timeout).map(drop)?,
                None => wait::readable([socket], timeout).map(drop)?,
            }
        }
        Ok(())
    }
}

/// How often datagrams wake the thread up.
#[derive(Debug, Default)]
struct MessageRate {
    began: Nanos,
    messages: usize,
    is_dense: bool,
}

impl MessageRate {
    fn count(&mut self, messages: usize) {
        self.messages += messages;
    }

    /// Whether so many arrive that waiting for each costs more than it gains.
    fn is_dense(&mut self, now: Nanos) -> bool {
        let passed = now.since(self.began);
        if passed >= RATE_INTERVAL {
            let threshold = passed.as_micros() / (MODERATION.as_micros() / 2);
            self.is_dense = self.messages as u128 > threshold;
            self.began = now;
            self.messages = 0;
        }
        self.is_dense
    }
}

/// Within the system's limits, which are the administrator's.
fn enlarge_buffers(socket: &UdpSocket) {
    let bytes = usize::try_from(SOCKET_BUFFER.bytes()).unwrap_or(usize::MAX);
    let reference = SockRef::from(socket);
    let is_short = |size: io::Result<usize>| size.is_ok_and(|size| size < bytes);
    if is_short(reference.recv_buffer_size()) {
        let _ = reference.set_recv_buffer_size(bytes);
    }
    if is_short(reference.send_buffer_size()) {
        let _ = reference.set_send_buffer_size(bytes);
    }
}

/// `EIO`: the device computes no checksums; `EINVAL`: packets are longer than the MTU.
fn refuses_segmentation(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE))
}

/// Errors that another datagram may not have: a route is missing for a moment, or an ICMP
/// message came, which anyone can send (RFC 5927). The connection's own timers decide.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    let by_icmp = [
        libc::EMSGSIZE,
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EACCES,
        libc::EHOSTDOWN,
        libc::ENONET,
    ];
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    ) || error.raw_os_error().is_some_and(|code| by_icmp.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where packets have different sizes, the kernel goes on splitting at the size of the train
    /// before.
    #[test]
    fn a_packet_longer_than_the_packets_of_the_train_before_leaves_whole() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(receiver.local_addr().unwrap()).unwrap();
        let mut driver = Driver::new(socket).unwrap();
        driver.connected = true;
        for (bytes, packet_bytes, is_pair) in
            [(1_500, 500, false), (1_400, 1_400, false), (500, 500, false), (2_800, 1_400, true)]
        {
            driver.out = vec![7; bytes];
            driver.send(Transmit { packet_bytes, is_pair, to: None }).unwrap();
            for _ in 0..bytes / packet_bytes {
                assert_eq!(receiver.recv(&mut [0; 65_536]).unwrap(), packet_bytes, "{bytes}");
            }
        }
    }
}
