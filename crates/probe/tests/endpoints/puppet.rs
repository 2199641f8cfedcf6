//! A client made by hand, at any point of a test.

use crate::ground::Ground;
use iperf3::{Cookie, State, datagram, framing};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Steps of a whole test up to where results are due.
pub(crate) const STEPS: usize = 4;

/// A client made by hand.
pub(crate) struct Puppet {
    pub(crate) control: TcpStream,
    pub(crate) cookie: Cookie,
    asked: Value,
    pub(crate) streams: Vec<TcpStream>,
    pub(crate) sockets: Vec<UdpSocket>,
}

impl Puppet {
    /// Connected, nothing said; it will ask for two TCP streams.
    pub(crate) fn connect(ground: &Ground) -> Self {
        Puppet::asking(ground, json!({"tcp": true, "time": 1, "parallel": 2}))
    }

    /// Connected, nothing said.
    pub(crate) fn asking(ground: &Ground, asked: Value) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut seed = [7; 36];
        seed[..8].copy_from_slice(&count.to_le_bytes());
        let control = TcpStream::connect(ground.address).unwrap();
        control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let cookie = Cookie::from_random(seed);
        Puppet { control, cookie, asked, streams: Vec::new(), sockets: Vec::new() }
    }

    /// Connected, and gone through the first `steps` of the test.
    pub(crate) fn after(ground: &Ground, asked: &Value, steps: usize) -> Self {
        let mut puppet = Puppet::asking(ground, asked.clone());
        puppet.advance(ground, steps);
        puppet
    }

    /// Goes through the first `steps` of the test.
    pub(crate) fn advance(&mut self, ground: &Ground, steps: usize) {
        let all: [&dyn Fn(&mut Puppet); STEPS] = [
            &|puppet| {
                let cookie = puppet.cookie;
                puppet.say(cookie.bytes());
                assert_eq!(puppet.hear(), State::ParamExchange.byte());
            },
            &|puppet| {
                let asked = framing::encode(&puppet.asked).unwrap();
                puppet.say(&asked);
                assert_eq!(puppet.hear(), State::CreateStreams.byte());
            },
            &|puppet| {
                puppet.open_streams(ground);
                assert_eq!(puppet.hear(), State::TestStart.byte());
                assert_eq!(puppet.hear(), State::TestRunning.byte());
            },
            &|puppet| {
                if let Some(mut stream) = puppet.streams.first() {
                    stream.write_all(&[0; 1000]).unwrap();
                }
                puppet.say(&[State::TestEnd.byte()]);
                assert_eq!(puppet.hear(), State::ExchangeResults.byte());
            },
        ];
        for step in all.iter().take(steps) {
            step(self);
        }
    }

    fn open_streams(&mut self, ground: &Ground) {
        let both = u64::from(self.asked["bidirectional"].as_bool().unwrap_or(false)) + 1;
        for _ in 0..both * self.asked["parallel"].as_u64().unwrap_or(1) {
            if self.asked["udp"].as_bool().unwrap_or(false) {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                greet(ground, &socket);
                self.sockets.push(socket);
            } else {
                let mut stream = TcpStream::connect(ground.address).unwrap();
                stream.write_all(self.cookie.bytes()).unwrap();
                self.streams.push(stream);
            }
        }
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.control.write_all(bytes).unwrap();
    }

    pub(crate) fn hear(&mut self) -> u8 {
        let mut byte = [0];
        self.control.read_exact(&mut byte).unwrap();
        byte[0]
    }

    /// Everything up to the end of the connection.
    pub(crate) fn hear_the_rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.control.read_to_end(&mut rest);
        rest
    }

    /// Hands in results and takes the server's, where traffic has ended.
    pub(crate) fn exchange(&mut self, results: &[u8]) -> Value {
        self.say(&u32::try_from(results.len()).unwrap().to_be_bytes());
        self.say(results);
        let mut length = [0; 4];
        self.control.read_exact(&mut length).unwrap();
        let mut json = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        self.control.read_exact(&mut json).unwrap();
        assert_eq!(self.hear(), State::DisplayResults.byte());
        self.say(&[State::IperfDone.byte()]);
        serde_json::from_slice(&json).unwrap()
    }
}

/// Opens a UDP stream: greets until the answer comes.
pub(crate) fn greet(ground: &Ground, socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket.connect(ground.address).unwrap();
    for _ in 0..20 {
        socket.send(&datagram::GREETING).unwrap();
        let mut answer = [0; 64];
        if let Ok(got) = socket.recv(&mut answer) {
            assert!(datagram::is_answer(&answer[..got]), "{:?}", &answer[..got]);
            return;
        }
    }
    panic!("no answer to a greeting");
}
