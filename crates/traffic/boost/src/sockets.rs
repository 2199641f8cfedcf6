//! Sockets of both boxes: towards applications and targets, and between the boxes.

use crate::BoostError;
use crate::lane_buffers::{self, GrantedBuffers};
use host::address::{canonical, with_port};
use host::{socket, tcp_info};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::RangeInclusive;
use std::time::Duration;
use units::ByteCount;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Receive buffer towards an application: what it has sent and near has not taken yet. Enough for
/// 10 Gbit/s at an RTT of 0.4 ms.
pub const APPLICATION_BUFFER: ByteCount = ByteCount::from_bytes(512 << 10);
/// Unsent bytes in a lane's send buffer: 16 ms at 1 Gbit/s, for which a box may have to wait for its
/// core without the path running dry. More would only be acknowledged to the application earlier,
/// without being on the path.
pub(crate) const UNSENT_LIMIT: ByteCount = ByteCount::from_bytes(2 << 20);
/// A peer of a lane that answers neither retransmissions nor probes for so long is gone, whatever this
/// side sends meanwhile; that is noticed within
/// [`PEER_CHECK`](crate::event_loop::PEER_CHECK) more.
/// `TCP_USER_TIMEOUT` would also count the time for which a living peer keeps its window closed
/// (tcp(7)), which is how a receiver that pauses looks.
const LANE_TIMEOUT: Duration = Duration::from_secs(30);
/// The first keepalive of a connection without traffic, and the interval of the next ones.
const LANE_KEEPALIVE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));
const LOCAL_KEEPALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(10));

/// Settings of the connections between the boxes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneOptions {
    /// Congestion control; `None` for the system's.
    pub congestion: Option<String>,
    /// Send and receive buffer; `None` for the kernel's autotuning.
    pub buffer: Option<ByteCount>,
}

fn keepalive((first, interval): (Duration, Duration)) -> TcpKeepalive {
    TcpKeepalive::new().with_time(first).with_interval(interval).with_retries(3)
}

fn stream_socket(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
}

/// Options of a connection to an application or a target: however the process ends, its connections
/// end with an RST.
///
/// # Errors
/// The system error.
pub fn prepare_local(socket: &impl std::os::fd::AsFd) -> io::Result<()> {
    socket::set_reset_on_close(socket, true)?;
    let reference = SockRef::from(socket);
    reference.set_tcp_nodelay(true)?;
    reference.set_tcp_keepalive(&keepalive(LOCAL_KEEPALIVE))
}

/// Options of every listener for applications, which connections inherit: those of
/// [`prepare_local`], and a receive buffer that bounds what an application is ahead of near.
///
/// # Errors
/// The system error.
pub fn prepare_listener(socket: &impl std::os::fd::AsFd) -> io::Result<()> {
    socket::set_receive_buffer(socket, APPLICATION_BUFFER)?;
    prepare_local(socket)
}

fn prepare_lane(socket: &Socket, options: &LaneOptions) -> Result<(), BoostError> {
    if let Some(name) = &options.congestion {
        tcp_info::set_congestion(socket, name)
            .map_err(|error| BoostError::Congestion(error.to_string()))?;
    }
    let set = || -> io::Result<()> {
        if let Some(size) = options.buffer {
            lane_buffers::set(socket, size)?;
        }
        socket::set_unsent_limit(socket, Some(UNSENT_LIMIT))?;
        socket::set_reset_on_close(socket, true)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_keepalive(&keepalive(LANE_KEEPALIVE))
    };
    set().map_err(BoostError::Socket)
}

/// The buffer that the kernel grants a lane where less than was asked for.
///
/// # Errors
/// The congestion control is not available, or the system has no socket.
pub fn check_lane_options(options: &LaneOptions) -> Result<Option<ByteCount>, BoostError> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = stream_socket(any).map_err(BoostError::Socket)?;
    prepare_lane(&socket, options)?;
    let Some(asked) = options.buffer else { return Ok(None) };
    let (_, granted) = GrantedBuffers::of(&socket).map_err(BoostError::Socket)?.least();
    Ok((granted < asked).then_some(granted))
}

fn listen(address: SocketAddr, prepare: impl Fn(&Socket) -> Result<(), BoostError>) -> Listening {
    let cannot = |error: io::Error| BoostError::Listen { address, reason: error.to_string() };
    let socket = stream_socket(address).map_err(cannot)?;
    socket.set_reuse_address(true).map_err(cannot)?;
    prepare(&socket)?;
    socket.bind(&SockAddr::from(address)).map_err(cannot)?;
    socket.listen(BACKLOG).map_err(cannot)?;
    socket.set_nonblocking(true).map_err(cannot)?;
    Ok(socket.into())
}

