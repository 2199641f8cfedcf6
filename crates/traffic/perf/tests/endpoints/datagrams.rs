//! UDP, and both directions at once.

use crate::test_server::{TestServer, check, run, run_with_events};
use perf::client::{EndAfter, RisingTrain, TcpOptions, Transport, UdpOptions};
use perf::{Event, ServerEvent};
use record::{Direction, Measurement, Protocol, TimedDatagram};
use stall_retry::retry;
use std::thread;
use units::ByteCount;

fn books(measured: &Measurement) -> Vec<(u64, u64, u64)> {
    let books = measured.streams.iter().map(|stream| stream.datagrams.as_ref().unwrap());
    books.map(|books| (books.sent.unwrap(), books.received, books.lost)).collect()
}

#[test]
fn all_datagrams_are_counted() {
    retry(every_datagram_is_counted);
}

fn every_datagram_is_counted() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        for streams in [1, 3] {
            let mut config = server.config();
            config.transport = Protocol::Udp.into();
            config.direction = direction;
            config.streams = streams;
            config.block = Some(ByteCount::from_bytes(1000));
            config.rate = Some("8mbit".parse().unwrap());
            config.end = EndAfter::Seconds(0.5);
            let measured = run(&config).unwrap();
            check(&measured, &config);
            for (stream, (sent, received, lost)) in measured.streams.iter().zip(books(&measured)) {
                let asked = 500;
                assert!(received > asked / 2, "{direction:?}: {measured:?}");
                // Those that were sent before the server knew of the end arrive after it.
                assert_eq!((received, lost), (sent, 0), "{direction:?}: {measured:?}");
                let until_end = stream.received_bytes / 1000;
                assert!(until_end == received || stream.reverse && until_end <= received);
            }
        }
    }
}

/// Over loopback nothing is lost: the bytes end the train.
#[test]
fn a_train_has_the_times_of_every_datagram() {
    retry(trains_are_timed);
}

fn trains_are_timed() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        let from = "8mbit".parse().unwrap();
        config.transport = Transport::Udp(UdpOptions {
            train: Some(RisingTrain { from, max_seconds: 2.0 }),
            wide_counters: true,
            segment: false,
            coalesce: false,
        });
        config.direction = direction;
        config.block = Some(ByteCount::from_bytes(1000));
        config.rate = Some("32mbit".parse().unwrap());
        config.end = EndAfter::Bytes(ByteCount::from_bytes(200_000));
        let measured = run(&config).unwrap();
        let train = &measured.streams[0].train;
        let numbers: Vec<u64> = train.iter().map(|datagram| datagram.number).collect();
        assert_eq!(numbers, (1..=200).collect::<Vec<_>>(), "{direction:?}");
        // From 1 ms to a quarter of it; a pause of the sender is one gap of forty.
        let gap = |from: usize| {
            let pairs = train[from..=from + 40].windows(2);
            let mut gaps: Vec<_> = pairs.map(|pair| pair[1].sent_us - pair[0].sent_us).collect();
            gaps.sort_unstable();
            gaps[20]
        };
        assert!(gap(0) > 750 && gap(150) < gap(0) * 3 / 5, "{} {}", gap(0), gap(150));
        let delay = |d: &TimedDatagram| d.arrived_us.wrapping_sub(d.sent_us).cast_signed();
        let (least, most) = (train.iter().map(delay).min(), train.iter().map(delay).max());
        let spread = most.unwrap() - least.unwrap();
        assert!(spread < 5_000, "times of the kernel: {spread} µs");
    }
    let mut config = server.config();
    config.transport = Protocol::Udp.into();
    config.end = EndAfter::Seconds(0.1);
    assert!(run(&config).unwrap().streams[0].train.is_empty(), "none that was not asked for");
}

