//! Opens a test's streams with the requested socket options.

use super::ClientConfig;
use crate::{
    PerfError, Role, StopFlag,
    control::Control,
    plan::Plan,
    socket::{self, LocalEnd},
    stream::Stream,
};
use host::{clock, tcp_info, wait};
use iperf3_proto::{Cookie, State, datagram};
use record::Protocol;
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, Write},
    net::SocketAddr,
    os::fd::AsFd,
    time::{Duration, Instant},
};

/// Timeout for the reply to a connect datagram, as in iperf3.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for UDT, which servers other than ours take for TCP: a caller that then switches
/// to TCP has done so within 3 s.
const UDT_ANSWER_TIMEOUT: Duration = Duration::from_millis(2500);
/// Interval between connect datagrams, as either it or the reply may be lost.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);
/// The same for UDT: five tries, so that random loss of 10 % looks blocked once in 10^3.
const UDT_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Receive buffer for datagrams, if the system allows it: 13 ms at 20 Gbit/s.
const DATAGRAM_BUFFER: units::ByteCount = units::ByteCount::from_bytes(32 << 20);

/// Opens every stream, one after the other: the server numbers them by arrival.
/// In a bidirectional test the client's sending streams come first.
pub(super) fn open(
    config: &ClientConfig,
    plan: &Plan,
    control: &mut Control,
    cookie: &Cookie,
    stop: &StopFlag,
    notes: &mut Vec<String>,
) -> Result<Vec<Stream>, PerfError> {
    let directions = [(true, config.sends()), (false, config.receives())];
    let sending = directions.iter().filter(|(_, asked)| *asked).map(|(sending, _)| *sending);
    let mut streams = Vec::new();
    let mut index = 0;
    for sending in sending {
        for _ in 0..config.streams {
            if stop.is_raised() {
                return Err(PerfError::Interrupted);
            }
            let opener = Opener { config, plan, control, stop, index, sending };
            let socket = match config.transport.protocol() {
                Protocol::Tcp => opener.connect(cookie)?,
                Protocol::Udp | Protocol::Udt => opener.connect_udp()?,
            };
            let window = config.window.filter(|_| config.transport.udt().is_none());
            if let Some(window) = window.filter(|_| index == 0) {
                notes.extend(socket::clamp_note(&socket, window, sending, Role::Client));
            }
            let address = control.address();
            let stream = Stream::new(iperf3_proto::stream_id(index), sending, plan, socket);
            let mut stream = stream.map_err(|source| failed("open a stream", address, source))?;
            if config.dont_fragment {
                stream.fragmentation = None;
            }
            if let Some(fragmentation) = stream.fragmentation.filter(|_| index == 0) {
                let length = u32::try_from(plan.block).unwrap_or(u32::MAX);
                notes.push(fragmentation.sentence(length));
            }
            streams.push(stream);
            index += 1;
        }
    }
    Ok(streams)
}

struct Opener<'a> {
    config: &'a ClientConfig,
    plan: &'a Plan,
    control: &'a mut Control,
    stop: &'a StopFlag,
    index: u32,
    sending: bool,
}

