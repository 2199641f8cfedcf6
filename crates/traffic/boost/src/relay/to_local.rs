//! From the lane to the local socket.

use super::{Arriving, COPY_BYTES, LaneEnd, Notice, Relay, Tools};
use crate::counters::Counters;
use crate::local_flow::{FlowEnd, Local, LocalFlow};
use crate::pipes::PIPE_BYTES;
use lane::{Carries, Message, Preface, Role};
use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Instant;

impl Relay {
    /// One step. Whether anything moved.
    pub(super) fn move_to_local(
        &mut self,
        tools: &mut Tools<'_>,
        notices: &mut Vec<Notice>,
    ) -> Result<bool, LaneEnd> {
        if let Some(moved) = self.deliver_held(tools)? {
            return Ok(moved);
        }
        if !self.socket.readable || !self.socket.is_connected {
            return Ok(false);
        }
        if self.arriving.is_some() {
            return self.take_block(tools);
        }
        if self.state.payload() > 0 {
            return self.take_payload(tools);
        }
        let is_bulk = self.flow.as_ref().is_some_and(|flow| flow.to_local.is_bulk);
        // After a long run only the header is read, so that the next one can be spliced. Of compressed
        // blocks never more than one is taken: many short ones could decompress to gigabytes.
        let most = match &self.preface {
            Some(preface) => Preface::BYTES - preface.len(),
            None if self.state.admits_compressed() => self.state.lacking(),
            None if !self.socket.is_plain() => tools.scratch.len(),
            None if is_bulk => self.state.lacking(),
            None => COPY_BYTES,
        };
        let buffer = tools.scratch.get_mut(..most).unwrap_or_default();
        let Some(count) = self.socket.read(buffer).map_err(LaneEnd::failed)? else {
            return Ok(false);
        };
        if count == 0 {
            return Err(self.ended_by_peer());
        }
        self.last_heard = tools.now;
        // The buffer is needed for nothing else meanwhile.
        let scratch = std::mem::take(&mut tools.scratch);
        let result = self.process(scratch.get(..count).unwrap_or_default(), tools, notices);
        tools.scratch = scratch;
        result.map(|()| true)
    }

    /// The end of the lane, behind all that the peer has sent. Near may leave a flow to far once it has
    /// sent everything: the target's system delivers the rest.
    fn ended_by_peer(&mut self) -> LaneEnd {
        let at_far = self.role == Role::Far;
        let left = self.flow.as_mut().filter(|flow| at_far && flow.to_local.is_shut);
        if let Some(flow) = left
            && let Some(stream) = flow.connected()
        {
            let _ = host::socket::set_reset_on_close(stream, false);
            flow.local = Local::Gone;
            flow.end.get_or_insert(FlowEnd::Orderly);
            return LaneEnd::ClosedByPeer;
        }
        self.closed_by_peer()
    }

    pub(super) fn closed_by_peer(&self) -> LaneEnd {
        match (self.is_ready(), self.is_free()) {
            (false, _) => {
                LaneEnd::failed("it closed the connection at once; its log has the reason")
            }
            (true, true) => LaneEnd::ClosedByPeer,
            (true, false) => LaneEnd::failed("the other box closed the connection"),
        }
    }

    /// Delivers what is held, then FIN; `None` if nothing is held.
    fn deliver_held(&mut self, tools: &mut Tools<'_>) -> Result<Option<bool>, LaneEnd> {
        let Some(flow) = &mut self.flow else { return Ok(None) };
        if flow.discards() {
            return Ok(None);
        }
        if flow.to_local.is_empty() {
            let ends = flow.to_local.ended.is_some() && !flow.to_local.is_shut;
            let Some(stream) = flow.connected().filter(|_| ends) else { return Ok(None) };
            // Fails if an RST has arrived, which is reported by itself.
            let _ = stream.shutdown(Shutdown::Write);
            flow.to_local.is_shut = true;
            return Ok(Some(true));
        }
        if !flow.writable || flow.connected().is_none() {
            return Ok(Some(false));
        }
        match flow.write_held() {
            Ok(moved) => {
                flow.delivered(moved, tools.counters, tools.now);
                if let Some(pipe) = flow.to_local.pipe.take_if(|pipe| pipe.is_empty()) {
                    tools.pipes.put(pipe);
                }
                Ok(Some(true))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                flow.writable = false;
                Ok(Some(false))
            }
            Err(_) => {
                flow.fail();
                Ok(Some(true))
            }
        }
    }

    /// Takes payload that the peer has announced.
    fn take_payload(&mut self, tools: &mut Tools<'_>) -> Result<bool, LaneEnd> {
        let payload = usize::try_from(self.state.payload()).unwrap_or(usize::MAX);
        let is_plain = self.socket.is_plain();
        let discards = self.flow.as_ref().is_none_or(LocalFlow::discards);
        if let Some(flow) = self.flow.as_mut().filter(|_| !discards) {
            if !flow.writable || flow.connected().is_none() {
                return Ok(false);
            }
            flow.to_local.is_bulk = payload >= COPY_BYTES;
            if is_plain
                && payload >= COPY_BYTES
                && let Some(mut pipe) = tools.pipes.take()
            {
                let filled = pipe.fill(&self.socket.stream, payload.min(PIPE_BYTES));
                let taken = self.socket.taken(filled).map_err(LaneEnd::failed)?;
                let Some(count @ 1..) = taken else {
                    tools.pipes.put(pipe);
                    return if taken.is_none() { Ok(false) } else { Err(self.ended_by_peer()) };
                };
                self.state.taken(u32::try_from(count).unwrap_or(u32::MAX));
                flow.to_local.wan_bytes += count as u64;
                flow.to_local.pipe = Some(pipe);
                return Ok(true);
            }
        }
        let most = payload.min(tools.scratch.len());
        let buffer = tools.scratch.get_mut(..most).unwrap_or_default();
        let Some(count) = self.socket.read(buffer).map_err(LaneEnd::failed)? else {
            return Ok(false);
        };
        if count == 0 {
            return Err(self.ended_by_peer());
        }
        self.state.taken(u32::try_from(count).unwrap_or(u32::MAX));
        self.count_arrived(count);
        let payload = tools.scratch.get(..count).unwrap_or_default();
        self.deliver(payload, tools.counters, tools.now);
        Ok(true)
    }