#[test]
fn unlimited_rate_and_all_options_off() {
    let server = TestServer::new();
    for fast in [true, false] {
        let mut config = server.config();
        let (wide_counters, segment, coalesce) = (fast, fast, fast);
        let udp = UdpOptions { train: None, wide_counters, segment, coalesce };
        config.transport = Transport::Udp(udp);
        config.block = Some(ByteCount::from_bytes(1448));
        config.end = EndAfter::Seconds(0.5);
        let (measured, events) = run_with_events(&config);
        let (sent, received, lost) = books(&measured)[0];
        assert!(received > 1000 && received + lost == sent, "{measured:?}");
        let rows = events.iter().filter_map(|event| match event {
            Event::Interval(row) => row.datagrams,
            Event::Connected(_) => None,
        });
        assert!(rows.map(|row| row.packets).sum::<u64>() <= sent);
    }
}

#[test]
fn datagrams_longer_than_a_packet_are_fragmented() {
    let server = TestServer::new();
    for bytes in [16, 9_000, 65_507] {
        let mut config = server.config();
        config.transport = Protocol::Udp.into();
        config.block = Some(ByteCount::from_bytes(bytes));
        config.rate = Some("20mbit".parse().unwrap());
        config.end = EndAfter::Seconds(0.3);
        let measured = run(&config).unwrap();
        assert!(books(&measured)[0].1 > 0, "{bytes}: {measured:?}");
    }
}

#[test]
fn a_number_of_datagrams_ends_the_test() {
    let server = TestServer::new();
    let mut config = server.config();
    config.transport = Protocol::Udp.into();
    config.rate = Some("50mbit".parse().unwrap());
    config.block = Some(ByteCount::from_bytes(1000));
    config.end = EndAfter::Bytes(ByteCount::from_bytes(100_500));
    assert_eq!(books(&run(&config).unwrap()), [(101, 101, 0)], "datagrams go whole");
    config.end = EndAfter::Blocks(77);
    assert_eq!(books(&run(&config).unwrap()), [(77, 77, 0)]);
}

#[test]
fn tcp_runs_in_both_directions_at_once() {
    let server = TestServer::new();
    let mut config = server.config();
    config.direction = Direction::Both;
    config.streams = 2;
    let measured = run(&config).unwrap();
    check(&measured, &config);
    let ways: Vec<bool> = measured.streams.iter().map(|stream| stream.reverse).collect();
    assert_eq!(ways, [false, false, true, true]);
    assert!(
        measured.one_direction(true).has_sender_timers()
            && measured.one_direction(false).has_sender_timers()
    );
    server.wait_for(|event| {
        matches!(event, ServerEvent::Finished { summary, .. }
            if summary.sent.bytes() > 0 && summary.received.bytes() > 0)
    });
}

/// Eight clients of one address at once: connect datagrams have no cookie.
#[test]
fn clients_of_one_address_stay_separate() {
    let server = TestServer::new();
    let counts = thread::scope(|scope| {
        let clients = (1..=8).map(|client| {
            let mut config = server.config();
            config.transport = Protocol::Udp.into();
            config.streams = 2;
            config.rate = Some("4mbit".parse().unwrap());
            config.block = Some(ByteCount::from_bytes(100 * client));
            config.end = EndAfter::Blocks(100 + client);
            scope.spawn(move || (client, books(&run(&config).unwrap())))
        });
        let clients: Vec<_> = clients.collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    for (client, books) in counts {
        let sent: u64 = books.iter().map(|(sent, ..)| sent).sum();
        let received: u64 = books.iter().map(|(_, received, _)| received).sum();
        assert_eq!((sent, received), (100 + client, 100 + client), "{books:?}");
    }
}

#[test]
fn zero_copy_changes_only_the_cost() {
    let server = TestServer::new();
    for (zerocopy, skip_rx_copy) in
        [(Some(true), false), (Some(false), true), (Some(true), true), (None, false)]
    {
        let mut config = server.config();
        let tcp = TcpOptions { zerocopy, skip_rx_copy, ..TcpOptions::default() };
        config.transport = Transport::Tcp(tcp);
        config.end = EndAfter::Blocks(401);
        assert_eq!(run(&config).unwrap().received().bytes(), 401 * 131_072);
    }
}
