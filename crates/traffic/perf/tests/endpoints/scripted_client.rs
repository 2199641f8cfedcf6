//! A scripted client, at any point of a test.

use crate::test_server::TestServer;
use iperf3_proto::{Cookie, State, datagram, framing};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream, UdpSocket},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Steps of a test until results are due.
pub(crate) const STEPS: usize = 4;

/// A scripted client.
pub(crate) struct ScriptedClient {
    pub(crate) control: TcpStream,
    pub(crate) cookie: Cookie,
    asked: Value,
    pub(crate) streams: Vec<TcpStream>,
    pub(crate) sockets: Vec<UdpSocket>,
}

impl ScriptedClient {
    /// Connected, nothing sent; it will request two TCP streams.
    pub(crate) fn connect(server: &TestServer) -> Self {
        ScriptedClient::asking(server, json!({"tcp": true, "time": 1, "parallel": 2}))
    }

    /// Connected, nothing sent.
    pub(crate) fn asking(server: &TestServer, asked: Value) -> Self {
        ScriptedClient::over(TcpStream::connect(server.address).unwrap(), asked)
    }

    /// The same over an existing connection.
    pub(crate) fn over(control: TcpStream, asked: Value) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut seed = [7; 36];
        // A cookie's character is five bits.
        seed.iter_mut().zip((0..60).step_by(5)).for_each(|(byte, at)| {
            *byte = u8::try_from((count >> at) & 31).unwrap();
        });
        control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let cookie = Cookie::from_random(seed);
        ScriptedClient { control, cookie, asked, streams: Vec::new(), sockets: Vec::new() }
    }

    /// Connected, after the first `steps` of the test.
    pub(crate) fn after(server: &TestServer, asked: &Value, steps: usize) -> Self {
        let mut client = ScriptedClient::asking(server, asked.clone());
        client.advance(server, steps);
        client
    }

    /// Runs the first `steps` of the test.
    pub(crate) fn advance(&mut self, server: &TestServer, steps: usize) {
        let all: [&dyn Fn(&mut ScriptedClient); STEPS] = [
            &|client| {
                let cookie = client.cookie;
                client.send(cookie.bytes());
                assert_eq!(client.receive(), State::ParamExchange.byte());
            },
            &|client| {
                let asked = framing::encode(&client.asked).unwrap();
                client.send(&asked);
                assert_eq!(client.receive(), State::CreateStreams.byte());
            },
            &|client| {
                client.open_streams(server);
                assert_eq!(client.receive(), State::TestStart.byte());
                assert_eq!(client.receive(), State::TestRunning.byte());
            },
            &|client| {
                if let Some(mut stream) = client.streams.first() {
                    stream.write_all(&[0; 1000]).unwrap();
                }
                client.send(&[State::TestEnd.byte()]);
                assert_eq!(client.receive(), State::ExchangeResults.byte());
            },
        ];
        for step in all.iter().take(steps) {
            step(self);
        }
    }

    fn open_streams(&mut self, server: &TestServer) {
        let local = self.control.local_addr().unwrap().ip();
        self.open_streams_from(server, local);
    }

    /// Opens its streams from this address.
    pub(crate) fn open_streams_from(&mut self, server: &TestServer, from: IpAddr) {
        let both = u64::from(self.asked["bidirectional"].as_bool().unwrap_or(false)) + 1;
        for _ in 0..both * self.asked["parallel"].as_u64().unwrap_or(1) {
            let is_udt = self.asked["longhaul"]["udt"].is_string();
            if is_udt || self.asked["udp"].as_bool().unwrap_or(false) {
                let socket = UdpSocket::bind((from, 0)).unwrap();
                greet(server, &socket);
                self.sockets.push(socket);
            } else {
                let mut stream = connect_from(from, server.address).unwrap();
                stream.write_all(self.cookie.bytes()).unwrap();
                self.streams.push(stream);
            }
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.control.write_all(bytes).unwrap();
    }

    pub(crate) fn receive(&mut self) -> u8 {
        let mut byte = [0];
        self.control.read_exact(&mut byte).unwrap();
        byte[0]
    }

    /// Reads up to the end of the connection.
    pub(crate) fn read_remaining(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.control.read_to_end(&mut rest);
        rest
    }

    /// Exchanges results, once traffic has ended.
    pub(crate) fn exchange(&mut self, results: &[u8]) -> Value {
        self.send(&u32::try_from(results.len()).unwrap().to_be_bytes());
        self.send(results);
        let mut length = [0; 4];
        self.control.read_exact(&mut length).unwrap();
        let mut json = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        self.control.read_exact(&mut json).unwrap();
        assert_eq!(self.receive(), State::DisplayResults.byte());
        self.send(&[State::IperfDone.byte()]);
        serde_json::from_slice(&json).unwrap()
    }
}

/// A connection from this address.
pub(crate) fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

/// Opens a UDP stream: sends connect datagrams until the reply arrives.
pub(crate) fn greet(server: &TestServer, socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket.connect(server.address).unwrap();
    for _ in 0..20 {
        socket.send(&datagram::CONNECT).unwrap();
        let mut answer = [0; 64];
        if let Ok(got) = socket.recv(&mut answer) {
            assert!(datagram::is_connect_reply(&answer[..got]), "{:?}", &answer[..got]);
            return;
        }
    }
    panic!("no answer to a greeting");
}
