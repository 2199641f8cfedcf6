//! `--mux`: sessions that outlive their connections.

use crate::boxes::{LONG, Pair, Setup, accept, loopback, reset, target, until};
use boost::{Event, FlowEnd};
use host::lock::lock;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn with_mux() -> [Setup; 2] {
    [false, true].map(|with_tls| Setup { with_tls, mux: true, lanes: 1, ..Setup::default() })
}

/// Between near and far: passes bytes on until it is told to break its connections.
pub(super) struct Middle {
    pub(super) address: SocketAddr,
    listener: TcpListener,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Middle {
    pub(super) fn new() -> Self {
        Middle::at(loopback())
    }

    pub(super) fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        Middle { address, listener, open: Arc::default() }
    }

    pub(super) fn start(&self, far: SocketAddr) {
        let (listener, open) = (self.listener.try_clone().unwrap(), Arc::clone(&self.open));
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let Ok(far) = TcpStream::connect(far) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                lock(&open).extend([near, far]);
            }
        });
    }

    /// Breaks what is open, and returns how many connections that were.
    pub(super) fn break_all(&self) -> usize {
        Self::break_these(&std::mem::take(&mut *lock(&self.open)))
    }

    /// Breaks the oldest connection that is open.
    pub(super) fn break_one(&self) -> usize {
        let mut open = lock(&self.open);
        let count = open.len().min(2);
        let oldest: Vec<TcpStream> = open.drain(..count).collect();
        Self::break_these(&oldest)
    }

    fn break_these(all: &[TcpStream]) -> usize {
        all.iter().for_each(|stream| {
            let _ = host::socket::set_reset_on_close(stream, true);
            let _ = stream.shutdown(Shutdown::Both);
        });
        all.len() / 2
    }
}

/// The byte at an offset.
fn byte(offset: usize) -> u8 {
    (offset.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

pub(super) fn send(mut stream: &TcpStream, count: usize) {
    let bytes: Vec<u8> = (0..1 << 20).map(byte).collect();
    let mut left = count;
    while left > 0 {
        let piece = left.min(bytes.len());
        stream.write_all(&bytes[..piece]).unwrap();
        left -= piece;
    }
    stream.shutdown(Shutdown::Write).unwrap();
}

/// Reads to the end, and checks each byte; `each` is told how many have come.
pub(super) fn receive(mut stream: &TcpStream, count: usize, mut each: impl FnMut(usize)) {
    let expected: Vec<u8> = (0..1 << 20).map(byte).collect();
    let (mut got, mut buffer) = (0, vec![0; 64 << 10]);
    loop {
        let length = stream.read(&mut buffer).unwrap();
        if length == 0 {
            break;
        }
        for (index, value) in buffer[..length].iter().enumerate() {
            let offset = (got + index) % expected.len();
            assert!(*value == expected[offset], "byte {} is lost or doubled", got + index);
        }
        got += length;
        each(got);
    }
    assert_eq!(got, count);
}

#[test]
fn flows_share_one_connection_in_both_directions() {
    for setup in with_mux() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        let flows: Vec<_> = (0..20).map(|_| (pair.connect(), accept(&listener))).collect();
        std::thread::scope(|scope| {
            for (index, (application, server)) in flows.iter().enumerate() {
                let count = index * 100_000;
                scope.spawn(move || send(application, count));
                scope.spawn(move || send(server, count / 2));
                scope.spawn(move || receive(server, count, |_| {}));
                scope.spawn(move || receive(application, count / 2, |_| {}));
            }
        });
        until(|| (pair.near_totals().active_flows == 0).then_some(()));
        until(|| (pair.far_totals().active_flows == 0).then_some(()));
        let (near, far) = (pair.near_totals(), pair.far_totals());
        assert_eq!((near.lanes, near.flows, near.reset), (1, 20, 0), "{near:?}");
        assert_eq!((far.flows, far.reset), (20, 0), "{far:?}");
    }
}

#[test]
fn nothing_is_lost_or_doubled_when_the_connection_is_killed_twenty_times() {
    const BYTES: usize = 64 << 20;
    const KILLS: usize = 20;
    for setup in with_mux() {
        let (listener, address) = target();
        let middle = Middle::new();
        let pair = Pair::new(address, &Setup { via: Some(middle.address), ..setup });
        middle.start(pair.far_address);
        let (application, server) = (pair.connect(), accept(&listener));
        let mut killed = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| send(&application, BYTES));
            scope.spawn(|| send(&server, BYTES / 4));
            scope.spawn(|| receive(&application, BYTES / 4, |_| {}));
            receive(&server, BYTES, |got| {
                if killed < KILLS && got >= BYTES / (KILLS + 2) * (killed + 1) {
                    // Not before the next one carries the session.
                    until(|| (pair.near_totals().lanes > killed as u64).then_some(()));
                    until(|| (middle.break_all() > 0).then_some(()));
                    killed += 1;
                }
            });
        });
        assert_eq!(killed, KILLS);
        assert_eq!((pair.near_totals().reset, pair.far_totals().reset), (0, 0));
    }
}

