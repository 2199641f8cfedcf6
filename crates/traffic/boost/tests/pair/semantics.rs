//! What an application and its target see of each other: FIN, RST, refusals, all bytes.

use crate::boxes::{LONG, Pair, Setup, accept, both, reset, target, until};
use boost::{Accepted, FlowEnd, Ingress, Negotiation, Next, PortForward, Refusal, Step, Timeouts};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Bytes whose every position is different.
fn pattern(length: usize) -> Vec<u8> {
    (0..length.div_ceil(4)).flat_map(|word| (word as u32).to_le_bytes()).take(length).collect()
}

fn is_reset(result: std::io::Result<usize>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

#[test]
fn each_direction_ends_by_itself() {
    for setup in both() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        let mut application = pair.connect();
        application.write_all(b"request").unwrap();
        application.shutdown(Shutdown::Write).unwrap();
        let mut server = accept(&listener);
        let mut request = String::new();
        server.read_to_string(&mut request).unwrap();
        assert_eq!(request, "request");
        // The other direction is open for as long as the target wants.
        server.write_all(b"first ").unwrap();
        let mut first = [0; 6];
        application.read_exact(&mut first).unwrap();
        server.write_all(b"second").unwrap();
        drop(server);
        let mut rest = String::new();
        application.read_to_string(&mut rest).unwrap();
        assert_eq!((&first, rest.as_str()), (b"first ", "second"));
        assert_eq!(pair.near.flow_end(0), FlowEnd::Orderly);
        assert_eq!(pair.far.flow_end(0), FlowEnd::Orderly);
    }
}

#[test]
fn a_flow_that_nobody_receives_is_over_once_its_target_has_everything() {
    let bytes = pattern(3_000_000);
    for setup in both() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        let mut application = pair.connect();
        let server = accept(&listener);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                // Far holds some of it when near has nothing left.
                std::thread::sleep(Duration::from_millis(600));
                let mut got = Vec::new();
                (&server).read_to_end(&mut got).map(|_| got)
            });
            application.write_all(&bytes).unwrap();
            drop(application);
            pair.near_box.applications_have_ended();
            // It ends with an FIN, while the server has sent none.
            assert!(reader.join().unwrap().unwrap() == bytes);
        });
        assert_eq!(pair.near.flow_end(0), FlowEnd::Orderly);
        assert_eq!(pair.far.flow_end(0), FlowEnd::Orderly);
        pair.near.drain.raise();
        until(|| pair.near.has_ended().then_some(()));
        assert_eq!((pair.near_totals().reset, pair.far_totals().reset), (0, 0));
    }
}

/// A forwarded port whose connections come whether they are accepted or not.
struct Routed(PortForward);

impl Ingress for Routed {
    fn begin(&self, accepted: Accepted) -> Box<dyn Negotiation> {
        self.0.begin(accepted)
    }

    fn accepts_while_draining(&self) -> bool {
        true
    }
}

#[test]
fn connections_that_come_while_a_box_drains_are_carried() {
    for mux in [false, true] {
        let (listener, address) = target();
        let ingress = Routed(PortForward(address.to_string().parse().unwrap()));
        let (allow, setup) = (address.to_string(), Setup { mux, ..Setup::default() });
        let pair = Pair::with(Arc::new(ingress), &allow, &setup);
        // One thread has the flow, the other one ends.
        let mut kept = vec![(pair.connect(), accept(&listener))];
        pair.near.drain.raise();
        std::thread::sleep(Duration::from_millis(600));
        for _ in 0..4 {
            let (mut application, mut server) = (pair.connect(), accept(&listener));
            application.write_all(b"x").unwrap();
            server.read_exact(&mut [0]).unwrap();
            kept.push((application, server));
        }
        assert!(!pair.near.has_ended());
        drop(kept);
        until(|| pair.near.has_ended().then_some(()));
        assert!(TcpStream::connect(pair.address).is_err(), "it no longer listens");
        assert_eq!(pair.near_totals().reset, 0);
    }
}

