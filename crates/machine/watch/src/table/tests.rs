use super::*;
use crate::transfer;
use host::tcp_info::TcpInfo;
use record::{ConnectionId, Limit};
use std::net::SocketAddr;

/// A connection with this `TCP_INFO`.
fn connection(cookie: u64, info: TcpInfo) -> Connection<'static> {
    Connection {
        state: 1,
        local: SocketAddr::from(([10, 0, 0, 1], 40_000)),
        remote: SocketAddr::from(([10, 0, 0, 2], 443)),
        cookie,
        inode: cookie as u32 + 100,
        uid: 0,
        receive_queue: 0,
        send_queue: 64 << 10,
        info: Some(info),
        memory: None,
        congestion: Some("cubic"),
        bbr: None,
    }
}

/// A sender limited by a receive window of 64 KiB over 173 ms, after so many seconds.
fn window_limited(second: u64) -> TcpInfo {
    let bytes = second * 378_000;
    TcpInfo {
        state: 1,
        snd_mss: 1448,
        snd_cwnd: 100,
        unacked: 45,
        rtt_us: 173_000,
        min_rtt_us: Some(173_000),
        bytes_acked: Some(1 + bytes),
        delivered: Some((bytes / 1448) as u32),
        notsent_bytes: Some(1000),
        delivery_rate: Some(378_000),
        busy_us: Some(second * 1_000_000),
        rwnd_limited_us: Some(second * 970_000),
        sndbuf_limited_us: Some(0),
        snd_wnd: Some(64 << 10),
        total_retrans: (second * 3) as u32,
        ..TcpInfo::default()
    }
}

fn idle() -> TcpInfo {
    TcpInfo { state: 1, snd_mss: 1448, busy_us: Some(0), bytes_acked: Some(1), ..window_limited(0) }
}

/// A table after so many polls, a second apart, of what `poll` reports in each.
fn polled(polls: u64, mut poll: impl FnMut(&mut Table, u64)) -> Table {
    let mut table = Table::default();
    for second in 0..polls {
        table.begin(second as f64);
        poll(&mut table, second);
        table.end();
    }
    table
}

#[test]
fn differences_are_rates_and_shares() {
    let table = polled(8, |table, second| {
        table.update(&connection(1, window_limited(second)));
        // A dump may contain a connection twice.
        table.update(&connection(1, window_limited(second)));
        table.update(&connection(2, idle()));
    });
    assert_eq!(table.len(), 2);
    let track = table.get(1).unwrap();
    let (sends, receives) = track.rates().unwrap();
    assert_eq!((sends.bps(), receives.bps()), (378_000 * 8, 0));
    assert_eq!(track.retransmits(), 3);
    assert!((track.shares().unwrap().receive_window - 0.97).abs() < 1e-9);
    assert_eq!(track.history.len(), 8);
    let idle = table.get(2).unwrap();
    assert!(!idle.is_active() && idle.shares().is_none() && idle.history.is_empty());
}

#[test]
fn the_first_poll_has_no_rate() {
    let table = polled(1, |table, _| table.update(&connection(1, window_limited(5))));
    let track = table.get(1).unwrap();
    assert!(track.rates().is_none() && track.shares().is_none() && track.retransmits() == 0);
    // The acknowledged SYN is not payload.
    let table = polled(2, |table, second| {
        let info = TcpInfo { bytes_acked: Some(second), ..idle() };
        table.update(&connection(1, info));
    });
    assert!(!table.get(1).unwrap().is_active());
}

#[test]
fn ended_connections_are_forgotten_and_idle_ones_keep_no_history() {
    let table = polled(3, |table, second| {
        if second < 2 {
            table.update(&connection(1, window_limited(second)));
        }
        table.update(&connection(2, window_limited(second)));
    });
    assert!(table.get(1).is_none() && table.len() == 1);
    // Five seconds of payload, then none.
    let idle_after =
        |polls| polled(polls, |table, s| table.update(&connection(1, window_limited(s.min(5)))));
    assert_eq!(idle_after(12).get(1).unwrap().history.len(), 12);
    assert!(idle_after(17).get(1).unwrap().history.is_empty());
    let long = polled(100, |table, second| table.update(&connection(1, window_limited(second))));
    assert_eq!(long.get(1).unwrap().history.len(), 30);
}