#[test]
fn rst_and_refusals_pass_through() {
    for setup in with_mux() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        for of_application in [true, false] {
            let (mut application, mut server) = (pair.connect(), accept(&listener));
            application.write_all(b"a").unwrap();
            server.read_exact(&mut [0]).unwrap();
            let mut other = if of_application {
                reset(application);
                server
            } else {
                reset(server);
                application
            };
            let kind = other.read(&mut [0]).unwrap_err().kind();
            assert_eq!(kind, ErrorKind::ConnectionReset);
        }
        drop(listener);
        assert!(pair.connect().read(&mut [0]).is_err());
        pair.near.event(|event| match event {
            Event::FlowEnded(summary) => matches!(summary.end, FlowEnd::Refused(_)).then_some(()),
            _ => None,
        });
    }
}

#[test]
fn an_rst_after_fin_passes_through() {
    for setup in with_mux() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        for index in 0..2 {
            let (application, mut server) = (pair.connect(), accept(&listener));
            application.shutdown(Shutdown::Write).unwrap();
            assert_eq!(server.read(&mut [0]).unwrap(), 0);
            reset(application);
            assert_eq!(pair.near.flow_end(index), FlowEnd::LocalReset);
            assert_eq!(pair.far.flow_end(index), FlowEnd::PeerReset);
        }
        assert_eq!((pair.near_totals().lanes, pair.far_totals().active_flows), (1, 0));
    }
}

#[test]
fn a_session_whose_answer_was_lost_begins_again() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, ..Setup::default() });
    let id = [7; 16];
    drop(hello(&pair, 0, 0, id));
    let (mut stream, again) = hello(&pair, 0, 0, id);
    assert_eq!((&again[8..12], &again[16..]), (&[0; 4][..], &[0; 40][..]), "from the beginning");
    let open = [&[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7][..], &address.port().to_be_bytes()];
    let open = [&open.concat()[..], &[1, 127, 0, 0, 1]].concat();
    stream.write_all(&chunk(0, &open)).unwrap();
    accept(&listener);
    stream.read_exact(&mut [0; 24]).unwrap();
}

#[test]
fn near_boxes_that_have_left_do_not_keep_others_out() {
    let (_listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, ..Setup::default() });
    let begin = |id: u8| {
        let (stream, answer) = hello(&pair, 0, 0, [id; 16]);
        (answer[8] == 0).then_some(stream)
    };
    let all: Vec<TcpStream> = (0..8).map(|id| begin(id).unwrap()).collect();
    assert!(begin(8).is_none(), "all of them are connected");
    drop(all);
    let _kept = [9, 10, 11].map(|id| until(|| begin(id)));
}

