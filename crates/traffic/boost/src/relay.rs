//! One lane with the flow that it carries: moves bytes between two sockets until both would
//! block. The same at both boxes.
//!
//! ```text
//!   local socket ──read──> header, payload ──> lane          less than 16 KiB at once, or TLS
//!   local socket ──splice──> pipe ──splice──> lane           more: the header first
//! ```
//!
//! Bytes are read only while the other socket takes some, so a receiver that stalls costs at most
//! one pipe or one buffer, and the sender is slowed down by TCP.

mod to_lane;
mod to_local;

use crate::address_share::ShareTicket;
use crate::block_codec::BlockCodec;
use crate::counters::Counters;
use crate::lane_socket::LaneSocket;
use crate::local_flow::{FlowEnd, FlowSummary, Local, LocalFlow};
use crate::pipes::PipePool;
use host::edge_poller::Edge;
use lane::{Block, Lane, Message, Preface, Reduction, Refusal, Role, Target};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Instant;

/// Reads of less are copied; longer ones pass through a pipe.
pub(crate) const COPY_BYTES: usize = 16 << 10;
/// Buffer of a thread, for reads of TLS connections.
pub(crate) const SCRATCH_BYTES: usize = 64 << 10;
/// Rounds of a relay before others have their turn.
const MAX_ROUNDS: usize = 8;
/// An RST is passed on as a message while so few bytes precede it that a receiver that has stalled
/// cannot hold it up; otherwise by closing the lane.
const RESET_BEHIND: u64 = 64 << 10;

/// What a thread has one of.
pub(crate) struct Tools<'a> {
    pub(crate) pipes: &'a mut PipePool,
    pub(crate) codec: &'a mut BlockCodec,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) counters: &'a Counters,
    pub(crate) now: Instant,
}

/// What the box has to do, or to know.
#[derive(Debug)]
pub(crate) enum Notice {
    /// The lane is connected, and its peer has taken it.
    LaneReady,
    /// Far: the target that near asks for.
    Open(Target),
    /// Far: an attempt to connect to the target has failed.
    ConnectFailed(io::Error),
    FlowEnded(FlowSummary),
    /// The lane may carry the next flow.
    LaneFree,
}

/// The reason why a lane is of no further use.
#[derive(Debug)]
pub(crate) enum LaneEnd {
    /// It failed, for this reason.
    Failed(String),
    /// The other box closed it while it was free.
    ClosedByPeer,
    /// This box closes it: it is not needed, the box ends, or to pass on an RST.
    Closed,
}

impl LaneEnd {
    fn failed(error: impl std::fmt::Display) -> Self {
        LaneEnd::Failed(error.to_string())
    }
}

/// What a turn of a relay came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// It waits for a socket.
    Waiting,
    /// There is more to do.
    Again,
}

/// A compressed block that has not arrived as a whole.
struct Arriving {
    block: Block,
    bytes: Vec<u8>,
}

/// A lane and its flow.
pub(crate) struct Relay {
    role: Role,
    pub(crate) socket: LaneSocket,
    state: Lane,
    /// The peer's preface, until it is complete.
    preface: Option<Vec<u8>>,
    /// This box compresses if the peer does.
    compresses: bool,
    arriving: Option<Arriving>,
    pub(crate) flow: Option<LocalFlow>,
    pub(crate) peer: SocketAddr,
    /// Far: counts it for near's address.
    pub(crate) share: Option<ShareTicket>,
    pub(crate) was_ready: bool,
    has_failed: bool,
    /// Found between turns, for the next one.
    end: Option<LaneEnd>,
    connect_failure: Option<io::Error>,
    pong_due: bool,
    /// Near: the lane has ended towards far.
    has_left: bool,
    /// Flows that it has carried.
    pub(crate) flows: u64,
    pub(crate) since: Instant,
    pub(crate) last_used: Instant,
    /// When the system was last asked whether the peer is gone.
    pub(crate) checked: Instant,
    /// When the peer last sent anything.
    pub(crate) last_heard: Instant,
    /// When the last `Ping` was sent.
    pub(crate) last_ping: Instant,
    /// Since when a `Ping` is unanswered; of a lane that has become free, from then on.
    pub(crate) unanswered: Option<Instant>,
}

