//! The lanes and targets of a thread of far, in virtual time, against a near that each test plays.

use super::*;
use crate::address_share::AddressShares;
use crate::connector::MAX_ADDRESSES;
use crate::event_loop::Prepared;
use crate::sockets;
use crate::{DestinationPolicy, Timeouts};
use control::Algorithm;
use host::stop::StopFlag;
use lane::{Lane, Message, Preface};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

const LONG: Duration = Duration::from_secs(20);

/// Allows every target, at these addresses.
struct Addresses(Vec<SocketAddr>);

impl DestinationPolicy for Addresses {
    fn before_resolving(&self, _: &Target) -> Result<(), Refusal> {
        Ok(())
    }

    fn after_resolving(&self, _: &Target, _: &[SocketAddr]) -> Result<Vec<SocketAddr>, Refusal> {
        Ok(self.0.clone())
    }
}

struct Stage<'a> {
    side: FarSide<'a>,
    thread: Prepared<Job>,
    near: TcpStream,
    lane: Lane,
}

impl Stage<'_> {
    fn serve(&mut self) {
        self.thread.serve(&mut self.side);
    }

    /// Checks the timeouts as if so much more time had passed.
    fn pass(&mut self, time: Duration) {
        self.thread.pass(time, &mut self.side);
    }

    fn lanes(&mut self) -> usize {
        self.thread.event_loop().relays().count()
    }

    fn send(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        self.lane.send(message, &mut bytes).unwrap();
        self.near.write_all(&bytes).unwrap();
        self.serve();
    }

    fn open(&mut self) {
        self.send(&Message::Open("192.0.2.1:1".parse().unwrap()));
    }
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Far with one lane.
fn stage(addresses: Vec<SocketAddr>, test: impl FnOnce(Stage<'_>)) {
    let config = FarConfig {
        keys: None,
        policy: Arc::new(Addresses(addresses)),
        compresses: false,
        udt: Algorithm::Bbr3,
        udt_ports: None,
        timeouts: Timeouts::default(),
        max_lanes: 10,
        threads: 1,
    };
    let (stop, drain) = (StopFlag::new(), StopFlag::new());
    let counters = Arc::new(Counters::default());
    let (thread, inbox) = Prepared::one();
    std::thread::scope(|scope| {
        let resolver = Resolver::start(scope, &stop).unwrap();
        let ending = Ending { stop: &stop, drain: &drain };
        let side = FarSide::new(&config, resolver, inbox.clone(), &counters, ending, &|_| {});
        let (listener, address) = listener();
        let near = TcpStream::connect(address).unwrap();
        near.set_read_timeout(Some(LONG)).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let share = AddressShares::new(1).take(peer.ip()).unwrap();
        let preface = Preface::of_lane(false);
        inbox.put(Job::Lane(NewLane { stream, peer, tls: None, preface, key: None, share }));
        let mut stage = Stage { side, thread, near, lane: Lane::new(Role::Near) };
        stage.serve();
        // Far's preface.
        stage.near.read_exact(&mut [0; 8]).unwrap();
        test(stage);
    });
}

#[test]
fn the_end_of_a_long_download_is_not_cut_off() {
    let (target, address) = listener();
    stage(vec![address], |mut stage| {
        stage.open();
        let (mut server, _) = target.accept().unwrap();
        server.set_read_timeout(Some(LONG)).unwrap();
        stage.send(&Message::End);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
        // Near is silent meanwhile.
        stage.pass(2 * SILENCE_TIMEOUT);
        server.write_all(b"the rest").unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        stage.serve();
        assert!(stage.thread.event_loop().get(0).unwrap().is_free());
        stage.pass(SILENCE_TIMEOUT - Duration::from_secs(1));
        assert_eq!(stage.lanes(), 1);
        stage.pass(Duration::from_secs(2));
        assert_eq!(stage.lanes(), 0);
    });
}

#[test]
fn all_addresses_of_a_target_share_the_time_to_connect() {
    // A listener whose backlog is full, which answers no further SYN.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let full: Vec<TcpStream> =
        std::iter::repeat_with(|| sockets::connect_target(address).unwrap()).take(3).collect();
    for count in [1, 2, MAX_ADDRESSES] {
        stage(vec![address; count], |mut stage| {
            stage.open();
            // The timeouts are checked every 250 ms.
            let mut rounds = 0;
            while !stage.side.connector.is_empty() {
                stage.pass(Duration::from_millis(250));
                rounds += 1;
            }
            stage.serve();
            assert_eq!(rounds, 40, "{count} addresses in 10 s");
            let mut bytes = vec![0; stage.lane.lacking()];
            stage.near.read_exact(&mut bytes).unwrap();
            let received = stage.lane.receive(&bytes).unwrap();
            assert_eq!(received.message, Some(Message::Refused(Refusal::TimedOut)));
        });
    }
    drop(full);
}
