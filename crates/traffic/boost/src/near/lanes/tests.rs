//! The lanes of a thread of near, in virtual time, against a far that each test plays.

use super::*;
use crate::event_loop::{Inbox, Prepared};
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
            options: LaneOptions::default(),
            timeouts: Timeouts::default(),
            max_flows: 1000,
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
        Stage { side, thread, inbox, events }
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
        far.write_all(&Preface::encode()).unwrap();
        self.serve();
        assert_eq!(read(&mut far, Preface::BYTES), Preface::encode());
        Peer { stream: far, lane: Lane::new(Role::Far) }
    }

    /// An application that connects.
    fn flow(&mut self) -> TcpStream {
        let (listener, address) = listener();
        let application = TcpStream::connect(address).unwrap();
        application.set_read_timeout(Some(LONG)).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        crate::sockets::prepare_local(&stream).unwrap();
        stream.set_nonblocking(true).unwrap();
        let ingress = PortForward("192.0.2.1:1".parse().unwrap());
        let negotiation = ingress.begin(Accepted { peer, local: address });
        let target = ingress.0;
        self.inbox.put(NewFlow { stream, peer, target, negotiation, early: Vec::new() });
        self.serve();
        application
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
