//! A connection: the handshake, both halves, and the timers they share.

mod expiry;
mod statistics;

use crate::connecting::{self, Agreed, Connecting, Progress};
use crate::handshake::{Handshake, Request, SocketType};
use crate::packet::{
    Control, ControlHeader, DataHeader, HEADER_BYTES, LOWER_HEADER_BYTES, MessagePart, Packet,
};
use crate::receiver::Receiver;
use crate::rtt::RttEstimator;
use crate::sender::{Rates, Sender};
use crate::sequence::Sequence;
use crate::{CloseReason, Config, LossList, PeerAddress, SYN_NS};
use expiry::{Expired, Expiry};

pub use statistics::Statistics;
use units::Nanos;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    /// Timestamps count from it.
    opened: Nanos,
    state: State,
    /// The peer's socket ID.
    peer_id: u32,
    is_rendezvous: bool,
    sender: Sender,
    receiver: Receiver,
    rtt: RttEstimator,
    rates: Rates,
    expiry: Expiry,
    /// The application has closed its end.
    is_closing: bool,
    due: Due,
    last_ack2: Option<(Sequence, Nanos)>,
}

#[derive(Debug)]
enum State {
    Connecting(Connecting),
    Established,
    Closed(CloseReason),
}

/// Control packets that are to be sent.
#[derive(Debug, Default)]
struct Due {
    handshake: Option<Handshake>,
    ack2: Option<Sequence>,
    keep_alive: bool,
    shutdown: bool,
}

/// Datagrams to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Length of each; the last one may be shorter.
    pub packet_bytes: usize,
    /// They are a packet pair, to be sent as single datagrams: one right after the other,
    /// but not as one train, which could be received as one.
    pub is_pair: bool,
    /// Where to; `None`: to the peer that the socket is connected to.
    pub to: Option<PeerAddress>,
}

impl Connection {
    /// A client that begins its handshake.
    #[must_use]
    pub fn client(now: Nanos, config: Config) -> Self {
        Connection::connecting(now, config, false)
    }

    /// One end of a rendezvous: both ends connect to each other.
    #[must_use]
    pub fn rendezvous(now: Nanos, config: Config) -> Self {
        Connection::connecting(now, config, true)
    }

    fn connecting(now: Nanos, config: Config, is_rendezvous: bool) -> Self {
        let agreed = Agreed {
            peer_id: 0,
            packet_bytes: config.packet_bytes,
            flow_window: 0,
            our_first: config.initial_sequence,
            peer_first: config.initial_sequence,
        };
        let state = State::Connecting(Connecting::new(now, &config, is_rendezvous));
        Connection { state, is_rendezvous, ..Connection::established(now, config, agreed) }
    }

    /// A connection after its handshake.
    pub(crate) fn established(now: Nanos, config: Config, agreed: Agreed) -> Self {
        let lower = LOWER_HEADER_BYTES + HEADER_BYTES;
        let payload_bytes = (agreed.packet_bytes as usize).saturating_sub(lower).max(1);
        let mss = u32::try_from(payload_bytes).unwrap_or(u32::MAX);
        let control = config.algorithm.start(mss, config.seed);
        let (max_buffer, window) = (config.max_buffer, u64::from(agreed.flow_window));
        Connection {
            config,
            opened: now,
            state: State::Established,
            peer_id: agreed.peer_id,
            is_rendezvous: false,
            sender: Sender::new(agreed.our_first, payload_bytes, max_buffer, window, control),
            receiver: Receiver::new(
                config.socket_type,
                agreed.peer_first,
                payload_bytes,
                max_buffer,
            ),
            rtt: RttEstimator::new(),
            rates: Rates::default(),
            expiry: Expiry::new(now),
            is_closing: false,
            due: Due::default(),
            last_ack2: None,
        }
    }

    /// Its socket ID, which the headers of the peer's packets name.
    #[must_use]
    pub const fn socket_id(&self) -> u32 {
        self.config.socket_id
    }

