//! What attackers do, each kind at a rate of its own.

use crate::addresses::{self, COPY_PORT, PORT};
use crate::background::PREAMBLE_BYTES;
use crate::schedule::Stop;
use crate::session::{self, Session, Step};
use crate::spoofed;
use iperf3_proto::{State, framing};
use serde_json::json;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::thread::{Scope, ScopedJoinHandle};

/// The only kind that needs IPv6.
pub(crate) const OF_ONE_NETWORK: &str = "half-open connections of one /64";

/// What does not belong there.
const GARBAGE: [&[u8]; 6] = [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
    &[0xff; 64],
    &[0; 64],
    b"\x1b[2J\x1b]0;title\x07\r\n\x1b[31m",
    &[State::TestEnd.byte(), State::IperfDone.byte(), State::ClientTerminate.byte()],
];

/// How a client of copies begins, with the ID of a key that the server does not have.
const UNKNOWN_KEY: [u8; PREAMBLE_BYTES] = {
    let mut preamble = [0x5a; PREAMBLE_BYTES];
    *preamble.first_chunk_mut().unwrap() = *b"LHCOPY\0\x01";
    preamble
};

/// Something that an attacker does; whether the server let it come as far as meant.
type Act<'a> = Box<dyn FnMut(u32) -> bool + Send + 'a>;