    /// Takes a piece of a compressed block, which is delivered once it is complete.
    fn take_block(&mut self, tools: &mut Tools<'_>) -> Result<bool, LaneEnd> {
        let flow = self.flow.as_ref().filter(|flow| !flow.discards());
        if flow.is_some_and(|flow| !flow.writable || flow.connected().is_none()) {
            return Ok(false);
        }
        let is_wanted = flow.is_some();
        let payload = usize::try_from(self.state.payload()).unwrap_or(usize::MAX);
        let most = payload.min(tools.scratch.len());
        let buffer = tools.scratch.get_mut(..most).unwrap_or_default();
        let Some(count) = self.socket.read(buffer).map_err(LaneEnd::failed)? else {
            return Ok(false);
        };
        if count == 0 {
            return Err(self.closed_by_peer());
        }
        self.last_heard = tools.now;
        self.state.taken(u32::try_from(count).unwrap_or(u32::MAX));
        self.count_arrived(count);
        let Some(mut arriving) = self.arriving.take() else { return Ok(true) };
        let piece = tools.scratch.get(..count).unwrap_or_default();
        let is_whole = count == arriving.block.length();
        if !is_whole && is_wanted {
            arriving.bytes.extend_from_slice(piece);
        }
        if self.state.payload() > 0 {
            self.arriving = Some(arriving);
            return Ok(true);
        }
        if is_wanted {
            let whole = if is_whole { piece } else { &arriving.bytes };
            let bytes = tools.codec.decompress(arriving.block, whole).map_err(LaneEnd::failed)?;
            tools.counters.to_decompress.add(whole.len());
            tools.counters.decompressed.add(bytes.len());
            self.deliver(bytes, tools.counters, tools.now);
        }
        Ok(true)
    }

    fn count_arrived(&mut self, count: usize) {
        if let Some(flow) = &mut self.flow {
            flow.to_local.wan_bytes += count as u64;
        }
    }

    /// Reads messages and payload.
    fn process(
        &mut self,
        mut input: &[u8],
        tools: &mut Tools<'_>,
        notices: &mut Vec<Notice>,
    ) -> Result<(), LaneEnd> {
        input = self.take_preface(input)?;
        while !input.is_empty() {
            let payload = usize::try_from(self.state.payload()).unwrap_or(usize::MAX);
            let (payload, rest) = input.split_at(payload.min(input.len()));
            if !payload.is_empty() {
                self.state.taken(u32::try_from(payload.len()).unwrap_or(u32::MAX));
                self.count_arrived(payload.len());
                self.deliver(payload, tools.counters, tools.now);
                input = rest;
                continue;
            }
            let received = self.state.receive(input).map_err(LaneEnd::failed)?;
            input = input.get(received.used..).unwrap_or_default();
            if let Some(message) = received.message {
                self.act(message, tools, notices)?;
            }
        }
        Ok(())
    }

    fn take_preface<'i>(&mut self, input: &'i [u8]) -> Result<&'i [u8], LaneEnd> {
        let Some(preface) = &mut self.preface else { return Ok(input) };
        let missing = Preface::BYTES - preface.len();
        let (own, rest) = input.split_at(missing.min(input.len()));
        preface.extend_from_slice(own);
        if let Some(whole) = preface.first_chunk() {
            let preface = Preface::decode(*whole).map_err(LaneEnd::failed)?;
            if preface.carries != Carries::OneFlow {
                return Err(LaneEnd::failed("the other box answered with another kind of lane"));
            }
            self.greet(preface);
        }
        Ok(rest)
    }

    fn act(
        &mut self,
        message: Message,
        tools: &Tools<'_>,
        notices: &mut Vec<Notice>,
    ) -> Result<(), LaneEnd> {
        match message {
            Message::Open(target) => {
                let flow = LocalFlow::new(Local::Awaited, self.peer, target.clone(), tools.now);
                self.flow = Some(flow);
                self.flows += 1;
                notices.push(Notice::Open(target));
            }
            Message::Opened => {
                if let Some(flow) = &mut self.flow {
                    flow.is_opened = true;
                    if let Some(mut negotiation) = flow.negotiation.take() {
                        flow.to_local.queue.extend(negotiation.opened());
                    }
                }
            }
            Message::Refused(refusal) => self.refused(refusal),
            Message::End => {
                if let Some(flow) = &mut self.flow {
                    flow.to_local.ended = Some(tools.now);
                }
            }
            Message::Reset => self.peer_reset(FlowEnd::PeerReset),
            Message::Ping => self.pong_due = true,
            Message::Pong => self.unanswered = None,
            Message::Compressed(block) => {
                self.arriving = Some(Arriving { block, bytes: Vec::new() });
            }
            Message::Data(_) | Message::Closed => {}
        }
        Ok(())
    }

    fn deliver(&mut self, payload: &[u8], counters: &Counters, now: Instant) {
        if let Some(flow) = &mut self.flow {
            flow.deliver(payload, counters, now);
        }
    }
}
