//! CrossFlow traffic over the path of a test: TCP connections and datagrams of our own.

use super::TestClock;
use bench_harness::Fallible;
use host::tcp_info::set_congestion;
use lab::{FlowKey, LabHost};
use simulator::CrossFlow;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, Scope};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Ports of the receivers, from here on: clear of iperf3's.
const FIRST_PORT: u16 = 7001;

/// Longest blocking of a read or a write, and so of the end.
const BLOCKING: Duration = Duration::from_millis(100);

/// Time that a connection may take over a path with losses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// IP bytes of a datagram, and of its headers.
const DATAGRAM: usize = 1200;
const HEADERS: usize = 28;

/// Datagrams are sent in trains of this time at their rate: an application sleeps between
/// them, and a system call for each would cost a core at 1 Gbit/s.
const TRAIN: Duration = Duration::from_millis(1);

/// Most datagrams of a train: 48 KiB.
const MAX: usize = 40;

/// One flow, connected.
pub(super) enum CrossTraffic {
    Tcp {
        sender: TcpStream,
        receiver: TcpStream,
        start: Duration,
    },
    Udp {
        sender: UdpSocket,
        #[expect(dead_code, reason = "held: a closed port would answer every datagram")]
        receiver: UdpSocket,
        rate: BitRate,
        on: Duration,
        off: Duration,
    },
}

impl CrossTraffic {
    /// Connects flow `number` between two hosts.
    pub(super) fn connect(
        cross: &CrossFlow,
        number: u16,
        from: &LabHost,
        to: &LabHost,
    ) -> Fallible<Self> {
        let address = SocketAddr::new(to.ipv4.into(), FIRST_PORT + number);
        match *cross {
            CrossFlow::Tcp { congestion, start_s } => {
                let listener = to.namespace.run(|| TcpListener::bind(address))??;
                let connect = || TcpStream::connect_timeout(&address, CONNECT_TIMEOUT);
                let sender = from.namespace.run(connect)??;
                set_congestion(&sender, congestion.name())?;
                sender.set_write_timeout(Some(BLOCKING))?;
                let receiver = accept(&listener)?;
                receiver.set_read_timeout(Some(BLOCKING))?;
                Ok(CrossTraffic::Tcp { sender, receiver, start: seconds(start_s) })
            }
            CrossFlow::OnOffUdp { rate, on_s, off_s } => {
                // Nobody reads: once its buffer is full, the kernel drops the datagrams.
                let receiver = to.namespace.run(|| UdpSocket::bind(address))??;
                let local = SocketAddr::new(from.ipv4.into(), 0);
                let sender = from.namespace.run(|| UdpSocket::bind(local))??;
                sender.connect(address)?;
                host::udp::segment(&sender, (DATAGRAM - HEADERS) as u16)?;
                sender.set_write_timeout(Some(BLOCKING))?;
                let [on, off] = [on_s, off_s].map(seconds);
                Ok(CrossTraffic::Udp { sender, receiver, rate, on, off })
            }
        }
    }

    /// The direction of its data; `None` for datagrams, which wait for nothing.
    pub(super) fn key(&self) -> Fallible<Option<FlowKey>> {
        Ok(match self {
            CrossTraffic::Tcp { sender, .. } => Some(FlowKey {
                protocol: 6,
                source: sender.local_addr()?,
                destination: sender.peer_addr()?,
            }),
            CrossTraffic::Udp { .. } => None,
        })
    }

    /// Sends from the start of the test to its end, on threads of `scope`.
    pub(super) fn run<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        clock: &'env TestClock,
    ) {
        match self {
            CrossTraffic::Tcp { sender, receiver, start } => {
                scope.spawn(move || write(sender, *start, clock));
                scope.spawn(move || read(receiver, clock));
            }
            CrossTraffic::Udp { sender, rate, on, off, .. } => {
                scope.spawn(move || send(sender, *rate, *on, *off, clock));
            }
        }
    }
}

fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    // The last packet of the handshake may have been lost.
    listener.set_nonblocking(true)?;
    for _ in 0..CONNECT_TIMEOUT.as_millis() {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn write(mut stream: &TcpStream, start: Duration, clock: &TestClock) {
    let block = vec![0x5a; 128 * 1024];
    if !clock.wait_until(start) {
        return;
    }
    while !clock.has_ended() {
        match stream.write(&block) {
            Err(error) if !is_pause(&error) => return,
            _ => {}
        }
    }
    // What is queued is discarded: nothing is sent after the end of the test.
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

fn read(mut stream: &TcpStream, clock: &TestClock) {
    let mut buffer = vec![0; 128 * 1024];
    while !clock.has_ended() {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Err(error) if !is_pause(&error) => return,
            _ => {}
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn send(socket: &UdpSocket, rate: BitRate, on: Duration, off: Duration, clock: &TestClock) {
    let payload = DATAGRAM - HEADERS;
    let train = vec![0x5a; payload * MAX];
    let datagram = ByteCount::from_bytes(DATAGRAM as u64);
    let mut start = Duration::ZERO;
    while clock.wait_until(start) {
        let mut sent = 0u64;
        while let Some(passed) = clock.elapsed().and_then(|now| now.checked_sub(start)) {
            let due = rate.bytes_in(passed.min(on)).bytes() / DATAGRAM as u64 + 1;
            let count = usize::try_from(due.saturating_sub(sent)).unwrap_or(MAX).min(MAX);
            if count > 0 {
                // A full device drops it, as it would on a real host.
                let _ = socket.send(&train[..count * payload]);
                sent += count as u64;
            }
            if passed >= on {
                break;
            }
            thread::sleep(TRAIN.max(rate.time_for(datagram)).min(BLOCKING));
        }
        start += (on + off).max(TRAIN);
    }
}
