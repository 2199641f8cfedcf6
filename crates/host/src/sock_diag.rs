//! Every TCP connection of a network namespace at once, with the kernel's account of
//! each: socket diagnosis (sock_diag(7)).
//!
//! A dump comes as a train of netlink messages, read into one buffer and told one by
//! one: nothing is allocated for a connection. Who asks needs no privilege.

mod message;

pub use message::Bbr;

use crate::tcp_info::{MemInfo, TcpInfo};
use netlink_sys::{Socket, SocketAddr as NetlinkAddress, protocols::NETLINK_SOCK_DIAG};
use std::io;
use std::net::SocketAddr;

/// Which states are asked for, by the numbers of `include/net/tcp_states.h`:
/// those of a connection, from its first SYN to its last FIN. Neither listeners
/// nor TIME-WAIT, of which the kernel keeps no account.
const CONNECTIONS: u32 = 1 << ESTABLISHED
    | 1 << SYN_SENT
    | 1 << SYN_RECV
    | 1 << FIN_WAIT1
    | 1 << FIN_WAIT2
    | 1 << CLOSE_WAIT
    | 1 << LAST_ACK
    | 1 << CLOSING;

/// Data may flow both ways.
pub const ESTABLISHED: u8 = 1;
/// We asked for a connection.
pub const SYN_SENT: u8 = 2;
/// We were asked for one, and have answered.
pub const SYN_RECV: u8 = 3;
/// We have nothing more to send; the end is not acknowledged yet.
pub const FIN_WAIT1: u8 = 4;
/// It is; the peer may go on.
pub const FIN_WAIT2: u8 = 5;
/// The peer has nothing more to send, and our program has not closed.
pub const CLOSE_WAIT: u8 = 8;
/// Both have ended; our end is not acknowledged yet.
pub const LAST_ACK: u8 = 9;
/// Both have ended at the same time.
pub const CLOSING: u8 = 11;

/// Room for what one read gives: the kernel fills 32 KiB at most.
const BUFFER: usize = 64 << 10;

/// One connection at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connection<'a> {
    /// [`ESTABLISHED`] and the like.
    pub state: u8,
    /// Our end; of IPv4 also where the socket is IPv6's.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// A number that no other socket has until the next boot.
    pub cookie: u64,
    /// The number under which processes have it open (`/proc/PID/fd`); 0 where none has.
    pub inode: u32,
    /// The user who opened it.
    pub uid: u32,
    /// Bytes that have come and are not read.
    pub receive_queue: u32,
    /// Bytes written and not acknowledged, sent or not.
    pub send_queue: u32,
    /// The kernel's account; fields that this kernel does not tell are `None`.
    pub info: Option<TcpInfo>,
    /// Its memory (Linux 4.12 and before as well).
    pub memory: Option<MemInfo>,
    /// Its congestion control.
    pub congestion: Option<&'a str>,
    /// What BBR thinks, where that is its congestion control.
    pub bbr: Option<Bbr>,
}

/// A way to ask.
pub struct SockDiag {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl SockDiag {
    /// Opens one in the calling thread's network namespace.
    ///
    /// # Errors
    /// The system's own: the kernel was built without socket diagnosis, or a
    /// container's filter of system calls refuses it.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&NetlinkAddress::new(0, 0))?;
        Ok(SockDiag { socket, buffer: Vec::with_capacity(BUFFER), sequence: 0 })
    }

    /// Tells every TCP connection, IPv4's and then IPv6's. One that begins or ends
    /// meanwhile may be missing, or come twice.
    ///
    /// # Errors
    /// The system's own: `NotFound` where the module `tcp_diag` is missing,
    /// `InvalidData` for an answer that makes no sense.
    pub fn connections(&mut self, mut tell: impl FnMut(&Connection<'_>)) -> io::Result<()> {
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.dump(family, &mut tell)?;
        }
        Ok(())
    }

    fn dump(&mut self, family: i32, tell: &mut impl FnMut(&Connection<'_>)) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&message::request(family, CONNECTIONS, self.sequence), 0)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            if message::tell_all(&self.buffer, self.sequence, tell)? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_of_our_own_is_among_them() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            near.write_all(&[7; 5000]).unwrap();
            far.read_exact(&mut [0; 4000]).unwrap();
            let mut diag = SockDiag::open().unwrap();
            // Twice, over one socket: an answer is not mistaken for the next one's.
            for _ in 0..2 {
                let mut ends = [None, None];
                diag.connections(|found| {
                    if found.local == near.local_addr().unwrap() {
                        assert_eq!(found.remote, near.peer_addr().unwrap());
                        assert!(found.inode > 0 && found.cookie > 0 && found.memory.is_some());
                        assert!(found.congestion.is_some_and(|name| name.len() > 1), "{found:?}");
                        ends[0] = Some((found.state, found.info.unwrap().bytes_acked));
                    } else if found.local == near.peer_addr().unwrap() {
                        ends[1] = Some((found.state, Some(u64::from(found.receive_queue))));
                    }
                })
                .unwrap();
                // The SYN counts as a byte.
                let wanted = [(ESTABLISHED, Some(5001)), (ESTABLISHED, Some(1000))];
                assert_eq!(ends, wanted.map(Some), "{address}");
            }
        }
    }
}
