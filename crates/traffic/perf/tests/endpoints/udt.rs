//! UDT: our client against our server.

use crate::test_server::{TestServer, check, run, run_with_events};
use perf::client::{EndAfter, Transport, UdtOptions};
use perf::{Event, PerfError};
use record::{Direction, Protocol};
use stall_retry::retry;
use std::time::Duration;
use units::{BitRate, ByteCount};

#[test]
fn every_direction_and_control_is_measured() {
    let server = TestServer::new();
    for (direction, streams, control) in [
        (Direction::Forward, 1, None),
        (Direction::Reverse, 2, Some("cubic")),
        (Direction::Both, 1, Some("srt")),
        (Direction::Forward, 3, Some("reno")),
    ] {
        let mut config = server.config();
        config.transport = Protocol::Udt.into();
        config.direction = direction;
        config.streams = streams;
        config.congestion = control.map(str::to_owned);
        config.rate = Some("20mbit".parse().unwrap());
        let (measured, events) = run_with_events(&config);
        check(&measured, &config);
        for stream in &measured.streams {
            assert_eq!(stream.congestion.as_deref(), Some(control.unwrap_or("udt")));
            assert!(stream.datagrams.is_none());
            let sample = stream.sender.last().unwrap();
            assert!(sample.rtt_us > 0 && sample.naks.is_some(), "{sample:?}");
            assert!(sample.acked_bytes > 0 && sample.acked_bytes <= sample.written_bytes);
        }
        let has_cwnd = |event: &Event| matches!(event, Event::Interval(row) if row.cwnd.is_some() && row.rtt.is_some());
        assert_eq!(events.iter().any(has_cwnd), direction != Direction::Reverse);
    }
}

#[test]
fn native_mode_is_measured_in_every_direction() {
    let server = TestServer::new();
    for (direction, streams, control, shown) in [
        (Direction::Forward, 1, Some("bbr"), "bbr3"),
        (Direction::Reverse, 2, None, "bbr3"),
        (Direction::Both, 1, Some("cubic"), "cubic"),
        (Direction::Forward, 3, Some("reno"), "reno"),
    ] {
        let mut config = server.config();
        config.transport = Transport::Udt(UdtOptions { native: true, ..UdtOptions::default() });
        config.direction = direction;
        config.streams = streams;
        config.congestion = control.map(str::to_owned);
        config.rate = Some("20mbit".parse().unwrap());
        let measured = run(&config).unwrap();
        check(&measured, &config);
        assert!(measured.spec.native);
        for stream in &measured.streams {
            assert_eq!(stream.congestion.as_deref(), Some(shown));
            let sample = stream.sender.last().unwrap();
            assert!(sample.rtt_us > 0 && sample.naks.is_none(), "{sample:?}");
            assert!(sample.delivery_rate_bps > 1_000_000, "{sample:?}");
            assert!(sample.acked_bytes > 0 && sample.acked_bytes <= sample.written_bytes);
        }
    }
}

#[test]
fn a_rate_is_kept_and_bytes_end_a_test() {
    retry(|| {
        let server = TestServer::new();
        let mut config = server.config();
        config.transport = Protocol::Udt.into();
        config.end = EndAfter::Seconds(2.0);
        config.rate = Some(BitRate::from_bps(40_000_000));
        let stream = &run(&config).unwrap().streams[0];
        let mbit = stream.received_bytes as f64 * 8e-6 / stream.received_seconds;
        assert!((36.0..=41.0).contains(&mbit), "{mbit:.1} Mbit/s");

        config.rate = None;
        config.end = EndAfter::Bytes(ByteCount::from_bytes(30_000_000));
        for direction in [Direction::Forward, Direction::Reverse] {
            config.direction = direction;
            let stream = &run(&config).unwrap().streams[0];
            let asked = 30_000_000_u64.next_multiple_of(128 * 1024);
            assert_eq!((stream.sent_bytes, stream.received_bytes), (asked, asked));
        }
    });
}

#[test]
fn a_control_that_there_is_not_and_one_that_the_server_lacks_are_refused() {
    let server = TestServer::new();
    let mut config = server.config();
    config.transport = Protocol::Udt.into();
    config.congestion = Some("vegas".to_owned());
    let error = run(&config).unwrap_err();
    assert!(error.is_usage(), "{error}");
    assert!(error.to_string().contains("udt, srt, reno, cubic"), "{error}");
}

#[test]
fn a_server_with_a_rate_limit_keeps_it() {
    let limit = BitRate::from_bps(16_000_000);
    let server = TestServer::with(|config| config.limits.rate = Some(limit));
    let mut config = server.config();
    config.transport = Protocol::Udt.into();
    config.direction = Direction::Reverse;
    config.end = EndAfter::Seconds(2.0);
    let stream = &run(&config).unwrap().streams[0];
    let mbit = stream.received_bytes as f64 * 8e-6 / stream.received_seconds;
    assert!(mbit > 1.0 && mbit < 20.0, "{mbit:.1} Mbit/s");
}

/// An iperf3 server takes it for a TCP test and never answers a datagram.
#[test]
fn a_server_without_udt_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut control, _) = listener.accept().unwrap();
        control.read_exact(&mut [0; 37]).unwrap();
        // PARAM_EXCHANGE, then CREATE_STREAMS.
        control.write_all(&[9]).unwrap();
        let mut length = [0; 4];
        control.read_exact(&mut length).unwrap();
        let mut params = vec![0; u32::from_be_bytes(length) as usize];
        control.read_exact(&mut params).unwrap();
        control.write_all(&[10]).unwrap();
        let _ = control.set_read_timeout(Some(Duration::from_secs(60)));
        let _ = control.read(&mut [0; 1]);
    });
    let mut config = perf::client::ClientConfig::new("127.0.0.1");
    config.ports = port..=port;
    config.transport = Protocol::Udt.into();
    let error = run(&config).unwrap_err();
    assert!(matches!(error, PerfError::NoUdt { .. }), "{error:?}");
    assert!(error.to_string().contains("longhaul server"), "{error}");
    server.join().unwrap();
}
