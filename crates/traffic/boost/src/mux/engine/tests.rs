use super::super::UNSENT_LIMIT;
use super::*;
use crate::lane_socket::LaneSocket;
use lane::{Block, Reduction};
use mux::{Session, SessionId};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

/// A side that only takes notes.
#[derive(Default)]
struct Notes {
    ended: Vec<(usize, FlowEnd)>,
    opened: Vec<usize>,
}

impl Side for Notes {
    type Job = ();

    fn job(&mut self, _job: (), _engine: &mut Engine) {}

    fn greeted(&mut self, _link: usize, _greeting: &[u8], _engine: &mut Engine) {}

    fn open(&mut self, flow: usize, _target: &Target, _engine: &mut Engine) {
        self.opened.push(flow);
    }

    fn connect_failed(&mut self, _flow: usize, _error: &io::Error, _engine: &mut Engine) {}

    fn flow_ended(&mut self, flow: usize, summary: FlowSummary) {
        self.ended.push((flow, summary.end));
    }

    fn link_lost(&mut self, _link: &Link, _why: &str, _engine: &mut Engine) {}

    fn sweep(&mut self, _drains: bool, _engine: &mut Engine) -> bool {
        false
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts::default()
    }
}

/// A box without connections, which the test turns by hand.
pub(in crate::mux) struct Stage {
    prepared: Prepared<()>,
    side: Notes,
    _inbox: Inbox<()>,
}

impl Stage {
    pub(in crate::mux) fn new(role: Role) -> Self {
        let (prepared, _inbox) = prepare(role, &Arc::default()).unwrap();
        Stage { prepared, side: Notes::default(), _inbox }
    }

    pub(in crate::mux) fn engine(&mut self) -> &mut Engine {
        &mut self.prepared.engine
    }

    pub(in crate::mux) fn round(&mut self) {
        let Prepared { engine, jobs, .. } = &mut self.prepared;
        engine.round(clock::now(), &mut Vec::new(), jobs, &mut self.side);
    }

    pub(in crate::mux) fn session(&mut self) -> usize {
        let engine = &mut self.prepared.engine;
        let session = Session::new(engine.role);
        let live = Live::new(session, SessionId([7; 16]), None, anyone(), engine.now);
        engine.add_session(live)
    }

    /// Near: a flow of a session; its socket, as the application has it.
    fn flow(&mut self, session: usize) -> (usize, TcpStream) {
        let (local, application) = sockets();
        let engine = &mut self.prepared.engine;
        let live = engine.session(session).unwrap();
        let stream = live.session.open(&target()).unwrap();
        let local = LocalFlow::new(Local::Connected(local), anyone(), target(), engine.now);
        (engine.add_flow(session, stream, local), application)
    }

    fn link(&mut self, stream: TcpStream) -> Option<usize> {
        let engine = &mut self.prepared.engine;
        let socket = LaneSocket::accepted(stream, None, Arc::clone(&engine.counters));
        let link = Link::new(socket, anyone(), b"greeting", 40, engine.now);
        engine.add_link(link, &mut self.side)
    }

    /// Near: the other end of a session, which has accepted its streams.
    fn peer(&mut self, session: usize) -> Session {
        let mut far = Session::new(Role::Far);
        let mut opens = self.engine().session(session).unwrap().session.outgoing().to_vec();
        while !opens.is_empty() {
            let received = far.receive(&opens).unwrap();
            opens.drain(..received.used);
            if let Some(mux::Event::Open(stream, _)) = received.event {
                far.opened(stream).unwrap();
            }
        }
        far
    }

    /// A session goes on over one more connection, on which both ends have greeted.
    pub(in crate::mux) fn carry(&mut self, session: usize, stream: TcpStream) {
        let Engine { counters, now, .. } = &self.prepared.engine;
        let socket = LaneSocket::accepted(stream, None, Arc::clone(counters));
        let link = Link::new(socket, anyone(), b"", 0, *now);
        let link = self.prepared.engine.add_link(link, &mut self.side).unwrap();
        self.engine().attach_beside(session, link);
    }

