//! Lanes and sessions that compress.

use crate::boxes::{Pair, Setup, accept, both, target, until};
use crate::sessions::{Middle, chunk};
use boost::{Event, FlowEnd, FlowSummary, Uncompressed};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

const BOTH: [bool; 2] = [true; 2];

/// Lanes and sessions, as plaintext and in TLS.
fn all() -> impl Iterator<Item = Setup> {
    let setups = [false, true].map(|mux| both().map(|setup| Setup { mux, ..setup }));
    setups.into_iter().flatten()
}

/// Text that zstd reduces to less than half.
fn text(length: usize) -> Vec<u8> {
    let line =
        |number: usize| format!("{number}: from {} to {}\n", number * 7919, number * 104_729);
    (0..).flat_map(|number| line(number).into_bytes()).take(length).collect()
}

/// Sends `up` and `down` at once, and checks both.
fn exchange(mut application: TcpStream, mut server: TcpStream, up: &[u8], down: &[u8]) {
    let send = |stream: &TcpStream, bytes: &[u8]| {
        let mut stream = stream;
        stream.write_all(bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    };
    let [to_server, to_application] =
        [application.try_clone().unwrap(), server.try_clone().unwrap()];
    let (mut at_server, mut at_application) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| send(&to_server, up));
        scope.spawn(|| send(&to_application, down));
        scope.spawn(|| server.read_to_end(&mut at_server).unwrap());
        application.read_to_end(&mut at_application).unwrap();
    });
    assert!(at_server == up && at_application == down);
}

/// The summary of a flow with these bytes, at near and at far.
fn carry(setup: &Setup, up: &[u8], down: &[u8]) -> [FlowSummary; 2] {
    let (listener, address) = target();
    let lanes = if setup.mux { 1 } else { 2 };
    let pair = Pair::new(address, &Setup { lanes: 2, ..setup.clone() });
    until(|| {
        let (near, far) = (pair.near_totals(), pair.far_totals());
        (far.active_lanes == lanes && near.lanes == lanes).then_some(())
    });
    let application = pair.connect();
    exchange(application, accept(&listener), up, down);
    [&pair.near, &pair.far].map(|one| {
        one.event(|event| match event {
            Event::FlowEnded(summary) => Some(summary.clone()),
            _ => None,
        })
    })
}

#[test]
fn text_is_compressed_in_both_directions_where_both_boxes_ask_for_it() {
    // Less than the 1 MiB after which the CPU is found to be the limit, as it is over loopback.
    let (up, down) = (text(900_000), text(700_000));
    for setup in all() {
        for (compresses, is_reduced) in
            [(BOTH, true), ([true, false], false), ([false, true], false)]
        {
            let summaries = carry(&Setup { compresses, ..setup.clone() }, &up, &down);
            let [near, far] = &summaries;
            // Whether the target's end answers the application's, the order of both does not say here.
            assert!(near.rtt.is_some(), "{near:?}");
            assert_eq!(far.rtt, None, "far does not know how long applications waited");
            for summary in summaries {
                assert_eq!((summary.sent, summary.received), (900_000, 700_000));
                let halved = summary.wan_sent * 2 < summary.sent
                    && summary.wan_received * 2 < summary.received;
                let same =
                    summary.wan_sent == summary.sent && summary.wan_received == summary.received;
                assert!(if is_reduced { halved } else { same }, "{compresses:?} {summary:?}");
                assert_eq!(summary.uncompressed, None);
            }
        }
    }
}

#[test]
fn ciphertext_is_left_as_it_is() {
    let random = host::random::incompressible(2_000_000);
    let tls = [&[0x16, 3, 1, 2, 0][..], &text(100_000)].concat();
    for setup in all() {
        let setup = Setup { compresses: BOTH, ..setup };
        let [near, far] = carry(&setup, &random, &tls);
        for summary in [&near, &far] {
            assert_eq!((summary.wan_sent, summary.wan_received), (summary.sent, summary.received));
        }
        assert_eq!(near.uncompressed, Some(Uncompressed::Incompressible));
        assert_eq!(far.uncompressed, Some(Uncompressed::Encrypted));
    }
}

#[test]
fn a_bomb_ends_its_own_lane() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { compresses: BOTH, ..Setup::default() });
    let mut hostile = TcpStream::connect(pair.far_address).unwrap();
    // A preface that offers to compress; a flow to the target; a block that is said to hold 64 KiB,
    // and by its own word holds 1 GiB.
    let port = address.port().to_be_bytes();
    let open = [&[1, 0, 0, 0, 0, 0, 0, 7][..], &port, &[1, 127, 0, 0, 1]].concat();
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40];
    (0..1000).for_each(|_| bomb.extend([0x02, 0, 0x10, 0]));
    let [high, low] = u16::try_from(bomb.len()).unwrap().to_be_bytes();
    let block = [10, 0, 0xff, 0xff, 0, 0, high, low];
    hostile.write_all(&[&b"LHLANE\x01\x02"[..], &open, &block, &bomb].concat()).unwrap();
    let mut server = accept(&listener);
    assert!(server.read(&mut [0]).is_err(), "reset");
    let why = pair.far.event(|event| match event {
        Event::FlowEnded(summary) => Some(format!("{:?}", summary.end)),
        _ => None,
    });
    assert!(why.contains("corrupt compressed block"), "{why}");
    // Others go on.
    exchange(pair.connect(), accept(&listener), &text(100_000), b"x");
}