    /// The peer's socket ID; zero before the handshake is over.
    #[must_use]
    pub const fn peer_id(&self) -> u32 {
        self.peer_id
    }

    /// Whether the handshake is over and the connection not closed.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        matches!(self.state, State::Established)
    }

    /// Why it is closed; `None` if it is not. What arrived before can still be read.
    #[must_use]
    pub const fn closed(&self) -> Option<CloseReason> {
        match self.state {
            State::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Bytes of a full packet on the wire, without the headers of IP and UDP.
    #[must_use]
    pub const fn packet_bytes(&self) -> usize {
        self.sender.packet_bytes()
    }

    /// Bytes that a full packet carries.
    #[must_use]
    pub const fn payload_bytes(&self) -> usize {
        self.packet_bytes() - HEADER_BYTES
    }

    /// Datagrams arrived together: one, or a train that was received as one. `arrived` is
    /// when, not after `now`.
    pub fn receive<'a>(
        &mut self,
        now: Nanos,
        arrived: Nanos,
        datagrams: impl IntoIterator<Item = &'a [u8]>,
    ) {
        let mut packets = 0;
        for datagram in datagrams {
            let Ok(packet) = Packet::parse(datagram) else { continue };
            match packet {
                Packet::Data(header, payload) => {
                    if header.destination == self.config.socket_id && self.is_established() {
                        packets += 1;
                        self.receiver.on_data(now, arrived, &header, payload);
                    }
                }
                Packet::Control(header, control) => {
                    let is_handshake = matches!(control, Control::Handshake(_));
                    // Only the other end of a rendezvous does not know the ID at first; a
                    // client's is its protection against others.
                    let is_open = self.is_rendezvous || self.is_established();
                    let is_ours = header.destination == self.config.socket_id
                        || (is_handshake && header.destination == 0 && is_open);
                    if is_ours {
                        self.on_control(now, &control);
                    }
                }
            }
        }
        if packets > 0 {
            self.receiver.on_arrival(arrived, packets);
            self.expiry.on_response(now);
        }
    }

    fn on_control(&mut self, now: Nanos, control: &Control<'_>) {
        if let Control::Handshake(handshake) = control {
            self.on_handshake(now, handshake);
            return;
        }
        if !self.is_established() {
            // The peer has missed that the connection is closed.
            self.due.shutdown |= matches!(
                (&self.state, control),
                (State::Closed(CloseReason::Local), Control::Ack(_) | Control::KeepAlive)
            );
            return;
        }
        self.expiry.on_response(now);
        match control {
            Control::Ack(ack) => {
                if let Some(full) = ack.full {
                    self.confirm(now, full.number);
                    if full.rtt_us > 0 {
                        self.rtt.update(u64::from(full.rtt_us) * 1_000);
                    }
                    if let Some(rates) = full.rates {
                        self.rates.add(rates);
                    }
                }
                if self.sender.on_ack(now, ack, &self.rtt, self.rates).is_err() {
                    self.abort(CloseReason::Protocol("acknowledgement of what was never sent"));
                }
            }
            Control::Nak(list) => self.sender.on_nak(now, *list),
            Control::Ack2(number) => {
                if let Some(sample_ns) = self.receiver.on_ack2(now, *number) {
                    self.rtt.update(sample_ns);
                }
            }
            Control::MessageDrop(_, first, last) => self.receiver.on_message_drop(*first, *last),
            Control::Shutdown => self.state = State::Closed(CloseReason::Peer),
            Control::PeerError(_) => self.state = State::Closed(CloseReason::Peer),
            _ => {}
        }
    }

    /// Confirms an acknowledgement (ACK2): at most once per SYN, or if it is repeated.
    fn confirm(&mut self, now: Nanos, number: Sequence) {
        let is_due =
            self.last_ack2.is_none_or(|(last, at)| last == number || now.nanos_since(at) >= SYN_NS);
        if is_due {
            self.last_ack2 = Some((number, now));
            self.due.ack2 = Some(number);
        }
    }

    fn on_handshake(&mut self, now: Nanos, handshake: &Handshake) {
        match &mut self.state {
            State::Connecting(connecting) => match connecting.on_handshake(now, handshake) {
                Progress::Pending => {}
                Progress::Established(agreed, last) => {
                    let (opened, is_rendezvous) = (self.opened, self.is_rendezvous);
                    let is_closing = self.is_closing;
                    *self = Connection {
                        opened,
                        is_rendezvous,
                        is_closing,
                        ..Connection::established(now, self.config, agreed)
                    };
                    self.due.handshake = last;
                }
                Progress::Failed(reason) => self.state = State::Closed(reason),
            },
            State::Established => self.answer_again(handshake),
            State::Closed(_) => {}
        }
    }

    /// The peer missed the last answer.
    fn answer_again(&mut self, handshake: &Handshake) {
        let request = match handshake.request {
            Request::RendezvousDone => return,
            _ if self.is_rendezvous => Request::RendezvousDone,
            Request::Induction => Request::Conclusion,
            _ => return,
        };
        self.due.handshake = Some(connecting::request(&self.config, request));
    }

    /// The next datagrams to send: fills `out` with at most `max_segments` packets, and says
    /// of what length. `None` if there is nothing to send now.
    pub fn poll_transmit(
        &mut self,
        now: Nanos,
        max_segments: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        out.clear();
        if self.poll_control(now, out) {
            return Some(Transmit { packet_bytes: out.len(), is_pair: false, to: None });
        }
        if !self.is_established() {
            return None;
        }
        let (destination, opened) = (self.peer_id, self.opened);
        // Modulo 2^32.
        let timestamp_us = (now.nanos_since(opened) / 1_000) as u32;
        let header = |sequence: Sequence, part: MessagePart| DataHeader {
            sequence,
            part,
            timestamp_us,
            destination,
        };
        let is_pair = self.sender.transmit(now, &self.rtt, header, max_segments.max(1), out);
        let packet_bytes = self.sender.packet_bytes().min(out.len());
        (packet_bytes > 0).then_some(Transmit { packet_bytes, is_pair, to: None })
    }

    /// Appends a control packet that is due, if there is one.
    fn poll_control(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        let mut header = ControlHeader { timestamp_us: 0, destination: self.peer_id };
        if let State::Connecting(connecting) = &mut self.state {
            let Some((handshake, destination)) = connecting.poll(now) else { return false };
            header.destination = destination;
            Control::Handshake(handshake).write(header, out);
            return true;
        }
        if let Some(handshake) = self.due.handshake.take() {
            Control::Handshake(handshake).write(header, out);
        } else if std::mem::take(&mut self.due.shutdown) {
            Control::Shutdown.write(header, out);
        } else if !self.is_established() {
            return false;
        } else if let Some(number) = self.due.ack2.take() {
            Control::Ack2(number).write(header, out);
        } else if let Some(body) = self.poll_nak() {
            let Ok(list) = LossList::parse(&body) else { return false };
            Control::Nak(list).write(header, out);
        } else if let Some((message, first, last)) = self.sender.poll_dropped() {
            Control::MessageDrop(message, first, last).write(header, out);
        } else if let Some(ack) = self.receiver.poll_ack(now, &self.rtt) {
            Control::Ack(ack).write(header, out);
        } else if std::mem::take(&mut self.due.keep_alive) {
            Control::KeepAlive.write(header, out);
        } else if self.is_closing && self.sender.is_confirmed() {
            self.state = State::Closed(CloseReason::Local);
            Control::Shutdown.write(header, out);
        } else {
            return false;
        }
        true
    }

    fn poll_nak(&mut self) -> Option<Vec<u8>> {
        self.receiver.poll_nak(self.packet_bytes() - HEADER_BYTES)
    }

    /// When [`Connection::on_timeout`] and [`Connection::poll_transmit`] are to be called,
    /// if nothing happens before; `None`: never.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Nanos> {
        match &self.state {
            State::Connecting(connecting) => Some(connecting.next_timeout()),
            State::Closed(_) => None,
            State::Established => {
                let expiry = self.expiry.deadline(&self.rtt);
                let transmit = self.sender.next_transmit();
                [Some(expiry), self.receiver.next_ack(), transmit].into_iter().flatten().min()
            }
        }
    }

    /// Time has passed.
    pub fn on_timeout(&mut self, now: Nanos) {
        match &self.state {
            State::Connecting(connecting) => {
                if connecting.is_over(now) {
                    self.state = State::Closed(CloseReason::HandshakeTimeout);
                }
            }
            State::Closed(_) => {}
            State::Established => match self.expiry.poll(now, &self.rtt) {
                None => {}
                Some(Expired::Connection) => self.state = State::Closed(CloseReason::TimedOut),
                Some(Expired::Response) if self.sender.is_empty() => self.due.keep_alive = true,
                Some(Expired::Response) => self.sender.on_timeout(now),
            },
        }
    }

    /// Writes bytes of a stream and gives their number: fewer than offered if the buffer is
    /// full, none if the connection is closed.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let accepts = self.accepts_data() && self.config.socket_type == SocketType::Stream;
        if accepts { self.sender.write(bytes) } else { 0 }
    }

    /// Bytes of a stream that can be written now: those of whole packets.
    #[must_use]
    pub fn writable(&self) -> usize {
        let room = usize::try_from(self.sender.room()).unwrap_or(usize::MAX);
        if self.accepts_data() { room.saturating_mul(self.payload_bytes()) } else { 0 }
    }

    /// Writes a message. False if there is no room for it now. `expires`: it is dropped if
    /// not delivered by then; not `in_order`: it may be delivered before earlier ones.
    pub fn write_message(
        &mut self,
        message: &[u8],
        in_order: bool,
        expires: Option<Nanos>,
    ) -> bool {
        let accepts = self.accepts_data() && self.config.socket_type == SocketType::Message;
        accepts && self.sender.write_message(message, in_order, expires)
    }

    /// The longest message that [`Connection::write_message`] accepts, bytes.
    #[must_use]
    pub const fn max_message(&self) -> usize {
        self.sender.max_message()
    }

    const fn accepts_data(&self) -> bool {
        self.is_established() && !self.is_closing
    }

    /// Reads bytes of a stream and gives their number: 0 on a connection for messages.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        self.receiver.read(into)
    }

    /// Discards all bytes of a stream that can be read, and counts them.
    pub fn discard(&mut self) -> u64 {
        self.receiver.discard()
    }

    /// Reads the next message and gives its length. If `into` is too short the message
    /// stays, and `Err` gives the length it needs. `None` on a stream, whose packets a sender
    /// may mark as messages.
    pub fn read_message(&mut self, into: &mut [u8]) -> Option<Result<usize, usize>> {
        self.receiver.read_message(into)
    }

    /// Whether the stream ended and all of it was read: the peer closed, and no packet is
    /// missing.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.closed() == Some(CloseReason::Peer)
            && self.receiver.is_drained()
            && !self.receiver.has_gaps()
    }

    /// Whether all that was written is acknowledged.
    #[must_use]
    pub const fn is_flushed(&self) -> bool {
        self.sender.is_empty()
    }

    /// Closes this end: what was written is still delivered, then the peer is informed.
    pub const fn close(&mut self) {
        self.is_closing = true;
    }

    /// Closes the connection at once and informs the peer.
    pub const fn abort(&mut self, reason: CloseReason) {
        if !matches!(self.state, State::Closed(_)) {
            self.due.shutdown = self.is_established();
            self.state = State::Closed(reason);
        }
    }
}
