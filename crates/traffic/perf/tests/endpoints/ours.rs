//! Our client against our server.

use crate::test_server::{TestServer, check, run, run_with_events};
use perf::client::EndAfter;
use perf::{
    Event, PerfError, ServerEvent, StopFlag,
    client::{self, ClientConfig, Family},
    server::{Server, ServerConfig},
};
use record::Direction;
use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};
use units::ByteCount;

#[test]
fn forward_is_measured_at_both_ends() {
    let server = TestServer::new();
    let config = server.config();
    let (measured, events) = run_with_events(&config);
    check(&measured, &config);
    assert!(measured.peer.starts_with("longhaul "), "{}", measured.peer);
    assert!(measured.sender_cpu.unwrap() > 0.0 && measured.receiver_cpu.unwrap() > 0.0);
    let stream = &measured.streams[0];
    assert!(stream.receiver.len() >= 2, "the server shares its samples");
    assert!(stream.sender[0].t_s < 0.5);
    assert!(matches!(&events[0], Event::Connected(started) if started.streams.len() == 1));
    let rows: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Interval(row) => Some(row),
            Event::Connected(_) => None,
        })
        .collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.stream == Some(1)));
    assert!(rows[0].retransmits.is_some() && rows[0].rtt.is_some() && rows[0].cwnd.is_some());
    assert!(rows.iter().map(|row| row.bytes.bytes()).sum::<u64>() <= stream.sent_bytes);
    server.wait_for(|event| {
        matches!(event, ServerEvent::Finished { summary, .. }
            if summary.received.bytes() == stream.received_bytes && summary.sent.bytes() == 0)
    });
}

#[test]
fn the_start_is_sampled_more_often_at_both_ends() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        config.direction = direction;
        config.rate = Some("10mbit".parse().unwrap());
        // Without it, this end would take the first sample and the last, and the server one
        // in 100 ms.
        config.sample_every = Duration::from_secs(60);
        let measured = run(&config).unwrap();
        check(&measured, &config);
        let stream = &measured.streams[0];
        let (ours, theirs) = match direction {
            Direction::Forward => (stream.sender.len(), stream.receiver.len()),
            _ => (stream.receiver.len(), stream.sender.len()),
        };
        assert!(ours > 2, "{ours} samples");
        let seconds = config.end.seconds().unwrap();
        let slow = seconds / 0.1 + 2.0;
        assert!(theirs as f64 > slow, "{theirs} samples in {seconds} s");
    }
}

#[test]
fn reverse_returns_the_senders_samples() {
    let server = TestServer::new();
    let mut config = server.config();
    config.direction = Direction::Reverse;
    let measured = run(&config).unwrap();
    check(&measured, &config);
    assert!(measured.has_sender_timers());
    assert!(measured.sender_cpu.is_some() && measured.receiver_cpu.is_some());
}

#[test]
fn eight_streams_in_each_direction() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        config.direction = direction;
        config.streams = 8;
        config.report_every = Duration::from_millis(300);
        let (measured, events) = run_with_events(&config);
        check(&measured, &config);
        let sums = events
            .iter()
            .filter(|event| matches!(event, Event::Interval(row) if row.stream.is_none()));
        assert!(sums.count() >= 2);
    }
}

#[test]
fn a_server_counts_only_bytes_sent_within_the_test() {
    let server = TestServer::new();
    let mut config = server.config();
    config.direction = Direction::Reverse;
    config.streams = 8;
    let totals = |config: &ClientConfig| {
        let measured = run(config).unwrap();
        check(&measured, config);
        let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
        (sent as f64, measured.received().as_f64())
    };
    // After a second 19 kB of the second 128 KiB block have been sent; completing it
    // after the end would add 75 %. 40 % is 0.4 s until the server reads TEST_END.
    config.rate = Some("1200kbit".parse().unwrap());
    let (sent, received) = totals(&config);
    assert!(sent <= received * 1.4, "{sent} sent, {received} received");
    // Unlimited: the content of send and receive buffers, a few MB per stream.
    config.rate = None;
    let (sent, received) = totals(&config);
    assert!(sent <= received * 1.2, "{sent} sent, {received} received");
}

