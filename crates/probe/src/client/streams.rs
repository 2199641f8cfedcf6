//! Opening the test's streams, with everything that was asked of them.

use super::ClientConfig;
use crate::{
    ProbeError, StopFlag,
    control::Control,
    extra::Who,
    flow::Flow,
    plan::Plan,
    socket::{self, Way},
};
use host::{clock, tcp_info, wait};
use iperf3::{Cookie, State, datagram};
use record::Protocol;
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, Write},
    net::SocketAddr,
    os::fd::AsFd,
    time::{Duration, Instant},
};

/// How long a greeting may stay without an answer, as with iperf3.
const ANSWER: Duration = Duration::from_secs(30);
/// After so long it is sent again: it, or the answer, was lost.
const AGAIN: Duration = Duration::from_secs(3);
/// Receive buffer for datagrams, where the system allows it: 13 ms at 20 Gbit/s.
const DATAGRAM_BUFFER: units::ByteCount = units::ByteCount::from_bytes(32 << 20);

/// Opens every stream, one after the other: the server numbers them in the
/// order they arrive. In both directions at once, this end's come first.
pub(super) fn open(
    config: &ClientConfig,
    plan: &Plan,
    control: &mut Control,
    cookie: &Cookie,
    stop: &StopFlag,
    notes: &mut Vec<String>,
) -> Result<Vec<Flow>, ProbeError> {
    let directions = [(true, config.sends()), (false, config.receives())];
    let ways = directions.iter().filter(|(_, asked)| *asked).map(|(sending, _)| *sending);
    let mut flows = Vec::new();
    let mut index = 0;
    for sending in ways {
        for _ in 0..config.streams {
            if stop.is_raised() {
                return Err(ProbeError::Interrupted);
            }
            let opener = Opener { config, plan, control, stop, index, sending };
            let socket = match config.protocol {
                Protocol::Tcp => opener.connect(cookie)?,
                Protocol::Udp => opener.greet()?,
            };
            if let Some(window) = config.window.filter(|_| index == 0) {
                notes.extend(socket::clamp_note(&socket, window, sending, Who::Client));
            }
            let address = control.address();
            let flow = Flow::new(iperf3::stream_id(index), sending, plan, socket);
            flows.push(flow.map_err(|source| failed("open a stream", address, source))?);
            index += 1;
        }
    }
    Ok(flows)
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
    fn connect(self, cookie: &Cookie) -> Result<Socket, ProbeError> {
        let address = self.control.address();
        let config = self.config;
        let socket = socket::connect(address, &self.way(), config.connect_timeout, |socket| {
            let labelled = self.prepare(socket, address)?;
            if let Some(name) = config.congestion.as_ref().filter(|_| self.sending) {
                tcp_info::set_congestion(socket, name)?;
            }
            Ok(labelled)
        })?;
        if let Some(name) = config.congestion.as_ref().filter(|_| self.sending) {
            // Connecting puts the one in its place that the route names, if it
            // does (`tcp_ca_dst_init`), as the routes of a lab's hosts do.
            tcp_info::set_congestion(&socket, name)?;
        }
        if let Some(rate) = self.paced() {
            // Where the kernel cannot, our own pacing still holds the average.
            let _ = host::socket::set_max_pacing_rate(&socket, rate);
        }
        (&socket).write_all(cookie.bytes()).map_err(|e| failed("open a stream", address, e))?;
        Ok(socket)
    }

    /// A UDP stream stands once the server has answered a greeting.
    fn greet(mut self) -> Result<Socket, ProbeError> {
        let address = self.control.address();
        let error = |source| failed("open a UDP stream", address, source);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).map_err(error)?;
        socket::bind_to(&socket, address, &self.way())?;
        let labelled = self.prepare(&socket, address)?;
        socket.connect(&labelled.into()).map_err(error)?;
        if self.config.window.is_none() && !self.sending {
            let _ = host::socket::set_receive_buffer(&socket, DATAGRAM_BUFFER);
        }
        if let Some(rate) = self.config.fq_rate {
            let _ = host::socket::set_max_pacing_rate(&socket, rate);
        }
        let until = clock::now() + ANSWER;
        let mut again = clock::now();
        while !self.is_answered(&socket)? {
            if self.stop.is_raised() {
                return Err(ProbeError::Interrupted);
            }
            if clock::now() >= until {
                return Err(ProbeError::NoAnswer { address, waited: ANSWER });
            }
            if clock::now() >= again {
                // Nobody listening there yet shows as an error of the next call.
                let _ = socket.send(&datagram::GREETING);
                again = clock::now() + AGAIN;
            }
            self.listen(&socket, again.min(until))?;
        }
        Ok(socket)
    }

    /// Waits for either connection to have something to say.
    fn listen(&mut self, socket: &Socket, until: Instant) -> Result<(), ProbeError> {
        let left = until.saturating_duration_since(clock::now()).min(Duration::from_millis(100));
        let _ = wait::readable([socket.as_fd()], Some(left));
        // Nothing is due on the control connection but the news that it is over.
        match self.control.peek() {
            Some(byte) if byte == State::TestStart.byte() => Ok(()),
            Some(_) => self.control.next(Duration::ZERO).map(drop),
            None => Ok(()),
        }
    }

    /// Whether the server has answered; in reverse its first data may overtake
    /// the answer, or the news on the control connection that all is ready.
    fn is_answered(&mut self, socket: &Socket) -> Result<bool, ProbeError> {
        let ready = wait::readable([socket.as_fd()], Some(Duration::ZERO));
        if !matches!(ready, Ok([true])) {
            return Ok(self.control.peek() == Some(State::TestStart.byte()));
        }
        let mut first = [std::mem::MaybeUninit::uninit(); 4];
        match socket.recv(&mut first) {
            Ok(_) => Ok(true),
            // The kernel tells here that nobody listened for the greeting.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
            Err(error) => Err(failed("open a UDP stream", self.control.address(), error)),
        }
    }

    fn way(&self) -> Way {
        let first = self.config.local_port;
        let port = first.map_or(0, |first| u32::from(first) + self.index);
        Way {
            bind: self.config.bind,
            port: u16::try_from(port).unwrap_or(0),
            device: self.config.device.clone(),
            mptcp: self.config.mptcp,
        }
    }

    /// The rate that TCP's own pacing smooths a stream to: a little over the
    /// one asked, so that it never holds the average back.
    fn paced(&self) -> Option<units::BitRate> {
        let smooth = |rate: units::BitRate| rate.scaled(1.1);
        self.config
            .fq_rate
            .or_else(|| self.plan.rate.filter(|_| self.sending && self.plan.burst == 0).map(smooth))
    }

    /// What must stand before a socket connects, for either protocol.
    fn prepare(&self, socket: &Socket, address: SocketAddr) -> Result<SocketAddr, ProbeError> {
        let config = self.config;
        let set = |operation| move |source| failed(operation, address, source);
        if let Some(window) = config.window {
            socket::set_window(socket, window).map_err(set("set the socket buffers"))?;
        }
        if let Some(tos) = config.tos {
            socket::set_tos(socket, address, tos).map_err(set("set the traffic class"))?;
        }
        if config.protocol == Protocol::Tcp {
            if config.nodelay {
                socket.set_tcp_nodelay(true).map_err(set("set TCP_NODELAY"))?;
            }
            if let Some(mss) = config.mss {
                socket.set_tcp_mss(mss).map_err(set("set the segment size"))?;
            }
            socket.set_tcp_user_timeout(config.send_timeout).map_err(set("set the timeout"))?;
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

fn failed(operation: &'static str, address: SocketAddr, source: io::Error) -> ProbeError {
    ProbeError::System { operation, address, source }
}
