//! An open connection: both streams, their acknowledgements and timers.

use super::clocks::Clocks;
use super::incoming::Incoming;
use super::opening::Opened;
use super::outgoing::Outgoing;
use super::packet::{ACK_BYTES, DATA_BYTES, Frame, HEADER_BYTES, TAG_BYTES, expand};
use super::path::Path;
use super::path_mtu::{Found, PathMtu};
use super::protection::Protection;
use super::round_trip::RoundTrip;
use super::tls::TlsHandshake;
use crate::CloseReason;
use crate::connection::Statistics;
use crate::cookie::PeerAddress;
use control::{Algorithm, CongestionControl, ReceiverReport};
use std::collections::VecDeque;
use units::{Nanos, Rtt};

/// The connection is broken when nothing came for this time, ns.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// Something is sent at least this often, ns: NATs forget a UDP flow after 30 s and more.
const KEEP_ALIVE_NS: u64 = 15_000_000_000;
/// A client's last TLS messages are repeated after this time, ns.
const REPEAT_NS: u64 = 250_000_000;
/// Answers to what came from an address that waits to be validated.
const MAX_RESPONSES: usize = 4;
/// Bytes of a packet with a challenge or its response.
const CHALLENGE_BYTES: usize = HEADER_BYTES + 9 + TAG_BYTES;

/// An open connection.
#[derive(Debug)]
pub(super) struct Open {
    peer_id: u64,
    mtu: PathMtu,
    protection: Protection,
    pub(super) path: Path,
    rtt: RoundTrip,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    clocks: Clocks,
    last_messages: Option<(TlsHandshake, Nanos)>,
    /// A server's end has not received anything protected.
    pub(super) is_new: bool,
    last_received: Nanos,
    last_sent: Nanos,
    pub(super) due: Due,
    pub(super) is_closing: bool,
}

/// Packets that are to be sent.
#[derive(Debug, Default)]
pub(super) struct Due {
    tls: VecDeque<Vec<u8>>,
    responses: VecDeque<(PeerAddress, u64)>,
    pub(super) ping: bool,
    pub(super) close: bool,
}

/// Bytes of the stream in a full packet.
pub(super) const fn payload_bytes(packet_bytes: usize) -> usize {
    packet_bytes - HEADER_BYTES - DATA_BYTES - TAG_BYTES
}

/// Times of an arrival: now, when it was, and what timestamps count from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) now: Nanos,
    pub(super) arrived: Nanos,
    pub(super) began: Nanos,
}

impl Open {
    pub(super) fn new(
        now: Nanos,
        opened: Opened,
        packet_bytes: usize,
        path: Path,
        mut outgoing: Outgoing,
        incoming: Incoming,
    ) -> Self {
        // The client repeats its last messages until it receives something.
        let ping = opened.last_messages.is_none();
        let mtu = PathMtu::new(packet_bytes);
        outgoing.set_payload_bytes(payload_bytes(mtu.bytes()), !mtu.is_first());
        Open {
            peer_id: opened.peer.id,
            mtu,
            protection: opened.protection,
            path,
            rtt: RoundTrip::default(),
            outgoing,
            incoming,
            clocks: Clocks::default(),
            last_messages: opened.last_messages.map(|tls| (tls, now)),
            last_received: now,
            last_sent: now,
            is_new: ping,
            due: Due { ping, ..Due::default() },
            is_closing: false,
        }
    }