#[test]
fn ipv6_and_both_versions_on_one_socket() {
    let both = TestServer::with(|config| config.bind = None);
    let mut config = both.config();
    config.end = EndAfter::Seconds(0.3);
    for (host, family) in [
        ("127.0.0.1", Family::Any),
        ("::1", Family::V6),
        ("[::1]", Family::Any),
        ("localhost", Family::V4),
    ] {
        config.host = host.to_owned();
        config.family = family;
        check(&run(&config).unwrap(), &config);
    }
    let six = TestServer::with(|config| config.bind = Some(Ipv6Addr::LOCALHOST.into()));
    let mut config = six.config();
    config.end = EndAfter::Seconds(0.3);
    check(&run(&config).unwrap(), &config);
}

#[test]
fn tests_run_side_by_side() {
    let server = TestServer::new();
    std::thread::scope(|scope| {
        let tests: Vec<_> = (0..4)
            .map(|at| {
                let mut config = server.config();
                config.streams = 2;
                config.direction =
                    if at % 2 == 0 { Direction::Forward } else { Direction::Reverse };
                scope.spawn(move || check(&run(&config).unwrap(), &config))
            })
            .collect();
        for test in tests {
            test.join().unwrap();
        }
    });
}

#[test]
fn the_maximum_number_of_streams() {
    // A low limit of half-open connections: a burst of legitimate clients must pass
    // nevertheless.
    let server = TestServer::with(|config| config.limits.half_open = 2);
    let mut config = server.config();
    config.streams = 128;
    config.rate = Some("1mbit".parse().unwrap());
    check(&run(&config).unwrap(), &config);
}

#[test]
fn either_sender_keeps_the_rate() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        config.direction = direction;
        config.rate = Some("20mbit".parse().unwrap());
        let measured = run(&config).unwrap();
        let sent = measured.streams[0].sent_bytes as f64 * 8.0 / measured.streams[0].sent_seconds;
        // A stalled host may send less, never more than one block above.
        assert!(sent < 21.5e6, "{sent}");
    }
}

#[test]
fn bytes_end_a_test_in_whole_blocks() {
    let server = TestServer::new();
    for (direction, streams) in
        [(Direction::Forward, 1), (Direction::Forward, 3), (Direction::Reverse, 2)]
    {
        let mut config = server.config();
        config.direction = direction;
        config.streams = streams;
        config.end = EndAfter::Bytes(ByteCount::from_bytes(3_000_001));
        let measured = run(&config).unwrap();
        let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
        let blocks = 23 * 131_072;
        assert_eq!((sent, measured.received().bytes()), (blocks, blocks), "{direction:?}");
    }
}

#[test]
fn both_ends_omit_the_warm_up() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        config.direction = direction;
        config.omit_seconds = 1;
        config.rate = Some("80mbit".parse().unwrap());
        let (measured, events) = run_with_events(&config);
        check(&measured, &config);
        let stream = &measured.streams[0];
        // Two seconds of traffic, about one of which counts; with a margin of half of it.
        assert!(stream.sent_bytes < 15_000_000, "{}", stream.sent_bytes);
        assert!(stream.received_bytes < 15_000_000, "{}", stream.received_bytes);
        assert!(events.iter().any(|e| matches!(e, Event::Interval(row) if row.omitted)));
        assert!(events.iter().any(|e| matches!(e, Event::Interval(row) if !row.omitted)));
    }
}

#[test]
fn a_window_is_set_or_its_clamping_reported() {
    let server = TestServer::new();
    let mut config = server.config();
    config.end = EndAfter::Seconds(0.3);
    config.window = Some("64KiB".parse().unwrap());
    assert_eq!(run(&config).unwrap().notes, Vec::<String>::new());
    // No default of net.core.wmem_max reaches 1 GiB.
    config.window = Some("1GiB".parse().unwrap());
    for (direction, own, far) in [
        (Direction::Forward, "net.core.wmem_max", "net.core.rmem_max"),
        (Direction::Reverse, "net.core.rmem_max", "net.core.wmem_max"),
    ] {
        config.direction = direction;
        let notes = run(&config).unwrap().notes;
        assert!(notes[0].contains(own) && notes[0].contains("client"), "{notes:?}");
        assert!(notes[1].contains(far) && notes[1].contains("server"), "{notes:?}");
    }
}

