//! DNS of a program in a network of its own: whatever name server it asks, over UDP or TCP, the
//! answer comes from that server outside, or from far's.
//!
//! ```text
//!   program ──UDP, TCP──> relay ──UDP, TCP──> the server that it asked, outside         (near)
//!                           └─────TCP───> near ══ lane ══> far's name server            (far)
//! ```
//!
//! Queries and answers pass unchanged, so all types of records work. Each query over UDP and each
//! connection has a thread, of which there are at most `MAX_THREADS`; further ones are not
//! answered, and programs ask again.

mod message;
mod upstream;

pub use upstream::Upstream;

use host::stop::StopFlag;
use host::transparent::{self, Accepting};
use host::wait::Poller;
use host::{clock, packet_info};
use message::{MAX_MESSAGE, for_udp, read_framed, server_failure, write_framed};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The port of DNS.
pub const PORT: u16 = 53;

/// Most queries over UDP and connections at once.
const MAX_THREADS: usize = 128;

/// Longest time to the answer of a query. Resolvers wait 5 s by default (resolv.conf(5)).
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time until the next query of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The sockets that programs ask: port 53 of all addresses.
#[derive(Debug)]
pub struct DnsSockets {
    datagrams: Vec<Arc<UdpSocket>>,
    connections: TcpListener,
}

impl DnsSockets {
    /// Opens them in the calling thread's network namespace.
    ///
    /// # Errors
    /// The system error.
    pub fn open() -> io::Result<Self> {
        let connections = transparent::listen(Accepting::Anywhere, PORT)?;
        connections.set_nonblocking(true)?;
        let mut datagrams = vec![open_datagrams(Ipv4Addr::UNSPECIFIED.into())?];
        // None where the kernel has no IPv6.
        datagrams.extend(open_datagrams(Ipv6Addr::UNSPECIFIED.into()).ok());
        Ok(DnsSockets { datagrams, connections })
    }

    /// Answers queries until `stop` is raised, from the namespace of the calling thread.
    ///
    /// # Errors
    /// The system error if the sockets cannot be waited for.
    pub fn serve(self, upstream: &Upstream, stop: &StopFlag) -> io::Result<()> {
        let threads = Arc::default();
        let mut poller = Poller::new()?;
        for (token, socket) in self.datagrams.iter().enumerate() {
            poller.add(socket, token)?;
        }
        poller.add(&self.connections, self.datagrams.len())?;
        let mut ready = Vec::new();
        while !stop.is_raised() {
            poller.wait(Some(POLL_INTERVAL), &mut ready)?;
            for token in &ready {
                let Some(counted) = Counted::new(&threads) else {
                    // The kernel drops what its queues cannot hold.
                    thread::sleep(POLL_INTERVAL);
                    break;
                };
                let Some(request) = self.next(*token) else { continue };
                answer_in_thread(request, upstream, counted, |work| {
                    thread::Builder::new().name("dns".to_owned()).spawn(work).map(drop)
                });
            }
        }
        Ok(())
    }

    fn next(&self, token: usize) -> Option<Request> {
        match self.datagrams.get(token) {
            Some(socket) => Query::receive(socket).map(Request::Query),
            None => self.connections.accept().ok().map(|(stream, _)| Request::Connection(stream)),
        }
    }
}