/// Starts all of them; they end with `stop` and tell how often they came as far as
/// they meant to. One of them has recorded what a client of copies sends first.
pub(crate) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stop: &'scope Stop,
    recorded: &'scope [u8; PREAMBLE_BYTES],
) -> Vec<(&'static str, ScopedJoinHandle<'scope, u32>)> {
    // What waits for the server's answers is done by two threads each.
    let all: [(&str, u32, Act<'scope>); 17] = [
        ("half-open connections", 250, kept_open(PORT, 200, |turn| (from(0, turn), &[]))),
        (
            OF_ONE_NETWORK,
            250,
            kept_open(PORT, 200, |turn| (addresses::attacker6(turn).into(), &[])),
        ),
        ("connections from one address", 500, Box::new(|_| session::connect(from(1, 0)).is_ok())),
        ("trickled bytes", 200, trickle()),
        ("tests that never end", 2, unfinished_results()),
        ("parameter bombs", 25, Box::new(|turn| parameter_bomb(turn << 1))),
        ("parameter bombs", 25, Box::new(|turn| parameter_bomb(turn << 1 | 1))),
        ("result bombs", 5, Box::new(|turn| result_bomb(turn << 1))),
        ("result bombs", 5, Box::new(|turn| result_bomb(turn << 1 | 1))),
        ("garbage", 25, Box::new(|turn| garbage(turn << 1))),
        ("garbage", 25, Box::new(|turn| garbage(turn << 1 | 1))),
        ("tests of one address that ask for everything", 25, everything()),
        (
            "silent connections of 64 addresses to the port for copies",
            500,
            kept_open(COPY_PORT, 1024, |turn| (addresses::silent(turn).into(), &[])),
        ),
        (
            "preambles with an unknown key to the port for copies",
            100,
            kept_open(COPY_PORT, 50, |turn| (from(8, turn), &UNKNOWN_KEY)),
        ),
        (
            "replayed preambles to the port for copies",
            100,
            kept_open(COPY_PORT, 200, |turn| (from(10, turn), recorded)),
        ),
        (
            "garbage to the port for copies",
            100,
            kept_open(COPY_PORT, 50, |turn| (from(9, turn), one_of(&GARBAGE, turn))),
        ),
        ("forged datagrams", 2000, spoofed::sender()),
    ];
    all.into_iter()
        .map(|(name, per_second, mut act)| {
            let run = move || {
                let mut done = 0;
                stop.repeat(per_second, |turn| done += u32::from(act(turn)));
                done
            };
            (name, scope.spawn(run))
        })
        .collect()
}

/// Where a kind of attacker is, this turn.
fn from(kind: u8, turn: u32) -> IpAddr {
    addresses::attacker(kind, turn).into()
}

/// One of several, in turn.
fn one_of<T: ?Sized>(all: &[&'static T], turn: u32) -> &'static T {
    all[usize::try_from(turn).unwrap() % all.len()]
}

/// Connections to a port that begin with something or with nothing, the latest of them
/// kept open.
fn kept_open<'a>(
    port: u16,
    keep: usize,
    who: impl Fn(u32) -> (IpAddr, &'a [u8]) + Send + 'a,
) -> Act<'a> {
    let mut open = VecDeque::new();
    Box::new(move |turn| {
        let (from, begins) = who(turn);
        let Ok(mut connection) = session::connect_to(port, from) else { return false };
        let begun = connection.write_all(begins).is_ok();
        open.push_back(connection);
        if open.len() > keep {
            open.pop_front();
        }
        begun
    })
}

/// Tests of one address with as many streams or as much memory as can be asked for, and
/// none of their streams. It keeps as many as the server admits, and 64 at most.
fn everything<'a>() -> Act<'a> {
    let udt = |window: u32| {
        json!({"tcp": true, "time": 3, "parallel": 1, "window": window,
               "longhaul": {"version": "1", "udt": "udt"}})
    };
    let streams = json!({"tcp": true, "time": 3, "parallel": 128, "len": 1 << 20, "reverse": true});
    let (too_large, large) = (udt(522_000_000), udt(300_000_000));
    let mut open = VecDeque::new();
    Box::new(move |turn| {
        let ask = || {
            let mut session = Session::at(Step::Cookie, from(7, 0), 0x4000_0000 | turn)?;
            session.ask(match turn % 32 {
                // A second one of the same address waits for the first one's streams.
                0 => &large,
                even if even % 2 == 0 => &streams,
                _ => &too_large,
            })?;
            let mut answer = [0];
            session.control.read_exact(&mut answer)?;
            io::Result::Ok((session, answer[0] == State::CreateStreams.byte()))
        };
        let Ok((session, admitted)) = ask() else {
            // It makes room.
            open.pop_front();
            return false;
        };
        if admitted {
            open.push_back(session);
        }
        if open.len() > 64 {
            open.pop_front();
        }
        admitted
    })
}

/// What a client says up to the streams, byte by byte on 100 connections.
fn trickle<'a>() -> Act<'a> {
    let parameters = json!({"tcp": true, "time": 1, "parallel": 1});
    let said = move |number: u32| {
        let mut said = format!("{number:036}").into_bytes();
        said.push(0);
        said.extend(framing::encode(&parameters).unwrap());
        VecDeque::from(said)
    };
    let mut open: Vec<Option<(TcpStream, VecDeque<u8>)>> = (0..100).map(|_| None).collect();
    Box::new(move |turn| {
        let at = usize::try_from(turn).unwrap() % open.len();
        let slot = &mut open[at];
        let Some((connection, rest)) = slot else {
            *slot = session::connect(from(2, turn)).ok().map(|new| (new, said(turn)));
            return false;
        };
        let next = rest.pop_front();
        let written = next.is_some_and(|next| connection.write_all(&[next]).is_ok());
        if !written {
            *slot = None;
        }
        written
    })
}

/// Sessions that go through a test, and never hand in all of their results. Ten are
/// kept: each is a test that the server admitted, and within its limits.
fn unfinished_results<'a>() -> Act<'a> {
    let mut open = VecDeque::new();
    Box::new(move |turn| {
        let session = Session::at(Step::Results, from(3, turn), 0x8000_0000 | turn);
        let Ok(mut session) = session else { return false };
        let begun = session.control.write_all(&[0, 0, 0x10, 0, b'{']).is_ok();
        open.push_back(session);
        if open.len() > 10 {
            open.pop_front();
        }
        begun
    })
}

/// JSON of `length` bytes that takes many times as much memory as a tree.
fn bomb(kind: u32, length: usize) -> Vec<u8> {
    let (head, unit, tail): (&str, &str, &str) = match kind % 5 {
        0 => ("[", "0,", "0]"),
        1 => ("{\"streams\":[", "{},", "{}]}"),
        2 => ("", "[", ""),
        3 => ("{\"longhaul\":[", "[[]],", "0]}"),
        _ => ("{\"server_output_json\":{\"a\":[", "{\"b\":\"\"},", "0]}}"),
    };
    let times = length.saturating_sub(head.len() + tail.len()) / unit.len();
    [head.as_bytes(), &unit.as_bytes().repeat(times), tail.as_bytes()].concat()
}

/// As much JSON as parameters may have, in the addresses of parameters.
fn parameter_bomb(turn: u32) -> bool {
    let session = Session::at(Step::Cookie, from(4, turn), 0x1000_0000 | turn);
    session.is_ok_and(|mut session| session.send(&bomb(turn, 8 << 10)).is_ok())
}

/// As much JSON as results may have, or 1 MiB, in the addresses of results.
fn result_bomb(turn: u32) -> bool {
    let length = if turn & 2 == 0 { 64 << 10 } else { 1 << 20 };
    let session = Session::at(Step::Results, from(5, turn), 0x2000_0000 | turn);
    // A server that reads no more than the length has been reached as well.
    session.is_ok_and(|mut session| session.send(&bomb(turn, length)).is_ok() || length > 64 << 10)
}

/// What does not belong there, at every step of a test in turn.
fn garbage(turn: u32) -> bool {
    let steps = u32::try_from(Step::ALL.len()).unwrap();
    let step = Step::ALL[usize::try_from(turn % steps).unwrap()];
    let Ok(mut session) = Session::at(step, from(6, turn), 0x3000_0000 | turn) else {
        return false;
    };
    let written = session.control.write_all(one_of(&GARBAGE, turn / steps)).is_ok();
    let _ = session.control.read(&mut [0; 64]);
    written
}