impl Opener<'_> {
    fn connect(self, cookie: &Cookie) -> Result<Socket, PerfError> {
        let address = self.control.address();
        let config = self.config;
        let socket =
            socket::connect(address, &self.local_end(), config.connect_timeout, |socket| {
                let labelled = self.prepare(socket, address)?;
                if let Some(name) = config.congestion.as_ref().filter(|_| self.sending) {
                    tcp_info::set_congestion(socket, name)?;
                }
                Ok(labelled)
            })?;
        if let Some(name) = config.congestion.as_ref().filter(|_| self.sending) {
            // connect() replaces it with the route's, if that has one
            // (`tcp_ca_dst_init`), as in a lab's hosts.
            tcp_info::set_congestion(&socket, name)?;
        }
        if let Some(rate) = self.pacing_rate() {
            // Without kernel support, our pacing still keeps the average.
            let _ = host::socket::set_max_pacing_rate(&socket, rate);
        }
        (&socket).write_all(cookie.bytes()).map_err(|e| failed("open a stream", address, e))?;
        Ok(socket)
    }

    /// Opens a UDP stream: sends connect datagrams until the server replies.
    fn connect_udp(mut self) -> Result<Socket, PerfError> {
        let address = self.control.address();
        let error = |source| failed("open a UDP stream", address, source);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).map_err(error)?;
        socket::bind_to(&socket, address, &self.local_end())?;
        let labelled = self.prepare(&socket, address)?;
        socket.connect(&labelled.into()).map_err(error)?;
        if self.config.window.is_none() && !self.sending {
            let _ = host::socket::set_receive_buffer(&socket, DATAGRAM_BUFFER);
        }
        if let Some(rate) = self.config.fq_rate {
            let _ = host::socket::set_max_pacing_rate(&socket, rate);
        }
        if self.plan.train.is_some() && !self.sending {
            let _ = host::udp::timestamps(&socket);
        }
        let is_udt = self.config.transport.udt().is_some();
        let (waited, retry) = match is_udt {
            true => (UDT_ANSWER_TIMEOUT, UDT_RETRY_INTERVAL),
            false => (ANSWER_TIMEOUT, RETRY_INTERVAL),
        };
        let until = clock::now() + waited;
        let mut next_try = clock::now();
        while !self.has_reply(&socket)? {
            if self.stop.is_raised() {
                return Err(PerfError::Interrupted);
            }
            if clock::now() >= until {
                return Err(if is_udt {
                    PerfError::NoUdt { address, waited }
                } else {
                    PerfError::NoAnswer { address, waited }
                });
            }
            if clock::now() >= next_try {
                // A closed port is reported by the next call.
                let _ = socket.send(&datagram::CONNECT);
                next_try = clock::now() + retry;
            }
            self.wait(&socket, next_try.min(until))?;
        }
        Ok(socket)
    }

    /// Waits for data on the stream, and polls the control connection.
    fn wait(&mut self, socket: &Socket, until: Instant) -> Result<(), PerfError> {
        let left = until.saturating_duration_since(clock::now()).min(Duration::from_millis(100));
        let _ = wait::readable([socket.as_fd()], Some(left));
        // The control connection has TEST_START, or an error.
        match self.control.peek() {
            Some(byte) if byte == State::TestStart.byte() => Ok(()),
            Some(_) => self.control.next(Duration::ZERO).map(drop),
            None => Ok(()),
        }
    }

    /// Whether the server has replied. In reverse, its data or TEST_START may
    /// overtake the reply.
    fn has_reply(&mut self, socket: &Socket) -> Result<bool, PerfError> {
        let ready = wait::readable([socket.as_fd()], Some(Duration::ZERO));
        if !matches!(ready, Ok([true])) {
            return Ok(self.control.peek() == Some(State::TestStart.byte()));
        }
        let mut first = [std::mem::MaybeUninit::uninit(); 4];
        match socket.recv(&mut first) {
            Ok(_) => Ok(true),
            // ICMP port unreachable for an earlier connect datagram.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
            Err(error) => Err(failed("open a UDP stream", self.control.address(), error)),
        }
    }

    fn local_end(&self) -> LocalEnd {
        let first = self.config.local_port;
        let port = first.map_or(0, |first| u32::from(first) + self.index);
        LocalEnd {
            bind: self.config.bind,
            port: u16::try_from(port).unwrap_or(0),
            device: self.config.device.clone(),
            mptcp: self.config.transport.tcp().is_some_and(|tcp| tcp.mptcp),
        }
    }

    /// Kernel pacing rate of a stream: a little above the requested rate, so that
    /// it never limits the average.
    fn pacing_rate(&self) -> Option<units::BitRate> {
        let smooth = |rate: units::BitRate| rate.scaled(1.1);
        self.config
            .fq_rate
            .or_else(|| self.plan.rate.filter(|_| self.sending && self.plan.burst == 0).map(smooth))
    }

    /// Sets the options that must be set before connecting.
    fn prepare(&self, socket: &Socket, address: SocketAddr) -> Result<SocketAddr, PerfError> {
        let config = self.config;
        let set = |operation| move |source| failed(operation, address, source);
        // The buffers of a UDT connection are its own.
        if let Some(window) = config.window.filter(|_| config.transport.udt().is_none()) {
            socket::set_window(socket, window).map_err(set("set the socket buffers"))?;
        }
        if let Some(tos) = config.tos {
            socket::set_tos(socket, address, tos).map_err(set("set the traffic class"))?;
        }
        if let Some(tcp) = config.transport.tcp() {
            if tcp.nodelay {
                socket.set_tcp_nodelay(true).map_err(set("set TCP_NODELAY"))?;
            }
            if let Some(mss) = tcp.mss {
                socket.set_tcp_mss(mss).map_err(set("set the segment size"))?;
            }
            match socket.set_tcp_user_timeout(tcp.send_timeout) {
                // Kernels differ in what sockets of MPTCP have.
                Err(error) if tcp.mptcp && host::socket::is_not_offered(&error) => {}
                result => result.map_err(set("set the timeout"))?,
            }
        } else if config.dont_fragment {
            host::socket::set_dont_fragment(socket, address.is_ipv6(), true)
                .map_err(set("forbid fragments"))?;
        }
        match (address, config.flow_label) {
            (SocketAddr::V6(peer), Some(label)) => {
                host::socket::set_flow_label(socket, peer, label)
                    .map(SocketAddr::V6)
                    .map_err(set("set the flow label"))
            }
            _ => Ok(address),
        }
    }
}

fn failed(operation: &'static str, address: SocketAddr, source: io::Error) -> PerfError {
    PerfError::System { operation, address, source }
}
