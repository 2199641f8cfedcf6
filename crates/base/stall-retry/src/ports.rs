//! Free ports, for servers that cannot bind port 0 and report the assigned port.

use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ephemeral ports (`net.ipv4.ip_local_port_range`, from 32768): no other
/// test's port 0 becomes one of these between the check and the server's bind(2).
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// The kernel's tables of sockets; those of IPv6 are missing where it is switched off.
const TABLES: [&str; 4] = ["/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"];

/// A port that is free for TCP and UDP at every address, another one at each call.
///
/// The kernel's tables are read; a socket bound for the check would be inherited by programs
/// that other threads start meanwhile, and keep the port from its server until they exec(2).
///
/// # Panics
/// Where none is free.
#[must_use]
#[expect(clippy::expect_used, reason = "a test without a port cannot go on")]
pub fn free_port() -> u16 {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    // Test processes that run one after the other begin at different ports.
    let own = std::process::id().wrapping_mul(61) % u32::from(COUNT);
    let tables = TABLES.map(|table| std::fs::read_to_string(table).unwrap_or_default());
    (0..COUNT)
        .map(|_| {
            let call = u32::from(CALLS.fetch_add(1, Ordering::Relaxed));
            FIRST + ((own + call) % u32::from(COUNT)) as u16
        })
        .find(|port| !tables.iter().any(|table| is_in(table, *port)))
        .expect("a free port")
}

/// Whether a table has a socket with that local port.
fn is_in(table: &str, port: u16) -> bool {
    let local = format!(":{port:04X}");
    let mut sockets = table.lines().skip(1);
    sockets.any(|line| line.split_whitespace().nth(1).is_some_and(|at| at.ends_with(&local)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::process::Command;
    use std::sync::atomic::AtomicBool;

    fn taken(port: u16) -> bool {
        TABLES.iter().any(|table| is_in(&std::fs::read_to_string(table).unwrap_or_default(), port))
    }

    #[test]
    fn a_bound_port_is_taken() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        for port in [tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port()] {
            assert!(taken(port), "{port}");
        }
        let port = free_port();
        let _bound = TcpListener::bind(("0.0.0.0", port)).unwrap();
        assert!(taken(port) && free_port() != port);
    }

    /// Programs that are started meanwhile inherit nothing that keeps the port.
    #[test]
    fn a_free_port_can_be_bound_while_programs_start() {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        assert!(Command::new("true").status().unwrap().success());
                    }
                });
            }
            let failed = (0..300).filter_map(|_| TcpListener::bind(("0.0.0.0", free_port())).err());
            let failed: Vec<std::io::Error> = failed.collect();
            ended.store(true, Ordering::Relaxed);
            assert!(failed.is_empty(), "{failed:?}");
        });
    }
}
