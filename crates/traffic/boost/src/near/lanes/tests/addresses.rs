//! Several addresses of far, of which some fail.

use super::*;

/// Lanes that wait to be accepted.
fn waiting(listener: &TcpListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    let count = std::iter::from_fn(|| listener.accept().ok()).count();
    listener.set_nonblocking(false).unwrap();
    count
}

#[test]
fn an_address_that_fails_is_left_once_however_many_lanes_show_it() {
    let ((first, one), (second, other)) = (listener(), listener());
    for lanes in [1, 2, 3, 4] {
        let mut stage = Stage::new(vec![one, other], lanes);
        stage.pass(Duration::ZERO);
        assert_eq!(waiting(&first), lanes, "they are closed");
        stage.serve();
        // The next one is tried at once, and there is a pause when all have failed.
        assert_eq!(stage.side.pause, FIRST_PAUSE);
        stage.pass(Duration::ZERO);
        assert_eq!((waiting(&first), waiting(&second)), (0, lanes), "they are closed");
        stage.serve();
        assert_eq!((stage.lanes(), stage.side.pause), (0, 2 * FIRST_PAUSE));
    }
}

/// An address that refuses connections.
fn dead() -> SocketAddr {
    listener().1
}

/// What far gets of a flow that sends `request` and ends.
fn received(far: &mut Peer, request: &[u8]) {
    assert_eq!(far.receive(), open());
    let mut got = Vec::new();
    loop {
        match far.receive() {
            Message::Data(length) => {
                got.extend(read(&mut far.stream, length as usize));
                far.lane.taken(length);
            }
            end => {
                assert_eq!((end, got.as_slice()), (Message::End, request));
                return;
            }
        }
    }
}

#[test]
fn a_flow_whose_lane_fails_is_carried_by_the_next_address() {
    let (listener, address) = listener();
    let (busy, other) = self::listener();
    for first in [dead(), other] {
        let mut stage = Stage::new(vec![first, address], 0);
        let mut application = stage.put_flow_with(b"early, ".to_vec());
        application.write_all(b"late").unwrap();
        application.shutdown(std::net::Shutdown::Write).unwrap();
        stage.serve();
        if first == other {
            // It has accepted the connection, and closes it before it takes the lane.
            let mut lane = busy.accept().unwrap().0;
            let sent = lane.read(&mut [0; 4096]).unwrap();
            assert!(sent > Preface::BYTES + b"early, late".len(), "{sent}");
            drop(lane);
            stage.serve();
        }
        let mut far = stage.accept(&listener);
        received(&mut far, b"early, late");
        far.send(&Message::Opened);
        far.send_payload(b"answer");
        far.send(&Message::End);
        far.send(&Message::Closed);
        stage.serve();
        let mut got = String::new();
        application.read_to_string(&mut got).unwrap();
        assert_eq!((got.as_str(), stage.reports()), ("answer", vec![None]));
        let Some(Event::FlowEnded(summary)) = lock(stage.events).pop() else { unreachable!() };
        assert_eq!((summary.end, summary.sent), (FlowEnd::Orderly, 11));
        // Nothing is counted twice.
        let of_loop = stage.thread.event_loop().counters.to_lane.get();
        assert_eq!(stage.side.counters.to_lane.get() + of_loop, 11);
    }
}

#[test]
fn a_silent_address_leaves_time_for_the_next_one() {
    let ((silent, first), (listener, address)) = (listener(), listener());
    let mut stage = Stage::new(vec![first, address], 0);
    let _flows: Vec<TcpStream> = (0..3).map(|_| stage.put_flow()).collect();
    stage.serve();
    assert_eq!(stage.lanes(), 3);
    stage.pass(ADDRESS_TIMEOUT);
    for _ in 0..3 {
        assert_eq!(stage.accept(&listener).receive(), open());
    }
    assert!(stage.reports().iter().all(Option::is_none));
    drop(silent);
}

#[test]
fn flows_that_wait_are_refused_once_every_address_has_failed() {
    let (listener, address) = listener();
    let count = 3 * MAX_CONNECTING_OF_THREAD;
    let ended = |stage: &Stage| {
        let ended = |event: &&Event| matches!(event, Event::FlowEnded(_));
        lock(stage.events).iter().filter(ended).count()
    };
    let mut stage = Stage::new(vec![dead(), address], 0);
    let flows: Vec<TcpStream> = (0..count).map(|_| stage.put_flow()).collect();
    stage.serve();
    assert_eq!((ended(&stage), stage.side.waiting.len()), (0, count - MAX_CONNECTING_OF_THREAD));
    let mut far = Vec::new();
    for _ in &flows {
        far.push(stage.accept(&listener));
    }
    assert_eq!((ended(&stage), stage.lanes()), (0, count));
    let mut stage = Stage::new(vec![dead(), dead()], 0);
    let _flows: Vec<TcpStream> = (0..count).map(|_| stage.put_flow()).collect();
    stage.serve();
    assert_eq!((ended(&stage), stage.lanes()), (count, 0));
}
