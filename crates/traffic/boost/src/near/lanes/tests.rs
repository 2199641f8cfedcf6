//! The lanes of a thread of near, in virtual time, against a far that each test plays.

mod addresses;

use super::*;
use crate::address_share::AddressShares;
use crate::event_loop::{Inbox, PEER_CHECK, Prepared};
use crate::ingress::Accepted;
use crate::{Ingress, LaneOptions, PortForward, Timeouts};
use host::lock::lock;
use host::stop::StopFlag;
use lane::{Lane, Message, Preface};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

const LONG: Duration = Duration::from_secs(20);

type Events = Mutex<Vec<Event>>;

struct Stage {
    side: NearSide<'static>,
    thread: Prepared<NewFlow>,
    inbox: Inbox<NewFlow>,
    events: &'static Events,
    stop: &'static StopFlag,
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Far's end of a lane.
struct Peer {
    stream: TcpStream,
    lane: Lane,
}

impl Peer {
    fn send(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        self.lane.send(message, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    fn send_payload(&mut self, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap();
        self.send(&Message::Data(length));
        self.stream.write_all(payload).unwrap();
        self.lane.sent(length);
    }

    /// The next message of near.
    fn receive(&mut self) -> Message {
        loop {
            let bytes = read(&mut self.stream, self.lane.lacking());
            if let Some(message) = self.lane.receive(&bytes).unwrap().message {
                return message;
            }
        }
    }
}

impl Stage {
    fn new(far: Vec<SocketAddr>, lanes: usize) -> Self {
        let config = Box::leak(Box::new(NearConfig {
            far,
            key: None,
            lanes,
            mux: false,
            udt: None,
            connections: None,
            compresses: false,
            options: LaneOptions::default(),
            timeouts: Timeouts::default(),
            max_flows: 1000,
            direct_rate: None,
            threads: 1,
        }));
        let events: &'static Events = Box::leak(Box::default());
        let stop: &'static StopFlag = Box::leak(Box::new(StopFlag::new()));
        let drain: &'static StopFlag = Box::leak(Box::new(StopFlag::new()));
        let report = Box::leak(Box::new(|event| lock(events).push(event)));
        let (shares, counters) =
            (Box::leak(Box::new(Shares::new(1))), Box::leak(Box::<Arc<Counters>>::default()));
        let side = NearSide::new(config, (shares, 0), counters, Ending { stop, drain }, report);
        let (thread, inbox) = Prepared::one();
        Stage { side, thread, inbox, events, stop }
    }

    /// Serves what changes within a moment.
    fn serve(&mut self) {
        self.thread.serve(&mut self.side);
    }

    /// Checks the timeouts as if so much more time had passed.
    fn pass(&mut self, time: Duration) {
        self.thread.pass(time, &mut self.side);
        self.serve();
    }

    /// Accepts a lane that is being connected, as far does.
    fn accept(&mut self, listener: &TcpListener) -> Peer {
        let (mut far, _) = listener.accept().unwrap();
        far.set_read_timeout(Some(LONG)).unwrap();
        far.write_all(&Preface::of_lane(false).encode()).unwrap();
        self.serve();
        assert_eq!(read(&mut far, Preface::BYTES), Preface::of_lane(false).encode());
        Peer { stream: far, lane: Lane::new(Role::Far) }
    }

    /// An application that connects.
    fn flow(&mut self) -> TcpStream {
        let application = self.put_flow();
        self.serve();
        application
    }

    /// The same, before the box has noticed.
    fn put_flow(&self) -> TcpStream {
        self.put_flow_with(Vec::new())
    }

    /// The same, where its first bytes were read already.
    fn put_flow_with(&self, early: Vec<u8>) -> TcpStream {
        let (listener, address) = listener();
        let application = TcpStream::connect(address).unwrap();
        application.set_read_timeout(Some(LONG)).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        crate::sockets::prepare_local(&stream).unwrap();
        stream.set_nonblocking(true).unwrap();
        let ingress = PortForward("192.0.2.1:1".parse().unwrap());
        let negotiation = ingress.begin(Accepted { peer, local: address });
        let target = ingress.0;
        let share = AddressShares::new(1).take(peer.ip()).unwrap();
        self.inbox.put(NewFlow { stream, peer, target, negotiation, early, share });
        application
    }

    /// What was reported of far so far: `None` for reached, or why not.
    fn reports(&self) -> Vec<Option<String>> {
        let report = |event: &Event| match event {
            Event::FarReached { .. } => Some(None),
            Event::FarUnreachable { why, .. } => Some(Some(why.clone())),
            _ => None,
        };
        lock(self.events).iter().filter_map(report).collect()
    }

    fn lanes(&mut self) -> usize {
        self.thread.event_loop().relays().count()
    }
}

fn open() -> Message {
    Message::Open("192.0.2.1:1".parse().unwrap())
}

#[test]
fn every_lane_between_messages_tells_far_that_near_is_there() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 0);
    let mut application = stage.flow();
    let mut far = stage.accept(&listener);
    assert_eq!(far.receive(), open());
    far.send(&Message::Opened);
    // The application ends its direction and downloads for a long time.
    application.shutdown(std::net::Shutdown::Write).unwrap();
    stage.serve();
    assert_eq!(far.receive(), Message::End);
    for _ in 0..10 {
        stage.pass(PING_INTERVAL);
        assert_eq!(far.receive(), Message::Ping);
    }
    // Far has answered none of them: what the flow holds up is no failure of the lane.
    far.send_payload(b"hello");
    far.send(&Message::End);
    far.send(&Message::Closed);
    stage.serve();
    let mut got = String::new();
    application.read_to_string(&mut got).unwrap();
    assert_eq!((got.as_str(), stage.lanes()), ("hello", 1));
    // A free lane has to be answered.
    stage.pass(PING_INTERVAL / 2);
    assert_eq!(stage.lanes(), 1);
    stage.pass(PING_INTERVAL);
    assert_eq!(stage.lanes(), 0);
}

#[test]
fn a_flow_that_ended_in_order_has_the_idle_timeout_and_one_that_was_reset_a_short_one() {
    let idle = Timeouts::default().idle;
    for (is_reset, limit) in [(false, idle), (true, RELEASE_TIMEOUT)] {
        let (listener, address) = listener();
        let mut stage = Stage::new(vec![address], 0);
        let application = stage.flow();
        let mut far = stage.accept(&listener);
        assert_eq!(far.receive(), open());
        far.send(&Message::Opened);
        stage.serve();
        // Nothing has moved for long: the limit begins with the end of the flow.
        stage.pass(idle / 2);
        if is_reset {
            host::socket::set_reset_on_close(&application, true).unwrap();
        } else {
            application.shutdown(std::net::Shutdown::Write).unwrap();
            far.send(&Message::End);
        }
        drop(application);
        stage.serve();
        assert!(matches!(lock(stage.events).last(), Some(Event::FlowEnded(_))));
        stage.pass(limit - Duration::from_secs(1));
        assert_eq!(stage.lanes(), 1, "{is_reset}");
        stage.pass(Duration::from_secs(2));
        assert_eq!(stage.lanes(), 0, "{is_reset}");
    }
}

#[test]
fn a_lane_is_asked_for_its_peer_while_the_application_sends() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 0);
    let mut application = stage.flow();
    let _far = stage.accept(&listener);
    let second = Duration::from_secs(1);
    for _ in 0..4 * PEER_CHECK.as_secs() {
        application.write_all(b"x").unwrap();
        stage.pass(second);
        let event_loop = stage.thread.event_loop();
        let now = event_loop.now;
        let relay = event_loop.get(0).unwrap();
        let sent = relay.flow.as_ref().unwrap().last_active;
        assert!(now - sent < 2 * second && now - relay.checked <= PEER_CHECK);
    }
}

