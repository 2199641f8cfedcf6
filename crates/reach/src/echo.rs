//! ICMP echoes, over a datagram socket where the system allows that to
//! everyone, else over a raw one.

use crate::ReachError;
use crate::icmp::{self, Echo};
use crate::prober::{Aim, Heard, Prober, What, is_news, twice};
use host::{clock, random, stamps, wait};
use socket2::{Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The largest packet of IP.
const LARGEST: usize = 65_535;

/// A socket that sends echo requests to one host.
#[derive(Debug)]
pub(crate) struct Echoes {
    aim: Aim,
    socket: Socket,
    is_raw: bool,
    /// Whose echoes these are; the kernel writes its own on a datagram socket.
    id: u16,
    payload: usize,
    buffer: Vec<u8>,
    /// The least MTU that a router named when it gave an echo back, and who.
    told: Option<(IpAddr, u32)>,
}

impl Echoes {
    /// # Errors
    /// [`ReachError::Privileges`] where neither kind of socket is allowed.
    pub(crate) fn open(aim: Aim, payload: usize) -> Result<Self, ReachError> {
        let protocol = if aim.is_v6() { Protocol::ICMPV6 } else { Protocol::ICMPV4 };
        let (socket, is_raw) = match aim.socket(Type::DGRAM, protocol) {
            Ok(socket) => (socket, false),
            Err(error) if is_closed_to_us(&error) => {
                let socket = aim.socket(Type::RAW, protocol).map_err(|error| {
                    if is_closed_to_us(&error) {
                        ReachError::Privileges
                    } else {
                        aim.refusal(error)
                    }
                })?;
                stamps::only_echo_replies(&socket, aim.is_v6())
                    .map_err(|error| aim.refusal(error))?;
                (socket, true)
            }
            Err(error) => return Err(aim.refusal(error)),
        };
        // ICMP has no ports, and a raw IPv6 socket takes none.
        let mut to = aim.to;
        to.set_port(0);
        socket.connect(&to.into()).map_err(|error| match (error.kind(), to) {
            (io::ErrorKind::PermissionDenied, SocketAddr::V4(to)) => ReachError::Setting {
                what: format!("{} is a broadcast address", to.ip()),
                remedy: "give the address of one host",
            },
            _ => aim.refusal(error),
        })?;
        let [high, low, ..] = random::seed().to_be_bytes();
        let id = u16::from_be_bytes([high, low]);
        Ok(Echoes { aim, socket, is_raw, id, payload, buffer: vec![0; LARGEST], told: None })
    }

    /// Changes the payload of what is sent from now on.
    pub(crate) fn resize(&mut self, payload: usize) {
        self.payload = payload;
    }

    /// The least MTU that a router has named so far, and which router.
    pub(crate) fn told(&self) -> Option<(IpAddr, u32)> {
        self.told
    }

    /// Sets the socket up so that no packet is cut on the way.
    pub(crate) fn never_cut(&self, set: impl Fn(&Socket) -> io::Result<()>) -> io::Result<()> {
        set(&self.socket)
    }

    fn read(&self, message: &[u8], echo: Option<Echo>) -> Option<(u16, usize)> {
        let echo = echo.filter(|echo| !self.is_raw || echo.id == self.id)?;
        Some((echo.seq, message.len()))
    }
}

/// EACCES is outside of `ping_group_range`, EPERM without CAP_NET_RAW; old
/// kernels know no datagrams of ICMP.
fn is_closed_to_us(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
        || error.raw_os_error().is_some_and(|number| [93, 94].contains(&number))
}

impl Prober for Echoes {
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant> {
        if let Some(hops) = hops {
            self.aim.set_hops(&self.socket, hops)?;
        }
        let echo = Echo { id: self.id, seq };
        let packet = icmp::request(self.aim.is_v6(), echo, self.payload);
        twice(|| {
            let at = clock::now();
            self.socket.send(&packet).map(|_| at)
        })
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        wait::readable([self.socket.as_fd()], Some(timeout)).map(drop)
    }

    fn hear(&mut self, heard: &mut Vec<Heard>) -> io::Result<()> {
        let is_v6 = self.aim.is_v6();
        while let Some(received) = stamps::take_error(&self.socket, &mut self.buffer)? {
            let at = clock::now() - received.waited;
            let message = self.buffer.get(..received.length).unwrap_or_default();
            let quoted = self.read(message, icmp::quoted(message, is_v6));
            let (Some(error), Some((seq, bytes))) = (received.error, quoted) else { continue };
            let what = if icmp::is_expired(&error, is_v6) {
                What::Expired
            } else {
                What::Unreached(icmp::meaning(&error, is_v6))
            };
            if let Some(mtu) = icmp::too_big(&error, is_v6)
                && let Some(by) = error.by
                && self.told.is_none_or(|(_, least)| mtu < least)
            {
                self.told = Some((by, mtu));
            }
            heard.push(Heard { seq, what, from: error.by, ttl: received.ttl, bytes, at });
        }
        loop {
            let received = match stamps::take(&self.socket, &mut self.buffer) {
                Ok(Some(received)) => received,
                Ok(None) => return Ok(()),
                Err(error) if is_news(&error) => continue,
                Err(error) => return Err(error),
            };
            let at = clock::now() - received.waited;
            let packet = self.buffer.get(..received.length).unwrap_or_default();
            let has_ip = self.is_raw && !is_v6;
            let message = if has_ip { icmp::behind_ipv4(packet) } else { Some(packet) };
            let reply = message.and_then(|m| self.read(m, icmp::reply(m, is_v6)));
            let Some((seq, bytes)) = reply else { continue };
            let from = Some(self.aim.to.ip());
            heard.push(Heard { seq, what: What::Reply, from, ttl: received.ttl, bytes, at });
        }
    }
}