#[test]
fn a_thousand_stalled_receivers_hold_a_bounded_amount_and_stop_nobody() {
    const STALLED: usize = 1000;
    host::limits::raise_open_files().unwrap();
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, lanes: 1, ..Setup::default() });
    // Servers that take little, of which nothing is read: large segments would fill large buffers.
    let sized = socket2::SockRef::from(&listener);
    sized.set_tcp_mss(1000).unwrap();
    sized.set_recv_buffer_size(4096).unwrap();
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let (application, server) = (pair.connect(), accept(&listener));
        application.set_nonblocking(true).unwrap();
        stalled.push((application, server));
    }
    sized.set_recv_buffer_size(1 << 20).unwrap();
    let piece = vec![1; 64 << 10];
    for _ in 0..4 {
        let writes = stalled.iter().filter_map(|(one, _)| (&*one).write(&piece).ok());
        assert!(writes.sum::<usize>() > 0);
        std::thread::sleep(Duration::from_millis(50));
    }
    let (near, far) = (pair.near_totals(), pair.far_totals());
    let held = near.bytes_in - far.bytes_out;
    // Windows of all streams, and their common pool; then what is on its way.
    assert!(held <= (STALLED as u64 * (16 << 10)) + (64 << 20) + (33 << 20), "{held}");
    let (application, server) = (pair.connect(), accept(&listener));
    std::thread::scope(|scope| {
        scope.spawn(|| send(&application, 1 << 20));
        receive(&server, 1 << 20, |_| {});
    });
}

#[test]
fn a_far_box_that_is_gone_resets_flows() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, lanes: 1, ..Setup::default() });
    let (mut application, mut server) = (pair.connect(), accept(&listener));
    application.write_all(b"a").unwrap();
    server.read_exact(&mut [0]).unwrap();
    pair.far.stop.raise();
    assert!(server.read(&mut [0]).is_err());
    // Another far at the same address does not have the session.
    until(|| pair.far.has_ended().then_some(()));
    let far = until(|| TcpListener::bind(pair.far_address).ok());
    let mut asked = accept(&far);
    let mut greeting = [0; 72];
    asked.read_exact(&mut greeting).unwrap();
    assert_eq!((&greeting[..8], greeting[8]), (&b"LHLANE\x01\x01"[..], 1), "it resumes");
    let mut unknown = [0; 48];
    unknown[0] = 1;
    asked.write_all(&[&b"LHLANE\x01\x01"[..], &unknown].concat()).unwrap();
    assert_eq!(application.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn what_is_on_its_way_arrives_when_both_boxes_drain() {
    for setup in with_mux() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        let (application, server) = (pair.connect(), accept(&listener));
        server.shutdown(Shutdown::Write).unwrap();
        send(&application, 3_000_000);
        assert_eq!((&application).read(&mut [0]).unwrap(), 0);
        pair.near.drain.raise();
        pair.far.drain.raise();
        std::thread::sleep(Duration::from_millis(300));
        receive(&server, 3_000_000, |_| {});
        until(|| (pair.near.has_ended() && pair.far.has_ended()).then_some(()));
    }
}

#[test]
fn flows_without_far_are_reset_at_once() {
    let (_listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, ..Setup::default() });
    pair.far.stop.raise();
    until(|| pair.far.has_ended().then_some(()));
    assert!(pair.connect().read(&mut [0]).is_err());
    assert!(matches!(pair.near.flow_end(0), FlowEnd::LaneFailed(_)));
    pair.near.event(|event| matches!(event, Event::FarUnreachable { .. }).then_some(()));
}

#[test]
fn a_flow_that_nobody_receives_is_over_once_far_has_everything() {
    for setup in with_mux() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        let (application, server) = (pair.connect(), accept(&listener));
        send(&application, 3_000_000);
        drop(application);
        pair.near_box.applications_have_ended();
        pair.near.drain.raise();
        std::thread::sleep(Duration::from_millis(300));
        // The server sends no FIN.
        receive(&server, 3_000_000, |_| {});
        assert_eq!(pair.near.flow_end(0), FlowEnd::Orderly);
        assert_eq!(pair.far.flow_end(0), FlowEnd::Orderly);
        until(|| pair.near.has_ended().then_some(()));
        assert_eq!((pair.near_totals().reset, pair.far_totals().reset), (0, 0));
    }
}