    pub(in crate::mux) fn close_overdue(&mut self) {
        self.prepared.engine.close_overdue(&mut self.side);
    }

    /// Streams that the peer has opened.
    pub(in crate::mux) fn opened(&self) -> usize {
        self.side.opened.len()
    }

    fn process(&mut self, session: usize, input: &[u8]) {
        self.prepared.engine.process(session, input, &mut self.side);
    }

    fn end_session(&mut self, session: usize) {
        self.prepared.engine.end_session(session, "over", &mut self.side);
    }
}

fn anyone() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

pub(in crate::mux) fn target() -> Target {
    "127.0.0.1:1".parse().unwrap()
}

/// Both ends of a connection; the first one does not block.
pub(in crate::mux) fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    one.set_nonblocking(true).unwrap();
    let (other, _) = listener.accept().unwrap();
    other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (one, other)
}

/// What epoll(7) refuses.
fn unwatchable() -> TcpStream {
    TcpStream::from(OwnedFd::from(File::open("/proc/self/exe").unwrap()))
}

#[test]
fn data_and_fin_that_are_held_are_delivered_as_the_session_ends() {
    for is_broken in [false, true] {
        let mut stage = Stage::new(Role::Near);
        let session = stage.session();
        let (id, mut application) = stage.flow(session);
        let flow = stage.engine().flow(id).unwrap();
        flow.local.to_lane.has_fin = true;
        flow.local.to_local.ended = Some(clock::now());
        flow.local.to_local.queue.extend(b"abc");
        if is_broken {
            flow.local.connected().unwrap().shutdown(Shutdown::Write).unwrap();
        }
        stage.end_session(session);
        let end = if is_broken { FlowEnd::LocalReset } else { FlowEnd::Orderly };
        assert_eq!(stage.side.ended, [(id, end)]);
        let mut got = Vec::new();
        application.read_to_end(&mut got).unwrap();
        assert_eq!(got, if is_broken { &b""[..] } else { b"abc" });
    }
}

#[test]
fn a_session_that_may_not_send_delivers_all_the_same() {
    let mut stage = Stage::new(Role::Near);
    let session = stage.session();
    let (id, mut application) = stage.flow(session);
    let live = stage.engine().session(session).unwrap();
    while live.session.unsent() < UNSENT_LIMIT {
        let stream = live.session.open(&target()).unwrap();
        live.session.send(stream, &[0; 16 << 10]).unwrap();
    }
    application.write_all(b"def").unwrap();
    let flow = stage.engine().flow(id).unwrap();
    flow.local.to_local.queue.extend(b"abc");
    flow.local.to_local.ended = Some(clock::now());
    stage.round();
    let mut got = Vec::new();
    application.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"abc");
    let flow = stage.engine().flow(id).unwrap();
    assert_eq!(flow.local.to_lane.bytes, 0, "what the application sends waits");
    let live = stage.engine().session(session).unwrap();
    live.session.transmitted(UNSENT_LIMIT);
    stage.engine().ready.push(session);
    stage.round();
    assert_eq!(stage.engine().flow(id).unwrap().local.to_lane.bytes, 3);
}

#[test]
fn a_flow_whose_socket_takes_nothing_ends_as_data_arrives() {
    let mut stage = Stage::new(Role::Near);
    let session = stage.session();
    let (id, _application) = stage.flow(session);
    let flow = stage.engine().flow(id).unwrap();
    let stream = flow.stream;
    flow.local.connected().unwrap().shutdown(Shutdown::Write).unwrap();
    let mut far = stage.peer(session);
    far.send(stream, b"abc").unwrap();
    stage.process(session, far.outgoing());
    assert_eq!(stage.side.ended, [(id, FlowEnd::LocalReset)]);
    assert!(!stage.engine().has_flows());
    let live = stage.engine().session(session).unwrap();
    assert!(live.streams.is_empty() && live.woken.is_empty() && live.queue.is_empty());
}

