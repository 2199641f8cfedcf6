//! `--mux --connections`: sessions on several connections at once.

use crate::boxes::{Pair, Setup, accept, target, until};
use crate::sessions::{Middle, chunk, hello, receive, send};
use boost::{Event, MAX_CONNECTIONS};
use std::io::{ErrorKind, Read, Write};

fn with(connections: usize) -> [Setup; 2] {
    let connections = Some(connections);
    [false, true].map(|with_tls| Setup {
        with_tls,
        mux: true,
        connections,
        lanes: 1,
        ..Setup::default()
    })
}

#[test]
fn connections_killed_one_at_a_time_and_all_together_lose_and_double_nothing() {
    const BYTES: usize = 32 << 20;
    const KILLS: usize = 20;
    for setup in with(4) {
        let (listener, address) = target();
        let middle = Middle::new();
        let pair = Pair::new(address, &Setup { via: Some(middle.address), ..setup });
        middle.start(pair.far_address);
        until(|| (pair.far_totals().active_lanes == 4).then_some(()));
        assert_eq!(pair.near_totals().active_lanes, 4);
        let (application, server) = (pair.connect(), accept(&listener));
        let mut kills = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| send(&application, BYTES));
            scope.spawn(|| send(&server, BYTES / 4));
            scope.spawn(|| receive(&application, BYTES / 4, |_| {}));
            receive(&server, BYTES, |got| {
                if kills < KILLS && got >= BYTES / (KILLS + 2) * (kills + 1) {
                    until(|| (pair.near_totals().active_lanes > 0).then_some(()));
                    let kill =
                        || if kills % 4 == 3 { middle.break_all() } else { middle.break_one() };
                    until(|| (kill() > 0).then_some(()));
                    kills += 1;
                }
            });
        });
        assert_eq!(kills, KILLS);
        assert_eq!((pair.near_totals().reset, pair.far_totals().reset), (0, 0));
        // Each that was lost is replaced.
        until(|| (pair.far_totals().active_lanes == 4).then_some(()));
    }
}

#[test]
fn two_thousand_flows_share_four_connections() {
    const FLOWS: usize = 2000;
    host::limits::raise_open_files().unwrap();
    let (listener, address) = target();
    let [setup, _] = with(4);
    let pair = Pair::new(address, &setup);
    let mut flows = Vec::new();
    for index in 0..FLOWS {
        let (mut application, mut server) = (pair.connect(), accept(&listener));
        let word = (index as u32).to_be_bytes();
        application.write_all(&word).unwrap();
        let mut got = [0; 4];
        server.read_exact(&mut got).unwrap();
        assert_eq!(got, word);
        flows.push((application, server));
    }
    let piece = vec![7; 20_000];
    for (application, server) in &mut flows {
        server.write_all(&piece).unwrap();
        application.write_all(&piece).unwrap();
    }
    let mut got = vec![0; piece.len()];
    for (application, server) in &mut flows {
        application.read_exact(&mut got).unwrap();
        assert!(got == piece);
        server.read_exact(&mut got).unwrap();
        assert!(got == piece);
    }
    let near = pair.near_totals();
    assert_eq!((near.active_lanes, near.active_flows, near.reset), (4, FLOWS as u64, 0));
}

#[test]
fn a_session_has_a_bounded_number_of_connections() {
    let (_listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, ..Setup::default() });
    let id = [7; 16];
    assert_eq!(hello(&pair, 2, 0, id).1[8], 1, "nobody began it");
    let mut all = Vec::new();
    for index in 0..MAX_CONNECTIONS {
        let (stream, answer) = hello(&pair, if index == 0 { 0 } else { 2 }, 0, id);
        assert_eq!(answer[8], 0, "{index}");
        let window = u32::from_be_bytes(answer[12..16].try_into().unwrap());
        assert!(window >= 16, "what its kernel grants: {window} KiB");
        all.push(stream);
    }
    assert_eq!(hello(&pair, 2, 0, id).1[8], 2, "one too many");
    pair.far.event(|event| match event {
        Event::LaneRefused { why, .. } => {
            (why == "too many connections of its session").then_some(())
        }
        _ => None,
    });
    all.pop();
    until(|| {
        let (stream, answer) = hello(&pair, 2, 0, id);
        all.push(stream);
        (answer[8] == 0).then_some(())
    });
    // One that replaces the others closes them.
    let (_only, answer) = hello(&pair, 1, 0, id);
    assert_eq!(answer[8], 0);
    for mut stream in all {
        assert_eq!(stream.read(&mut [0]).map_err(|error| error.kind()).unwrap_or(0), 0);
    }
}

#[test]
fn chunks_on_any_connection_are_put_in_order() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { mux: true, ..Setup::default() });
    let id = [7; 16];
    let (mut one, _) = hello(&pair, 0, 0, id);
    let (mut other, _) = hello(&pair, 2, 0, id);
    let open = [&[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7][..], &address.port().to_be_bytes()];
    let open = [&open.concat()[..], &[1, 127, 0, 0, 1]].concat();
    let data = [&[4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3][..], b"abc"].concat();
    let all = [open, data].concat();
    // The end first, twice, then the rest over the other one, with some of the end again.
    other.write_all(&chunk(10, &all[10..])).unwrap();
    other.write_all(&chunk(12, &all[12..])).unwrap();
    one.write_all(&chunk(0, &all[..14])).unwrap();
    let mut server = accept(&listener);
    let mut got = [0; 3];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"abc");
    // Bytes that nobody can have kept end the session.
    one.write_all(&chunk(1 << 40, b"x")).unwrap();
    assert_eq!(server.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(hello(&pair, 1, 0, id).1[8], 1, "it is gone");
}
