//! Sessions at both ends, and peers that do what they may not.

mod compressed;
mod resets;

use super::*;
use crate::{BlockPiece, INITIAL_WINDOW, MAX_WINDOW};
use lane::{Block, MAX_BLOCK};
use proptest::prelude::*;

fn target() -> Target {
    "example.com:443".parse().unwrap()
}

/// The byte at an offset of a stream.
fn byte(id: StreamId, offset: usize) -> u8 {
    (offset.wrapping_mul(31) ^ offset >> 8).wrapping_add(id as usize * 17) as u8
}

fn bytes(id: StreamId, from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|offset| byte(id, offset)).collect()
}

/// What one end has sent and got of one stream.
#[derive(Default, Clone, Debug)]
struct Record {
    sent: usize,
    got: usize,
    unconsumed: usize,
    has_end: bool,
    has_ended: bool,
}

/// One end, with its streams.
struct End {
    session: Session,
    records: HashMap<StreamId, Record>,
    /// Of a block that has not arrived as a whole.
    block: Vec<u8>,
}

/// A block of a test: a byte for eight that it decompresses to.
fn compress(payload: &[u8]) -> (Block, Vec<u8>) {
    let compressed: Vec<u8> = payload.chunks(8).map(|eight| eight[0]).collect();
    (Block::new(compressed.len(), payload.len()).unwrap(), compressed)
}

impl End {
    fn new(role: Role) -> Self {
        let mut session = Session::new(role);
        session.admit_compressed();
        End { session, records: HashMap::new(), block: Vec::new() }
    }

    /// Takes bytes of the connection.
    fn take(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let Received { used, event } = self.session.receive(input).unwrap();
            match event {
                Some(Event::Open(id, to)) => {
                    assert_eq!(to, target());
                    self.records.insert(id, Record::default());
                    self.session.opened(id).unwrap();
                }
                Some(Event::Data(id, count)) => {
                    let record = self.records.get_mut(&id).unwrap();
                    let payload = &input[used - count..used];
                    assert_eq!(
                        payload,
                        bytes(id, record.got, count),
                        "lost, doubled or out of order"
                    );
                    record.got += count;
                    record.unconsumed += count;
                }
                Some(Event::Compressed(BlockPiece { stream, block, count, left })) => {
                    self.block.extend_from_slice(&input[used - count..used]);
                    assert_eq!(self.block.len() + left, block.length());
                    if left == 0 {
                        let record = self.records.get_mut(&stream).unwrap();
                        let expected = compress(&bytes(stream, record.got, block.size()));
                        let got = (block, std::mem::take(&mut self.block));
                        assert_eq!(got, expected, "lost, doubled or out of order");
                        record.got += block.size();
                        record.unconsumed += block.size();
                    }
                }
                Some(Event::End(id)) => self.records.get_mut(&id).unwrap().has_end = true,
                _ => {}
            }
            input = &input[used..];
        }
    }

    fn send(&mut self, id: StreamId, count: usize) {
        let Some(record) = self.records.get_mut(&id) else { return };
        let count = count.min(self.session.may_send(id));
        self.session.send(id, &bytes(id, record.sent, count)).unwrap();
        record.sent += count;
    }

    fn compress(&mut self, id: StreamId, count: usize) {
        let Some(record) = self.records.get_mut(&id) else { return };
        let count = count.min(self.session.may_send(id)).min(MAX_BLOCK);
        if count < 2 {
            return;
        }
        let (block, compressed) = compress(&bytes(id, record.sent, count));
        self.session.send_compressed(id, block, &compressed).unwrap();
        record.sent += count;
    }

    fn end(&mut self, id: StreamId) {
        let Some(record) = self.records.get_mut(&id) else { return };
        self.session.end(id);
        record.has_ended = true;
    }

    fn consume(&mut self, id: StreamId, most: usize) {
        let Some(record) = self.records.get_mut(&id) else { return };
        let count = record.unconsumed.min(most);
        record.unconsumed -= count;
        self.session.consumed(id, count);
    }

    /// Up to so many bytes that go to the connection.
    fn transmit(&mut self, most: usize) -> Vec<u8> {
        let next = self.session.outgoing();
        let piece = next[..next.len().min(most)].to_vec();
        self.session.transmitted(piece.len());
        piece
    }
}

