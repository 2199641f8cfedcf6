//! Options that both ends of a TCP connection negotiated in the handshake.

use crate::sys;
use std::io;
use std::os::fd::AsFd;

/// `TCPI_OPT_*` of `include/uapi/linux/tcp.h`.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALE: u8 = 4;
const ECN: u8 = 8;
const ECN_SEEN: u8 = 16;

/// The first bytes of `struct tcp_info`, whose offsets are stable.
const OPTIONS: usize = 5;
const SCALES: usize = 6;

/// Negotiated options. An option is in use only if both SYNs carried it when
/// they arrived (RFC 7323, section 1.3; RFC 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// RFC 7323, section 3.
    pub timestamps: bool,
    /// RFC 2018.
    pub sack: bool,
    /// RFC 7323, section 2.
    pub window_scale: bool,
    /// RFC 3168, section 6.1.1.
    pub ecn: bool,
    /// A packet with ECT has arrived since.
    pub ecn_seen: bool,
    /// Window shift of the peer, as received: 0 to 14.
    pub peer_shift: u8,
    /// Our own window shift: 0 to 14.
    pub own_shift: u8,
}

impl Handshake {
    /// Reads a connected TCP socket.
    ///
    /// # Errors
    /// The error of `getsockopt`; `InvalidData` if the answer is too short.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let mut head = [0u8; 8];
        let length = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut head)?;
        if length <= SCALES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self::decode(head[OPTIONS], head[SCALES]))
    }

    fn decode(options: u8, scales: u8) -> Self {
        Handshake {
            timestamps: options & TIMESTAMPS != 0,
            sack: options & SACK != 0,
            window_scale: options & WINDOW_SCALE != 0,
            ecn: options & ECN != 0,
            ecn_seen: options & ECN_SEEN != 0,
            peer_shift: scales & 0x0f,
            own_shift: scales >> 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_info::TcpInfo;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn options_are_bits() {
        let all = Handshake::decode(15, 0xa7);
        assert!(all.timestamps && all.sack && all.window_scale && all.ecn);
        assert_eq!((all.peer_shift, all.own_shift), (7, 10));
        assert!(!all.ecn_seen && Handshake::decode(24, 0).ecn_seen);
        let none = Handshake::decode(0, 0);
        assert!(!(none.timestamps || none.sack || none.window_scale || none.ecn));
    }

    #[test]
    fn the_handshake_matches_tcp_info() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (shook, info) = (Handshake::of(&near).unwrap(), TcpInfo::of(&near).unwrap());
        assert_eq!((shook.peer_shift, shook.own_shift), (info.snd_wscale, info.rcv_wscale));
        assert!(shook.window_scale || shook.peer_shift == 0);
        assert!(Handshake::of(&std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }
}
