//! Clients that stall, vanish or talk nonsense at every point of the
//! conversation: the server goes on serving others, then and afterwards.

use crate::{ground::Ground, puppet::Puppet};
use iperf3::{State, framing};
use probe::ServerEvent;
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

/// Short limits, so that a stalled client is given up within the test.
fn ground() -> Ground {
    Ground::with(|config| {
        config.limits.handshake = Duration::from_secs(1);
        config.limits.idle = Duration::from_secs(1);
    })
}

#[test]
fn clients_that_stall_hold_up_nobody() {
    let ground = ground();
    let puppets: Vec<Puppet> = (0..=4)
        .map(|steps| {
            let mut puppet = Puppet::connect(&ground);
            puppet.advance(&ground, steps);
            puppet
        })
        .collect();
    ground.serves();
    drop(puppets);
    ground.serves();
}

#[test]
fn clients_that_vanish_leave_nothing() {
    let ground = Ground::with(|config| config.limits.sessions = 1);
    for steps in 0..=4 {
        ground.events.lock().unwrap().clear();
        let mut puppet = Puppet::connect(&ground);
        puppet.advance(&ground, steps);
        drop(puppet);
        ground.told(|event| matches!(event, ServerEvent::Failed { .. }));
        // With room for one session only, the dead one must be gone.
        ground.serves();
    }
}

#[test]
fn nonsense_at_every_point_is_answered_with_an_end() {
    let ground = Ground::with(|config| config.limits.sessions = 1);
    let nonsense: [&[u8]; 4] =
        [&[b'x'; 5000], b"GET / HTTP/1.1\r\nHost: longhaul\r\n\r\n", &[0xff; 64], &[0; 64]];
    for steps in 0..=4 {
        for bytes in nonsense {
            let mut puppet = Puppet::connect(&ground);
            puppet.advance(&ground, steps);
            // The server may hang up while we still talk.
            let _ = puppet.control.write_all(bytes);
            let _ = puppet.control.shutdown(Shutdown::Write);
            // Whoever sees the connection closed finds the only place free.
            let mut rest = Vec::new();
            let _ = puppet.control.read_to_end(&mut rest);
        }
    }
    ground.serves();
}

#[test]
fn half_a_message_is_given_up() {
    let ground = ground();
    let whole = framing::encode(&json!({"tcp": true, "time": 1})).unwrap();
    for cut in [1, 3, 4, 10, whole.len() - 1] {
        let mut puppet = Puppet::connect(&ground);
        puppet.advance(&ground, 1);
        puppet.say(&whole[..cut]);
        puppet.control.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        let _ = puppet.control.read_to_end(&mut rest);
    }
    let mut half_a_cookie = Puppet::connect(&ground);
    half_a_cookie.say(b"abcdef");
    ground.told(
        |event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("did not say")),
    );
    ground.serves();
}

#[test]
fn over_long_parameters_are_refused_unread() {
    let ground = ground();
    let mut puppet = Puppet::connect(&ground);
    puppet.advance(&ground, 1);
    puppet.say(&8193u32.to_be_bytes());
    assert_eq!(puppet.hear(), State::ServerError.byte());
    ground.told(|event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("8193")));
    ground.serves();
}

#[test]
fn streams_that_do_not_come_end_the_session() {
    let ground = ground();
    let mut puppet = Puppet::connect(&ground);
    puppet.advance(&ground, 2);
    let mut stream = TcpStream::connect(ground.address).unwrap();
    stream.write_all(puppet.cookie.bytes()).unwrap();
    assert_eq!(puppet.hear(), State::ServerError.byte());
    ground.told(
        |event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("only 1 of 2")),
    );
    ground.serves();
}

#[test]
fn a_stream_too_many_is_turned_away() {
    let ground = ground();
    let mut puppet = Puppet::connect(&ground);
    puppet.advance(&ground, 3);
    let mut stream = TcpStream::connect(ground.address).unwrap();
    stream.write_all(puppet.cookie.bytes()).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    assert_eq!(byte[0], State::AccessDenied.byte());
}

#[test]
fn a_crowd_that_says_nothing_keeps_nobody_out() {
    let ground = Ground::with(|config| config.limits.half_open = 4);
    let _crowd: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(ground.address).unwrap()).collect();
    ground.serves();
}