/// Counts a thread until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// `None` if there are [`MAX_THREADS`].
    fn new(threads: &Arc<AtomicUsize>) -> Option<Self> {
        if threads.fetch_add(1, Ordering::Relaxed) >= MAX_THREADS {
            threads.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Counted(Arc::clone(threads)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers a request in a thread; where the system refuses one, with a failure.
fn answer_in_thread(
    request: Request,
    upstream: &Upstream,
    counted: Counted,
    spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<()>,
) {
    let (request, upstream) = (Arc::new(request), upstream.clone());
    let own = Arc::clone(&request);
    let work = move || {
        own.answer(&upstream);
        drop(counted);
    };
    if spawn(Box::new(work)).is_err() {
        request.fail();
    }
}

/// What a thread answers.
enum Request {
    Query(Query),
    Connection(TcpStream),
}

impl Request {
    fn answer(&self, upstream: &Upstream) {
        match self {
            Request::Query(query) => query.answer(upstream),
            // Its program sees the end.
            Request::Connection(stream) => drop(answer_all(stream, upstream)),
        }
    }

    /// Answers that there is no answer; a connection is closed.
    fn fail(&self) {
        if let Request::Query(query) = self {
            query.reply(server_failure(&query.bytes));
        }
    }
}

fn open_datagrams(any: IpAddr) -> io::Result<Arc<UdpSocket>> {
    let ipv6 = any.is_ipv6();
    let domain = if ipv6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::DGRAM, None)?;
    if ipv6 {
        socket.set_only_v6(true)?;
    }
    packet_info::record(&socket, ipv6)?;
    socket.bind(&SocketAddr::new(any, PORT).into())?;
    socket.set_nonblocking(true)?;
    Ok(Arc::new(socket.into()))
}

/// A query over UDP.
struct Query {
    socket: Arc<UdpSocket>,
    bytes: Vec<u8>,
    program: SocketAddr,
    /// The server that the program asked.
    server: IpAddr,
}

impl Query {
    fn receive(socket: &Arc<UdpSocket>) -> Option<Self> {
        let mut bytes = vec![0; MAX_MESSAGE];
        let (length, program, server) = packet_info::receive(socket, &mut bytes).ok()?;
        bytes.truncate(length);
        Some(Query { socket: Arc::clone(socket), bytes, program, server: server? })
    }

    fn answer(&self, upstream: &Upstream) {
        let until = clock::now() + QUERY_TIMEOUT;
        let server = SocketAddr::new(self.server, PORT);
        let answer = match upstream.ask(&self.bytes, server, until) {
            Ok(answer) => for_udp(&self.bytes, answer),
            Err(_) => server_failure(&self.bytes),
        };
        self.reply(answer);
    }

    fn reply(&self, answer: Option<Vec<u8>>) {
        if let Some(answer) = answer {
            // A program that has gone needs none.
            let _ = packet_info::send(&self.socket, &answer, self.program, Some(self.server));
        }
    }
}

/// Answers the queries of a connection, one after the other (RFC 7766).
fn answer_all(program: &TcpStream, upstream: &Upstream) -> io::Result<()> {
    program.set_nonblocking(false)?;
    let server = program.local_addr()?;
    let server = host::address::with_port(host::address::canonical(server), PORT);
    let mut connected = None;
    while let Some(query) = read_framed(program, clock::now() + IDLE_TIMEOUT)? {
        let until = clock::now() + QUERY_TIMEOUT;
        let stream = match &connected {
            Some(stream) => stream,
            None => connected.insert(upstream.connect(server, until)?),
        };
        write_framed(stream, &query, until)?;
        let Some(answer) = read_framed(stream, until)? else { break };
        write_framed(program, &answer, until)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_refused_costs_one_answer() {
        let any = (Ipv4Addr::LOCALHOST, 0);
        let (own, program) = (UdpSocket::bind(any).unwrap(), UdpSocket::bind(any).unwrap());
        program.set_read_timeout(Some(QUERY_TIMEOUT)).unwrap();
        let (server, threads) = (Ipv4Addr::LOCALHOST.into(), Arc::default());
        let mut query = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend(b"\x07example\0\0\x01\0\x01");
        let own = Arc::new(own);
        for _ in 0..2 * MAX_THREADS {
            let request = Request::Query(Query {
                socket: Arc::clone(&own),
                bytes: query.clone(),
                program: program.local_addr().unwrap(),
                server,
            });
            let counted = Counted::new(&threads).unwrap();
            let refuse = |_| Err(io::ErrorKind::WouldBlock.into());
            answer_in_thread(request, &Upstream::Near, counted, refuse);
            let mut answer = [0; 512];
            let length = program.recv(&mut answer).unwrap();
            assert_eq!(Some(answer[..length].to_vec()), server_failure(&query));
        }
        let all: Vec<_> = std::iter::from_fn(|| Counted::new(&threads)).collect();
        assert_eq!(all.len(), MAX_THREADS);
    }
}
