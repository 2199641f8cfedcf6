//! The side of a flow that is not the lane: the application at near, the target at far.

use crate::address_share::ShareTicket;
use crate::counters::Counters;
use crate::ingress::Negotiation;
use host::edge_poller::Edge;
use host::splice::Pipe;
use lane::{Reduction, Refusal, Target, Uncompressed};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The socket of a flow.
pub(crate) enum Local {
    /// Far looks up the target.
    Awaited,
    /// Far connects to the target.
    Connecting(TcpStream),
    Connected(TcpStream),
    /// Closed or reset: what still comes from the lane is discarded.
    Gone,
}

/// How a flow ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowEnd {
    /// Both sides have sent FIN, and everything was delivered.
    Orderly,
    /// The application (near) or the target (far) sent RST.
    LocalReset,
    /// The other box reported an RST on its side.
    PeerReset,
    /// The target was not connected.
    Refused(Refusal),
    /// The connection between the boxes failed.
    LaneFailed(String),
    /// Nothing was sent in either direction for the idle timeout.
    IdleTimeout,
    /// The box was stopped.
    Stopped,
}

impl FlowEnd {
    /// True if the application saw an RST.
    #[must_use]
    pub const fn is_reset(&self) -> bool {
        !matches!(self, FlowEnd::Orderly | FlowEnd::Refused(_))
    }
}

/// A flow that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSummary {
    /// The application; at far, the near box.
    pub peer: SocketAddr,
    /// The target.
    pub target: Target,
    /// Bytes from the application to the target.
    pub sent: u64,
    /// Bytes from the target to the application.
    pub received: u64,
    /// Payload of the lane for `sent`: fewer bytes where it was compressed.
    pub wan_sent: u64,
    /// Payload of the lane for `received`.
    pub wan_received: u64,
    /// Both boxes compress, and the direction from this one was left as it is, for this reason.
    pub uncompressed: Option<Uncompressed>,
    /// Time from its beginning.
    pub duration: Duration,
    /// Near: minimum RTT to the far box, if the flow ended in order.
    pub rtt: Option<Duration>,
    /// Near: time from the application's last byte to the end of the target's direction; `None` if
    /// that came first, or never.
    pub answered_after: Option<Duration>,
    /// How it ended.
    pub end: FlowEnd,
}

/// From the local socket to the lane.
#[derive(Default)]
pub(crate) struct ToLane {
    /// Near: what was sent before far has taken the lane. If it never does, another lane can carry
    /// the flow.
    pub(crate) unproven: Vec<u8>,
    /// Holds the rest of a run that was announced.
    pub(crate) pipe: Option<Pipe>,
    /// The last read filled a buffer: splice(2) pays.
    pub(crate) is_bulk: bool,
    /// The local socket has sent FIN.
    pub(crate) has_fin: bool,
    /// `Reset` is to be sent as soon as the lane is between messages.
    pub(crate) reset_due: bool,
    pub(crate) bytes: u64,
    /// Payload on the lane.
    pub(crate) wan_bytes: u64,
    /// When its last bytes were taken.
    pub(crate) last_taken: Option<Instant>,
    pub(crate) reduction: Reduction,
}

/// From the lane to the local socket.
#[derive(Default)]
pub(crate) struct ToLocal {
    pub(crate) pipe: Option<Pipe>,
    /// Bytes that were copied and that the socket has not taken.
    pub(crate) queue: VecDeque<u8>,
    /// The last run was long: splice(2) pays.
    pub(crate) is_bulk: bool,
    /// When the peer's `End` came.
    pub(crate) ended: Option<Instant>,
    /// FIN was sent.
    pub(crate) is_shut: bool,
    pub(crate) bytes: u64,
    /// Payload on the lane.
    pub(crate) wan_bytes: u64,
}

impl ToLocal {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.pipe.is_none()
    }
}

/// A flow at one of the boxes.
pub(crate) struct LocalFlow {
    pub(crate) local: Local,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The socket was reset; what had arrived before can still be read.
    pub(crate) has_failed: bool,
    /// Near: what answers the application.
    pub(crate) negotiation: Option<Box<dyn Negotiation>>,
    /// Near: far has connected the target. Far: near was told so.
    pub(crate) is_opened: bool,
    pub(crate) to_lane: ToLane,
    pub(crate) to_local: ToLocal,
    pub(crate) peer: SocketAddr,
    /// Near: lanes that were begun for it.
    pub(crate) attempts: usize,
    /// Near: counts it for its application's address until it is reported.
    pub(crate) share: Option<ShareTicket>,
    pub(crate) target: Target,
    pub(crate) began: Instant,
    pub(crate) last_active: Instant,
    pub(crate) end: Option<FlowEnd>,
    pub(crate) is_reported: bool,
}

impl LocalFlow {
    pub(crate) fn new(local: Local, peer: SocketAddr, target: Target, now: Instant) -> Self {
        LocalFlow {
            // A connected socket may have data, and has room.
            readable: true,
            writable: true,
            has_failed: false,
            local,
            negotiation: None,
            is_opened: false,
            to_lane: ToLane::default(),
            to_local: ToLocal::default(),
            peer,
            attempts: 0,
            share: None,
            target,
            began: now,
            last_active: now,
            end: None,
            is_reported: false,
        }
    }