#[test]
fn a_bomb_ends_its_own_session() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { compresses: BOTH, mux: true, ..Setup::default() });
    let port = address.port().to_be_bytes();
    let target = [&port[..], &[1, 127, 0, 0, 1]].concat();
    // A block that is said to hold 16 KiB, the credit of a new stream, and by its own word 1 GiB.
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40];
    (0..1000).for_each(|_| bomb.extend([0x02, 0, 0x10, 0]));
    let [high, low] = u16::try_from(bomb.len()).unwrap().to_be_bytes();
    for (size, why) in [(0x3f, "corrupt compressed block"), (0x40, "more than its credit")] {
        let mut hostile = TcpStream::connect(pair.far_address).unwrap();
        hostile.write_all(b"LHLANE\x01\x03").unwrap();
        hostile.write_all(&[&[0; 16][..], &[size; 16], &[0; 32]].concat()).unwrap();
        let open = [&[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7][..], &target].concat();
        hostile.write_all(&chunk(0, &open)).unwrap();
        let mut server = accept(&listener);
        let block = [12, 0, size, 0xff, 0, 0, 0, 1, 0, 0, high, low];
        let block = chunk(open.len() as u64, &[&block[..], &bomb].concat());
        hostile.write_all(&block).unwrap();
        assert!(server.read(&mut [0]).is_err(), "reset");
        pair.far.event(|event| match event {
            Event::FlowEnded(FlowSummary { end: FlowEnd::LaneFailed(text), .. }) => {
                text.contains(why).then_some(())
            }
            _ => None,
        });
    }
    // Others go on.
    exchange(pair.connect(), accept(&listener), &text(100_000), b"x");
}

#[test]
fn nothing_compressed_is_lost_or_doubled_when_the_connection_is_killed() {
    const KILLS: usize = 8;
    let (up, down) = (text(12_000_000), text(4_000_000));
    for setup in both() {
        let (listener, address) = target();
        let middle = Middle::new();
        let setup = Setup { mux: true, compresses: BOTH, via: Some(middle.address), ..setup };
        let pair = Pair::new(address, &setup);
        middle.start(pair.far_address);
        let (application, server) = (pair.connect(), accept(&listener));
        let killed = std::thread::scope(|scope| {
            let kills = scope.spawn(|| {
                let mut killed = 0;
                while killed < KILLS && pair.far_totals().flows > 0 {
                    let passed = up.len() / (KILLS + 2) * (killed + 1);
                    until(|| (pair.far_totals().bytes_out >= passed as u64).then_some(()));
                    until(|| (pair.near_totals().lanes > killed as u64).then_some(()));
                    until(|| (middle.break_all() > 0).then_some(()));
                    killed += 1;
                }
                killed
            });
            exchange(application, server, &up, &down);
            kills.join().unwrap()
        });
        assert_eq!(killed, KILLS);
        let totals = [pair.near_totals(), pair.far_totals()];
        assert!(totals.iter().all(|one| one.reset == 0 && one.compressed_out > 0), "{totals:?}");
    }
}

#[test]
fn a_connection_that_offers_otherwise_than_the_first_is_refused() {
    let (listener, address) = target();
    let pair = Pair::new(address, &Setup { compresses: BOTH, mux: true, ..Setup::default() });
    let connect = |mode: u8, kind: u8| {
        let mut stream = TcpStream::connect(pair.far_address).unwrap();
        let head = [&b"LHLANE\x01"[..], &[mode, kind], &[0; 15], &[9; 16], &[0; 32]].concat();
        stream.write_all(&head).unwrap();
        let mut answer = Vec::new();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        answer.resize(56, 0xff);
        let _ = stream.read_exact(&mut answer);
        (stream, answer)
    };
    let (first, accepted) = connect(3, 0);
    assert_eq!((accepted[7], accepted[8]), (3, 0));
    drop(first);
    assert_eq!(connect(1, 1).1[8..], [0xff; 48], "closed without an answer");
    pair.far.event(|event| match event {
        Event::LaneRefused { why, .. } => why.contains("offer to compress").then_some(()),
        _ => None,
    });
    assert_eq!(connect(3, 1).1[8], 0, "the session is there");
    drop(listener);
}

#[test]
fn near_knows_how_long_after_the_application_the_target_has_ended() {
    const AFTER: std::time::Duration = std::time::Duration::from_millis(20);
    for setup in all() {
        let (listener, address) = target();
        let pair = Pair::new(address, &setup);
        let (mut application, mut server) = (pair.connect(), accept(&listener));
        application.shutdown(Shutdown::Write).unwrap();
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
        std::thread::sleep(AFTER);
        drop(server);
        assert_eq!(application.read(&mut [0]).unwrap(), 0);
        let after = pair.near.event(|event| match event {
            Event::FlowEnded(summary) => Some(summary.answered_after),
            _ => None,
        });
        assert!(after.is_some_and(|after| after >= AFTER), "{after:?}");
    }
}

#[test]
fn a_keystroke_is_sent_at_once() {
    for mux in [false, true] {
        keystrokes(&Setup { mux, compresses: BOTH, ..Setup::default() });
    }
}

fn keystrokes(setup: &Setup) {
    let (listener, address) = target();
    let pair = Pair::new(address, setup);
    let mut application = pair.connect();
    let mut server = accept(&listener);
    let (text, mut got) = (text(300_000), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| application.write_all(&text).unwrap());
        got.resize(text.len(), 0);
        server.read_exact(&mut got).unwrap();
    });
    assert!(got == text);
    // Nothing that follows would complete a block.
    for key in *b"ls -l" {
        application.write_all(&[key]).unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [key]);
    }
}
