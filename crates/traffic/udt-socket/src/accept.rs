//! The server's side of a handshake on a socket of its own.

use crate::driver::{Driver, is_transient};
use crate::peer_address;
use host::wait;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;
use udt::{Config, Connection, Control, Incoming, Listener, Packet};
use units::Nanos;

/// How often a stop is noticed.
const POLL: Duration = Duration::from_millis(50);

/// Waits for a client on a socket that is not connected, completes its handshake, and
/// connects the socket to it. `None` if `stop` says so first.
///
/// # Errors
/// The system error of the socket.
pub fn accept(
    driver: &Driver,
    listener: &mut Listener,
    config: &Config,
    mut stop: impl FnMut(Nanos) -> bool,
) -> io::Result<Option<(SocketAddr, Connection)>> {
    let socket = driver.socket();
    // Handshakes have 64 bytes; of anything else the start is enough to ignore it.
    let mut buffer = [0; 128];
    while !stop(driver.now()) {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait::readable([socket.as_fd()], Some(POLL))?;
                continue;
            }
            Err(error) if is_transient(&error) => continue,
            Err(error) => return Err(error),
        };
        let Ok(Packet::Control(header, Control::Handshake(handshake))) =
            Packet::parse(&buffer[..length])
        else {
            continue;
        };
        if header.destination != 0 {
            continue;
        }
        let incoming = listener.on_handshake(driver.now(), &peer_address(from), &handshake, config);
        match incoming {
            Incoming::Ignore => {}
            Incoming::Reply(answer) => {
                let _ = socket.send_to(&answer, from);
            }
            Incoming::Accept(answer, connection) => {
                socket.connect(from)?;
                socket.send(&answer)?;
                return Ok(Some((from, *connection)));
            }
        }
    }
    Ok(None)
}
