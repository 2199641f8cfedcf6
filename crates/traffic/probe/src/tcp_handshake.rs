//! One TCP handshake, and the options that the peer negotiates.

use crate::ProbeError;
use host::handshake::Handshake;
use host::tcp_info::TcpInfo;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The result of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeInfo {
    /// The options that the peer sent in its SYN-ACK.
    pub options: Handshake,
    /// The largest segment that can be sent, bytes without options: the smaller of the
    /// peer's MSS and the known path MTU.
    pub segment_bytes: u32,
    /// The window of the SYN-ACK, bytes, which is never scaled (RFC 7323, section 2.2).
    /// `None` before Linux 5.4.
    pub window_bytes: Option<u32>,
    /// RTT of the SYN, µs; 0 if the kernel does not report it.
    pub rtt_us: u32,
}

/// The outcome of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpHandshake {
    /// The connection was established.
    Completed(HandshakeInfo),
    /// The port is closed.
    Refused,
    /// No reply, or an ICMP error; the reason.
    NoReply(String),
}

/// Connects to a port, reads the negotiated options, and closes. Sends no data.
///
/// # Errors
/// [`ProbeError::System`] if the state of the socket cannot be read.
pub fn probe_handshake(to: SocketAddr, timeout: Duration) -> Result<TcpHandshake, ProbeError> {
    let stream = match TcpStream::connect_timeout(&to, timeout) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Ok(TcpHandshake::Refused);
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            let seconds = timeout.as_secs_f64();
            return Ok(TcpHandshake::NoReply(format!("no reply within {seconds:.0} s")));
        }
        Err(error) => return Ok(TcpHandshake::NoReply(error.to_string())),
    };
    let failed = |source| ProbeError::System {
        operation: "read the state of a connection",
        address: to.ip(),
        source,
    };
    let options = Handshake::of(&stream).map_err(failed)?;
    let info = TcpInfo::of(&stream).map_err(failed)?;
    // snd_mss excludes the 12 bytes of timestamps.
    let segment_bytes = info.snd_mss + if options.timestamps { 12 } else { 0 };
    let (window_bytes, rtt_us) = (info.snd_wnd, info.rtt_us);
    Ok(TcpHandshake::Completed(HandshakeInfo { options, segment_bytes, window_bytes, rtt_us }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn an_open_port_completes_and_a_closed_one_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let TcpHandshake::Completed(info) = probe_handshake(to, TIMEOUT).unwrap() else {
            panic!("no connection")
        };
        assert!(info.segment_bytes > 1_000, "{info:?}");
        drop(listener);
        assert_eq!(probe_handshake(to, TIMEOUT).unwrap(), TcpHandshake::Refused);
    }
}