#[test]
fn flows_go_on_to_the_address_of_far_that_answers() {
    // The first one accepts and says nothing, or has too many sessions.
    for is_busy in [false, true] {
        let (listener, address) = target();
        let (first, dead) = target();
        let setup = Setup { mux: true, dead: Some(dead), ..Setup::default() };
        let pair = Pair::new(address, &setup);
        let mut application = pair.connect();
        application.write_all(b"a").unwrap();
        if is_busy {
            let mut asked = accept(&first);
            asked.read_exact(&mut [0; 40]).unwrap();
            let answer = [&b"LHLANE\x01\x01\x02"[..], &[0; 15]].concat();
            asked.write_all(&answer).unwrap();
        }
        let mut server = accept(&listener);
        server.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn a_session_that_has_failed_is_followed_by_the_next_one() {
    let (_listener, address) = target();
    let (far, via) = target();
    let pair = Pair::new(address, &Setup { mux: true, via: Some(via), ..Setup::default() });
    for _ in 0..2 {
        let (mut application, mut asked) = (pair.connect(), accept(&far));
        let mut greeting = [0; 72];
        asked.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting[8], 0, "it begins");
        let welcome = [&b"LHLANE\x01\x01"[..], &[0; 48]].concat();
        // What follows is no frame.
        asked.write_all(&[&welcome[..], &chunk(0, &[0xff; 12])].concat()).unwrap();
        assert_eq!(application.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

/// Bytes of a session, as a connection carries them.
pub(super) fn chunk(offset: u64, bytes: &[u8]) -> Vec<u8> {
    [&mux::chunk::header(offset, bytes.len())[..], bytes].concat()
}

/// A connection of a session to far, and far's answer.
pub(super) fn hello(pair: &Pair, kind: u8, offset: u64, id: [u8; 16]) -> (TcpStream, [u8; 56]) {
    let mut stream = TcpStream::connect(pair.far_address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let head = [&b"LHLANE\x01\x01"[..], &[kind, 0, 0, 0, 0, 0, 0, 0], &offset.to_be_bytes()];
    stream.write_all(&[&head.concat()[..], &id, &[0; 32]].concat()).unwrap();
    let mut answer = [0xff; 56];
    let _ = stream.read_exact(&mut answer);
    (stream, answer)
}

#[test]
fn forged_sessions_and_offsets_are_refused() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, ..Setup::default() });
    let id = [7; 16];
    let (_, unknown) = hello(&pair, 1, 0, id);
    assert_eq!(unknown[8], 1, "nobody began it");
    let (mut stream, accepted) = hello(&pair, 0, 0, id);
    assert_eq!(accepted[8], 0);
    let open = |port: u16| {
        let port = port.to_be_bytes();
        [&[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7][..], &port, &[1, 127, 0, 0, 1]].concat()
    };
    stream.write_all(&chunk(0, &open(address.port()))).unwrap();
    let mut server = accept(&listener);
    // A chunk with `Opened`: 12 bytes. More than that was never sent.
    stream.read_exact(&mut [0; 24]).unwrap();
    let (_, twice) = hello(&pair, 0, 0, id);
    assert_eq!(twice[8], 1, "it exists");
    let (_, forged) = hello(&pair, 1, 13, id);
    assert_eq!(forged[8..], [0xff; 48], "closed without an answer");
    assert!(server.read(&mut [0]).is_err(), "its flows are reset");
    assert_eq!(hello(&pair, 1, 12, id).1[8], 1, "it is gone");
    let refused = |text: &str| {
        pair.far.event(|event| match event {
            Event::LaneRefused { why, .. } => why.contains(text).then_some(()),
            _ => None,
        });
    };
    refused("session is unknown");
    refused("more than was sent");
    // Frames that may not come end the session too.
    let id = [8; 16];
    let (mut stream, _) = hello(&pair, 0, 0, id);
    stream.write_all(&chunk(0, &[4, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0])).unwrap();
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    assert_eq!(hello(&pair, 1, 0, id).1[8], 1);
}
