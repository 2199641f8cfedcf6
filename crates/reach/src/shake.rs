//! One TCP handshake: what of its options survived the way.

use crate::ReachError;
use host::handshake::Handshake;
use host::tcp_info::TcpInfo;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a handshake told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaken {
    /// The options that arrived from the far end, in answer to ours.
    pub options: Handshake,
    /// The largest segment that can be sent: the least of what the far end
    /// announced and what the way is known to carry, without options.
    pub segment_bytes: u32,
    /// The window that the far end announced, bytes; not scaled yet (RFC 7323,
    /// section 2.2). `None` before Linux 5.4.
    pub window_bytes: Option<u32>,
    /// The round trip of the SYN, µs; 0 where the kernel does not tell.
    pub rtt_us: u32,
}

/// What came of trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shake {
    /// Somebody listens there.
    Met(Shaken),
    /// The host is there, and nobody listens.
    Refused,
    /// No answer, or a router's; in words.
    Silent(String),
}

/// Connects to a port, reads what was agreed on, and hangs up. Sends nothing
/// but the handshake and its end.
///
/// # Errors
/// [`ReachError::System`] where the kernel does not tell of its own socket.
pub fn shake(to: SocketAddr, patience: Duration) -> Result<Shake, ReachError> {
    let stream = match TcpStream::connect_timeout(&to, patience) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Ok(Shake::Refused);
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            let patience = patience.as_secs_f64();
            return Ok(Shake::Silent(format!("no answer within {patience:.0} s")));
        }
        Err(error) => return Ok(Shake::Silent(error.to_string())),
    };
    let failed = |source| ReachError::System {
        operation: "read the state of a connection",
        address: to.ip(),
        source,
    };
    let options = Handshake::of(&stream).map_err(failed)?;
    let info = TcpInfo::of(&stream).map_err(failed)?;
    // Timestamps take 12 bytes of each segment, which the kernel has taken off.
    let segment_bytes = info.snd_mss + if options.timestamps { 12 } else { 0 };
    let (window_bytes, rtt_us) = (info.snd_wnd, info.rtt_us);
    Ok(Shake::Met(Shaken { options, segment_bytes, window_bytes, rtt_us }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn who_listens_is_met_and_who_does_not_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let Shake::Met(shaken) = shake(to, PATIENCE).unwrap() else { panic!("not met") };
        assert!(shaken.segment_bytes > 1_000, "{shaken:?}");
        drop(listener);
        assert_eq!(shake(to, PATIENCE).unwrap(), Shake::Refused);
    }
}