    pub(super) fn receive(
        &mut self,
        times: Times,
        from: PeerAddress,
        number: u32,
        phase: bool,
        packet: &mut [u8],
    ) -> Result<(), CloseReason> {
        let now = times.now;
        let number = self.incoming.expand(number);
        if self.incoming.is_repeated(number) {
            return Ok(());
        }
        let bytes = packet.len();
        let Some(frame) = self.protection.open(phase, number, packet) else {
            if self.protection.is_exhausted() {
                return Err(CloseReason::Protocol("too many forged packets"));
            }
            return Ok(());
        };
        let Some(frame) = Frame::parse(frame) else {
            return Err(CloseReason::Protocol("an unknown frame"));
        };
        self.last_messages = None;
        self.is_new = false;
        self.last_received = now;
        self.path.on_packet(now, from, bytes, self.incoming.is_largest(number));
        let wants_ack = matches!(frame, Frame::Data(..) | Frame::Ping);
        let arrived = Nanos(times.arrived.nanos_since(times.began));
        self.incoming.on_packet(now, arrived, number, wants_ack);
        match frame {
            Frame::Data(header, payload) => {
                if !self.incoming.on_data(now, &header, payload) {
                    return Err(CloseReason::Protocol(
                        "data beyond the end of the stream or of the buffer",
                    ));
                }
            }
            Frame::Ack(ack) => {
                let arrived_at = self.clocks.on_ack(now, &ack);
                if self.outgoing.on_ack(now, arrived_at, &ack, &mut self.rtt).is_err() {
                    return Err(CloseReason::Protocol("acknowledgement of what was never sent"));
                }
                let largest = expand(ack.largest, self.outgoing.flight().next());
                let found = self.mtu.on_ack(now, &ack, largest);
                self.on_path_mtu(found)?;
            }
            Frame::Ping => {}
            Frame::Close => return Err(CloseReason::Peer),
            Frame::PathChallenge(number) => {
                if self.due.responses.len() < MAX_RESPONSES {
                    self.due.responses.push_back((from, number));
                }
            }
            Frame::PathResponse(number) => {
                self.path.on_response(from, number);
            }
        }
        Ok(())
    }

    /// UDP payload of the largest packet that may carry data, bytes.
    pub(super) fn packet_bytes(&self) -> usize {
        self.mtu.bytes()
    }

    pub(super) fn smaller_packets(&self) -> Option<(usize, usize)> {
        self.mtu.smaller()
    }

    fn on_path_mtu(&mut self, found: Option<Found>) -> Result<(), CloseReason> {
        match found {
            Some(Found::Vanishes(bytes)) => return Err(CloseReason::PathMtu(bytes)),
            Some(Found::Size(bytes)) => {
                self.outgoing.set_payload_bytes(payload_bytes(bytes), !self.mtu.is_first());
            }
            None => {}
        }
        Ok(())
    }

    /// A ping of `bytes`, which shows whether the path carries them.
    fn send_probe(&mut self, now: Nanos, bytes: usize, out: &mut Vec<u8>) -> PeerAddress {
        let number = self.outgoing.flight().next();
        self.protection.seal(self.peer_id, number, out, |out| {
            Frame::Ping.write(out);
            out.resize(bytes - TAG_BYTES, 0);
        });
        self.outgoing.on_send_other(now);
        self.mtu.on_send(now, number, bytes);
        self.last_sent = now;
        self.path.address()
    }

    /// Appends one packet and gives where it is sent.
    pub(super) fn send(&mut self, now: Nanos, frame: Frame<'_>, out: &mut Vec<u8>) -> PeerAddress {
        let number = self.outgoing.flight().next();
        self.protection.seal(self.peer_id, number, out, |out| frame.write(out));
        self.outgoing.on_send_other(now);
        self.last_sent = now;
        self.path.address()
    }

