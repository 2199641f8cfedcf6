use super::*;
use crate::transfer;
use host::tcp_info::TcpInfo;
use record::{ConnectionId, Limit};
use std::net::SocketAddr;

/// A connection whose account is `info`.
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

/// A second's growth of a sender that a window of 64 KiB over 173 ms holds.
fn held(second: u64) -> TcpInfo {
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

fn quiet() -> TcpInfo {
    TcpInfo { state: 1, snd_mss: 1448, busy_us: Some(0), bytes_acked: Some(1), ..held(0) }
}

/// So many looks, a second apart, at what `see` shows in each.
fn looked(looks: u64, mut see: impl FnMut(&mut Table, u64)) -> Table {
    let mut table = Table::default();
    for second in 0..looks {
        table.begin(second as f64);
        see(&mut table, second);
        table.end();
    }
    table
}

#[test]
fn differences_are_rates_and_shares() {
    let table = looked(8, |table, second| {
        table.see(&connection(1, held(second)));
        // Told twice, as may happen amid changes.
        table.see(&connection(1, held(second)));
        table.see(&connection(2, quiet()));
    });
    assert_eq!(table.len(), 2);
    let track = table.get(1).unwrap();
    let (sends, receives) = track.rates().unwrap();
    assert_eq!((sends.bps(), receives.bps()), (378_000 * 8, 0));
    assert_eq!(track.retransmits(), 3);
    assert!((track.shares().unwrap().receive_window - 0.97).abs() < 1e-9);
    assert_eq!(track.history.len(), 8);
    let still = table.get(2).unwrap();
    assert!(!still.has_moved() && still.shares().is_none() && still.history.is_empty());
}

#[test]
fn the_first_look_has_no_rate() {
    let table = looked(1, |table, _| table.see(&connection(1, held(5))));
    let track = table.get(1).unwrap();
    assert!(track.rates().is_none() && track.shares().is_none() && track.retransmits() == 0);
    // A handshake is acknowledged: that is no payload.
    let table = looked(2, |table, second| {
        let info = TcpInfo { bytes_acked: Some(second), ..quiet() };
        table.see(&connection(1, info));
    });
    assert!(!table.get(1).unwrap().has_moved());
}

#[test]
fn what_ends_is_forgotten_and_what_rests_keeps_no_history() {
    let table = looked(3, |table, second| {
        if second < 2 {
            table.see(&connection(1, held(second)));
        }
        table.see(&connection(2, held(second)));
    });
    assert!(table.get(1).is_none() && table.len() == 1);
    // Five seconds of payload, then none.
    let resting = |looks| looked(looks, |table, s| table.see(&connection(1, held(s.min(5)))));
    assert_eq!(resting(12).get(1).unwrap().history.len(), 12);
    assert!(resting(17).get(1).unwrap().history.is_empty());
    let long = looked(100, |table, second| table.see(&connection(1, held(second))));
    assert_eq!(long.get(1).unwrap().history.len(), 30);
}

#[test]
fn the_first_in_an_order() {
    let mut table = looked(2, |table, second| {
        for cookie in 1..=100 {
            let mut info = held(second);
            info.bytes_acked = Some(1 + second * cookie);
            info.rtt_us = 1000 - cookie as u32;
            info.total_retrans = (second * (cookie % 7)) as u32;
            info.rwnd_limited_us = Some(second * 5000 * (cookie % 10));
            table.see(&connection(cookie, info));
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
    let theirs = Selection { pid: Some(1), ..Selection::default() };
    assert_eq!(table.matching(&theirs).count(), 1);
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
fn looks_are_explained_from_the_first_on() {
    // Watched from its hundredth second: what was before counts for nothing.
    let table = looked(12, |table, second| table.see(&connection(1, held(100 + second))));
    let found = transfer(&who(), &table.get(1).unwrap().history, None).unwrap();
    assert_eq!(found.finding.limit, Some(Limit::ReceiveWindow));
    assert!(found.finding.sentence.contains("64 KiB over 173 ms"), "{}", found.finding.sentence);
    let stream = &found.measurement.streams[0];
    assert_eq!((stream.received_bytes, stream.retransmits), (11 * 378_000, Some(33)));
    let held = stream.sender.iter().map(|s| s.written_bytes - s.acked_bytes);
    assert!(held.into_iter().all(|held| held == 64 << 10), "{stream:?}");
    assert!((found.finding.average_bps.as_f64() / (378_000.0 * 8.0) - 1.0).abs() < 1e-6);
}

#[test]
fn a_receiver_and_a_kernel_without_clocks() {
    let received = |unread: u32| {
        let table = looked(5, |table, second| {
            let info = TcpInfo {
                bytes_received: Some(second * 1_000_000),
                rcv_wnd: Some(100_000),
                ..quiet()
            };
            let receive_queue = unread;
            table.see(&Connection { receive_queue, ..connection(1, info) });
        });
        transfer(&who(), &table.get(1).unwrap().history, None).unwrap()
    };
    let found = received(0);
    assert!(found.finding.limit.is_none() && found.measurement.streams[0].reverse);
    assert!(found.finding.sentence.contains("only its sender knows"), "{}", found.finding.sentence);
    assert_eq!(found.finding.average_bps.bps(), 8_000_000);
    let slow = received(60_000).finding.sentence;
    assert!(slow.contains("reads slowly: 60 kB"), "{slow}");

    let table = looked(5, |table, second| {
        let info = TcpInfo { busy_us: None, rwnd_limited_us: None, ..held(second) };
        table.see(&connection(1, info));
    });
    let track = table.get(1).unwrap();
    assert!(track.shares().is_none());
    let found = transfer(&who(), &track.history, None).unwrap();
    assert_eq!(found.finding.limit, None);
    assert!(found.finding.sentence.contains("no clocks"), "{}", found.finding.sentence);
    assert!(transfer(&who(), track.history.iter().take(1), None).is_none());
}
