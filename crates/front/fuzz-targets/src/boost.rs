//! What a box of `boost` sends to the other one: over a lane, or in a session.

use lane::{Lane, LaneError, Message, Preface, Role};
use mux::chunk::Piece;
use mux::{BlockPiece, ChunkReader, Event, Hello, MuxError, Reassembly, Session, Welcome};

/// The messages of a stream that arrives in such pieces, and the payload taken after each.
fn receive(role: Role, stream: &[u8], piece: usize) -> (Vec<(Message, usize)>, Option<LaneError>) {
    let mut lane = Lane::new(role);
    lane.admit_compressed();
    let mut messages: Vec<(Message, usize)> = Vec::new();
    for mut bytes in stream.chunks(piece) {
        while !bytes.is_empty() {
            let payload = usize::try_from(lane.payload()).unwrap_or(usize::MAX).min(bytes.len());
            if payload > 0 {
                lane.taken(u32::try_from(payload).unwrap_or(u32::MAX));
                if let Some((_, taken)) = messages.last_mut() {
                    *taken += payload;
                }
                bytes = bytes.get(payload..).unwrap_or_default();
                continue;
            }
            match lane.receive(bytes) {
                Ok(received) => {
                    assert!(received.used > 0, "no progress");
                    bytes = bytes.get(received.used..).unwrap_or_default();
                    messages.extend(received.message.map(|message| (message, 0)));
                }
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

/// A preface, then messages. The first byte is the size of the pieces that they arrive in; how they
/// are cut must make no difference.
pub(crate) fn lane(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    if let Some(preface) = stream.first_chunk() {
        let _ = Preface::decode(*preface);
    }
    for role in [Role::Near, Role::Far] {
        let whole = receive(role, stream, stream.len().max(1));
        assert_eq!(whole, receive(role, stream, usize::from(*piece).max(1)));
    }
}

/// The events of a stream of frames that arrives in such pieces, with payload in one.
fn act(role: Role, stream: &[u8], piece: usize) -> (Vec<Event>, Option<MuxError>) {
    let mut session = Session::new(role);
    session.admit_compressed();
    let mut events: Vec<Event> = Vec::new();
    if role == Role::Near {
        for _ in 0..2 {
            let _ = session.open(&lane::Target::NAME_SERVER);
        }
    }
    for mut bytes in stream.chunks(piece) {
        while !bytes.is_empty() {
            let received = match session.receive(bytes) {
                Ok(received) => received,
                Err(error) => return (events, Some(error)),
            };
            assert!(received.used > 0, "no progress");
            bytes = bytes.get(received.used..).unwrap_or_default();
            match (received.event, events.last_mut()) {
                (Some(Event::Data(id, more)), Some(Event::Data(last, count))) if *last == id => {
                    *count += more;
                }
                (Some(Event::Compressed(piece)), Some(Event::Compressed(last)))
                    if last.left > 0 =>
                {
                    assert_eq!((piece.stream, piece.block), (last.stream, last.block));
                    assert_eq!(piece.count + piece.left, last.left);
                    *last = BlockPiece { count: last.count + piece.count, ..piece };
                }
                (Some(event), _) => {
                    if let Event::Open(id, _) = &event {
                        let _ = session.opened(*id);
                    }
                    events.push(event);
                }
                (None, _) => {}
            }
        }
    }
    (events, None)
}

/// What the chunks of a connection bring of a session's bytes, in order.
fn reassemble(stream: &[u8], piece: usize) -> (Vec<u8>, Option<MuxError>) {
    let (mut reader, mut held) = (ChunkReader::default(), Reassembly::default());
    let mut whole = Vec::new();
    for mut input in stream.chunks(piece) {
        loop {
            let next: Piece<'_> = match reader.next(&mut input) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(error) => return (whole, Some(error)),
            };
            if let Err(error) = held.hold(whole.len() as u64, next) {
                return (whole, Some(error));
            }
            while let Some(bytes) = held.take(whole.len() as u64) {
                assert!(!bytes.is_empty(), "no progress");
                whole.extend(bytes);
            }
        }
    }
    (whole, None)
}

/// Frames of a session, at either end, after the size of the pieces that they arrive in.
pub(crate) fn session(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    if let Some(hello) = stream.first_chunk() {
        let _ = Hello::decode(hello);
    }
    if let Some(welcome) = stream.first_chunk() {
        let _ = Welcome::decode(welcome);
    }
    let whole = reassemble(stream, stream.len().max(1));
    assert_eq!(whole.0, reassemble(stream, usize::from(*piece).max(1)).0);
    for role in [Role::Near, Role::Far] {
        let whole = act(role, stream, stream.len().max(1));
        assert_eq!(whole, act(role, stream, usize::from(*piece).max(1)));
    }
}