impl Relay {
    /// A lane whose peer's preface has not arrived. Its own, which offers to compress or does not,
    /// is queued.
    pub(crate) fn new(
        role: Role,
        mut socket: LaneSocket,
        peer: SocketAddr,
        compresses: bool,
        now: Instant,
    ) -> Self {
        socket.queue().extend_from_slice(&Preface::of_lane(compresses).encode());
        Relay {
            role,
            socket,
            state: Lane::new(role),
            preface: Some(Vec::new()),
            compresses,
            arriving: None,
            flow: None,
            peer,
            share: None,
            was_ready: false,
            has_failed: false,
            end: None,
            connect_failure: None,
            pong_due: false,
            has_left: false,
            flows: 0,
            since: now,
            last_used: now,
            checked: now,
            last_heard: now,
            last_ping: now,
            unanswered: None,
        }
    }

    /// The peer's preface has arrived.
    pub(crate) fn greeted(mut self, preface: Preface) -> Self {
        self.greet(preface);
        self
    }

    fn greet(&mut self, preface: Preface) {
        self.preface = None;
        self.compresses &= preface.compresses;
        if self.compresses {
            self.state.admit_compressed();
        } else if let Some(flow) = &mut self.flow {
            flow.to_lane.reduction = Reduction::default();
        }
    }

    /// True if it carries no flow and may carry one.
    pub(crate) fn is_free(&self) -> bool {
        self.flow.is_none() && self.state.is_free()
    }

    /// True if it may carry a flow, as far as is known: nothing has arrived that was not looked at.
    pub(crate) fn takes_flow(&self) -> bool {
        self.is_free() && !self.has_failed && self.end.is_none() && !self.socket.readable
    }

    /// Near: the flow of a lane that has failed before far took it, for another lane.
    pub(crate) fn take_unproven(&mut self) -> Option<LocalFlow> {
        let is_unproven = self.role == Role::Near && !self.was_ready;
        let is_whole = |flow: &LocalFlow| flow.connected().is_some() && !flow.has_failed;
        self.flow.take_if(|flow| is_unproven && is_whole(flow))
    }

    /// True once the peer's key is proved, and that it takes the lane.
    pub(crate) const fn is_ready(&self) -> bool {
        self.preface.is_none()
    }

    pub(crate) fn note_lane(&mut self, edge: Edge) {
        self.socket.note(edge);
        self.has_failed |= edge.failed;
    }

    /// Near: opens a flow, with the first bytes for its target. A failure ends the lane in its next
    /// turn.
    pub(crate) fn open(&mut self, flow: LocalFlow, early: &[u8], counters: &Counters) {
        let target = flow.target.clone();
        self.flow = Some(flow);
        self.flows += 1;
        let opened = self.send(&Message::Open(target)).and_then(|()| {
            if early.is_empty() {
                return Ok(());
            }
            let length = u32::try_from(early.len()).map_err(LaneEnd::failed)?;
            self.send(&Message::Data(length))?;
            self.socket.queue().extend_from_slice(early);
            self.state.sent(length);
            self.keep_unproven(early);
            counters.to_lane.add(early.len());
            if let Some(flow) = &mut self.flow {
                let now = flow.last_active;
                flow.taken(early.len(), early.len(), now);
                if self.compresses {
                    flow.to_lane.reduction.begin(early);
                }
            }
            Ok(())
        });
        self.fails_with(opened);
    }

    /// True while a `Ping` would be sent at once: not within a run, nor behind others.
    pub(crate) fn may_ping(&self) -> bool {
        self.is_ready()
            && !self.has_left
            && self.state.is_between_messages()
            && self.socket.is_flushed()
    }

    /// Near: true if everything of the application is on its way to its target, and FIN.
    pub(crate) fn may_leave(&self) -> bool {
        let is_done = !self.has_left && !self.state.may_send() && self.socket.is_flushed();
        is_done && self.flow.as_ref().is_some_and(|flow| flow.is_opened && !flow.is_gone())
    }

    /// Near: ends the lane behind the flow's last byte. Far reads that end once the target has taken
    /// all before it, and closes the lane.
    pub(crate) fn leave(&mut self) {
        self.has_left = true;
        let left = self.socket.end().map_err(LaneEnd::failed);
        self.fails_with(left);
        if let Some(flow) = &mut self.flow {
            flow.local = Local::Gone;
            flow.end.get_or_insert(FlowEnd::Orderly);
        }
    }

