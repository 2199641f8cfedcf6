//! An attacker's connection: iperf3's protocol, spoken as far as wanted.

use crate::addresses;
use iperf3_proto::{Cookie, State, framing};
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long an attacker waits for what it needs to go on.
const WAIT: Duration = Duration::from_secs(1);

/// Connects to the server that is tested.
pub(crate) fn connect(from: IpAddr) -> io::Result<TcpStream> {
    connect_to(addresses::PORT, from)
}

/// Connects to a server's port from an address, which may be of either family.
pub(crate) fn connect_to(port: u16, from: IpAddr) -> io::Result<TcpStream> {
    let to: SocketAddr = match from {
        IpAddr::V4(_) => (addresses::SERVER, port).into(),
        IpAddr::V6(_) => (addresses::SERVER6, port).into(),
    };
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    // Closed by a reset: ports are free again at once, for a minute of attacks.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.connect_timeout(&to.into(), WAIT)?;
    socket.set_read_timeout(Some(WAIT))?;
    socket.set_write_timeout(Some(WAIT))?;
    Ok(socket.into())
}

/// How far a session goes before the attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Connected,
    Cookie,
    Parameters,
    Streams,
    Running,
    Results,
}

impl Step {
    pub(crate) const ALL: [Step; 6] = [
        Step::Connected,
        Step::Cookie,
        Step::Parameters,
        Step::Streams,
        Step::Running,
        Step::Results,
    ];
}

/// A session that stands at a step.
pub(crate) struct Session {
    pub(crate) control: TcpStream,
    /// Kept open as long as the session.
    stream: Option<TcpStream>,
}

impl Session {
    /// Goes up to `step`; fails where the server does not let it.
    pub(crate) fn at(step: Step, from: IpAddr, seed: u32) -> io::Result<Self> {
        let mut session = Session { control: connect(from)?, stream: None };
        let mut random = [b'a'; 36];
        random[..4].copy_from_slice(&seed.to_be_bytes());
        random[4..8].copy_from_slice(&std::process::id().to_be_bytes());
        let cookie = Cookie::from_random(random);
        if step >= Step::Cookie {
            session.control.write_all(cookie.bytes())?;
            session.wait_for(State::ParamExchange)?;
        }
        if step >= Step::Parameters {
            let asked = json!({"tcp": true, "time": 1, "parallel": 1, "len": 1024});
            session.ask(&asked)?;
            session.wait_for(State::CreateStreams)?;
        }
        if step >= Step::Streams {
            let mut stream = connect(from)?;
            stream.write_all(cookie.bytes())?;
            session.stream = Some(stream);
            session.wait_for(State::TestStart)?;
        }
        if step >= Step::Running {
            session.wait_for(State::TestRunning)?;
        }
        if step >= Step::Results {
            session.control.write_all(&[State::TestEnd.byte()])?;
            session.wait_for(State::ExchangeResults)?;
        }
        Ok(session)
    }

    fn wait_for(&mut self, state: State) -> io::Result<()> {
        let mut byte = [0];
        self.control.read_exact(&mut byte)?;
        if byte[0] == state.byte() { Ok(()) } else { Err(io::Error::other("another state")) }
    }

    /// Sends parameters.
    pub(crate) fn ask(&mut self, parameters: &Value) -> io::Result<()> {
        self.control.write_all(&framing::encode(parameters).map_err(io::Error::other)?)
    }

    /// Sends a message with its length before it, and waits for the server's answer.
    pub(crate) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.control.write_all(&u32::try_from(message.len()).unwrap().to_be_bytes())?;
        self.control.write_all(message)?;
        let _ = self.control.read(&mut [0; 64])?;
        Ok(())
    }
}