/// Both ends, and what is on its way between them.
struct Pair {
    ends: [End; 2],
    /// Towards near, towards far.
    flight: [Vec<u8>; 2],
}

impl Pair {
    fn new() -> Self {
        Pair { ends: [End::new(Role::Near), End::new(Role::Far)], flight: [Vec::new(), Vec::new()] }
    }

    fn open(&mut self) -> StreamId {
        let id = self.ends[0].session.open(&target()).unwrap();
        self.ends[0].records.insert(id, Record::default());
        id
    }

    /// Moves so many bytes from an end to the connection, and as many from there to the other.
    fn pass(&mut self, from: usize, sent: usize, arrived: usize) {
        let to = 1 - from;
        let piece = self.ends[from].transmit(sent);
        self.flight[to].extend(piece);
        let arrived = arrived.min(self.flight[to].len());
        let piece: Vec<u8> = self.flight[to].drain(..arrived).collect();
        self.ends[to].take(&piece);
    }

    /// The connection breaks, and the next one begins.
    fn break_and_resume(&mut self) {
        self.flight = [Vec::new(), Vec::new()];
        let [near, far] = [self.ends[0].session.received(), self.ends[1].session.received()];
        self.ends[0].session.resume(far).unwrap();
        self.ends[1].session.resume(near).unwrap();
    }