#[test]
fn every_byte_arrives_in_both_directions_at_once() {
    let bytes = pattern(6_000_000);
    for setup in both() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        let application = pair.connect();
        let server = accept(&listener);
        std::thread::scope(|scope| {
            for stream in [&application, &server] {
                let bytes = &bytes;
                scope.spawn(move || {
                    let mut stream = stream;
                    // Long runs and short ones.
                    for piece in bytes.chunks(777_777) {
                        let (long, short) = piece.split_at(piece.len() - 77);
                        stream.write_all(long).unwrap();
                        stream.write_all(short).unwrap();
                    }
                    stream.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(move || {
                    let (mut stream, mut got) = (stream, Vec::new());
                    stream.read_to_end(&mut got).unwrap();
                    assert!(got == *bytes, "{} bytes", got.len());
                });
            }
        });
        assert_eq!(pair.near.flow_end(0), FlowEnd::Orderly);
        let totals = pair.near_totals();
        assert_eq!((totals.bytes_in, totals.bytes_out), (6_000_000, 6_000_000));
        assert!(totals.wan_sent > 6_000_000 && totals.wan_received > 6_000_000, "{totals:?}");
    }
}

#[test]
fn an_rst_passes_through_in_both_directions() {
    for (setup, from_target) in
        both().into_iter().flat_map(|setup| [(setup.clone(), true), (setup, false)])
    {
        for sends_first in [0, 1_000_000] {
            let (listener, address) = target();
            let pair = Pair::new(address, &setup);
            let mut application = pair.connect();
            let mut server = accept(&listener);
            // A target that resets at once may have done so before far sees it connected.
            application.write_all(b"1").unwrap();
            server.read_exact(&mut [0]).unwrap();
            let (mut sender, mut other) =
                if from_target { (server, application) } else { (application, server) };
            let bytes = vec![1; sends_first];
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let mut buffer = vec![0; 65_536];
                    loop {
                        match other.read(&mut buffer) {
                            Ok(1..) => {}
                            end => return end,
                        }
                    }
                });
                sender.write_all(&bytes).unwrap();
                reset(sender);
                assert!(is_reset(reader.join().unwrap()), "{from_target} {sends_first}");
            });
            let (own, peer) =
                if from_target { (&pair.far, &pair.near) } else { (&pair.near, &pair.far) };
            assert_eq!(own.flow_end(0), FlowEnd::LocalReset);
            assert!(peer.flow_end(0).is_reset());
        }
    }
}

#[test]
fn what_comes_before_an_rst_arrives() {
    for (setup, from_target) in
        both().into_iter().flat_map(|setup| [(setup.clone(), true), (setup, false)])
    {
        for length in [1, 40_000] {
            let (listener, address) = target();
            let pair = Pair::new(address, &setup);
            let mut application = pair.connect();
            let mut server = accept(&listener);
            application.write_all(b"1").unwrap();
            server.read_exact(&mut [0]).unwrap();
            let (mut sender, mut other) =
                if from_target { (server, application) } else { (application, server) };
            let response = pattern(length);
            sender.write_all(&response).unwrap();
            reset(sender);
            let mut got = vec![0; length];
            other.read_exact(&mut got).unwrap();
            assert!(got == response, "{from_target} {length}");
            assert!(is_reset(other.read(&mut [0])), "{from_target} {length}");
        }
    }
}

