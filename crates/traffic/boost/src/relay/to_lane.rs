//! From the local socket to the lane.

use super::{COPY_BYTES, LaneEnd, Relay, SCRATCH_BYTES, Tools};
use crate::counters::Counters;
use crate::pipes::PIPE_BYTES;
use host::splice::Pipe;
use lane::{MAX_BLOCK, Message, Role};
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::Instant;

/// Bytes that may be sent before far has taken the lane, with one read more: what a first flight
/// carries, and more.
const MAX_UNPROVEN: usize = 64 << 10;

/// What was read from the local socket.
enum Taken {
    /// So many bytes at the start of the buffer.
    Copied(usize),
    Spliced(Pipe),
    Nothing,
    End,
    Reset,
}

/// How bytes are taken from the local socket.
#[derive(Clone, Copy)]
enum Taking {
    Splice,
    /// At most so many bytes.
    Copy(usize),
}

impl Relay {
    /// One step. Whether anything moved.
    pub(super) fn move_to_lane(&mut self, tools: &mut Tools<'_>) -> Result<bool, LaneEnd> {
        if !self.socket.flush().map_err(LaneEnd::failed)? {
            if let Some(flow) = &mut self.flow {
                flow.to_lane.reduction.lane_is_busy();
            }
            return self.reset_if_failed();
        }
        if let Some(moved) = self.drain_pipe(tools)? {
            return if moved { Ok(true) } else { self.reset_if_failed() };
        }
        if std::mem::take(&mut self.pong_due) {
            self.send(&Message::Pong)?;
            return Ok(true);
        }
        let (may_send, at_far) = (self.state.may_send(), self.role == Role::Far);
        let is_ready = self.is_ready();
        let Some(flow) = self.flow.as_mut().filter(|_| may_send) else {
            return self.reset_if_failed();
        };
        if std::mem::take(&mut flow.to_lane.reset_due) {
            self.send(&Message::Reset)?;
            return Ok(true);
        }
        if flow.to_lane.has_fin && !flow.has_failed {
            self.send(&Message::End)?;
            return Ok(true);
        }
        let waits = !is_ready && flow.to_lane.unproven.len() >= MAX_UNPROVEN;
        if !flow.readable || waits || (at_far && !flow.is_opened) {
            return self.reset_if_failed();
        }
        let Some(stream) = flow.connected() else { return Ok(false) };
        let offers_blocks = self.state.admits_compressed() && flow.to_lane.reduction.is_trying();
        let by = match (self.socket.is_plain(), offers_blocks) {
            (_, true) => Taking::Copy(MAX_BLOCK),
            (true, false) if is_ready && flow.to_lane.is_bulk => Taking::Splice,
            (true, false) => Taking::Copy(COPY_BYTES),
            (false, false) => Taking::Copy(SCRATCH_BYTES),
        };
        match take(stream, by, tools) {
            Taken::Nothing | Taken::End if flow.has_failed => {
                self.local_reset()?;
                Ok(true)
            }
            Taken::Nothing => {
                flow.readable = false;
                Ok(false)
            }
            Taken::End => {
                flow.to_lane.has_fin = true;
                Ok(true)
            }
            Taken::Reset => {
                self.local_reset()?;
                Ok(true)
            }
            Taken::Copied(count) => {
                flow.to_lane.is_bulk = count >= COPY_BYTES;
                self.send_copied(count, offers_blocks, tools)?;
                Ok(true)
            }
            Taken::Spliced(pipe) => {
                let count = pipe.len();
                flow.to_lane.is_bulk = count >= COPY_BYTES;
                flow.to_lane.pipe = Some(pipe);
                flow.to_lane.reduction.sent_raw(count);
                self.announce(count, tools)?;
                self.socket.flush_before_payload().map_err(LaneEnd::failed)?;
                Ok(true)
            }
        }
    }

    /// Sends bytes at the start of the buffer, as a compressed block where that is worth it.
    fn send_copied(
        &mut self,
        count: usize,
        offers_blocks: bool,
        tools: &mut Tools<'_>,
    ) -> Result<(), LaneEnd> {
        // The buffer is needed for nothing else meanwhile.
        let scratch = std::mem::take(&mut tools.scratch);
        let bytes = scratch.get(..count).unwrap_or_default();
        let result = self.send_bytes(bytes, offers_blocks, tools);
        tools.scratch = scratch;
        result
    }