    /// Until nothing is on its way.
    fn settle(&mut self) {
        loop {
            for from in [0, 1] {
                self.pass(from, usize::MAX, usize::MAX);
            }
            let ids: Vec<StreamId> = self.ends[0].records.keys().copied().collect();
            for id in ids {
                self.ends.iter_mut().for_each(|end| end.consume(id, usize::MAX));
            }
            if self.ends.iter().all(|end| end.session.unsent() == 0) {
                return;
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Open,
    Send(usize, StreamId, usize),
    Compress(usize, StreamId, usize),
    Consume(usize, StreamId, usize),
    End(usize, StreamId),
    Pass(usize, usize, usize),
    Break,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Open),
        6 => (0..2_usize, 1..5_u32, 1..100_000_usize).prop_map(|(a, b, c)| Step::Send(a, b, c)),
        3 => (0..2_usize, 1..5_u32, 2..100_000_usize).prop_map(|(a, b, c)| Step::Compress(a, b, c)),
        6 => (0..2_usize, 1..5_u32, 1..100_000_usize).prop_map(|(a, b, c)| Step::Consume(a, b, c)),
        1 => (0..2_usize, 1..5_u32).prop_map(|(a, b)| Step::End(a, b)),
        8 => (0..2_usize, 1..100_000_usize, 1..100_000_usize).prop_map(|(a, b, c)| Step::Pass(a, b, c)),
        2 => Just(Step::Break),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled_wherever_connections_break(
        steps in proptest::collection::vec(step(), 1..120)
    ) {
        let mut pair = Pair::new();
        for step in steps {
            match step {
                Step::Open => drop(pair.open()),
                Step::Send(end, id, count) => pair.ends[end].send(id, count),
                Step::Compress(end, id, count) => pair.ends[end].compress(id, count),
                Step::Consume(end, id, count) => pair.ends[end].consume(id, count),
                Step::End(end, id) if pair.ends[end].session.may_send(id) > 0 => pair.ends[end].end(id),
                Step::End(..) => {}
                Step::Pass(from, sent, arrived) => pair.pass(from, sent, arrived),
                Step::Break => pair.break_and_resume(),
            }
        }
        pair.break_and_resume();
        pair.settle();
        for (id, near) in &pair.ends[0].records {
            let far = &pair.ends[1].records[id];
            prop_assert_eq!((near.got, far.got), (far.sent, near.sent));
            prop_assert_eq!((near.has_end, far.has_end), (far.has_ended, near.has_ended));
        }
        // What is kept is at most what the next acknowledgement covers.
        for end in &pair.ends {
            prop_assert!((end.session.kept() as u64) < ACK_INTERVAL);
        }
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(
        role in prop_oneof![Just(Role::Near), Just(Role::Far)],
        input in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut session = Session::new(role);
        let mut rest = &input[..];
        while !rest.is_empty() {
            let Ok(received) = session.receive(rest) else { return Ok(()) };
            prop_assert!(received.used > 0);
            rest = &rest[received.used..];
        }
    }
}

/// A far end that gets frames, after one stream was opened and accepted.
fn far_gets(frames: &[Frame]) -> Result<(), MuxError> {
    let mut session = Session::new(Role::Far);
    session.admit_compressed();
    takes(&mut session, frames)
}

fn takes(session: &mut Session, frames: &[Frame]) -> Result<(), MuxError> {
    let all = [&[Frame::Open(1, target())], frames].concat();
    for frame in all {
        let mut input = frame.encode();
        match frame {
            Frame::Data(_, count) => input.resize(input.len() + count, 0),
            Frame::Compressed(_, block) => input.resize(input.len() + block.length(), 0),
            _ => {}
        }
        let mut rest = &input[..];
        while !rest.is_empty() {
            let received = session.receive(rest)?;
            rest = &rest[received.used..];
            if let Some(Event::Open(1, _)) = received.event {
                session.opened(1)?;
            }
        }
    }
    Ok(())
}

#[test]
fn what_a_peer_may_not_do_ends_the_session() {
    let window = usize::try_from(INITIAL_WINDOW).unwrap();
    let block = |size| Frame::Compressed(1, Block::new(1, size).unwrap());
    assert_eq!(far_gets(&[block(window), Frame::End(1), Frame::Ping]), Ok(()));
    assert_eq!(far_gets(&[Frame::Data(1, window), Frame::End(1), Frame::Ping]), Ok(()));
    for (frames, error) in [
        (vec![Frame::Data(1, window), Frame::Data(1, 1)], MuxError::CreditExceeded),
        // It is the size that counts, of however few bytes.
        (vec![block(window + 1)], MuxError::CreditExceeded),
        (vec![block(MAX_BLOCK)], MuxError::CreditExceeded),
        (vec![block(window), block(2)], MuxError::CreditExceeded),
        (vec![block(window), Frame::Data(1, 1)], MuxError::CreditExceeded),
        (vec![Frame::End(1), block(2)], MuxError::OutOfOrder),
        (vec![Frame::Compressed(2, Block::new(1, 2).unwrap())], MuxError::UnknownStream),
        (vec![Frame::Credit(1, u64::MAX)], MuxError::Credit),
        (vec![Frame::Credit(1, MAX_WINDOW + 1)], MuxError::Credit),
        (vec![Frame::Credit(1, INITIAL_WINDOW - 1)], MuxError::Credit),
        (vec![Frame::Credit(2, INITIAL_WINDOW)], MuxError::UnknownStream),
        (vec![Frame::Data(2, 1)], MuxError::UnknownStream),
        (vec![Frame::End(1), Frame::Data(1, 1)], MuxError::OutOfOrder),
        (vec![Frame::End(1), Frame::End(1)], MuxError::OutOfOrder),
        (vec![Frame::Reset(2)], MuxError::UnknownStream),
        (vec![Frame::Reset(1), Frame::End(1)], MuxError::OutOfOrder),
        (vec![Frame::Reset(1), Frame::Data(1, 1)], MuxError::OutOfOrder),
        (vec![Frame::StopSending(1)], MuxError::OutOfOrder),
        (vec![Frame::StopSending(2)], MuxError::UnknownStream),
        (vec![Frame::Open(1, target())], MuxError::OutOfOrder),
        (vec![Frame::Open(3, target())], MuxError::OutOfOrder),
        (vec![Frame::Opened(1)], MuxError::OutOfOrder),
        (vec![Frame::Refused(1, Refusal::Busy)], MuxError::OutOfOrder),
        (vec![Frame::Ack(u64::MAX)], MuxError::Forwards),
        // Only `Opened` could be acknowledged, and it was not sent.
        (vec![Frame::Ack(1)], MuxError::Forwards),
        (vec![Frame::Ping, Frame::Ack(0), Frame::Ack(13)], MuxError::Forwards),
    ] {
        assert_eq!(far_gets(&frames), Err(error), "{frames:?}");
    }
    let opens: Vec<Frame> =
        (2..=MAX_STREAMS as u32 + 1).map(|id| Frame::Open(id, target())).collect();
    assert_eq!(far_gets(&opens), Err(MuxError::TooManyStreams));
    assert_eq!(far_gets(&opens[1..1]), Ok(()));
}

#[test]
fn wrong_offsets_are_refused_on_resuming() {
    let mut pair = Pair::new();
    let id = pair.open();
    for _ in 0..20 {
        pair.ends[0].send(id, 16 << 10);
        pair.settle();
    }
    let near = &mut pair.ends[0].session;
    assert!(near.log.len() < 20 * (16 << 10));
    assert_eq!(near.resume(0), Err(MuxError::Backwards));
    assert_eq!(near.resume(u64::MAX), Err(MuxError::Forwards));
    let far = pair.ends[1].session.received();
    assert_eq!(pair.ends[0].session.resume(far + 1), Err(MuxError::Forwards));
    assert_eq!(pair.ends[0].session.resume(far), Ok(()));
}

#[test]
fn a_ping_has_everything_acknowledged() {
    let mut pair = Pair::new();
    let id = pair.open();
    pair.ends[0].send(id, 100);
    pair.ends[0].end(id);
    pair.settle();
    assert!(!pair.ends[0].session.is_acknowledged() && !pair.ends[1].session.is_acknowledged());
    // Both at once, and the answers cross.
    pair.ends.iter_mut().for_each(|end| end.session.ping());
    pair.settle();
    assert!(pair.ends[0].session.is_acknowledged() && pair.ends[1].session.is_acknowledged());
}

#[test]
fn a_peer_that_acknowledges_nothing_is_given_up() {
    let mut session = Session::new(Role::Far);
    let ping = Frame::Ping.encode();
    let pings = ping.repeat(1000);
    let result = (0..10_000).find_map(|_| {
        let mut rest = &pings[..];
        while !rest.is_empty() {
            match session.receive(rest) {
                Ok(received) => rest = &rest[received.used..],
                Err(error) => return Some(error),
            }
        }
        None
    });
    assert_eq!(result, Some(MuxError::Unacknowledged));
    assert!(session.kept() <= REPLAY_LIMIT + CONTROL_LIMIT + 64);
}

#[test]
fn stalled_readers_hold_a_bounded_amount_and_leave_room_for_others() {
    let mut pair = Pair::new();
    let stalled: Vec<StreamId> = (0..1000).map(|_| pair.open()).collect();
    pair.settle();
    // Each takes what it is given for a while, and then nothing more.
    for _ in 0..6 {
        for id in &stalled {
            pair.ends[0].send(*id, 1 << 20);
        }
        pair.settle();
    }
    for _ in 0..5 {
        stalled.iter().for_each(|id| pair.ends[0].send(*id, 1 << 20));
        pair.pass(0, usize::MAX, usize::MAX);
        pair.pass(1, usize::MAX, usize::MAX);
    }
    let held: usize = pair.ends[1].records.values().map(|record| record.unconsumed).sum();
    let budget = WINDOW_POOL + 1000 * INITIAL_WINDOW;
    assert!(held as u64 <= budget, "{held}");
    let other = pair.open();
    for _ in 0..200 {
        pair.ends[0].send(other, 1 << 20);
        pair.pass(0, usize::MAX, usize::MAX);
        pair.ends[1].consume(other, usize::MAX);
        pair.pass(1, usize::MAX, usize::MAX);
    }
    assert!(
        pair.ends[1].records[&other].got >= 200 * (32 << 10),
        "{:?}",
        pair.ends[1].records[&other]
    );
}

#[test]
fn a_stream_that_is_over_is_forgotten_and_a_late_credit_is_no_error() {
    let mut pair = Pair::new();
    let id = pair.open();
    pair.ends[0].send(id, 10_000);
    pair.settle();
    pair.ends[1].send(id, 10_000);
    pair.ends[1].end(id);
    pair.pass(1, usize::MAX, usize::MAX);
    // Near has ended; its credit for far arrives after that.
    pair.ends[0].end(id);
    pair.ends[0].consume(id, usize::MAX);
    let late = Frame::Credit(id, INITIAL_WINDOW * 4).encode();
    pair.settle();
    for end in &pair.ends {
        assert!(end.session.streams.is_empty() && end.session.borrowed == 0);
        assert_eq!(end.session.active, 0);
    }
    assert_eq!(pair.ends[1].session.receive(&late).unwrap().event, None);
}
