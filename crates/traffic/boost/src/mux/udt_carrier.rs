//! UDT as what carries a session: the thread of the sessions has one end of a pair of sockets, a
//! thread of its own moves bytes between the other end and a connection in native mode.
//!
//! ```text
//!   Session ── Link ── pair of sockets ── thread ══ UDT ══ thread ── pair of sockets ── Link ── Session
//! ```
//!
//! The boxes tell each other their keys, made for this connection alone, over the connection of the
//! greeting, which has proved the keys of the pair.

use control::Algorithm;
use host::clock;
use host::wait::is_hung_up;
use pinned_tls::{Identity, PublicKey};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use udt::{CloseReason, NativeConnection};
use udt_socket::{Application, NativeKeys, NativeSocket, Next};
use units::Nanos;

/// UDP that does not answer within this time is taken for blocked.
const ANSWER: Duration = Duration::from_millis(2_500);
/// Time that near has to reach far's port.
const WAIT: Duration = Duration::from_secs(10);
/// Bytes that wait for their first transmission; more would only delay other flows.
const UNSENT_LIMIT: usize = 256 << 10;
const BUFFER: usize = 64 << 10;
/// After this time the sockets that took nothing are tried again.
const RETRY: Duration = Duration::from_millis(1);
/// Time in which the peer acknowledges what was written last.
const LINGER: Duration = Duration::from_secs(3);
/// Threads of a box: one of each session, and as many that are about to end.
const MAX_THREADS: usize = 16;
/// Time that a box which ends leaves its threads for their last packets.
const LAST: Duration = Duration::from_millis(500);

/// Keys and congestion control of this end.
pub(crate) struct Keys {
    pub(crate) identity: Identity,
    pub(crate) peer: PublicKey,
    pub(crate) algorithm: Algorithm,
}

/// Makes a key pair for one connection.
///
/// # Errors
/// The system gives no random numbers.
pub(crate) fn fresh_identity() -> io::Result<Identity> {
    Identity::new(&host::random::secret()?).map_err(io::Error::other)
}

/// The threads of a box.
#[derive(Default)]
pub(crate) struct Carriers(Vec<JoinHandle<()>>);

impl Carriers {
    /// Near: connects to far. The socket is closed if far does not answer in time.
    ///
    /// # Errors
    /// The system has no descriptors or no thread, or too many threads have not ended.
    pub(crate) fn connect(&mut self, far: SocketAddr, keys: Keys) -> io::Result<TcpStream> {
        self.start(move |local| {
            let is_left = || is_hung_up(local);
            NativeSocket::connect(far, &native(&keys), ANSWER, is_left)
        })
    }

    /// Far: waits for near.
    ///
    /// # Errors
    /// See [`Carriers::connect`].
    pub(crate) fn accept(&mut self, socket: UdpSocket, keys: Keys) -> io::Result<TcpStream> {
        self.start(move |local| {
            let is_left = || is_hung_up(local);
            NativeSocket::accept(socket, &native(&keys), WAIT, is_left)
        })
    }

    fn start(
        &mut self,
        open: impl FnOnce(&UnixStream) -> io::Result<Option<NativeSocket>> + Send + 'static,
    ) -> io::Result<TcpStream> {
        self.0.retain(|thread| !thread.is_finished());
        if self.0.len() >= MAX_THREADS {
            return Err(io::Error::other(
                "too many UDT connections of earlier sessions have not ended",
            ));
        }
        let (session, local) = UnixStream::pair()?;
        session.set_nonblocking(true)?;
        local.set_nonblocking(true)?;
        let work = move || {
            // Whatever ends the connection ends the pair, which is what the session learns.
            if let Ok(Some(mut socket)) = open(&local) {
                let _ = socket.run(&mut Bridge::new(&local));
            }
        };
        self.0.push(Builder::new().name("boost-udt".to_owned()).spawn(work)?);
        Ok(TcpStream::from(OwnedFd::from(session)))
    }
}

impl Drop for Carriers {
    fn drop(&mut self) {
        let until = clock::now() + LAST;
        while self.0.iter().any(|thread| !thread.is_finished()) && clock::now() < until {
            std::thread::sleep(RETRY);
        }
    }
}

fn native(keys: &Keys) -> NativeKeys<'_> {
    NativeKeys { identity: &keys.identity, peer: keys.peer, algorithm: keys.algorithm }
}

/// Bytes that one side has given and the other has not taken.
struct Held {
    bytes: Vec<u8>,
    taken: usize,
}

