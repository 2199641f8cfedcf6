//! Relays TCP from a lab host to this machine: the host listens on every TCP port
//! on which the machine listens, and forwards the connections.
//!
//! ```text
//!   client ══ emulated path ══ the host's port ── relay ── the machine's port
//! ```
//!
//! The path carries the kernel's own TCP between the two hosts of the lab; the
//! relay uses the loopback of this machine. It needs no privileges, changes
//! nothing outside the lab, and reaches services that listen on the loopback only.

use crate::{LabError, LabHost};
use host::netns::NetNs;
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Poll interval of the listening ports.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Connect timeout to the service.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Buffer per direction of a connection, bytes.
const BUFFER: usize = 64 * 1024;

/// Maximum concurrent connections, each with two threads.
const MAX_CONNECTIONS: usize = 1000;

/// Relays from `host` to the calling process's own network namespace until the
/// process ends. Returns the ports open now.
///
/// # Errors
/// If the sockets of the machine cannot be listed.
pub fn start(host: &LabHost) -> Result<Vec<u16>, LabError> {
    let namespace = host
        .namespace
        .clone_handle()
        .map_err(LabError::system("duplicating a namespace handle"))?;
    let mut relay = Relay { namespace, open: HashMap::new(), connections: Arc::default() };
    let ports = listening().map_err(LabError::system("listing the machine's listening ports"))?;
    relay.follow(&ports);
    let mut now: Vec<u16> = relay.open.keys().copied().collect();
    now.sort_unstable();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(POLL_INTERVAL);
            // A failure may be temporary.
            if let Ok(ports) = listening() {
                relay.follow(&ports);
            }
        }
    });
    Ok(now)
}

struct Relay {
    namespace: NetNs,
    /// Of each port that is open, the flag that closes it.
    open: HashMap<u16, Arc<AtomicBool>>,
    connections: Arc<std::sync::atomic::AtomicUsize>,
}

impl Relay {
    /// Opens and closes ports as the machine does.
    fn follow(&mut self, services: &HashMap<u16, IpAddr>) {
        let known: HashSet<u16> = services.keys().copied().collect();
        self.open.retain(|port, closed| {
            let keep = known.contains(port);
            closed.store(!keep, Ordering::Relaxed);
            keep
        });
        for (port, address) in services {
            if self.open.contains_key(port) {
                continue;
            }
            // A port that cannot be opened is retried at the next poll.
            if let Ok(closed) = self.open_port(SocketAddr::new(*address, *port)) {
                self.open.insert(*port, closed);
            }
        }
    }

    fn open_port(&self, service: SocketAddr) -> io::Result<Arc<AtomicBool>> {
        let any = [IpAddr::from(Ipv6Addr::UNSPECIFIED), Ipv4Addr::UNSPECIFIED.into()];
        // A socket for IPv6 takes IPv4 as well; without IPv6 there is the other.
        let bind =
            || any.iter().find_map(|address| TcpListener::bind((*address, service.port())).ok());
        let listener = self.namespace.run(bind)?.ok_or(io::ErrorKind::AddrInUse)?;
        listener.set_nonblocking(true)?;
        let closed = Arc::new(AtomicBool::new(false));
        let (flag, connections) = (Arc::clone(&closed), Arc::clone(&self.connections));
        std::thread::spawn(move || accept(&listener, service, &flag, &connections));
        Ok(closed)
    }
}

fn accept(
    listener: &TcpListener,
    service: SocketAddr,
    closed: &AtomicBool,
    connections: &Arc<std::sync::atomic::AtomicUsize>,
) {
    while !closed.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                if connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                    connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let connections = Arc::clone(connections);
                std::thread::spawn(move || {
                    // A failure of one end closes the connection to the other.
                    let _ = relay(stream, service);
                    connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ =
                    host::wait::readable([std::os::fd::AsFd::as_fd(listener)], Some(POLL_INTERVAL));
            }
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

fn relay(near: TcpStream, service: SocketAddr) -> io::Result<()> {
    near.set_nonblocking(false)?;
    let far = TcpStream::connect_timeout(&service, CONNECT_TIMEOUT)?;
    far.set_nodelay(true)?;
    near.set_nodelay(true)?;
    let (near_too, far_too) = (near.try_clone()?, far.try_clone()?);
    let back = std::thread::spawn(move || copy(far_too, near_too));
    copy(near, far);
    let _ = back.join();
    Ok(())
}

/// Copies until the end of `from`, then shuts `to` down.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match io::Read::read(&mut from, &mut buffer) {
            Ok(length) if length > 0 => {
                if io::Write::write_all(&mut to, &buffer[..length]).is_err() {
                    let _ = from.shutdown(Shutdown::Read);
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// The TCP ports that the calling thread's namespace listens on, and where
/// each is reached from inside it.
fn listening() -> io::Result<HashMap<u16, IpAddr>> {
    let mut ports = HashMap::new();
    for table in ["tcp6", "tcp"] {
        match std::fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
            Ok(text) => ports.extend(parse(&text)),
            // A system without IPv6.
            Err(_) if table == "tcp6" => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ports)
}

/// The listening sockets of a table (proc(5)): the second column is address
/// and port in hexadecimal, the address as words of the machine's byte order;
/// state 0A listens.
fn parse(table: &str) -> impl Iterator<Item = (u16, IpAddr)> {
    table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace();
        let (address, port) = columns.nth(1)?.split_once(':')?;
        if columns.nth(1)? != "0A" {
            return None;
        }
        let port = u16::from_str_radix(port, 16).ok()?;
        let words: Vec<u8> = (0..address.len() / 8)
            .filter_map(|word| u32::from_str_radix(address.get(word * 8..word * 8 + 8)?, 16).ok())
            .flat_map(u32::to_ne_bytes)
            .collect();
        let bound = match words.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(words).ok()?),
            16 => IpAddr::from(<[u8; 16]>::try_from(words).ok()?),
            _ => return None,
        };
        let reached = match bound {
            IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            other => other,
        };
        Some((port, reached))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn listening_sockets_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n\
            1: 00000000:0016 00000000:0000 0A 00000000:00000000\n\
            2: 0100007F:A000 0100007F:1F90 01 00000000:00000000\n\
            3: nonsense\n";
        let found: Vec<_> = parse(table).collect();
        let local = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(found, [(8080, local), (22, local)]);
        let table = "head\n 0: 00000000000000000000000001000000:0277 \
            00000000000000000000000000000000:0000 0A 0\n";
        assert_eq!(parse(table).collect::<Vec<_>>(), [(631, Ipv6Addr::LOCALHOST.into())]);
    }

    proptest::proptest! {
        #[test]
        fn any_table_is_parsed_without_a_panic(text in ".*\n( *[0-9A-Fa-f:]{0,40} [0-9A-Fa-f:]{0,45} [0-9:]{0,9} 0A\n){0,4}") {
            let _ = parse(&text).count();
        }
    }
}
