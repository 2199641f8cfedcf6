//! Clients that stall, vanish or talk nonsense at every point of the
//! conversation: the server goes on serving others, then and afterwards.

use crate::ground::Ground;
use iperf3::{Cookie, State, framing};
use probe::ServerEvent;
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

/// A client made by hand, at any point of a test.
struct Puppet {
    control: TcpStream,
    cookie: Cookie,
    streams: Vec<TcpStream>,
}

impl Puppet {
    /// Connected, nothing said.
    fn connect(ground: &Ground, seed: u8) -> Self {
        let control = TcpStream::connect(ground.address).unwrap();
        control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Puppet { control, cookie: Cookie::from_random([seed; 36]), streams: Vec::new() }
    }

    /// Goes through the first `steps` of a test of two streams.
    fn advance(&mut self, ground: &Ground, steps: usize) {
        let all: [&dyn Fn(&mut Puppet); 4] = [
            &|puppet| {
                let cookie = puppet.cookie;
                puppet.say(cookie.bytes());
                assert_eq!(puppet.hear(), State::ParamExchange.byte());
            },
            &|puppet| {
                let asked = json!({"tcp": true, "time": 1, "parallel": 2});
                puppet.say(&framing::encode(&asked).unwrap());
                assert_eq!(puppet.hear(), State::CreateStreams.byte());
            },
            &|puppet| {
                for _ in 0..2 {
                    let mut stream = TcpStream::connect(ground.address).unwrap();
                    stream.write_all(puppet.cookie.bytes()).unwrap();
                    puppet.streams.push(stream);
                }
                assert_eq!(puppet.hear(), State::TestStart.byte());
                assert_eq!(puppet.hear(), State::TestRunning.byte());
            },
            &|puppet| {
                puppet.streams[0].write_all(&[0; 1000]).unwrap();
                puppet.say(&[State::TestEnd.byte()]);
                assert_eq!(puppet.hear(), State::ExchangeResults.byte());
            },
        ];
        for step in all.iter().take(steps) {
            step(self);
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.control.write_all(bytes).unwrap();
    }

    fn hear(&mut self) -> u8 {
        let mut byte = [0];
        self.control.read_exact(&mut byte).unwrap();
        byte[0]
    }
}

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
            let mut puppet = Puppet::connect(&ground, u8::try_from(steps).unwrap());
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
        let mut puppet = Puppet::connect(&ground, u8::try_from(steps).unwrap());
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
        for (at, bytes) in nonsense.iter().enumerate() {
            let seed = u8::try_from(steps * 10 + at).unwrap();
            let mut puppet = Puppet::connect(&ground, seed);
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
        let mut puppet = Puppet::connect(&ground, u8::try_from(cut).unwrap());
        puppet.advance(&ground, 1);
        puppet.say(&whole[..cut]);
        puppet.control.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        let _ = puppet.control.read_to_end(&mut rest);
    }
    let mut half_a_cookie = Puppet::connect(&ground, 77);
    half_a_cookie.say(b"abcdef");
    ground.told(
        |event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("did not say")),
    );
    ground.serves();
}

#[test]
fn over_long_parameters_are_refused_unread() {
    let ground = ground();
    let mut puppet = Puppet::connect(&ground, 9);
    puppet.advance(&ground, 1);
    puppet.say(&8193u32.to_be_bytes());
    assert_eq!(puppet.hear(), State::ServerError.byte());
    ground.told(|event| matches!(event, ServerEvent::Failed { why, .. } if why.contains("8193")));
    ground.serves();
}

#[test]
fn streams_that_do_not_come_end_the_session() {
    let ground = ground();
    let mut puppet = Puppet::connect(&ground, 3);
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
    let mut puppet = Puppet::connect(&ground, 4);
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