#[test]
fn congestion_control_is_the_senders() {
    let server = TestServer::new();
    let mut config = server.config();
    config.end = EndAfter::Seconds(0.3);
    config.congestion = Some("reno".to_owned());
    for direction in [Direction::Forward, Direction::Reverse] {
        config.direction = direction;
        let measured = run(&config).unwrap();
        assert_eq!(measured.streams[0].congestion.as_deref(), Some("reno"));
    }
    config.congestion = Some("nonesuch".to_owned());
    let notes = run(&config).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("nonesuch")), "{notes:?}");
}

#[test]
fn an_interrupted_test_returns_partial_results() {
    let server = TestServer::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = server.config();
        config.direction = direction;
        config.end = EndAfter::Seconds(600.0);
        config.report_every = Duration::from_millis(200);
        let stop = StopFlag::new();
        let raise = stop.clone();
        let mut rows = 0;
        let mut progress = |event| {
            rows += u32::from(matches!(event, Event::Interval(_)));
            if rows == 2 {
                raise.raise();
            }
        };
        let measured = client::run(&config, &mut progress, &stop).unwrap().measurement;
        assert!(measured.received().bytes() > 0);
        assert!(measured.notes.iter().any(|note| note.contains("interrupted")));
    }
    server.wait_for(|event| {
        matches!(event, ServerEvent::Failed { why, .. } if why.contains("interrupted by its user"))
    });
    server.check_serving();
}

#[test]
fn a_stopped_server_notifies_its_clients() {
    let server = TestServer::new();
    let mut config = server.config();
    config.end = EndAfter::Seconds(600.0);
    let client = std::thread::spawn(move || run(&config));
    server.wait_for(|event| matches!(event, ServerEvent::Started { .. }));
    drop(server);
    let error = client.join().unwrap().unwrap_err();
    assert!(matches!(error, PerfError::ServerStopped { .. }), "{error}");
}

#[test]
fn a_one_off_server_serves_one_test_and_leaves() {
    let server = TestServer::with(|config| config.one_off = true);
    let mut config = server.config();
    config.end = EndAfter::Seconds(0.2);
    run(&config).unwrap();
    server.join().unwrap();
    let error = run(&config).unwrap_err();
    assert!(matches!(error, PerfError::Connect { .. }) && !error.is_usage(), "{error}");
}

#[test]
fn a_full_server_reports_busy() {
    let server = TestServer::with(|config| config.limits.sessions = 1);
    let mut config = server.config();
    config.end = EndAfter::Seconds(600.0);
    let stop = StopFlag::new();
    let raise = stop.clone();
    let long = std::thread::spawn(move || client::run(&config, &mut |_| (), &stop));
    server.wait_for(|event| matches!(event, ServerEvent::Started { .. }));
    let error = run(&server.config()).unwrap_err();
    assert!(matches!(error, PerfError::Busy { .. }), "{error}");
    assert!(error.to_string().contains("busy"));
    raise.raise();
    long.join().unwrap().unwrap();
    server.wait_for(|event| matches!(event, ServerEvent::Failed { .. }));
    server.check_serving();
}

#[test]
fn requests_over_a_limit_are_refused_with_the_reason() {
    let server = TestServer::with(|config| {
        config.limits.streams = 2;
        config.limits.duration = Duration::from_secs(5);
    });
    let mut config = server.config();
    config.streams = 3;
    let error = run(&config).unwrap_err().to_string();
    assert!(error.contains("fewer"), "{error}");
    let mut config = server.config();
    config.end = EndAfter::Seconds(5.5);
    let error = run(&config).unwrap_err().to_string();
    assert!(error.contains("shorter"), "{error}");
    server.check_serving();
}

#[test]
fn usage_errors_differ_from_failures() {
    let server = TestServer::new();
    let mut config = server.config();
    config.host = "no-such-host.invalid".to_owned();
    assert!(run(&config).unwrap_err().is_usage());
    let mut config = server.config();
    // Documentation addresses (RFC 5737) are not assigned.
    config.bind = Some(IpAddr::from([192, 0, 2, 1]));
    let error = run(&config).unwrap_err();
    assert!(error.is_usage(), "{error}");
    let mut config = server.config();
    config.family = Family::V6;
    assert!(run(&config).unwrap_err().is_usage());

    let taken = ServerConfig {
        bind: Some(server.address.ip()),
        port: server.address.port(),
        ..ServerConfig::default()
    };
    let error = Server::bind(&taken).unwrap_err();
    assert!(error.to_string().contains("another server"), "{error}");
}
