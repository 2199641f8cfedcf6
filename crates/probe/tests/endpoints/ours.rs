//! Our client against our server.

use crate::ground::{Ground, check, run, run_with_events};
use probe::{
    Event, ProbeError, ServerEvent, StopFlag,
    client::{self, Family},
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
    let ground = Ground::new();
    let config = ground.config();
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
    ground.told(|event| {
        matches!(event, ServerEvent::Finished { summary, .. }
            if summary.received.bytes() == stream.received_bytes && summary.sent.bytes() == 0)
    });
}

#[test]
fn reverse_brings_the_senders_samples_home() {
    let ground = Ground::new();
    let mut config = ground.config();
    config.direction = Direction::Reverse;
    let measured = run(&config).unwrap();
    check(&measured, &config);
    assert!(measured.has_sender_clocks());
    assert!(measured.sender_cpu.is_some() && measured.receiver_cpu.is_some());
}

#[test]
fn eight_streams_each_way() {
    let ground = Ground::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = ground.config();
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
fn ipv6_and_both_versions_on_one_socket() {
    let both = Ground::with(|config| config.bind = None);
    let mut config = both.config();
    config.seconds = 0.3;
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
    let six = Ground::with(|config| config.bind = Some(Ipv6Addr::LOCALHOST.into()));
    let mut config = six.config();
    config.seconds = 0.3;
    check(&run(&config).unwrap(), &config);
}

#[test]
fn tests_run_side_by_side() {
    let ground = Ground::new();
    std::thread::scope(|scope| {
        let tests: Vec<_> = (0..4)
            .map(|at| {
                let mut config = ground.config();
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
fn the_most_streams_there_can_be() {
    // Few places for connections that have not said who they are: a burst of
    // honest ones must pass all the same.
    let ground = Ground::with(|config| config.limits.half_open = 2);
    let mut config = ground.config();
    config.streams = 128;
    config.rate = Some("1mbit".parse().unwrap());
    check(&run(&config).unwrap(), &config);
}

#[test]
fn a_rate_is_held_at_either_sender() {
    let ground = Ground::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = ground.config();
        config.direction = direction;
        config.rate = Some("20mbit".parse().unwrap());
        let measured = run(&config).unwrap();
        let sent = measured.streams[0].sent_bytes as f64 * 8.0 / measured.streams[0].sent_seconds;
        // A machine that stalls may send less, never more than a block over.
        assert!(sent < 21.5e6, "{sent}");
    }
}

#[test]
fn bytes_end_a_test_to_the_byte() {
    let ground = Ground::new();
    for (direction, streams) in
        [(Direction::Forward, 1), (Direction::Forward, 3), (Direction::Reverse, 2)]
    {
        let mut config = ground.config();
        config.direction = direction;
        config.streams = streams;
        config.bytes = Some(ByteCount::from_bytes(3_000_001));
        let measured = run(&config).unwrap();
        let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
        assert_eq!((sent, measured.received().bytes()), (3_000_001, 3_000_001), "{direction:?}");
    }
}

#[test]
fn the_warm_up_is_left_out_at_both_ends() {
    let ground = Ground::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = ground.config();
        config.direction = direction;
        config.omit_seconds = 1;
        config.rate = Some("80mbit".parse().unwrap());
        let (measured, events) = run_with_events(&config);
        check(&measured, &config);
        let stream = &measured.streams[0];
        // Two seconds of traffic, of which about one counts; half of it as a margin.
        assert!(stream.sent_bytes < 15_000_000, "{}", stream.sent_bytes);
        assert!(stream.received_bytes < 15_000_000, "{}", stream.received_bytes);
        assert!(events.iter().any(|e| matches!(e, Event::Interval(row) if row.omitted)));
        assert!(events.iter().any(|e| matches!(e, Event::Interval(row) if !row.omitted)));
    }
}

#[test]
fn a_window_is_set_or_its_clamping_told() {
    let ground = Ground::new();
    let mut config = ground.config();
    config.seconds = 0.3;
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
    let ground = Ground::new();
    let mut config = ground.config();
    config.seconds = 0.3;
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
fn an_interrupted_test_gives_what_there_is() {
    let ground = Ground::new();
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut config = ground.config();
        config.direction = direction;
        config.seconds = 600.0;
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
    ground.told(|event| {
        matches!(event, ServerEvent::Failed { why, .. } if why.contains("interrupted by its user"))
    });
    ground.serves();
}

#[test]
fn a_stopped_server_tells_its_clients() {
    let ground = Ground::new();
    let mut config = ground.config();
    config.seconds = 600.0;
    let client = std::thread::spawn(move || run(&config));
    ground.told(|event| matches!(event, ServerEvent::Started { .. }));
    drop(ground);
    let error = client.join().unwrap().unwrap_err();
    assert!(matches!(error, ProbeError::ServerStopped { .. }), "{error}");
}

#[test]
fn a_one_off_server_serves_one_test_and_leaves() {
    let ground = Ground::with(|config| config.one_off = true);
    let mut config = ground.config();
    config.seconds = 0.2;
    run(&config).unwrap();
    ground.join().unwrap();
    let error = run(&config).unwrap_err();
    assert!(matches!(error, ProbeError::Connect { .. }) && !error.is_usage(), "{error}");
}

#[test]
fn a_full_server_says_so() {
    let ground = Ground::with(|config| config.limits.sessions = 1);
    let mut config = ground.config();
    config.seconds = 600.0;
    let stop = StopFlag::new();
    let raise = stop.clone();
    let long = std::thread::spawn(move || client::run(&config, &mut |_| (), &stop));
    ground.told(|event| matches!(event, ServerEvent::Started { .. }));
    let error = run(&ground.config()).unwrap_err();
    assert!(matches!(error, ProbeError::Busy { .. }), "{error}");
    assert!(error.to_string().contains("busy"));
    raise.raise();
    long.join().unwrap().unwrap();
    ground.told(|event| matches!(event, ServerEvent::Failed { .. }));
    ground.serves();
}

#[test]
fn what_is_over_a_limit_is_refused_with_its_reason() {
    let ground = Ground::with(|config| {
        config.limits.streams = 2;
        config.limits.duration = Duration::from_secs(5);
    });
    let mut config = ground.config();
    config.streams = 3;
    let error = run(&config).unwrap_err().to_string();
    assert!(error.contains("fewer"), "{error}");
    let mut config = ground.config();
    config.seconds = 5.5;
    let error = run(&config).unwrap_err().to_string();
    assert!(error.contains("shorter"), "{error}");
    ground.serves();
}

#[test]
fn wrong_commands_are_told_from_failed_work() {
    let ground = Ground::new();
    let mut config = ground.config();
    config.host = "no-such-host.invalid".to_owned();
    assert!(run(&config).unwrap_err().is_usage());
    let mut config = ground.config();
    // Documentation addresses (RFC 5737) are nobody's.
    config.bind = Some(IpAddr::from([192, 0, 2, 1]));
    let error = run(&config).unwrap_err();
    assert!(error.is_usage(), "{error}");
    let mut config = ground.config();
    config.family = Family::V6;
    assert!(run(&config).unwrap_err().is_usage());

    let taken = ServerConfig {
        bind: Some(ground.address.ip()),
        port: ground.address.port(),
        ..ServerConfig::default()
    };
    let error = Server::bind(&taken).unwrap_err();
    assert!(error.to_string().contains("another server"), "{error}");
}
