use super::super::engine::tests::{Stage, anyone, sockets, target};
use super::super::link::PING_INTERVAL;
use super::*;
use lane::Role;
use mux::chunk::KEEPALIVE;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Near and far, a session of each, and connections between them.
struct Boxes {
    near: Stage,
    far: Stage,
    session: usize,
}

impl Boxes {
    fn new() -> Self {
        let (mut near, mut far) = (Stage::new(Role::Near), Stage::new(Role::Far));
        let session = near.session();
        assert_eq!(far.session(), session);
        Boxes { near, far, session }
    }

    /// A connection that carries the sessions; the sockets between the boxes, if nobody passes bytes on
    /// between them.
    fn connect(&mut self, is_stalled: bool) -> Option<[TcpStream; 2]> {
        let (near, middle) = sockets();
        let (far, middle, held) = if is_stalled {
            let (far, other) = sockets();
            (far, None, Some([middle, other]))
        } else {
            middle.set_nonblocking(true).unwrap();
            (middle, Some(()), None)
        };
        assert_eq!(middle.is_some(), held.is_none());
        for (stage, stream) in [(&mut self.near, near), (&mut self.far, far)] {
            let link = stage.greeted_link(stream);
            stage.engine().attach_beside(self.session, link);
        }
        held
    }

    fn round(&mut self) {
        self.near.round();
        self.far.round();
    }

    fn unsent(&mut self) -> usize {
        self.near.engine().session(self.session).unwrap().session.unsent()
    }
}

#[test]
fn what_a_stalled_connection_holds_goes_over_the_others_once_it_is_given_up() {
    let mut boxes = Boxes::new();
    let held = boxes.connect(true).unwrap();
    boxes.connect(false);
    let id = boxes.session;
    let live = boxes.near.engine().session(id).unwrap();
    // More than the first one has a turn for, so that both carry some of it.
    let mut streams = Vec::new();
    for _ in 0..40 {
        let stream = live.session.open(&target()).unwrap();
        live.session.send(stream, &[0; 16 << 10]).unwrap();
        streams.push(stream);
    }
    let whole = live.session.offset() + live.session.unsent() as u64;
    boxes.near.engine().ready.push(id);
    while boxes.unsent() > 0 {
        boxes.round();
    }
    let received = |boxes: &mut Boxes| boxes.far.engine().session(id).unwrap().session.received();
    for _ in 0..20 {
        boxes.round();
    }
    assert_eq!(received(&mut boxes), 0, "the first chunk is missing");
    // The other one shows that it works, the stalled one does not.
    let silence = Duration::from_secs(25);
    for stage in [&mut boxes.near, &mut boxes.far] {
        let engine = stage.engine();
        let first = engine.session(id).unwrap().links[0];
        engine.link(first).unwrap().last_heard -= silence;
        stage.close_overdue();
        assert_eq!(stage.engine().session(id).unwrap().links.len(), 1);
    }
    while received(&mut boxes) < whole {
        boxes.round();
    }
    assert_eq!(boxes.far.opened(), streams.len(), "each once");
    drop(held);
}

#[test]
fn every_connection_shows_life_and_none_is_given_up_that_does() {
    let mut boxes = Boxes::new();
    let id = boxes.session;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let (near, peer) = sockets();
        let link = boxes.near.greeted_link(near);
        boxes.near.engine().attach_beside(id, link);
        peers.push(peer);
    }
    let engine = boxes.near.engine();
    for link in engine.session(id).unwrap().links.clone() {
        engine.link(link).unwrap().last_keepalive -= PING_INTERVAL;
    }
    boxes.near.close_overdue();
    boxes.near.round();
    for peer in &mut peers {
        let mut got = [1; KEEPALIVE.len()];
        peer.read_exact(&mut got).unwrap();
        assert_eq!(got, KEEPALIVE);
        peer.write_all(&KEEPALIVE).unwrap();
        // A connection that breaks leaves the others.
        peer.shutdown(Shutdown::Write).unwrap();
    }
    let mut rounds = 0;
    while boxes.near.engine().session(id).unwrap().unlinked.is_none() {
        boxes.near.round();
        rounds += 1;
        assert!(rounds < 10_000);
    }
    let live = boxes.near.engine().session(id).unwrap();
    assert!(live.links.is_empty());
    assert_eq!(live.session.received(), 0, "signs of life are no part of the session");
    assert_eq!(anyone(), anyone());
}

#[test]
fn faster_connections_carry_more() {
    let mut boxes = Boxes::new();
    let id = boxes.session;
    let slow = boxes.connect(true).unwrap();
    boxes.connect(false);
    let mut sent = 0;
    for _ in 0..200 {
        let live = boxes.near.engine().session(id).unwrap();
        // Control frames without a peer that has a say in it.
        while live.session.unsent() < 256 << 10 && live.session.has_room() {
            let Ok(stream) = live.session.open(&target()) else { break };
            live.session.send(stream, &[0; 16 << 10]).unwrap();
            sent += 1;
        }
        boxes.near.engine().ready.push(id);
        boxes.round();
    }
    let bytes = |boxes: &mut Stage| boxes.engine().counters.totals();
    assert!(sent > 100, "{sent}");
    // The far box has what the fast one carried; of the slow one the kernel's buffers are full.
    let (near, far) = (bytes(&mut boxes.near).wan_sent, bytes(&mut boxes.far).wan_received);
    assert!(far > near / 2, "{near} {far}");
    drop(slow);
}