    /// Near: asks whether far is still there, and tells it that near is.
    pub(crate) fn ping(&mut self, now: Instant) {
        self.last_ping = now;
        self.unanswered.get_or_insert(now);
        let sent = self.send(&Message::Ping);
        self.fails_with(sent);
    }

    /// Keeps a failure for the next turn.
    fn fails_with(&mut self, result: Result<(), LaneEnd>) {
        self.end = self.end.take().or(result.err());
    }

    /// Far: the socket of the flow's target.
    pub(crate) fn set_local(&mut self, local: Local) {
        if let Some(flow) = &mut self.flow {
            (flow.readable, flow.writable) = (false, false);
            flow.local = local;
        }
    }

    /// Far: the target has accepted the connection that was attempted.
    fn connected(&mut self) -> Result<(), LaneEnd> {
        let Some(flow) = &mut self.flow else { return Ok(()) };
        flow.is_opened = true;
        self.send(&Message::Opened)
    }

    /// Far: no target.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        let Some(flow) = &mut self.flow else { return };
        if flow.is_gone() {
            return;
        }
        flow.local = Local::Gone;
        flow.end.get_or_insert(FlowEnd::Refused(refusal));
        let sent = self.send(&Message::Refused(refusal));
        self.fails_with(sent);
    }

    fn send(&mut self, message: &Message) -> Result<(), LaneEnd> {
        self.state.send(message, self.socket.queue()).map_err(LaneEnd::failed)
    }

    /// Takes note of a change at the local socket.
    pub(crate) fn note_local(&mut self, edge: Edge) {
        let Some(flow) = &mut self.flow else { return };
        flow.note(edge);
        let noted = match std::mem::replace(&mut flow.local, Local::Awaited) {
            Local::Connecting(stream) if edge.writable || edge.failed => {
                match crate::sockets::connect_error(&stream) {
                    None => {
                        flow.local = Local::Connected(stream);
                        self.connected()
                    }
                    Some(error) => {
                        self.connect_failure = Some(error);
                        Ok(())
                    }
                }
            }
            Local::Connected(stream) if edge.failed => {
                flow.local = Local::Connected(stream);
                flow.fail();
                Ok(())
            }
            other => {
                flow.local = other;
                Ok(())
            }
        };
        self.fails_with(noted);
    }

    /// The local socket cannot be watched: descriptors or memory have run out.
    pub(crate) fn local_unwatched(&mut self) {
        let noted = self.local_reset();
        self.fails_with(noted);
    }

    /// Moves bytes in both directions until that would block.
    ///
    /// # Errors
    /// The lane is to be closed.
    pub(crate) fn pump(
        &mut self,
        tools: &mut Tools<'_>,
        notices: &mut Vec<Notice>,
    ) -> Result<Pumped, LaneEnd> {
        if self.has_failed {
            let error = crate::sockets::connect_error(&self.socket.stream);
            let closed = "the connection between the boxes was reset".to_owned();
            return Err(match error {
                Some(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    self.closed_by_peer()
                }
                error => LaneEnd::Failed(error.map_or(closed, |error| error.to_string())),
            });
        }
        if let Some(end) = self.end.take() {
            return Err(end);
        }
        if let Some(error) = self.connect_failure.take() {
            notices.push(Notice::ConnectFailed(error));
        }
        self.socket.is_connected |= self.socket.is_writable();
        for _ in 0..MAX_ROUNDS {
            let mut progress = self.move_to_lane(tools)?;
            progress |= self.move_to_local(tools, notices)?;
            progress |= self.settle(tools, notices)?;
            if self.is_ready() && !self.was_ready {
                self.was_ready = true;
                if let Some(flow) = &mut self.flow {
                    flow.to_lane.unproven = Vec::new();
                }
                tools.counters.lanes.increment();
                notices.push(Notice::LaneReady);
                progress = true;
            }
            if !progress {
                return Ok(Pumped::Waiting);
            }
        }
        Ok(Pumped::Again)
    }

    /// The local socket was reset by its peer, and what it sent before was taken.
    fn local_reset(&mut self) -> Result<(), LaneEnd> {
        let Some(flow) = &mut self.flow else { return Ok(()) };
        flow.local = Local::Gone;
        flow.end.get_or_insert(FlowEnd::LocalReset);
        let is_short = flow.to_lane.bytes <= RESET_BEHIND && flow.to_lane.pipe.is_none();
        // After `End` there is no message for it.
        if !is_short || !self.state.may_send() {
            return Err(LaneEnd::Closed);
        }
        flow.to_lane.reset_due = true;
        Ok(())
    }

    /// The peer has reported an RST on its side.
    fn peer_reset(&mut self, end: FlowEnd) {
        let may_send = self.state.may_send();
        let Some(flow) = &mut self.flow else { return };
        // Dropping the socket resets its connection.
        flow.local = Local::Gone;
        flow.end.get_or_insert(end);
        flow.to_lane.reset_due = may_send;
    }

    /// Near: far did not connect the target.
    fn refused(&mut self, refusal: Refusal) {
        self.answer_refusal(refusal);
        self.peer_reset(FlowEnd::Refused(refusal));
    }

    /// Near: tells the application, where its protocol has a word for it.
    pub(crate) fn answer_refusal(&mut self, refusal: Refusal) {
        let Some(flow) = &mut self.flow else { return };
        let reply =
            flow.negotiation.take().and_then(|mut negotiation| negotiation.refused(refusal));
        if let (Some(reply), Local::Connected(stream)) = (reply, &flow.local) {
            answer(stream, &reply);
        }
    }

    /// Ends what can be ended: the local socket once everything is delivered, the flow once the
    /// lane is free.
    fn settle(
        &mut self,
        tools: &mut Tools<'_>,
        notices: &mut Vec<Notice>,
    ) -> Result<bool, LaneEnd> {
        let is_flushed = self.socket.queue().is_empty();
        let may_send = self.state.may_send();
        let Some(flow) = &mut self.flow else { return Ok(false) };
        let has_sent_all = !may_send && is_flushed && flow.to_lane.pipe.is_none();
        if let (Local::Connected(stream), true) =
            (&flow.local, has_sent_all && flow.to_local.is_shut)
        {
            let _ = host::socket::set_reset_on_close(stream, false);
            flow.local = Local::Gone;
            flow.end.get_or_insert(FlowEnd::Orderly);
        }
        if !flow.is_gone() {
            return Ok(false);
        }
        flow.to_local.queue = VecDeque::new();
        if let Some(pipe) = flow.to_local.pipe.take() {
            tools.pipes.put(pipe);
        }
        if !flow.is_reported {
            flow.is_reported = true;
            flow.share = None;
            flow.last_active = tools.now;
            let mut summary = flow.summary(self.role == Role::Near, tools.now);
            if self.role == Role::Near && summary.end == FlowEnd::Orderly {
                summary.rtt = self.socket.min_rtt();
            }
            notices.push(Notice::FlowEnded(summary));
        }
        if self.role == Role::Far && self.state.has_ended() && flow.to_lane.pipe.is_none() {
            self.send(&Message::Closed)?;
        }
        if !self.state.is_free() {
            return Ok(false);
        }
        self.flow = None;
        self.last_used = tools.now;
        // Far reads no `Ping` while the target of the flow takes nothing.
        self.unanswered = self.unanswered.map(|_| tools.now);
        notices.push(Notice::LaneFree);
        Ok(true)
    }

    /// Ends the flow with an RST at both sides, as the lane is closed.
    pub(crate) fn abandon(&mut self, end: FlowEnd, tools: &mut Tools<'_>) -> Option<FlowSummary> {
        let mut flow = self.flow.take()?;
        let pipes = [flow.to_lane.pipe.take(), flow.to_local.pipe.take()];
        pipes.into_iter().flatten().for_each(|pipe| tools.pipes.put(pipe));
        flow.end.get_or_insert(end);
        (!flow.is_reported).then(|| flow.summary(self.role == Role::Near, tools.now))
    }
}

/// Writes a last reply and ends the connection in good order. What the socket does not take at
/// once is lost: it is the first that is written, and short.
pub(crate) fn answer(stream: &TcpStream, reply: &[u8]) {
    let mut stream = stream;
    if stream.write(reply).is_ok_and(|count| count == reply.len()) {
        let _ = stream.shutdown(Shutdown::Write);
        let _ = host::socket::set_reset_on_close(stream, false);
    }
}
