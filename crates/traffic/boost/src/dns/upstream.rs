//! Who answers a program's queries.

use super::message::{MAX_MESSAGE, has_id_of, read_framed, write_framed};
use host::clock;
use host::netns::NetNs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where queries go.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// To the server that the program asked, from the calling thread's network namespace.
    Near,
    /// To far's name server, which has this address in the program's network.
    Far {
        /// The program's network.
        network: Arc<NetNs>,
        /// The address there.
        name_server: SocketAddr,
    },
}

impl Upstream {
    /// The answer to one query.
    ///
    /// # Errors
    /// The system error: `TimedOut` or `WouldBlock` after `until`.
    pub(super) fn ask(
        &self,
        query: &[u8],
        server: SocketAddr,
        until: Instant,
    ) -> io::Result<Vec<u8>> {
        match self {
            Upstream::Near => ask_over_udp(query, server, until),
            Upstream::Far { .. } => {
                let stream = self.connect(server, until)?;
                write_framed(&stream, query, until)?;
                let answer = read_framed(&stream, until)?;
                answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
        }
    }

    /// A connection to who answers.
    ///
    /// # Errors
    /// The system error.
    pub(super) fn connect(&self, server: SocketAddr, until: Instant) -> io::Result<TcpStream> {
        let left = time_left(until)?;
        match self {
            Upstream::Near => TcpStream::connect_timeout(&server, left),
            Upstream::Far { network, name_server } => {
                network.run(|| TcpStream::connect_timeout(name_server, left))?
            }
        }
    }
}

fn ask_over_udp(query: &[u8], server: SocketAddr, until: Instant) -> io::Result<Vec<u8>> {
    let any: SocketAddr = if server.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.send(query)?;
    let mut answer = vec![0; MAX_MESSAGE];
    loop {
        socket.set_read_timeout(Some(time_left(until)?))?;
        let length = socket.recv(&mut answer)?;
        if has_id_of(query, answer.get(..length).unwrap_or_default()) {
            answer.truncate(length);
            return Ok(answer);
        }
    }
}

/// The time until a deadline, which has not passed.
pub(super) fn time_left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(clock::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