    /// Fills `out` with packets and gives where they are sent; `first` gets the length of the first
    /// of a train.
    pub(super) fn poll(
        &mut self,
        now: Nanos,
        timestamp_us: u32,
        max_segments: usize,
        first: &mut Option<usize>,
        out: &mut Vec<u8>,
    ) -> Option<PeerAddress> {
        if let Some(datagram) = self.due.tls.pop_front() {
            out.extend(datagram);
            return Some(self.path.address());
        }
        if let Some((to, number)) = self.due.responses.pop_front() {
            self.send(now, Frame::PathResponse(number), out);
            return Some(to);
        }
        if let Some((to, number)) = self.path.poll(now, CHALLENGE_BYTES) {
            self.send(now, Frame::PathChallenge(number), out);
            return Some(to);
        }
        if std::mem::take(&mut self.due.ping) {
            return Some(self.send(now, Frame::Ping, out));
        }
        if let Some(bytes) = self.mtu.poll() {
            return Some(self.send_probe(now, bytes, out));
        }
        let max_bytes = self.packet_bytes() - HEADER_BYTES - ACK_BYTES - TAG_BYTES;
        let (protection, outgoing) = (&mut self.protection, &mut self.outgoing);
        let id = self.peer_id;
        let has_ack = self.incoming.poll_ack(now, max_bytes, |ack| {
            let number = outgoing.flight().next();
            protection.seal(id, number, out, |out| Frame::Ack(*ack).write(out));
        });
        if has_ack {
            self.outgoing.on_send_other(now);
        } else if self.is_closing && self.outgoing.is_empty() {
            // The connection is closed with it.
            self.due.close = true;
            self.send(now, Frame::Close, out);
        } else {
            self.outgoing.transmit(now, timestamp_us, &self.rtt, max_segments, |number, frame| {
                protection.seal(id, number, out, |out| frame.write(out));
                first.get_or_insert(out.len());
            });
        }
        if out.is_empty() {
            return None;
        }
        self.last_sent = now;
        Some(self.path.address())
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        let is_due = self.due.ping || !self.due.responses.is_empty() || !self.due.tls.is_empty();
        [
            is_due.then_some(Nanos(0)),
            self.last_messages.as_ref().map(|(_, at)| *at),
            Some(self.last_received.plus_nanos(TIMEOUT_NS)),
            Some(self.last_sent.plus_nanos(KEEP_ALIVE_NS)),
            self.path.next_timeout(CHALLENGE_BYTES),
            self.incoming.next_ack(),
            self.outgoing.next_transmit(),
            self.outgoing.next_timeout(&self.rtt),
            self.mtu.next_timeout(&self.rtt),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) fn on_timeout(&mut self, now: Nanos) -> Result<(), CloseReason> {
        if now >= self.last_received.plus_nanos(TIMEOUT_NS) {
            return Err(CloseReason::TimedOut);
        }
        if now >= self.last_sent.plus_nanos(KEEP_ALIVE_NS) {
            self.due.ping = true;
        }
        if let Some((tls, at)) = &mut self.last_messages
            && *at <= now
        {
            *at = now.plus_nanos(REPEAT_NS);
            self.due.tls.extend(tls.datagrams(self.peer_id));
        }
        self.due.ping |= self.outgoing.on_timeout(now, &self.rtt);
        if self.outgoing.is_stalled() {
            self.mtu.doubt(now);
        }
        let found = self.mtu.on_timeout(now, &self.rtt);
        self.on_path_mtu(found)?;
        if self.protection.is_exhausted() {
            return Err(CloseReason::Protocol("keys are used up"));
        }
        Ok(())
    }

    pub(super) fn statistics(&self, algorithm: Algorithm, now: Nanos) -> Statistics {
        let outgoing = &self.outgoing;
        Statistics {
            algorithm: algorithm.name(),
            rtt: self.rtt.smoothed(),
            rtt_variance: Rtt::from_nanos(self.rtt.variance_ns()),
            period_ns: outgoing.period_ns(&self.rtt),
            cwnd: outgoing.controller().cwnd(),
            flow_window: outgoing.window(),
            in_flight: outgoing.flight().in_flight(),
            unsent: outgoing.unsent(),
            acknowledged: outgoing.acknowledged(),
            reported: ReceiverReport::default(),
            limit: outgoing.limit(now),
            sent: outgoing.counters(),
            received: self.incoming.counters(),
            delivery: outgoing.flight().reported_rate(),
            queueing: self.clocks.queueing(),
        }
    }
}