#[test]
fn an_rst_overtakes_bytes_that_nobody_reads() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup::default());
    let application = pair.connect();
    let server = accept(&listener);
    application.set_nonblocking(true).unwrap();
    let piece = vec![1; 1 << 20];
    // Until nothing more is taken for a while.
    let (mut sent, mut stalled) = (0, 0);
    while stalled < 20 {
        match (&application).write(&piece) {
            Ok(count) => (sent, stalled) = (sent + count, 0),
            Err(_) => {
                stalled += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    assert!(sent > 1 << 20);
    reset(application);
    assert_eq!(pair.near.flow_end(0), FlowEnd::LocalReset);
    // The target has not read a byte, and the RST is there.
    let failed = until(|| server.take_error().unwrap());
    assert_eq!(failed.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_target_that_refuses_resets_a_forwarded_connection() {
    for setup in both() {
        let (listener, address) = target();
        drop(listener);
        let pair = Pair::new(address, &setup);
        let mut application = pair.connect();
        assert!(is_reset(application.read(&mut [0])));
        assert_eq!(pair.near.flow_end(0), FlowEnd::Refused(Refusal::Refused));
        assert_eq!(pair.near_totals().refused, 1);
        // The lane is used again, whichever thread it belongs to.
        until(|| (pair.far_totals().active_flows == 0).then_some(()));
        std::thread::sleep(Duration::from_millis(20));
        assert!(is_reset(pair.connect().read(&mut [0])));
        assert_eq!(pair.near.flow_end(1), FlowEnd::Refused(Refusal::Refused));
        until(|| (pair.near_totals().reused == 1).then_some(()));
    }
}

#[test]
fn what_far_does_not_list_is_not_allowed() {
    let (listener, address) = target();
    let setup = Setup { allow: Some("127.0.0.1:1,192.0.2.0/24:443".into()), ..Setup::default() };
    let pair = Pair::new(address, &setup);
    assert!(is_reset(pair.connect().read(&mut [0])));
    assert_eq!(pair.near.flow_end(0), FlowEnd::Refused(Refusal::NotAllowed));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "it was not connected");
}

/// A protocol with a line for the target's port and a word for each outcome.
struct PortLine;

impl Ingress for PortLine {
    fn begin(&self, accepted: Accepted) -> Box<dyn Negotiation> {
        assert!(accepted.local.ip().is_loopback());
        Box::new(PortLine)
    }
}

impl Negotiation for PortLine {
    fn advance(&mut self, input: &[u8]) -> Step {
        let read = Step { used: 0, reply: Vec::new(), next: Next::Read };
        let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return read };
        let line = std::str::from_utf8(&input[..end]).unwrap();
        let next = match line.parse::<u16>() {
            Ok(port) => Next::Open(format!("localhost:{port}").parse().unwrap()),
            Err(_) => Next::Close("no port".to_owned()),
        };
        Step { used: end + 1, reply: b"well: ".to_vec(), next }
    }

    fn opened(&mut self) -> Vec<u8> {
        b"opened ".to_vec()
    }

    fn refused(&mut self, reason: Refusal) -> Option<Vec<u8>> {
        Some(format!("{reason:?}").into_bytes())
    }
}

#[test]
fn an_ingress_says_where_to_go_and_learns_the_outcome() {
    for setup in both() {
        let (listener, address) = target();
        let allow = format!("localhost:{},localhost:1", address.port());
        let pair = Pair::with(Arc::new(PortLine), &allow, &setup);
        let ask = |request: &str| -> TcpStream {
            let mut stream = pair.connect();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let answer = |mut stream: TcpStream| {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        assert_eq!(answer(ask("1\n")), "well: Refused");
        assert_eq!(answer(ask("2\n")), "well: NotAllowed");
        assert_eq!(answer(ask("x\n")), "well: ");
        // The first bytes for the target are in the same segment.
        let application = ask(&format!("{}\nhello", address.port()));
        application.shutdown(Shutdown::Write).unwrap();
        let mut server = accept(&listener);
        let mut request = String::new();
        server.read_to_string(&mut request).unwrap();
        server.write_all(b"world").unwrap();
        drop(server);
        assert_eq!(
            (request.as_str(), answer(application).as_str()),
            ("hello", "well: opened world")
        );
    }
}

#[test]
fn an_idle_flow_is_reset() {
    let timeouts = Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() };
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { timeouts, ..Setup::default() });
    let mut application = pair.connect();
    let mut server = accept(&listener);
    assert!(is_reset(application.read(&mut [0])));
    assert!(is_reset(server.read(&mut [0])));
}

#[test]
fn a_box_that_drains_waits_for_its_flows() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup::default());
    let mut application = pair.connect();
    let mut server = accept(&listener);
    application.write_all(b"a").unwrap();
    server.read_exact(&mut [0]).unwrap();
    pair.near.drain.raise();
    // Nothing more is accepted; the flow goes on.
    until(|| TcpStream::connect_timeout(&pair.address, LONG).is_err().then_some(()));
    application.write_all(b"b").unwrap();
    let mut byte = [0];
    server.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"b");
    assert!(!pair.near.has_ended());
    drop((application, server));
    // Connections that came between are accepted and closed as well.
    listener.set_nonblocking(true).unwrap();
    until(|| {
        while listener.accept().is_ok() {}
        pair.near.has_ended().then_some(())
    });
    assert_eq!((pair.near_totals().reset, pair.near_totals().active_flows), (0, 0));
}

#[test]
fn what_is_on_its_way_arrives_when_both_boxes_drain() {
    let bytes = pattern(3_000_000);
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup::default());
    let mut application = pair.connect();
    let mut server = accept(&listener);
    server.shutdown(Shutdown::Write).unwrap();
    application.write_all(&bytes).unwrap();
    application.shutdown(Shutdown::Write).unwrap();
    assert_eq!(application.read(&mut [0]).unwrap(), 0);
    // For the application it is over; the target has not read a byte.
    assert_eq!(pair.near.flow_end(0), FlowEnd::Orderly);
    pair.near.drain.raise();
    pair.far.drain.raise();
    std::thread::sleep(Duration::from_millis(600));
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    assert!(got == bytes, "{} bytes", got.len());
    until(|| (pair.near.has_ended() && pair.far.has_ended()).then_some(()));
}

#[test]
fn a_box_that_stops_resets_its_flows() {
    for at_near in [true, false] {
        let (listener, address) = target();
        let pair = Pair::new(address, &Setup::default());
        let mut application = pair.connect();
        let mut server = accept(&listener);
        application.write_all(b"a").unwrap();
        server.read_exact(&mut [0]).unwrap();
        if at_near { &pair.near } else { &pair.far }.stop.raise();
        assert!(is_reset(application.read(&mut [0])), "near {at_near}");
        assert!(is_reset(server.read(&mut [0])), "near {at_near}");
    }
}

#[test]
fn ipv6_targets_are_connected() {
    let listener = std::net::TcpListener::bind("[::1]:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let pair = Pair::new(address, &Setup::default());
    let mut application = pair.connect();
    let mut server = accept(&listener);
    server.write_all(b"x").unwrap();
    application.read_exact(&mut [0]).unwrap();
}