#[test]
fn the_first_in_an_order() {
    let mut table = polled(2, |table, second| {
        for cookie in 1..=100 {
            let mut info = window_limited(second);
            info.bytes_acked = Some(1 + second * cookie);
            info.rtt_us = 1000 - cookie as u32;
            info.total_retrans = (second * (cookie % 7)) as u32;
            info.rwnd_limited_us = Some(second * 5000 * (cookie % 10));
            table.update(&connection(cookie, info));
        }
    });
    let order = |table: &Table, sort, top| {
        let all = table.matching(&Selection::default()).collect();
        first(all, sort, top).into_iter().map(|(cookie, _)| cookie).collect::<Vec<_>>()
    };
    assert_eq!(order(&table, Sort::Rate, 3), [100, 99, 98]);
    assert_eq!(order(&table, Sort::Rtt, 2), [1, 2]);
    assert_eq!(order(&table, Sort::Retransmits, 2), [97, 90]);
    assert_eq!(order(&table, Sort::Limit, 2), [99, 89]);
    assert_eq!(order(&table, Sort::Rate, usize::MAX).len(), 100);
    assert_eq!(order(&table, Sort::Rate, 0), [0; 0]);
    table.get_mut(7).unwrap().wanted = Some(true);
    let of_process = Selection { pid: Some(1), ..Selection::default() };
    assert_eq!(table.matching(&of_process).count(), 1);
}

fn who() -> ConnectionId {
    ConnectionId {
        id: "1".to_owned(),
        local: "10.0.0.1:40000".to_owned(),
        remote: "10.0.0.2:443".to_owned(),
        pid: None,
        program: None,
        uid: 0,
        congestion: Some("cubic".to_owned()),
    }
}

#[test]
fn a_transfer_counts_from_its_first_sample() {
    // Watched from its hundredth second: earlier traffic does not count.
    let table =
        polled(12, |table, second| table.update(&connection(1, window_limited(100 + second))));
    let found = transfer(&who(), &table.get(1).unwrap().history, None).unwrap();
    assert_eq!(found.finding.limit, Some(Limit::ReceiveWindow));
    assert!(found.finding.sentence.contains("64 KiB over 173 ms"), "{}", found.finding.sentence);
    let stream = &found.measurement.streams[0];
    assert_eq!((stream.received_bytes, stream.retransmits), (11 * 378_000, Some(33)));
    let buffered = stream.sender.iter().map(|s| s.written_bytes - s.acked_bytes);
    assert!(buffered.into_iter().all(|bytes| bytes == 64 << 10), "{stream:?}");
    assert!((found.finding.average_bps.as_f64() / (378_000.0 * 8.0) - 1.0).abs() < 1e-6);
}

#[test]
fn receivers_and_kernels_without_timers_have_no_limit() {
    let received = |unread: u32| {
        let table = polled(5, |table, second| {
            let info = TcpInfo {
                bytes_received: Some(second * 1_000_000),
                rcv_wnd: Some(100_000),
                ..idle()
            };
            let receive_queue = unread;
            table.update(&Connection { receive_queue, ..connection(1, info) });
        });
        transfer(&who(), &table.get(1).unwrap().history, None).unwrap()
    };
    let found = received(0);
    assert!(found.finding.limit.is_none() && found.measurement.streams[0].reverse);
    assert!(
        found.finding.sentence.contains("only the sender can identify"),
        "{}",
        found.finding.sentence
    );
    assert_eq!(found.finding.average_bps.bps(), 8_000_000);
    let slow = received(60_000).finding.sentence;
    assert!(slow.contains("receiving application is slow: 60 kB"), "{slow}");

    let table = polled(5, |table, second| {
        let info = TcpInfo { busy_us: None, rwnd_limited_us: None, ..window_limited(second) };
        table.update(&connection(1, info));
    });
    let track = table.get(1).unwrap();
    assert!(track.shares().is_none());
    let found = transfer(&who(), &track.history, None).unwrap();
    assert_eq!(found.finding.limit, None);
    assert!(found.finding.sentence.contains("no sender timers"), "{}", found.finding.sentence);
    assert!(transfer(&who(), track.history.iter().take(1), None).is_none());
}
