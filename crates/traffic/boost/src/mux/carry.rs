//! The bytes of a session on its connections: each carries chunks of them, as fast as it takes them.

use super::engine::{Engine, Side};
use crate::sockets::UNSENT_LIMIT;
use mux::chunk::{self, MAX_CHUNK, Piece};
use std::io;
use units::ByteCount;

/// What a connection took when it was its turn.
#[derive(PartialEq, Eq)]
enum Taken {
    /// It took a full chunk; another one may be as fast.
    Full,
    /// It took the rest.
    Part,
    /// It takes nothing now, or there is nothing.
    Nothing,
}

impl Engine {
    /// Reads one buffer from each connection. True if there was anything.
    pub(super) fn receive<S: Side>(&mut self, id: usize, side: &mut S) -> bool {
        let mut progress = false;
        let mut index = 0;
        while let Some(link) = self.sessions.get(id).and_then(|live| live.links.get(index).copied())
        {
            progress |= self.receive_from(id, link, side);
            index += 1;
        }
        progress
    }

    fn receive_from<S: Side>(&mut self, id: usize, link_id: usize, side: &mut S) -> bool {
        let Some(link) = self.links.get(link_id) else { return false };
        let result = match link.check() {
            Ok(()) if !link.socket.readable => return false,
            Ok(()) => link.socket.read(&mut self.scratch).map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        match result {
            Ok(None) => false,
            Ok(Some(count @ 1..)) => {
                link.last_heard = self.now;
                let scratch = std::mem::take(&mut self.scratch);
                self.arrived(id, link_id, scratch.get(..count).unwrap_or_default(), side);
                self.scratch = scratch;
                true
            }
            Ok(Some(_)) => {
                self.close_link(link_id, "the other box closed the connection", side);
                true
            }
            Err(why) => {
                self.close_link(link_id, &why, side);
                true
            }
        }
    }

    /// Takes what a connection has brought.
    fn arrived<S: Side>(&mut self, id: usize, link: usize, mut input: &[u8], side: &mut S) {
        // The session, and with it the connection, may end at any frame.
        while let Some(reader) = self.links.get(link).map(|link| &mut link.chunks) {
            match reader.next(&mut input) {
                Ok(Some(piece)) => self.place(id, piece, side),
                Ok(None) => return,
                Err(error) => return self.end_session(id, &error.to_string(), side),
            }
        }
    }

    /// Processes bytes that are next, and those held behind them; holds others.
    fn place<S: Side>(&mut self, id: usize, piece: Piece<'_>, side: &mut S) {
        let Some(live) = self.sessions.get(id) else { return };
        let received = live.session.received();
        if piece.offset > received {
            if let Err(error) = live.held.hold(received, piece) {
                self.end_session(id, &error.to_string(), side);
            }
            return;
        }
        let known = usize::try_from(received - piece.offset).unwrap_or(usize::MAX);
        self.process(id, piece.bytes.get(known..).unwrap_or_default(), side);
        while let Some(live) = self.sessions.get(id)
            && let Some(bytes) = live.held.take(live.session.received())
        {
            self.process(id, &bytes, side);
        }
    }

    /// Sends what the connections take, one chunk after another to the next one that takes any. True
    /// if any took one.
    pub(super) fn transmit<S: Side>(&mut self, id: usize, side: &mut S) -> bool {
        let (mut progress, mut idle) = (false, 0);
        while let Some(live) = self.sessions.get(id)
            && idle < live.links.len()
        {
            let Some(link) = live.links.get(live.turn % live.links.len()).copied() else { break };
            match self.give(id, link) {
                Ok(Taken::Full) => {
                    (progress, idle) = (true, 0);
                    self.next_turn(id);
                }
                // Short messages keep to one connection, so that none overtakes another.
                Ok(Taken::Part) => (progress, idle) = (true, 0),
                Ok(Taken::Nothing) => {
                    idle += 1;
                    self.next_turn(id);
                }
                Err(error) => self.close_link(link, &error.to_string(), side),
            }
        }
        progress
    }

    /// Limits what waits in the kernel to that of one connection, however many there are: what is sent
    /// next waits behind it.
    pub(super) fn share_unsent(&mut self, session: usize) {
        let Some(live) = self.sessions.get(session) else { return };
        let share = UNSENT_LIMIT.bytes() / (live.links.len() as u64).max(1);
        for id in &live.links {
            if let Some(link) = self.links.get(*id) {
                let limit = Some(ByteCount::from_bytes(share));
                // Without it, the connection works all the same.
                let _ = host::socket::set_unsent_limit(&link.socket.stream, limit);
            }
        }
    }

    fn next_turn(&mut self, id: usize) {
        if let Some(live) = self.sessions.get(id) {
            live.turn = (live.turn + 1) % live.links.len().max(1);
        }
    }

    /// Gives a connection the next chunk.
    fn give(&mut self, id: usize, link: usize) -> io::Result<Taken> {
        let Some(link) = self.links.get(link) else { return Ok(Taken::Nothing) };
        let Some(live) = self.sessions.get(id) else { return Ok(Taken::Nothing) };
        if !link.socket.flush()? || live.session.unsent() == 0 {
            return Ok(Taken::Nothing);
        }
        let next = live.session.outgoing();
        let bytes = next.get(..MAX_CHUNK).unwrap_or(next);
        let count = bytes.len();
        link.socket.queue().extend_from_slice(&chunk::header(live.session.offset(), count));
        link.socket.send_copied(bytes)?;
        live.session.transmitted(count);
        Ok(if count == MAX_CHUNK { Taken::Full } else { Taken::Part })
    }
}

#[cfg(test)]
mod tests;
