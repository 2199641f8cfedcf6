//! Probes by ICMP echo requests, over a datagram socket if permitted, otherwise over a
//! raw one.

use crate::ProbeError;
use crate::icmp::{self, Echo};
use crate::prober::{Outcome, Prober, Response, Target, is_icmp_error, send_with_retry};
use host::{clock, random, recvmsg, wait};
use socket2::{Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Maximum size of an IP packet, bytes.
const MAX_PACKET: usize = 65_535;

/// A socket that sends echo requests to one host.
#[derive(Debug)]
pub(crate) struct EchoProber {
    target: Target,
    socket: Socket,
    is_raw: bool,
    /// The identifier of our echo requests; on a datagram socket the kernel sets it.
    id: u16,
    payload: usize,
    buffer: Vec<u8>,
    /// The smallest MTU that a router reported, and its address.
    reported_mtu: Option<(IpAddr, u32)>,
}

impl EchoProber {
    /// # Errors
    /// [`ProbeError::Privileges`] if neither kind of socket is permitted.
    pub(crate) fn open(target: Target, payload: usize) -> Result<Self, ProbeError> {
        let protocol = if target.is_v6() { Protocol::ICMPV6 } else { Protocol::ICMPV4 };
        let (socket, is_raw) = match target.socket(Type::DGRAM, protocol) {
            Ok(socket) => (socket, false),
            Err(error) if is_not_permitted(&error) => {
                let socket = target.socket(Type::RAW, protocol).map_err(|error| {
                    if is_not_permitted(&error) {
                        ProbeError::Privileges
                    } else {
                        target.open_error(error)
                    }
                })?;
                recvmsg::only_echo_replies(&socket, target.is_v6())
                    .map_err(|error| target.open_error(error))?;
                (socket, true)
            }
            Err(error) => return Err(target.open_error(error)),
        };
        // Raw IPv6 sockets refuse a port.
        let mut to = target.to;
        to.set_port(0);
        socket.connect(&to.into()).map_err(|error| match (error.kind(), to) {
            (io::ErrorKind::PermissionDenied, SocketAddr::V4(to)) => ProbeError::Setting {
                field: problem::Field::Host,
                what: format!("{} is a broadcast address", to.ip()),
                accepted: "the address of a single host",
            },
            _ => target.open_error(error),
        })?;
        let [high, low, ..] = random::seed().to_be_bytes();
        let id = u16::from_be_bytes([high, low]);
        Ok(EchoProber {
            target,
            socket,
            is_raw,
            id,
            payload,
            buffer: vec![0; MAX_PACKET],
            reported_mtu: None,
        })
    }

    /// Changes the payload of further requests, bytes.
    pub(crate) fn resize(&mut self, payload: usize) {
        self.payload = payload;
    }

    /// The smallest MTU that a router has reported, and its address.
    pub(crate) fn reported_mtu(&self) -> Option<(IpAddr, u32)> {
        self.reported_mtu
    }

    /// Configures the socket, so that packets are never fragmented.
    pub(crate) fn configure(&self, set: impl Fn(&Socket) -> io::Result<()>) -> io::Result<()> {
        set(&self.socket)
    }

    fn read(&self, message: &[u8], echo: Option<Echo>) -> Option<(u16, usize)> {
        let echo = echo.filter(|echo| !self.is_raw || echo.id == self.id)?;
        Some((echo.seq, message.len()))
    }
}

/// EACCES outside `ping_group_range`, EPERM without CAP_NET_RAW; EPROTONOSUPPORT and
/// ESOCKTNOSUPPORT from kernels without ICMP datagram sockets.
fn is_not_permitted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
        || error.raw_os_error().is_some_and(|number| [93, 94].contains(&number))
}

impl Prober for EchoProber {
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant> {
        if let Some(hops) = hops {
            self.target.set_hops(&self.socket, hops)?;
        }
        let echo = Echo { id: self.id, seq };
        let packet = icmp::request(self.target.is_v6(), echo, self.payload);
        send_with_retry(|| {
            let at = clock::now();
            self.socket.send(&packet).map(|_| at)
        })
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        wait::readable([self.socket.as_fd()], Some(timeout)).map(drop)
    }

    fn receive(&mut self, responses: &mut Vec<Response>) -> io::Result<()> {
        let is_v6 = self.target.is_v6();
        while let Some(received) = recvmsg::take_error(&self.socket, &mut self.buffer)? {
            let at = clock::now() - received.waited;
            let message = self.buffer.get(..received.length).unwrap_or_default();
            let quoted = self.read(message, icmp::quoted_request(message, is_v6));
            let (Some(error), Some((seq, bytes))) = (received.error, quoted) else { continue };
            let outcome = if icmp::is_expired(&error, is_v6) {
                Outcome::Expired
            } else {
                Outcome::Unreachable(icmp::describe(&error, is_v6))
            };
            if let Some(mtu) = icmp::too_big(&error, is_v6)
                && let Some(by) = error.by
                && self.reported_mtu.is_none_or(|(_, least)| mtu < least)
            {
                self.reported_mtu = Some((by, mtu));
            }
            responses.push(Response { seq, outcome, from: error.by, ttl: received.ttl, bytes, at });
        }
        loop {
            let received = match recvmsg::take(&self.socket, &mut self.buffer) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok(()),
                Err(error) if is_icmp_error(&error) => continue,
                Err(error) => return Err(error),
            };
            let at = clock::now() - received.waited;
            let packet = self.buffer.get(..received.length).unwrap_or_default();
            let has_ip = self.is_raw && !is_v6;
            let message = if has_ip { icmp::ipv4_payload(packet) } else { Some(packet) };
            let reply = message.and_then(|m| self.read(m, icmp::reply(m, is_v6)));
            let Some((seq, bytes)) = reply else { continue };
            let from = Some(self.target.to.ip());
            responses.push(Response {
                seq,
                outcome: Outcome::Reply,
                from,
                ttl: received.ttl,
                bytes,
                at,
            });
        }
    }
}
