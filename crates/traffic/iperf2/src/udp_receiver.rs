//! Receives the UDP streams of one port from its socket.

use crate::context::{Context, TICK};
use crate::flows::{Bounds, FlowSocket, ReverseRequest, UdpFlows};
use crate::sockets;
use crate::tcp::is_retryable;
use crate::udp::MAX_PAYLOAD;
use host::{address, clock, packet_info};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;

pub(crate) struct UdpReceiver<'a, 'd> {
    pub(crate) flows: UdpFlows<'a, 'd>,
    socket: SharedSocket<'d>,
    buffer: Vec<u8>,
    ticked: Instant,
}

struct SharedSocket<'d> {
    socket: &'d UdpSocket,
    local: SocketAddr,
    /// The address that the last datagram was sent to: what answers it comes from there.
    asked: Option<IpAddr>,
}

impl FlowSocket for SharedSocket<'_> {
    fn send(&self, bytes: &[u8], peer: SocketAddr) {
        // Whoever sends to a group expects no answer.
        if !self.local.ip().is_multicast() {
            let _ = packet_info::send(self.socket, bytes, peer, self.asked);
        }
    }

    fn local_towards(&self, peer: SocketAddr) -> SocketAddr {
        match self.asked {
            Some(asked) => address::beside(asked, self.local.port(), peer),
            None => sockets::local_towards(self.local, peer),
        }
    }
}

impl<'a, 'd> UdpReceiver<'a, 'd> {
    pub(crate) fn new(
        context: &'d Context<'a>,
        socket: &'d UdpSocket,
        bounds: Bounds,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK))?;
        let local = socket.local_addr()?;
        packet_info::record(socket, local.is_ipv6())?;
        let local = address::canonical(local);
        Ok(UdpReceiver {
            flows: UdpFlows::new(context, bounds),
            socket: SharedSocket { socket, local, asked: None },
            buffer: vec![0; MAX_PAYLOAD as usize],
            ticked: clock::now(),
        })
    }

    /// Accepts reverse streams from one address only.
    pub(crate) fn only_from(mut self, peer: IpAddr) -> Self {
        self.flows.only = Some(peer);
        self
    }

    /// Receives one datagram, or waits for [`TICK`].
    pub(crate) fn step(&mut self, on_request: &mut dyn FnMut(ReverseRequest)) -> io::Result<()> {
        let read = packet_info::receive(self.socket.socket, &mut self.buffer);
        let now = clock::now();
        let result = match read {
            Ok((length, peer, asked)) => {
                self.socket.asked = asked;
                let on_request = &mut |request| on_request(ReverseRequest { asked, ..request });
                let at = (now, clock::unix_time());
                self.flows.take(&self.buffer[..length], peer, at, &self.socket, on_request);
                Ok(())
            }
            Err(error) if is_retryable(&error) => Ok(()),
            // An ICMP error to an earlier report: the client is gone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(error),
        };
        if now.saturating_duration_since(self.ticked) >= TICK / 2 {
            self.ticked = now;
            self.flows.tick(now);
        }
        result
    }
}
