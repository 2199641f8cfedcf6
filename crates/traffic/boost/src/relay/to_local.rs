//! From the lane to the local socket.

use super::{COPY_BYTES, LaneEnd, Notice, Relay, Tools};
use crate::local_flow::{FlowEnd, Local, LocalFlow};
use crate::pipes::PIPE_BYTES;
use lane::{Message, Preface, Role};
use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;

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
        if self.state.payload() > 0 {
            return self.take_payload(tools);
        }
        let is_bulk = self.flow.as_ref().is_some_and(|flow| flow.to_local.is_bulk);
        // After a long run only the header is read, so that the next one can be spliced.
        let most = match (self.socket.is_plain(), is_bulk) {
            (true, true) => self.state.lacking(),
            (true, false) => COPY_BYTES,
            (false, _) => tools.scratch.len(),
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
            let ends = flow.to_local.has_end && !flow.to_local.is_shut;
            let Some(stream) = flow.connected().filter(|_| ends) else { return Ok(None) };
            // Fails if an RST has arrived, which is reported by itself.
            let _ = stream.shutdown(Shutdown::Write);
            flow.to_local.is_shut = true;
            return Ok(Some(true));
        }
        if !flow.writable || flow.connected().is_none() {
            return Ok(Some(false));
        }
        match write_held(flow) {
            Ok(moved) => {
                flow.to_local.bytes += moved as u64;
                flow.last_active = tools.now;
                tools.counters.to_local.add(moved);
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
        let scratch = std::mem::take(&mut tools.scratch);
        let result = self.deliver(scratch.get(..count).unwrap_or_default(), tools);
        tools.scratch = scratch;
        result.map(|()| true)
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
                self.deliver(payload, tools)?;
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
            Preface::decode(*whole).map_err(LaneEnd::failed)?;
            self.preface = None;
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
                    flow.to_local.has_end = true;
                }
            }
            Message::Reset => self.peer_reset(FlowEnd::PeerReset),
            Message::Ping => self.pong_due = true,
            Message::Pong => self.unanswered = None,
            Message::Data(_) | Message::Closed => {}
        }
        Ok(())
    }

    /// Gives payload to the local socket; what it does not take is held.
    fn deliver(&mut self, payload: &[u8], tools: &Tools<'_>) -> Result<(), LaneEnd> {
        let Some(flow) = self.flow.as_mut().filter(|flow| !flow.discards()) else { return Ok(()) };
        let writes = flow.writable && flow.to_local.queue.is_empty();
        let written = match flow.connected().filter(|_| writes) {
            Some(mut stream) => stream.write(payload),
            None => Ok(0),
        };
        let count = match written {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                flow.writable = false;
                0
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(_) => {
                flow.fail();
                return Ok(());
            }
        };
        flow.to_local.bytes += count as u64;
        flow.last_active = tools.now;
        tools.counters.to_local.add(count);
        flow.to_local.queue.extend_from_slice(payload.get(count..).unwrap_or_default());
        Ok(())
    }
}

/// Writes from the queue, or else from the pipe.
fn write_held(flow: &mut LocalFlow) -> io::Result<usize> {
    let Local::Connected(stream) = &flow.local else { return Ok(0) };
    let held = &mut flow.to_local;
    if held.queue.is_empty() {
        return held.pipe.as_mut().map_or(Ok(0), |pipe| pipe.drain(stream));
    }
    let mut stream = stream;
    let count = stream.write(held.queue.get(held.written..).unwrap_or_default())?;
    held.written += count;
    if held.written >= held.queue.len() {
        (held.queue, held.written) = (Vec::new(), 0);
    }
    Ok(count)
}