impl Held {
    fn new() -> Self {
        Held { bytes: Vec::with_capacity(BUFFER), taken: 0 }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Fills it again, once all is taken.
    fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        self.taken = 0;
        self.bytes.resize(BUFFER, 0);
        let count = read(&mut self.bytes);
        self.bytes.truncate(count.as_ref().map_or(0, |count| *count));
        count
    }
}

/// Moves bytes between the session's socket and the connection.
struct Bridge<'a> {
    local: &'a UnixStream,
    outward: Held,
    inward: Held,
    /// The session has closed its end, at this time.
    left: Option<Nanos>,
    /// The connection takes more of the session's bytes.
    wants_input: bool,
}

impl<'a> Bridge<'a> {
    fn new(local: &'a UnixStream) -> Self {
        Bridge { local, outward: Held::new(), inward: Held::new(), left: None, wants_input: true }
    }

    fn move_outward(&mut self, now: Nanos, connection: &mut NativeConnection) {
        self.wants_input = false;
        while self.left.is_none() && connection.unsent() < UNSENT_LIMIT {
            if self.outward.rest().is_empty() {
                let mut local = self.local;
                match self.outward.fill(|buffer| local.read(buffer)) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.wants_input = true;
                        return;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Ok(_) | Err(_) => {
                        self.left = Some(now);
                        connection.close();
                        return;
                    }
                }
            }
            let written = connection.write(self.outward.rest());
            if written == 0 {
                return;
            }
            self.outward.taken += written;
        }
    }

    /// True if the session's socket takes nothing now.
    fn move_inward(&mut self, connection: &mut NativeConnection) -> bool {
        loop {
            if self.inward.rest().is_empty() {
                match self.inward.fill(|buffer| Ok(connection.read(buffer))) {
                    Ok(1..) => {}
                    Ok(_) | Err(_) => return false,
                }
            }
            let mut local = self.local;
            match local.write(self.inward.rest()) {
                Ok(count) => self.inward.taken += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The session has left: nobody wants it.
                Err(_) => self.inward.taken = self.inward.bytes.len(),
            }
        }
    }
}

impl Application<NativeConnection> for Bridge<'_> {
    fn poll(&mut self, now: Nanos, connection: &mut NativeConnection) -> Next {
        self.move_outward(now, connection);
        let is_blocked = self.move_inward(connection);
        if connection.is_finished() && self.inward.rest().is_empty() && self.left.is_none() {
            // Fails if the session has closed its end, too.
            let _ = self.local.shutdown(Shutdown::Write);
        }
        if self.left.is_some_and(|since| connection.is_flushed() || now.since(since) >= LINGER) {
            connection.abort(CloseReason::Local);
            return Next::Never;
        }
        if is_blocked || self.left.is_some() { Next::At(now.plus(RETRY)) } else { Next::OnEvent }
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.wants_input.then(|| self.local.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(own: &Identity, peer: &Identity) -> Keys {
        let (identity, peer) = (own.clone(), peer.public_key());
        Keys { identity, peer, algorithm: Algorithm::Bbr3 }
    }

    fn loopback() -> UdpSocket {
        UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    #[test]
    fn whoever_begins_connections_without_end_gets_a_bounded_number() {
        let [far, near] = [fresh_identity().unwrap(), fresh_identity().unwrap()];
        let mut carriers = Carriers::default();
        let mut begin = || carriers.accept(loopback(), keys(&far, &near));
        let kept: Vec<_> = (0..MAX_THREADS).map(|_| begin().unwrap()).collect();
        assert!(begin().is_err());
        // They end as their sessions leave.
        drop(kept);
        let until = clock::now() + WAIT;
        while begin().is_err() {
            assert!(clock::now() < until);
            std::thread::sleep(RETRY);
        }
    }

    #[test]
    fn another_key_is_not_heard() {
        let [far, near, other] = [(); 3].map(|()| fresh_identity().unwrap());
        let socket = loopback();
        let port = socket.local_addr().unwrap();
        let mut carriers = Carriers::default();
        let mut at_far = carriers.accept(socket, keys(&far, &near)).unwrap();
        let mut at_other = carriers.connect(port, keys(&other, &far)).unwrap();
        at_other.write_all(b"forged").unwrap();
        // The holder of the key comes in all the same, and alone.
        let mut at_near = carriers.connect(port, keys(&near, &far)).unwrap();
        at_near.write_all(b"abc").unwrap();
        at_far.set_nonblocking(false).unwrap();
        let mut got = [0; 3];
        at_far.read_exact(&mut got).unwrap();
        assert_eq!(got, *b"abc");
        at_far.write_all(b"def").unwrap();
        at_near.set_nonblocking(false).unwrap();
        at_near.read_exact(&mut got).unwrap();
        assert!(!at_other.read(&mut [0]).is_ok_and(|count| count > 0));
    }
}