    fn send_bytes(
        &mut self,
        bytes: &[u8],
        offers_blocks: bool,
        tools: &mut Tools<'_>,
    ) -> Result<(), LaneEnd> {
        if let Some(flow) = self.flow.as_mut().filter(|_| self.compresses) {
            let reduction = &mut flow.to_lane.reduction;
            reduction.begin(bytes);
            // The codec is lent to the block that it has made.
            let Tools { codec, counters, now, .. } = tools;
            if offers_blocks && self.socket.is_sending() {
                reduction.lane_is_busy();
            }
            if offers_blocks && let Some((block, compressed)) = codec.compress(reduction, bytes) {
                counters.to_compress.add(bytes.len());
                counters.compressed.add(compressed.len());
                self.count(bytes.len(), compressed.len(), counters, *now);
                self.send(&Message::Compressed(block))?;
                return self.send_payload(compressed);
            }
            reduction.sent_raw(bytes.len());
        }
        self.announce(bytes.len(), tools)?;
        // Blocks are sent only on lanes that far has taken.
        self.keep_unproven(bytes);
        self.send_payload(bytes)
    }

    fn send_payload(&mut self, payload: &[u8]) -> Result<(), LaneEnd> {
        self.socket.send_copied(payload).map_err(LaneEnd::failed)?;
        self.state.sent(u32::try_from(payload.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Passes on an RST at once where the lane takes nothing: a receiver that stalls would hold it
    /// up, with what came before.
    fn reset_if_failed(&mut self) -> Result<bool, LaneEnd> {
        if !self.flow.as_ref().is_some_and(|flow| flow.has_failed && !flow.is_gone()) {
            return Ok(false);
        }
        self.local_reset()?;
        Ok(true)
    }

    /// Near: keeps a copy of what far may never take.
    pub(super) fn keep_unproven(&mut self, payload: &[u8]) {
        let is_unproven = !self.is_ready();
        if let Some(flow) = self.flow.as_mut().filter(|_| is_unproven) {
            flow.to_lane.unproven.extend_from_slice(payload);
        }
    }

    /// Queues the header of a run that is sent as it is, and counts its bytes.
    fn announce(&mut self, count: usize, tools: &Tools<'_>) -> Result<(), LaneEnd> {
        let length = u32::try_from(count).map_err(LaneEnd::failed)?;
        self.count(count, count, tools.counters, tools.now);
        self.send(&Message::Data(length))
    }

    fn count(&mut self, bytes: usize, on_lane: usize, counters: &Counters, now: Instant) {
        if let Some(flow) = &mut self.flow {
            flow.taken(bytes, on_lane, now);
        }
        counters.to_lane.add(bytes);
    }

    /// Moves the rest of a run from its pipe; `None` without one.
    fn drain_pipe(&mut self, tools: &mut Tools<'_>) -> Result<Option<bool>, LaneEnd> {
        let Some(flow) = &mut self.flow else { return Ok(None) };
        let Some(pipe) = &mut flow.to_lane.pipe else { return Ok(None) };
        let moved = pipe.drain(&self.socket.stream);
        let moved = self.socket.spliced(moved).map_err(LaneEnd::failed)?;
        self.state.sent(u32::try_from(moved).unwrap_or(u32::MAX));
        if moved > 0 {
            flow.last_active = tools.now;
        }
        if pipe.is_empty()
            && let Some(pipe) = flow.to_lane.pipe.take()
        {
            tools.pipes.put(pipe);
        }
        Ok(Some(moved > 0))
    }
}

fn take(stream: &TcpStream, by: Taking, tools: &mut Tools<'_>) -> Taken {
    let mut stream = stream;
    let most = match by {
        Taking::Splice => {
            if let Some(mut pipe) = tools.pipes.take() {
                let filled = pipe.fill(&stream, PIPE_BYTES);
                if let Ok(1..) = filled {
                    return Taken::Spliced(pipe);
                }
                tools.pipes.put(pipe);
                return ended(filled);
            }
            COPY_BYTES
        }
        Taking::Copy(most) => most,
    };
    let most = most.min(tools.scratch.len());
    match stream.read(tools.scratch.split_at_mut(most).0) {
        Ok(count) if count > 0 => Taken::Copied(count),
        other => ended(other),
    }
}

fn ended(result: std::io::Result<usize>) -> Taken {
    match result {
        Ok(_) => Taken::End,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Taken::Nothing
        }
        Err(_) => Taken::Reset,
    }
}