#[test]
fn sessions_and_connections_that_cannot_be_watched_leave_no_numbers_behind() {
    let mut stage = Stage::new(Role::Far);
    for _ in 0..20 {
        let session = stage.session();
        assert_eq!(session, 0);
        stage.end_session(session);
        assert_eq!(stage.link(unwatchable()), None);
        stage.round();
    }
    let (stream, _peer) = sockets();
    assert_eq!(stage.link(stream), Some(0));
}

#[test]
fn an_address_whose_socket_cannot_be_watched_does_not_fail_the_next_one() {
    let mut stage = Stage::new(Role::Far);
    let session = stage.session();
    let mut near = Session::new(Role::Near);
    near.open(&target()).unwrap();
    stage.process(session, near.outgoing());
    let id = *stage.side.opened.first().unwrap();
    assert!(stage.engine().set_local(id, unwatchable()).is_err());
    assert!(matches!(stage.engine().flow(id).unwrap().local.local, Local::Awaited));
    let (stream, _server) = sockets();
    stage.engine().set_local(id, stream).unwrap();
    stage.round();
    stage.round();
    let flow = stage.engine().flow(id).unwrap();
    assert!(flow.local.is_opened && flow.local.connected().is_some());
    assert_eq!(stage.side.ended, []);
}

#[test]
fn no_connection_is_counted_once_a_box_has_stopped() {
    let mut stage = Stage::new(Role::Far);
    let (stream, _peer) = sockets();
    let link = stage.link(stream).unwrap();
    let session = stage.session();
    let Stage { prepared, side, .. } = &mut stage;
    prepared.engine.attach(session, link, side);
    let active = |engine: &Engine| engine.counters.totals().active_lanes;
    assert_eq!(active(&prepared.engine), 1);
    prepared.engine.stop(side);
    assert_eq!(active(&prepared.engine), 0);
}

#[test]
fn a_block_that_arrives_in_pieces_is_delivered_once() {
    let text = b"flow of the near box: 7919 bytes\n".repeat(40);
    for piece in [1, 7, usize::MAX] {
        let mut stage = Stage::new(Role::Near);
        let session = stage.session();
        let (id, mut application) = stage.flow(session);
        let stream = stage.engine().flow(id).unwrap().stream;
        let mut far = stage.peer(session);
        far.admit_compressed();
        stage.engine().session(session).unwrap().session.admit_compressed();
        let mut codec = BlockCodec::new();
        for _ in 0..2 {
            let (block, bytes) = codec.compress(&mut Reduction::default(), &text).unwrap();
            far.send_compressed(stream, block, bytes).unwrap();
        }
        far.end(stream);
        let sent = far.outgoing().to_vec();
        for bytes in sent.chunks(piece.min(sent.len())) {
            stage.process(session, bytes);
        }
        stage.round();
        let mut got = Vec::new();
        application.read_to_end(&mut got).unwrap();
        assert_eq!(got, text.repeat(2));
        let flow = &stage.engine().flow(id).unwrap().local;
        assert!(flow.to_local.wan_bytes * 4 < flow.to_local.bytes, "{}", flow.to_local.wan_bytes);
        assert!(stage.engine().session(session).unwrap().block.is_empty());
    }
}

#[test]
fn a_corrupt_block_ends_its_session_unless_nobody_takes_it() {
    for is_taken in [true, false] {
        let mut stage = Stage::new(Role::Near);
        let session = stage.session();
        let (id, _application) = stage.flow(session);
        let (other, _) = stage.flow(session);
        let stream = stage.engine().flow(id).unwrap().stream;
        let mut far = stage.peer(session);
        far.admit_compressed();
        stage.engine().session(session).unwrap().session.admit_compressed();
        far.send_compressed(stream, Block::new(3, 1000).unwrap(), b"abc").unwrap();
        if !is_taken {
            let Stage { prepared, side, .. } = &mut stage;
            prepared.engine.abort_flow(id, FlowEnd::IdleTimeout, side);
        }
        stage.process(session, far.outgoing());
        let ends: Vec<_> = stage.side.ended.iter().map(|(flow, _)| *flow).collect();
        assert_eq!(stage.engine().session(session).is_some(), !is_taken, "{ends:?}");
        assert_eq!(ends.contains(&other), is_taken);
    }
}
