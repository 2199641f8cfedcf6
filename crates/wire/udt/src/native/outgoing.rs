//! The stream that is sent: what was written, what is in flight, lost or acknowledged, and
//! when the next packet may leave.

use super::flight::{Flight, NeverSent};
use super::packet::{Ack, DataHeader, Frame, expand};
use super::round_trip::RoundTrip;
use crate::packet_store::PacketStore;
use crate::sender::pacing::{self, Pacer};
use crate::sender::{SendCounters, SendLimit};
use control::{Congestion, CongestionControl, Controller, Phase};
use runs::{PacketRun, RunSet};
use units::{Nanos, Rtt};

/// Send buffer at the start, packets.
const FIRST_CAPACITY: u64 = 8_192;
/// Packets that a probe timeout sends beyond the windows (RFC 9002 section 6.2.4).
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
//# Sending two packets on PTO expiration increases resilience to packet drops, thus reducing
//# the probability of consecutive PTO events.
const PROBES: u32 = 2;
/// Probe timeouts in a row after which all in flight is taken as lost.
const PERSISTENT: u32 = 3;
/// Packets that are written before the first answer, which are small: more would stay so.
const FIRST_WRITTEN: u64 = 64;
/// Probe timeouts double up to this often.
const MAX_DOUBLINGS: u32 = 6;

/// The stream that is sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    store: PacketStore,
    /// Bytes of new packets, small ones until the path MTU is known.
    payload_bytes: usize,
    is_size_known: bool,
    /// The first packet that is not acknowledged, the next to be sent for the first time,
    /// and one past the last that was written.
    una: u64,
    nxt: u64,
    end: u64,
    /// Packets acknowledged from `una` on, and packets to be repeated.
    acked: RunSet,
    lost: RunSet,
    /// The last packet can still be extended; the last packet of all is known.
    is_tail_open: bool,
    last: Option<u64>,
    /// The first packet beyond the receiver's buffer.
    edge: u64,
    max_capacity: u64,
    flight: Flight,
    control: Controller,
    phase: Phase,
    /// A recovery ends when a packet with this number or a later one is acknowledged.
    recovery_end: u64,
    /// Packets taken as lost in this recovery that did not turn out to be late.
    needed: u64,
    pacer: Pacer,
    /// With nothing in flight and a full receive buffer: when to ask for an acknowledgement,
    /// as the one that opens the window may be lost.
    window_probe: Option<Nanos>,
    /// Probe timeouts in a row, and packets that may be sent beyond the windows.
    timeouts: u32,
    probes: u32,
    /// The window limited the sender since the last acknowledgement but one.
    was_limited: [bool; 2],
    counters: SendCounters,
}

impl Outgoing {
    pub(crate) fn new(
        payload_bytes: usize,
        window: u64,
        max_capacity: u64,
        control: Controller,
    ) -> Self {
        Outgoing {
            store: PacketStore::new(payload_bytes),
            payload_bytes,
            is_size_known: true,
            una: 0,
            nxt: 0,
            end: 0,
            acked: RunSet::default(),
            lost: RunSet::default(),
            is_tail_open: false,
            last: None,
            edge: window,
            max_capacity,
            flight: Flight::new(),
            control,
            phase: Phase::Open,
            recovery_end: 0,
            needed: 0,
            pacer: Pacer::new(),
            window_probe: None,
            timeouts: 0,
            probes: 0,
            was_limited: [false; 2],
            counters: SendCounters::default(),
        }
    }

    pub(crate) const fn counters(&self) -> SendCounters {
        self.counters
    }

    pub(crate) const fn controller(&self) -> &Controller {
        &self.control
    }

    pub(crate) const fn flight(&self) -> &Flight {
        &self.flight
    }

    /// New packets have so many bytes at most; `is_known`: the path MTU is no
    /// longer waited for.
    pub(crate) fn set_payload_bytes(&mut self, bytes: usize, is_known: bool) {
        self.payload_bytes = bytes.min(self.store.stride());
        self.is_size_known = is_known;
    }

