//! All TCP connections of a network namespace with their `TCP_INFO`
//! (sock_diag(7)).
//!
//! A dump arrives as many netlink messages, read into one buffer and passed on
//! one by one: nothing is allocated per connection. Needs no privilege.

pub(crate) mod message;

pub use message::Bbr;

use crate::netlink_message::open;
use crate::tcp_info::{MemInfo, TcpInfo};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};
use std::io;
use std::net::SocketAddr;

/// The states to dump (`include/net/tcp_states.h`): those of a connection, from
/// its first SYN to its last FIN. Without listeners and TIME-WAIT, which have no
/// `TCP_INFO`.
const CONNECTIONS: u32 = 1 << ESTABLISHED
    | 1 << SYN_SENT
    | 1 << SYN_RECV
    | 1 << FIN_WAIT1
    | 1 << FIN_WAIT2
    | 1 << CLOSE_WAIT
    | 1 << LAST_ACK
    | 1 << CLOSING;

/// Data may flow in both directions.
pub const ESTABLISHED: u8 = 1;
/// SYN sent.
pub const SYN_SENT: u8 = 2;
/// SYN received and answered.
pub const SYN_RECV: u8 = 3;
/// FIN sent, not acknowledged yet.
pub const FIN_WAIT1: u8 = 4;
/// FIN acknowledged; the peer may still send.
pub const FIN_WAIT2: u8 = 5;
/// FIN received; our program has not closed the socket.
pub const CLOSE_WAIT: u8 = 8;
/// FIN received, then sent; ours is not acknowledged yet.
pub const LAST_ACK: u8 = 9;
/// Both sent a FIN at the same time.
pub const CLOSING: u8 = 11;

/// Receive buffer: the kernel fills at most 32 KiB per read.
const BUFFER: usize = 64 << 10;

/// One connection of a dump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connection<'a> {
    /// [`ESTABLISHED`] and so on.
    pub state: u8,
    /// Local address; IPv4 also for an IPv4-mapped IPv6 socket.
    pub local: SocketAddr,
    /// Remote address.
    pub remote: SocketAddr,
    /// Socket cookie, unique until the next boot.
    pub cookie: u64,
    /// Inode number of the socket (`/proc/PID/fd`); 0 if no process has it open.
    pub inode: u32,
    /// Owner of the socket.
    pub uid: u32,
    /// Bytes received and not read yet.
    pub receive_queue: u32,
    /// Bytes written and not acknowledged, sent or not.
    pub send_queue: u32,
    /// `TCP_INFO`; fields that this kernel does not report are `None`.
    pub info: Option<TcpInfo>,
    /// Memory usage.
    pub memory: Option<MemInfo>,
    /// Congestion control.
    pub congestion: Option<&'a str>,
    /// State of BBR, if it is the congestion control.
    pub bbr: Option<Bbr>,
}

/// A sock_diag socket.
pub struct SockDiag {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl SockDiag {
    /// Opens one in the calling thread's network namespace.
    ///
    /// # Errors
    /// The system error: the kernel lacks sock_diag, or a container's seccomp filter
    /// refuses it.
    pub fn open() -> io::Result<Self> {
        Ok(SockDiag {
            socket: open(NETLINK_SOCK_DIAG)?,
            buffer: Vec::with_capacity(BUFFER),
            sequence: 0,
        })
    }

    /// Calls `visit` with every TCP connection, IPv4 first. A connection that starts
    /// or ends meanwhile may be missing or appear twice.
    ///
    /// # Errors
    /// The system error: `NotFound` if the module `tcp_diag` is missing,
    /// `InvalidData` for a malformed response.
    pub fn connections(&mut self, mut visit: impl FnMut(&Connection<'_>)) -> io::Result<()> {
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.dump(family, &mut visit)?;
        }
        Ok(())
    }

    fn dump(&mut self, family: i32, visit: &mut impl FnMut(&Connection<'_>)) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&message::request(family, CONNECTIONS, self.sequence), 0)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            if message::parse(&self.buffer, self.sequence, visit)? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::tcp_info::TcpInfo;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn our_own_connection_is_listed() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            near.write_all(&[7; 5000]).unwrap();
            far.read_exact(&mut [0; 4000]).unwrap();
            let until = clock::now() + Duration::from_secs(20);
            while TcpInfo::of(&near).unwrap().unacked > 0 && clock::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            let mut diag = SockDiag::open().unwrap();
            // Twice over one socket: a response must not be taken for the next one's.
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
