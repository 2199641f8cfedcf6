use super::super::engine::tests::{Stage, sockets, target};
use super::super::link::{PING_INTERVAL, SILENCE_TIMEOUT};
use lane::Role;
use mux::chunk::KEEPALIVE;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

/// Near and far, and a session of each.
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

    /// Adds a connection.
    fn connect(&mut self) {
        let (near, far) = sockets();
        far.set_nonblocking(true).unwrap();
        self.near.carry(self.session, near);
        self.far.carry(self.session, far);
    }

    /// Adds a connection through a middle that passes nothing on; its sockets.
    fn connect_stalled(&mut self) -> [TcpStream; 2] {
        let ((near, before), (far, behind)) = (sockets(), sockets());
        self.near.carry(self.session, near);
        self.far.carry(self.session, far);
        [before, behind]
    }

    /// Near opens streams with 16 KiB each, as far as the session has room.
    fn send(&mut self, streams: usize) {
        let engine = self.near.engine();
        let live = engine.session(self.session).unwrap();
        for _ in 0..streams {
            if live.session.has_room() {
                let stream = live.session.open(&target()).unwrap();
                live.session.send(stream, &[0; 16 << 10]).unwrap();
            }
        }
        engine.ready.push(self.session);
    }

    fn round(&mut self) {
        self.near.round();
        self.far.round();
    }

    /// Bytes of near that far has received without a gap.
    fn received(&mut self) -> u64 {
        self.far.engine().session(self.session).unwrap().session.received()
    }
}

#[test]
fn what_a_stalled_connection_holds_goes_over_the_others_once_it_is_given_up() {
    let mut boxes = Boxes::new();
    let _stalled = boxes.connect_stalled();
    boxes.connect();
    let id = boxes.session;
    boxes.send(40);
    let session = &boxes.near.engine().session(id).unwrap().session;
    let whole = session.offset() + session.unsent() as u64;
    while boxes.near.engine().session(id).unwrap().session.unsent() > 0 {
        boxes.round();
    }
    for _ in 0..20 {
        boxes.round();
    }
    assert_eq!(boxes.received(), 0, "the first chunk is missing");
    for stage in [&mut boxes.near, &mut boxes.far] {
        let engine = stage.engine();
        let stalled = engine.session(id).unwrap().links[0];
        engine.link(stalled).unwrap().last_heard -= SILENCE_TIMEOUT;
        stage.close_overdue();
        assert_eq!(stage.engine().session(id).unwrap().links.len(), 1);
    }
    let mut rounds = 0;
    while boxes.received() < whole {
        boxes.round();
        rounds += 1;
        assert!(rounds < 100_000);
    }
    assert_eq!(boxes.far.opened(), 40, "each once");
}

#[test]
fn connections_that_take_more_carry_more() {
    let mut boxes = Boxes::new();
    let _stalled = boxes.connect_stalled();
    boxes.connect();
    for _ in 0..150 {
        boxes.send(16);
        boxes.round();
    }
    // All that is kept for far, but for what the kernel's buffers of the stalled one hold.
    let sent = boxes.near.engine().counters.totals().wan_sent;
    let arrived = boxes.far.engine().counters.totals().wan_received;
    assert!(sent > 30 << 20 && arrived > sent / 2, "{arrived} of {sent}");
    assert_eq!(boxes.received(), 0);
}

#[test]
fn every_connection_shows_life_which_is_no_part_of_the_session() {
    let mut boxes = Boxes::new();
    let id = boxes.session;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let (near, peer) = sockets();
        boxes.near.carry(id, near);
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
        peer.shutdown(Shutdown::Write).unwrap();
    }
    let mut rounds = 0;
    while boxes.near.engine().session(id).unwrap().unlinked.is_none() {
        boxes.near.round();
        rounds += 1;
        assert!(rounds < 100_000);
    }
    let live = boxes.near.engine().session(id).unwrap();
    assert!(live.links.is_empty());
    assert_eq!(live.session.received(), 0);
}