    /// Whether what is in flight has not been acknowledged for several timeouts.
    pub(crate) const fn is_stalled(&self) -> bool {
        self.timeouts >= PERSISTENT
    }

    /// A packet without data is sent.
    pub(crate) fn on_send_other(&mut self, now: Nanos) {
        self.flight.on_send(now, None);
    }

    /// Packets of the stream that the receiver has room for beyond those sent.
    pub(crate) const fn window(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }

    pub(crate) const fn acknowledged(&self) -> u64 {
        self.una
    }

    pub(crate) const fn unsent(&self) -> u64 {
        self.end - self.nxt
    }

    /// Whether all that was written is acknowledged.
    pub(crate) const fn is_empty(&self) -> bool {
        self.una == self.end
    }

    fn capacity(&self) -> u64 {
        if !self.is_size_known {
            return FIRST_WRITTEN.min(self.max_capacity);
        }
        let windows = self.control.send_buffer_windows() * self.control.cwnd();
        windows.max(FIRST_CAPACITY).min(self.max_capacity)
    }

    /// Packets that can be written now.
    pub(crate) fn room(&self) -> u64 {
        if self.last.is_some() {
            return 0;
        }
        self.capacity().saturating_sub(self.end - self.una)
    }

    /// Writes bytes, as many as there is room for.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> usize {
        let mut written = 0;
        if self.last.is_some() {
            return 0;
        }
        if self.is_tail_open && self.nxt < self.end {
            let room = self.payload_bytes.saturating_sub(self.store.payload(self.end - 1).len());
            written = self.store.extend(self.end - 1, &bytes[..room.min(bytes.len())]);
            bytes = &bytes[written..];
        }
        let full = self.payload_bytes;
        for payload in bytes.chunks(full).take(self.room() as usize) {
            self.store.put(self.end, 0, payload);
            self.end += 1;
            written += payload.len();
            self.is_tail_open = payload.len() < full;
        }
        written
    }

    /// The stream ends: nothing more is written.
    pub(crate) fn finish(&mut self) {
        if self.last.is_none() {
            // A packet of its own: the one before it may be in flight already.
            self.store.put(self.end, 0, &[]);
            self.last = Some(self.end);
            self.end += 1;
        }
    }

    fn congestion_window(&self) -> u64 {
        pacing::congestion_window(&self.control, self.phase)
    }

    /// What keeps the next packet from being sent; `None` if it may be.
    pub(crate) fn limit(&self, now: Nanos) -> Option<SendLimit> {
        if self.lost.is_empty() {
            if self.nxt == self.end {
                let is_full = self.room() == 0 && self.last.is_none();
                return Some(if is_full { SendLimit::SendBuffer } else { SendLimit::Application });
            }
            if self.nxt >= self.edge {
                return Some(SendLimit::ReceiveWindow);
            }
        }
        if self.probes > 0 {
            return None;
        }
        if self.flight.in_flight() >= self.congestion_window() {
            return Some(SendLimit::CongestionWindow);
        }
        (now < self.pacer.next()).then_some(SendLimit::Pacing)
    }

    pub(crate) fn period_ns(&self, rtt: &RoundTrip) -> f64 {
        let (window, bytes) = (self.congestion_window(), self.store.stride());
        pacing::period_ns(&self.control, window, rtt.smoothed_ns(), bytes)
    }

    /// Calls `send` with the number and frame of each packet that may leave now, at most
    /// `max_packets`, which are as long as each other except the last one.
    pub(crate) fn transmit(
        &mut self,
        now: Nanos,
        timestamp_us: u32,
        rtt: &RoundTrip,
        max_packets: usize,
        mut send: impl FnMut(u64, Frame<'_>),
    ) {
        let period_ns = self.period_ns(rtt);
        let is_blocked =
            self.flight.in_flight() == 0 && self.limit(now) == Some(SendLimit::ReceiveWindow);
        let probe = now.plus_nanos(rtt.probe_timeout_ns());
        self.window_probe = is_blocked.then(|| self.window_probe.unwrap_or(probe));
        let most = pacing::burst_packets(period_ns).min(max_packets as u64);
        let mut train = None;
        for count in 0..most {
            // Pacing is of trains: their packets leave together.
            let limit = self.limit(now).filter(|limit| count == 0 || *limit != SendLimit::Pacing);
            if let Some(limit) = limit {
                self.was_limited[1] |= limit == SendLimit::CongestionWindow;
                if limit == SendLimit::Application
                    && self.flight.in_flight() < self.congestion_window()
                {
                    self.flight.set_app_limited();
                }
                return;
            }
            let packet = self.lost.first().map_or(self.nxt, |run| run.start);
            let payload = self.store.payload(packet);
            let full = *train.get_or_insert(payload.len());
            if payload.len() > full {
                // Of another train.
                return;
            }
            if self.lost.take_first(1).is_some() {
                self.counters.retransmitted += 1;
            } else {
                self.nxt += 1;
            }
            let header = DataHeader {
                sequence: packet as u32,
                timestamp_us,
                is_last: self.last == Some(packet),
                is_blocked: self.nxt >= self.edge && self.nxt < self.end,
            };
            let number = self.flight.next();
            send(number, Frame::Data(header, payload));
            let is_full = payload.len() == full;
            self.counters.packets += 1;
            self.probes = self.probes.saturating_sub(1);
            self.flight.on_send(now, Some(packet));
            self.pacer.on_send(now, period_ns);
            if !is_full {
                return;
            }
        }
    }

    /// An acknowledgement came; its newest packet had arrived at the time `arrived_at`.
    ///
    /// # Errors
    /// It acknowledges what was never sent.
    pub(crate) fn on_ack(
        &mut self,
        now: Nanos,
        arrived_at: Nanos,
        ack: &Ack<'_>,
        rtt: &mut RoundTrip,
    ) -> Result<(), NeverSent> {
        self.counters.acks += 1;
        let prior_in_flight = self.flight.in_flight();
        let (prior_una, una, nxt) = (self.una, self.una, self.nxt);
        let (acked, lost) = (&mut self.acked, &mut self.lost);
        let arrived = self.flight.on_ack(arrived_at, ack, |packet| {
            if packet >= una && packet < nxt {
                let packet = PacketRun::new(packet, packet + 1);
                acked.insert(packet);
                lost.remove(packet, |_| {});
            }
        })?;
        if let Some(sent) = arrived.largest_sent {
            rtt.update(now, sent, ack.delay_us);
        }
        self.edge = self.edge.max(expand(ack.edge, self.edge));
        self.advance();
        let mut sample = self.flight.sample(arrived_at, rtt);
        let newly_lost = self.detect_losses(now, rtt);
        if let Some(sample) = &mut sample {
            sample.lost += newly_lost;
        }
        let delivered = arrived.packets + arrived.late;
        self.undo(now, arrived.late);
        if delivered > 0 {
            self.timeouts = 0;
            self.probes = 0;
        }
        if self.phase != Phase::Open && arrived.largest >= self.recovery_end {
            self.phase = Phase::Open;
            self.control.on_recovery_end(now);
        }
        let was_limited = self.was_limited[0] || self.was_limited[1];
        self.was_limited = [self.was_limited[1], false];
        self.control.on_ack(&control::Ack {
            now,
            newly_acked: self.una - prior_una,
            newly_delivered: delivered,
            newly_lost,
            delivered: self.flight.delivered(),
            newly_marked: 0,
            acked_to: self.una,
            sent_to: self.nxt,
            in_flight: self.flight.in_flight(),
            prior_in_flight,
            cwnd_limited: was_limited,
            rtt: arrived.largest_sent.map(|sent| Rtt::from_nanos(now.nanos_since(sent))),
            srtt: rtt.smoothed(),
            rate: sample,
            receiver: None,
            phase: self.phase,
        });
        Ok(())
    }

    /// Packets were late, not lost. If that is so of all of a recovery, it was needless.
    fn undo(&mut self, now: Nanos, late: u64) {
        if late == 0 || self.phase != Phase::Recovery {
            return;
        }
        self.needed = self.needed.saturating_sub(late);
        if self.needed == 0 {
            self.phase = Phase::Open;
            self.control.undo(now);
        }
    }

    /// Releases what is acknowledged without gaps.
    fn advance(&mut self) {
        let Some(run) = self.acked.first().filter(|run| run.start <= self.una) else { return };
        self.una = run.end;
        self.acked.remove_before(run.end);
        self.store.release_before(run.end);
    }

    fn detect_losses(&mut self, now: Nanos, rtt: &RoundTrip) -> u64 {
        let (una, acked, lost) = (self.una, &self.acked, &mut self.lost);
        let newly_lost = self.flight.detect_losses(now, rtt, |packet| {
            if packet >= una && !acked.contains(packet) {
                lost.insert(PacketRun::new(packet, packet + 1));
            }
        });
        if newly_lost > 0 {
            self.counters.lost += newly_lost;
            let is_new = self.phase == Phase::Open;
            let congestion = self.congestion(now, is_new);
            self.control.on_congestion(&congestion);
            if is_new {
                self.phase = Phase::Recovery;
                self.recovery_end = self.flight.next();
                self.needed = 0;
            }
            self.needed += newly_lost;
        }
        newly_lost
    }

    fn congestion(&self, now: Nanos, is_new: bool) -> Congestion {
        Congestion {
            now,
            in_flight: self.flight.in_flight(),
            is_new,
            first_lost: self.lost.first().map_or(self.una, |run| run.start),
            lost: self.lost.packets(),
            sent_to: self.nxt,
        }
    }

    /// When a packet may be sent that is only held back by pacing.
    pub(crate) fn next_transmit(&self) -> Option<Nanos> {
        match self.limit(Nanos(0)) {
            None => Some(Nanos(0)),
            Some(SendLimit::Pacing) => Some(self.pacer.next()),
            Some(_) => None,
        }
    }

    /// When a loss or the absence of acknowledgements is to be noticed.
    pub(crate) fn next_timeout(&self, rtt: &RoundTrip) -> Option<Nanos> {
        if self.flight.in_flight() == 0 {
            return self.window_probe;
        }
        let probe_ns = rtt.probe_timeout_ns() << self.timeouts.min(MAX_DOUBLINGS);
        let probe = self.flight.last_sent().plus_nanos(probe_ns);
        Some(self.flight.loss_time().map_or(probe, |loss| loss.min(probe)))
    }

    /// Time has passed. True if the receiver is to be asked for an acknowledgement.
    pub(crate) fn on_timeout(&mut self, now: Nanos, rtt: &RoundTrip) -> bool {
        if self.next_timeout(rtt).is_none_or(|due| now < due) {
            return false;
        }
        if self.flight.in_flight() == 0 {
            self.window_probe = Some(now.plus_nanos(rtt.probe_timeout_ns()));
            return true;
        }
        self.on_flight_timeout(now, rtt);
        false
    }

    fn on_flight_timeout(&mut self, now: Nanos, rtt: &RoundTrip) {
        if self.flight.loss_time().is_some_and(|due| due <= now) {
            self.detect_losses(now, rtt);
            return;
        }
        self.timeouts += 1;
        self.counters.timeouts += 1;
        self.probes = PROBES;
        if self.timeouts >= PERSISTENT {
            let (una, acked, lost) = (self.una, &self.acked, &mut self.lost);
            self.flight.lose_all(now, rtt, |packet| {
                if packet >= una && !acked.contains(packet) {
                    lost.insert(PacketRun::new(packet, packet + 1));
                }
            });
            let congestion = self.congestion(now, self.phase == Phase::Open);
            self.control.on_retransmission_timeout(&congestion);
            self.phase = Phase::Loss;
            self.recovery_end = self.flight.next();
        } else if let Some(packet) = self.flight.oldest().filter(|packet| *packet >= self.una) {
            // A copy; the packet is not taken as lost.
            self.lost.insert(PacketRun::new(packet, packet + 1));
        }
    }
}
