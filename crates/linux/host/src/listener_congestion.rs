//! Congestion control of accepted connections that are not to be paced by timers.
//!
//! BBR requests pacing as it starts, and Linux then paces the socket for good, whatever congestion
//! control it is given later (`sk_pacing_status` never returns to `SK_PACING_NONE`). An accepted
//! connection starts with its listener's: where that is BBR by default, a client that asks for CUBIC
//! still waits for a timer before each segment of 64 KiB, at half the throughput over a veth pair
//! (docs/design/local-paths.md). So the listener has Reno, which every kernel has and which does not
//! pace, and whoever accepts a connection gives it its own before it sends.

use crate::{route_table, tcp_info};
use socket2::{Domain, SockRef, Socket, Type};
use std::{io, os::fd::AsFd};

/// Paces nothing, and cannot be removed from a kernel.
const UNPACED: &str = "reno";

/// Keeps connections that this listener accepts from being paced as they start; where the kernel
/// refuses, they are as before.
pub fn accept_unpaced(listener: &impl AsFd) {
    if tcp_info::congestion(listener).is_ok_and(|name| paces(&name)) {
        let _ = tcp_info::set_congestion(listener, UNPACED);
    }
}

/// Gives an accepted connection the default congestion control where [`accept_unpaced`] has kept it
/// from that. One whose route names another keeps it.
pub fn restore_default(accepted: &impl AsFd) {
    if let Ok(default) = default_congestion() {
        restore(accepted, &default);
    }
}

fn restore(accepted: &impl AsFd, default: &str) {
    let is_unpaced = || tcp_info::congestion(accepted).is_ok_and(|name| name == UNPACED);
    if paces(default) && is_unpaced() && !is_of_route(accepted) {
        let _ = tcp_info::set_congestion(accepted, default);
    }
}

/// Whether the route to the peer names the listener's congestion control (ip-route(8), `congctl`). A
/// process that may not ask the kernel takes it for the listener's.
fn is_of_route(accepted: &impl AsFd) -> bool {
    let peer = SockRef::from(accepted).peer_addr().ok().and_then(|peer| peer.as_socket());
    let route = peer.and_then(|peer| route_table::lookup(peer.ip().to_canonical()).ok());
    route.is_some_and(|route| route.tcp_metrics().congctl.as_deref() == Some(UNPACED))
}

fn paces(congestion: &str) -> bool {
    congestion.starts_with("bbr")
}

/// Of a new socket: a sandboxed server may not see the sysctl.
fn default_congestion() -> io::Result<String> {
    tcp_info::congestion(&Socket::new(Domain::IPV4, Type::STREAM, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn accepted_by(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn an_accepted_connection_has_the_default_again() {
        let default = default_congestion().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        accept_unpaced(&listener);
        let (_client, accepted) = accepted_by(&listener);
        restore_default(&accepted);
        assert_eq!(tcp_info::congestion(&accepted).unwrap(), default);
        // What was chosen stays.
        tcp_info::set_congestion(&accepted, "cubic").unwrap();
        restore_default(&accepted);
        assert_eq!(tcp_info::congestion(&accepted).unwrap(), "cubic");
    }

    /// On a host whose default is another, as where BBR is.
    #[test]
    fn connections_of_a_listener_with_bbr_start_unpaced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        if tcp_info::set_congestion(&listener, "bbr").is_err() {
            // A kernel without it paces none.
            return;
        }
        accept_unpaced(&listener);
        let (_client, accepted) = accepted_by(&listener);
        assert_eq!(tcp_info::congestion(&accepted).unwrap(), UNPACED);
        restore(&accepted, "cubic");
        assert_eq!(tcp_info::congestion(&accepted).unwrap(), UNPACED, "a route may name it");
        restore(&accepted, "bbr");
        assert_eq!(tcp_info::congestion(&accepted).unwrap(), "bbr");
        // One that does not pace is the connections' own.
        tcp_info::set_congestion(&listener, "cubic").unwrap();
        accept_unpaced(&listener);
        let (_client, accepted) = accepted_by(&listener);
        assert_eq!(tcp_info::congestion(&accepted).unwrap(), "cubic");
    }
}
