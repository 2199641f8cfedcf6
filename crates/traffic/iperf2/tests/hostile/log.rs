//! Floods of short streams: the server reports a few of them and counts the others, and a
//! stream with data is reported whatever else arrives.

use crate::network::{
    SERVER, TestServer, address, client, datagram, in_a_network, run, totals, until,
};
use host::clock;
use iperf2::client::ClientConfig;
use iperf2::{Event, IntervalReport};
use iperf2_proto::{Amount, Pace};
use std::io::Write;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// The streams that a server reports per second, whoever they are from.
const MAX_STREAMS: u64 = 20;

/// The client with data.
const CLIENT: u8 = 80;

fn server(udp: bool, interval: Option<Duration>) -> TestServer {
    TestServer::with(udp, |config| {
        config.bind = Some((SERVER, 0).into());
        config.interval = interval;
    })
}

/// Streams of three datagrams, as many as there are `rounds` of 100.
fn flood(test_server: &TestServer, rounds: usize) -> u64 {
    let bind = |number: u8| UdpSocket::bind((address(2 + number % 70), 0)).unwrap();
    for _ in 0..rounds {
        let sockets: Vec<UdpSocket> = (0..100).map(bind).collect();
        for number in 1..=3 {
            for socket in &sockets {
                let bytes = datagram(number, number == 3, None, 16);
                socket.send_to(&bytes, test_server.address).unwrap();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
    100 * rounds as u64
}

/// A client that sends for longer than a second.
fn real(test_server: &TestServer, udp: bool) -> ClientConfig {
    ClientConfig {
        amount: Amount::Time(Duration::from_millis(1500)),
        pace: Some(Pace::Bits(4_000_000)),
        ..client(test_server, address(CLIENT), udp)
    }
}

/// Connected streams, and rows of whole streams, without those of the client with data.
fn of_others(events: &[Event]) -> (u64, u64) {
    let other = |ip: IpAddr| ip != address(CLIENT);
    let count =
        |fits: &dyn Fn(&Event) -> bool| events.iter().filter(|event| fits(event)).count() as u64;
    let connected =
        count(&|event| matches!(event, Event::Connected { peer, .. } if other(peer.ip())));
    let whole = |row: &IntervalReport| row.whole && row.ends.is_none_or(|ends| other(ends.1.ip()));
    let ended = count(&|event| matches!(event, Event::Interval(row) if whole(row)));
    (connected, ended)
}

fn suppressed(events: &[Event]) -> (u64, u64) {
    let counts = events.iter().filter_map(|event| match event {
        Event::Suppressed { streams, intervals, .. } => Some((*streams, *intervals)),
        _ => None,
    });
    counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// Streams that may have been reported since then.
fn most(begun: Instant) -> u64 {
    MAX_STREAMS * (begun.elapsed().as_secs() + 2)
}

/// The client's stream is reported from start to end.
fn assert_reported(events: &[Event]) {
    let ours = |ends: Option<(_, std::net::SocketAddr)>| {
        ends.is_some_and(|(_, peer)| peer.ip() == address(CLIENT))
    };
    let connected = |event: &Event| matches!(event, Event::Connected { peer, .. } if peer.ip() == address(CLIENT));
    assert!(events.iter().any(connected), "its start");
    let row = totals(events).into_iter().find(|row| ours(row.ends)).unwrap();
    assert!(row.bytes >= 64 * 1024, "{row:?}");
}

#[test]
fn a_flood_of_forged_streams_is_counted_and_hides_no_stream_with_data() {
    in_a_network(|| {
        let test_server = server(true, None);
        let begun = clock::now();
        let sent = thread::scope(|scope| {
            let client = scope.spawn(|| run(&real(&test_server, true)).unwrap());
            let mut sent = 0;
            while !client.is_finished() {
                sent += flood(&test_server, 2);
            }
            assert_eq!(crate::network::totals(&client.join().unwrap()).len(), 1);
            sent
        });
        // What is suppressed is told when its second is over.
        until("the count", || {
            let events = test_server.events();
            // Datagrams that found a full buffer began no stream: many, on a busy machine.
            suppressed(&events).0 + of_others(&events).0 >= sent / 4
        });
        let events = test_server.events();
        let (connected, ended) = of_others(&events);
        let most = most(begun);
        assert!(sent > 8 * most, "{sent} streams are a flood");
        assert!(
            connected <= most && ended <= 2 * most,
            "{connected} starts, {ended} ends of {sent}"
        );
        let told = events.iter().filter(|event| matches!(event, Event::Suppressed { .. })).count();
        assert!(told as u64 <= begun.elapsed().as_secs() + 2, "one line a second, not {told}");
        assert_reported(&events);
    });
}

#[test]
fn idle_streams_do_not_fill_the_log_with_intervals() {
    in_a_network(|| {
        let test_server = server(true, Some(Duration::from_millis(20)));
        let begun = clock::now();
        let sockets: Vec<UdpSocket> =
            (0..60).map(|number| UdpSocket::bind((address(2 + number), 0)).unwrap()).collect();
        for number in 1..=2 {
            for socket in &sockets {
                let bytes = datagram(number, false, None, 16);
                socket.send_to(&bytes, test_server.address).unwrap();
            }
        }
        // Far more than the limit of a second.
        until("suppressed intervals", || suppressed(&test_server.events()).1 >= 500);
        let events = test_server.events();
        let rows = |event: &&Event| matches!(event, Event::Interval(row) if !row.whole);
        let count = events.iter().filter(rows).count() as u64;
        // Sums of an address are reported beside them.
        let most = 2 * most(begun);
        assert!(count <= most, "{count} interval reports in {:?}", begun.elapsed());
    });
}

#[test]
fn a_flood_of_connections_is_counted_and_hides_no_stream_with_data() {
    in_a_network(|| {
        let test_server = server(false, None);
        let begun = clock::now();
        let sent = thread::scope(|scope| {
            let client = scope.spawn(|| run(&real(&test_server, false)).unwrap());
            let mut sent = 0_u64;
            while !client.is_finished() {
                // No header begins like this: data of an old client.
                if let Ok(mut stream) = TcpStream::connect(test_server.address) {
                    let _ = stream.write_all(b"0123456789");
                    sent += 1;
                }
            }
            client.join().unwrap();
            sent
        });
        until("the count", || suppressed(&test_server.events()).0 > 0);
        let events = test_server.events();
        let (connected, ended) = of_others(&events);
        let most = most(begun);
        assert!(sent > 2 * most, "{sent} connections are a flood");
        assert!(
            connected <= most && ended <= 2 * most,
            "{connected} starts, {ended} ends of {sent}"
        );
        assert_reported(&events);
    });
}
