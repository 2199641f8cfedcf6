//! One direction of a session over connections that deliver at different times, and break.

use super::*;
use crate::chunk::{self, ChunkReader};
use crate::reassembly::Reassembly;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A connection from near to far: what is on its way, and far's reader.
#[derive(Default)]
struct Connection {
    flight: VecDeque<u8>,
    reader: ChunkReader,
}

/// Both ends; acknowledgements of far pass at once.
struct Path {
    near: Session,
    far: Session,
    held: Reassembly,
    connections: Vec<Connection>,
    stream: StreamId,
    sent: Vec<u8>,
    got: Vec<u8>,
}

impl Path {
    fn new(connections: usize) -> Self {
        let mut near = Session::new(Role::Near);
        let stream = near.open(&"example.com:443".parse().unwrap()).unwrap();
        let connections = (0..connections).map(|_| Connection::default()).collect();
        Path {
            near,
            far: Session::new(Role::Far),
            held: Reassembly::default(),
            connections,
            stream,
            sent: Vec::new(),
            got: Vec::new(),
        }
    }

    /// The application sends so many bytes at most.
    fn send(&mut self, count: usize) {
        let count = count.min(self.near.may_send(self.stream));
        let from = self.sent.len();
        let bytes: Vec<u8> = (from..from + count).map(|at| ((at * 31) >> 3) as u8).collect();
        self.near.send(self.stream, &bytes).unwrap();
        self.sent.extend(bytes);
    }

    /// A connection takes a chunk of at most so many bytes.
    fn give(&mut self, connection: usize, most: usize) {
        let bytes = self.near.outgoing();
        let count = bytes.len().min(most);
        if count > 0 {
            let flight = &mut self.connections[connection].flight;
            flight.extend(chunk::header(self.near.offset(), count));
            flight.extend(&bytes[..count]);
            self.near.transmitted(count);
        }
    }

    /// So many bytes of a connection arrive.
    fn arrive(&mut self, connection: usize, most: usize) {
        let Connection { flight, reader } = &mut self.connections[connection];
        let bytes: Vec<u8> = flight.drain(..most.min(flight.len())).collect();
        let mut input = &bytes[..];
        let mut ready = Vec::new();
        while let Some(piece) = reader.next(&mut input).unwrap() {
            let mut at = self.far.received() + ready.len() as u64;
            self.held.hold(at, piece).unwrap();
            while let Some(more) = self.held.take(at) {
                at += more.len() as u64;
                ready.extend(more);
            }
        }
        self.take(&ready);
    }

    fn take(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let Received { used, event } = self.far.receive(input).unwrap();
            match event {
                Some(Event::Open(id, _)) => self.far.opened(id).unwrap(),
                Some(Event::Data(id, count)) => {
                    self.got.extend(&input[used - count..used]);
                    self.far.consumed(id, count);
                }
                _ => {}
            }
            input = &input[used..];
        }
        let mut answer = self.far.outgoing().to_vec();
        self.far.transmitted(answer.len());
        while !answer.is_empty() {
            let used = self.near.receive(&answer).unwrap().used;
            answer.drain(..used);
        }
    }

    /// A connection breaks with what is on its way, and another one takes its place.
    fn break_one(&mut self, connection: usize) {
        self.connections[connection] = Connection::default();
        self.near.rewind();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Send(usize),
    Give(usize, usize),
    Arrive(usize, usize),
    Break(usize),
}

const CONNECTIONS: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let connection = 0..CONNECTIONS;
    prop_oneof![
        (1_usize..50_000).prop_map(Step::Send),
        (connection.clone(), prop_oneof![1_usize..40, 1_usize..=64 << 10])
            .prop_map(|(at, most)| Step::Give(at, most)),
        (connection.clone(), prop_oneof![1_usize..40, 1_usize..100_000])
            .prop_map(|(at, most)| Step::Arrive(at, most)),
        connection.prop_map(Step::Break),
    ]
}

proptest! {
    #[test]
    fn nothing_is_lost_or_doubled_whichever_connection_is_faster_or_breaks(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut path = Path::new(CONNECTIONS);
        for step in steps {
            match step {
                Step::Send(count) => path.send(count),
                Step::Give(at, most) => path.give(at, most),
                Step::Arrive(at, most) => path.arrive(at, most),
                Step::Break(at) => path.break_one(at),
            }
            prop_assert!(path.sent.starts_with(&path.got));
        }
        for at in (0..CONNECTIONS).cycle() {
            if path.near.unsent() == 0 && path.connections.iter().all(|one| one.flight.is_empty()) {
                break;
            }
            path.give(at, 64 << 10);
            path.arrive(at, usize::MAX);
        }
        prop_assert!(path.got == path.sent);
    }
}