type Listening = Result<TcpListener, BoostError>;

/// Listens for applications.
///
/// # Errors
/// The address is in use or not of this host.
pub fn application_listener(address: SocketAddr) -> Listening {
    listen(address, |socket| prepare_listener(socket).map_err(BoostError::Socket))
}

/// Listens for lanes; an IPv6 wildcard address includes IPv4.
///
/// # Errors
/// The address is in use or not of this host, or the congestion control is not available.
pub fn lane_listener(address: SocketAddr, options: &LaneOptions) -> Listening {
    let any = address.ip() == Ipv6Addr::UNSPECIFIED;
    listen(address, |socket| {
        if any {
            socket.set_only_v6(false).map_err(BoostError::Socket)?;
        }
        prepare_lane(socket, options)
    })
}

/// A UDP socket of an address, whatever its port, at the first port of a range that is free, or at any
/// port.
///
/// # Errors
/// The system error, or the range has no free port.
pub(crate) fn bind_udp(
    address: SocketAddr,
    ports: Option<&RangeInclusive<u16>>,
) -> io::Result<UdpSocket> {
    let ports = ports.cloned().unwrap_or(0..=0);
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for port in ports {
        match UdpSocket::bind(with_port(address, port)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn begin_connecting(socket: Socket, to: SocketAddr) -> io::Result<TcpStream> {
    const EINPROGRESS: i32 = 115;
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}

/// Begins to connect to far; the socket is writable once it is connected.
///
/// # Errors
/// As [`lane_listener`], or the host has no route to far.
pub(crate) fn connect_lane(to: SocketAddr, options: &LaneOptions) -> Result<TcpStream, BoostError> {
    let socket = stream_socket(to).map_err(BoostError::Socket)?;
    prepare_lane(&socket, options)?;
    begin_connecting(socket, to).map_err(BoostError::Socket)
}

/// Begins to connect to a target.
pub(crate) fn connect_target(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = stream_socket(to)?;
    prepare_local(&socket)?;
    begin_connecting(socket, to)
}

/// The error of a connection attempt that has ended; `None` if it has succeeded.
pub(crate) fn connect_error(stream: &TcpStream) -> Option<io::Error> {
    stream.take_error().unwrap_or_else(Some)
}

/// True if the peer of a lane is gone.
pub(crate) fn is_peer_gone(stream: &TcpStream) -> bool {
    unanswered_for(stream, LANE_TIMEOUT)
}

fn unanswered_for(stream: &TcpStream, limit: Duration) -> bool {
    tcp_info::unanswered_for(stream).is_ok_and(|time| time.is_some_and(|time| time >= limit))
}

/// The addresses of both ends of an accepted connection, as IPv4 where they are mapped.
pub(crate) fn local_address(stream: &TcpStream) -> io::Result<SocketAddr> {
    stream.local_addr().map(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockFilter;
    use std::io::Write;

    /// A lane, and the peer's end of it.
    fn lane() -> (TcpStream, TcpStream) {
        let options = LaneOptions::default();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = lane_listener(any, &options).unwrap();
        listener.set_nonblocking(false).unwrap();
        let lane = connect_lane(listener.local_addr().unwrap(), &options).unwrap();
        (lane, listener.accept().unwrap().0)
    }

    fn until(mut is_met: impl FnMut() -> bool) {
        let deadline = host::clock::now() + Duration::from_secs(20);
        while !is_met() {
            assert!(host::clock::now() < deadline, "it takes too long");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_receiver_that_pauses_keeps_its_lane_and_a_dead_one_does_not() {
        let limit = Duration::from_millis(600);
        let (mut paused, _receiver) = lane();
        let (mut lost, dead) = lane();
        let drop_all = SockFilter::new(6, 0, 0, 0);
        SockRef::from(&dead).attach_filter(&[drop_all]).unwrap();
        lost.write_all(b"x").unwrap();
        let piece = vec![1; 1 << 20];
        until(|| {
            while paused.write(&piece).is_ok() {}
            // More to send is no answer.
            let _ = lost.write(b"x");
            assert!(!unanswered_for(&paused, limit));
            unanswered_for(&lost, limit)
        });
        // The kernel must not end what is only paused.
        for stream in [&paused, &lost] {
            assert_eq!(SockRef::from(stream).tcp_user_timeout().unwrap(), None);
        }
        assert!(paused.take_error().unwrap().is_none());
    }
}