#[test]
fn a_new_flow_gets_no_lane_that_has_failed() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 2);
    stage.pass(Duration::ZERO);
    let mut lanes = [stage.accept(&listener), stage.accept(&listener)];
    assert_eq!(stage.side.free.len(), 2);
    // The one that would be next, before near has noticed.
    let next = *stage.side.free.last().unwrap();
    let port = stage.thread.event_loop().get(next).unwrap().socket.stream.local_addr().unwrap();
    let dead = lanes.iter().position(|far| far.stream.peer_addr().unwrap() == port).unwrap();
    lanes[dead].stream.shutdown(std::net::Shutdown::Both).unwrap();
    let mut application = stage.flow();
    assert_eq!(lanes[1 - dead].receive(), open());
    lanes[1 - dead].send(&Message::Opened);
    lanes[1 - dead].send_payload(b"x");
    stage.serve();
    assert_eq!(read(&mut application, 1), b"x");
}

#[test]
fn lanes_of_all_threads_fit_into_what_far_takes_of_an_address() {
    for threads in [0, 1, 2, 4, 5, 64, 1000] {
        let one = most_connecting(threads);
        assert!((1..=MAX_CONNECTING_OF_THREAD).contains(&one));
        assert!(threads > 256 || one * threads <= MAX_CONNECTING, "{threads}");
    }
}

