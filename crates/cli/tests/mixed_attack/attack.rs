//! What attackers do, each kind at a rate of its own.

use crate::addresses;
use crate::schedule::Stop;
use crate::session::{self, Session, Step};
use crate::spoofed;
use iperf3_proto::{State, framing};
use serde_json::json;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::thread::{Scope, ScopedJoinHandle};

/// Something that an attacker does; whether the server let it come as far as meant.
type Act<'a> = Box<dyn FnMut(u32) -> bool + Send + 'a>;

/// Starts all of them; they end with `stop` and tell how often they came as far as
/// they meant to.
pub(crate) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stop: &'scope Stop,
) -> Vec<(&'static str, ScopedJoinHandle<'scope, u32>)> {
    // What waits for the server's answers is done by two threads each.
    let all: [(&str, u32, Act<'scope>); 12] = [
        ("half-open connections", 250, half_open(|turn| from(0, turn))),
        (
            "half-open connections of one /64",
            250,
            half_open(|turn| addresses::attacker6(turn).into()),
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

/// Connections that say nothing, the latest 200 of them kept open.
fn half_open<'a>(from: impl Fn(u32) -> IpAddr + Send + 'a) -> Act<'a> {
    let mut open = VecDeque::new();
    Box::new(move |turn| {
        let Ok(connection) = session::connect(from(turn)) else { return false };
        open.push_back(connection);
        if open.len() > 200 {
            open.pop_front();
        }
        true
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
    const ALL: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        &[0xff; 64],
        &[0; 64],
        b"\x1b[2J\x1b]0;title\x07\r\n\x1b[31m",
        &[State::TestEnd.byte(), State::IperfDone.byte(), State::ClientTerminate.byte()],
    ];
    let at = usize::try_from(turn).unwrap();
    let step = Step::ALL[at % Step::ALL.len()];
    let Ok(mut session) = Session::at(step, from(6, turn), 0x3000_0000 | turn) else {
        return false;
    };
    let written = session.control.write_all(ALL[at / Step::ALL.len() % ALL.len()]).is_ok();
    let _ = session.control.read(&mut [0; 64]);
    written
}
