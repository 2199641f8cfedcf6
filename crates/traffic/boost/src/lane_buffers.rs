//! Buffers of the connections between the boxes: what is asked for, and what the kernel grants.
//!
//! Without root, a buffer of fixed size stops at `net.core.rmem_max` and `wmem_max` (socket(7)), which
//! may be less than the kernel's autotuning reaches (`tcp_rmem`, `tcp_wmem`: tcp(7)); autotuning then
//! stays in charge. Sizes are without the kernel's overhead, for which it counts as much again.

use host::socket;
use host::sysctl::read_triple;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::os::fd::AsFd;
use units::ByteCount;

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferKind {
    /// What was sent and not acknowledged.
    Send,
    /// What has arrived, and may arrive.
    Receive,
}

/// The sizes that a connection's buffers reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrantedBuffers {
    send: ByteCount,
    receive: ByteCount,
}

impl GrantedBuffers {
    /// Of a connection, or of a socket that will be one.
    ///
    /// # Errors
    /// The system error.
    pub(crate) fn of(socket: &impl AsFd) -> io::Result<Self> {
        let send = SockRef::from(socket).send_buffer_size()? as u64 / 2;
        Ok(GrantedBuffers {
            send: autotuned(BufferKind::Send).max(ByteCount::from_bytes(send)),
            receive: autotuned(BufferKind::Receive).max(socket::receive_buffer(socket)?),
        })
    }

    #[cfg(test)]
    pub(crate) const fn with(send: ByteCount, receive: ByteCount) -> Self {
        GrantedBuffers { send, receive }
    }

    /// The smaller one.
    pub(crate) fn least(self) -> (BufferKind, ByteCount) {
        if self.send < self.receive {
            (BufferKind::Send, self.send)
        } else {
            (BufferKind::Receive, self.receive)
        }
    }
}

/// The size that autotuning reaches, zero if the kernel does not say.
fn autotuned(kind: BufferKind) -> ByteCount {
    let key = match kind {
        BufferKind::Send => "net.ipv4.tcp_wmem",
        BufferKind::Receive => "net.ipv4.tcp_rmem",
    };
    ByteCount::from_bytes(read_triple(key).map_or(0, |[_, _, most]| most / 2))
}

/// Sets both buffers of a socket, each unless autotuning reaches further than what the kernel grants.
///
/// # Errors
/// The system error.
pub(crate) fn set(lane: &impl AsFd, size: ByteCount) -> io::Result<()> {
    // A size cannot be taken back.
    let probe = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket::set_receive_buffer(&probe, size)?;
    let granted = socket::receive_buffer(&probe)?;
    if granted >= size || granted >= autotuned(BufferKind::Receive) {
        socket::set_receive_buffer(lane, size)?;
    }
    let granted = socket::set_send_buffer(&probe, size)?;
    if granted >= size || granted >= autotuned(BufferKind::Send) {
        socket::set_send_buffer(lane, size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_never_smaller_than_what_autotuning_reaches() {
        for size in [64 << 10, 1 << 20, 1 << 30] {
            let size = ByteCount::from_bytes(size);
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            set(&socket, size).unwrap();
            let granted = GrantedBuffers::of(&socket).unwrap();
            for (buffer, kind) in
                [(granted.send, BufferKind::Send), (granted.receive, BufferKind::Receive)]
            {
                assert!(buffer >= size || buffer >= autotuned(kind), "{granted:?}");
            }
            assert!(granted.least().1 <= granted.send.min(granted.receive));
        }
    }
}