    pub(crate) fn note(&mut self, edge: Edge) {
        self.readable |= edge.readable;
        self.writable |= edge.writable;
    }

    /// Takes note of an RST.
    pub(crate) const fn fail(&mut self) {
        (self.has_failed, self.readable) = (true, true);
    }

    /// True if the socket takes nothing any more.
    pub(crate) const fn discards(&self) -> bool {
        self.has_failed || self.is_gone()
    }

    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self.local, Local::Gone)
    }

    pub(crate) const fn connected(&self) -> Option<&TcpStream> {
        match &self.local {
            Local::Connected(stream) => Some(stream),
            _ => None,
        }
    }

    /// Gives payload to the local socket; what it does not take is held. Returns the bytes that it has
    /// taken.
    pub(crate) fn deliver(&mut self, payload: &[u8], counters: &Counters, now: Instant) -> usize {
        if self.discards() {
            return payload.len();
        }
        let writes = self.writable && self.to_local.queue.is_empty();
        let written = match self.connected().filter(|_| writes) {
            Some(mut stream) => stream.write(payload),
            None => Ok(0),
        };
        let count = match written {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.writable = false;
                0
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(_) => {
                self.fail();
                return payload.len();
            }
        };
        self.delivered(count, counters, now);
        self.to_local.queue.extend(payload.get(count..).unwrap_or_default());
        count
    }

    /// Counts bytes that were taken from the local socket.
    pub(crate) const fn taken(&mut self, bytes: usize, on_wan: usize, now: Instant) {
        self.to_lane.bytes += bytes as u64;
        self.to_lane.wan_bytes += on_wan as u64;
        self.to_lane.last_taken = Some(now);
        self.last_active = now;
    }

    /// Counts bytes that the local socket has taken.
    pub(crate) fn delivered(&mut self, count: usize, counters: &Counters, now: Instant) {
        self.to_local.bytes += count as u64;
        self.last_active = now;
        counters.to_local.add(count);
    }

    /// Writes from the queue, or else from the pipe.
    pub(crate) fn write_held(&mut self) -> io::Result<usize> {
        let Local::Connected(stream) = &self.local else { return Ok(0) };
        let held = &mut self.to_local;
        if held.queue.is_empty() {
            return held.pipe.as_mut().map_or(Ok(0), |pipe| pipe.drain(stream));
        }
        let mut stream = stream;
        let (next, _) = held.queue.as_slices();
        let count = stream.write(next)?;
        held.queue.drain(..count);
        if held.queue.is_empty() {
            held.queue = VecDeque::new();
        }
        Ok(count)
    }

    /// The flow as it has ended; `at_near` tells which side its local one is.
    pub(crate) fn summary(&self, at_near: bool, now: Instant) -> FlowSummary {
        let (own, other) = (self.to_lane.bytes, self.to_local.bytes);
        let (sent, received) = if at_near { (own, other) } else { (other, own) };
        let (own, other) = (self.to_lane.wan_bytes, self.to_local.wan_bytes);
        let (wan_sent, wan_received) = if at_near { (own, other) } else { (other, own) };
        FlowSummary {
            peer: self.peer,
            target: self.target.clone(),
            sent,
            received,
            wan_sent,
            wan_received,
            uncompressed: self.to_lane.reduction.uncompressed(),
            duration: now.saturating_duration_since(self.began),
            rtt: None,
            answered_after: self.to_local.ended.and_then(|ended| {
                ended.checked_duration_since(self.to_lane.last_taken.unwrap_or(self.began))
            }),
            end: self.end.clone().unwrap_or(FlowEnd::Stopped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::clock;
    use socket2::SockRef;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn a_receiver_that_never_catches_up_leaves_no_more_held_than_was_not_written() {
        const HELD: usize = 1 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        SockRef::from(&listener).set_recv_buffer_size(64 << 10).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        SockRef::from(&stream).set_send_buffer_size(64 << 10).unwrap();
        stream.set_nonblocking(true).unwrap();
        let (mut peer, address) = listener.accept().unwrap();
        let target = "example.com:443".parse().unwrap();
        let (counters, now) = (Counters::default(), clock::now());
        let mut flow = LocalFlow::new(Local::Connected(stream), address, target, now);
        let (mut sent, mut got, mut buffer) = (0_usize, 0_usize, vec![0; 64 << 10]);
        let piece = |from: usize, count: usize| -> Vec<u8> {
            (from..from + count).map(|offset| (offset % 251) as u8).collect()
        };
        let mut unwritten = HELD - flow.deliver(&piece(sent, HELD), &counters, now);
        sent += HELD;
        while sent < 8 * HELD {
            let count = peer.read(&mut buffer).unwrap();
            assert_eq!(buffer[..count], piece(got, count));
            got += count;
            // What was written is credit for as much.
            let written = flow.write_held().unwrap_or_default();
            unwritten -= written;
            assert!(unwritten > 0, "the receiver has caught up");
            unwritten += written - flow.deliver(&piece(sent, written), &counters, now);
            sent += written;
            assert_eq!(flow.to_local.queue.len(), unwritten);
        }
    }
}