#[test]
fn far_is_reached_once_it_takes_a_lane() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 1);
    // One that refuses, another program, another version.
    let answers: [(&[u8], &str); 3] = [
        (b"", "its log has the reason"),
        (b"SSH-2.0-", "not a box of longhaul boost"),
        (b"LHLANE\x09\x00", "version 9"),
    ];
    let mut pause = FIRST_PAUSE;
    for (answer, why) in answers {
        stage.pass(Duration::ZERO);
        let (mut far, _) = listener.accept().unwrap();
        stage.serve();
        if !answer.is_empty() {
            assert_eq!(read(&mut far, Preface::BYTES), Preface::of_lane(false).encode());
            far.write_all(answer).unwrap();
        }
        drop(far);
        stage.serve();
        assert_eq!((stage.lanes(), stage.reports().len()), (0, 1));
        let first = stage.reports().remove(0).unwrap();
        assert!(first.contains(why), "{first}");
        stage.side.shares.note_reach(true);
        lock(stage.events).clear();
        stage.pass(pause - Duration::from_millis(400));
        assert_eq!(stage.lanes(), 0);
        stage.pass(Duration::from_millis(400));
        pause *= 2;
    }
}

#[test]
fn a_far_that_ends_lanes_without_a_flow_is_asked_after_a_pause() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 1);
    let mut pause = FIRST_PAUSE;
    for _ in 0..3 {
        stage.pass(Duration::ZERO);
        drop(stage.accept(&listener));
        stage.serve();
        assert_eq!(stage.lanes(), 0);
        stage.pass(pause / 2);
        assert_eq!(stage.lanes(), 0);
        stage.pass(pause / 2);
        assert_eq!(stage.lanes(), 1);
        pause *= 2;
    }
    assert_eq!(stage.reports(), [None], "it is reached");
}

#[test]
fn flows_that_wait_for_a_lane_are_refused_in_time() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 0);
    let mut applications: Vec<TcpStream> =
        (0..MAX_CONNECTING_OF_THREAD).map(|_| stage.put_flow()).collect();
    stage.serve();
    let _far: Vec<_> = applications.iter().map(|_| listener.accept().unwrap()).collect();
    stage.pass(CONNECT_TIMEOUT / 2);
    let late: Vec<TcpStream> =
        (0..MAX_CONNECTING_OF_THREAD * 4).map(|_| stage.put_flow()).collect();
    stage.serve();
    assert_eq!(stage.side.waiting.len(), late.len());
    applications.extend(late);
    // The lanes fail; those that are connected next have not yet.
    for _ in 0..2 {
        stage.pass(CONNECT_TIMEOUT / 2);
    }
    assert_eq!(stage.side.waiting.len(), 0);
    stage.pass(CONNECT_TIMEOUT);
    let ended =
        lock(stage.events).iter().filter(|event| matches!(event, Event::FlowEnded(_))).count();
    assert_eq!(ended, applications.len());
}

#[test]
fn a_box_that_stops_does_not_say_that_far_is_unreachable() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 1);
    stage.pass(Duration::ZERO);
    let _far = listener.accept().unwrap();
    stage.serve();
    stage.stop.raise();
    stage.thread.stop(&mut stage.side);
    assert_eq!((stage.lanes(), stage.reports()), (0, vec![]));
}

#[test]
fn only_lanes_beyond_those_kept_ready_are_closed_and_the_coldest_first() {
    let (listener, address) = listener();
    let mut stage = Stage::new(vec![address], 2);
    let mut peers = Vec::new();
    for _ in 0..3 {
        let application = stage.flow();
        peers.push((stage.accept(&listener), application));
    }
    for (far, application) in &mut peers {
        host::socket::set_reset_on_close(application, true).unwrap();
        assert_eq!(far.receive(), open());
        far.send(&Message::Opened);
    }
    stage.serve();
    let mut far: Vec<Peer> = peers.into_iter().map(|(far, _)| far).collect();
    stage.serve();
    // They become free one after another.
    for peer in &mut far {
        assert_eq!(peer.receive(), Message::Reset);
        peer.send(&Message::Reset);
        peer.send(&Message::Closed);
        stage.serve();
    }
    let by_use = stage.side.free.clone();
    assert_eq!((stage.lanes(), by_use.len()), (3, 3));
    for _ in 0..10 {
        for peer in far.iter_mut().rev().take(stage.lanes()) {
            let mut bytes = Vec::new();
            peer.lane.send(&Message::Pong, &mut bytes).unwrap();
            peer.stream.write_all(&bytes).unwrap();
        }
        stage.pass(PING_INTERVAL / 2);
    }
    assert_eq!(stage.lanes(), 2);
    assert_eq!(stage.side.free, by_use[1..]);
}
