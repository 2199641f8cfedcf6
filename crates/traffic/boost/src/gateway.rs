//! A gateway that boosts what its hosts send through it, without their knowledge: connections that
//! arrive at a device are accepted here, whatever their address.
//!
//! ```text
//!   LAN ──TCP──> device ──rule──> listener ──> near        named ports: policy routing
//!                        └─mark───┘                        all ports: nf_tables, policy routing
//! ```
//!
//! The rules of nf_tables end with the process that made them; those of policy routing do not, so a
//! parent ([`host::supervisor`]) calls [`clean_up`], and the next start removes them, too. Both do so
//! only with the lock that a running gateway holds. Connections to the gateway's own addresses stay
//! its own.

use crate::program::{NetworkError, Ports};
use crate::sockets;
use host::diversion::Diverted;
use host::namespace_lock::NamespaceLock;
use host::netlink::Netlink;
use host::tproxy::{Arriving, Tproxy};
use host::transparent::{self, Accepting};
use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;

/// Most ports by name: each has a listener.
pub const MAX_PORTS: usize = 64;

/// The name of the table of rules.
const TABLE: &str = "longhaul-boost-gateway";

/// The name of the lock: nothing tells the rules of two gateways in a network namespace apart.
const LOCK: &str = "longhaul-boost-gateway";

/// What a gateway boosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The device of its hosts.
    pub device: String,
    /// The ports.
    pub ports: Ports,
}

/// Listeners of a gateway, and the rules that lead to them.
#[derive(Debug)]
pub struct Diversion {
    /// The listeners.
    pub listeners: Vec<TcpListener>,
    rules: Option<Tproxy>,
    #[expect(dead_code, reason = "holding it is the use")]
    lock: NamespaceLock,
}

impl Gateway {
    /// Accepts connections from here on. Removes first what a killed process left.
    ///
    /// # Errors
    /// [`NetworkError`]; rules that were made are removed.
    pub fn open(&self) -> Result<Diversion, NetworkError> {
        let step = |step| move |source| NetworkError::of_gateway(step, source);
        let netlink = Netlink::open().map_err(step("opening netlink"))?;
        netlink.index(&self.device).map_err(step("finding the device"))?;
        let lock = NamespaceLock::take(LOCK).map_err(step("taking the lock"))?;
        let lock = lock.ok_or(NetworkError::Running)?;
        netlink.end_diversion().map_err(step("removing old rules"))?;
        let listen = |port| {
            let listener = transparent::listen(Accepting::At(&self.device), port);
            let listener = listener.map_err(|error| listening(port, error))?;
            sockets::prepare_listener(&listener).map_err(step("listening"))?;
            Ok(listener)
        };
        let (listeners, rules, what) = match &self.ports {
            Ports::All => {
                let listener = listen(0)?;
                let port = listener.local_addr().map_err(step("listening"))?.port();
                let rules = Tproxy::start(TABLE, port, Arriving::At(&self.device));
                let rules = rules
                    .map_err(|error| NetworkError::of_rules(error, NetworkError::of_gateway))?;
                (vec![listener], Some(rules), Diverted::Marked)
            }
            Ports::Listed(ports) => {
                let ports: BTreeSet<u16> = ports.iter().copied().collect();
                let listeners = ports.iter().copied().map(listen).collect::<Result<_, _>>()?;
                let ports = ports.iter().map(|port| *port..=*port).collect();
                (listeners, None, Diverted::Ports { device: self.device.clone(), ports })
            }
        };
        if let Err(source) = netlink.divert(&what) {
            // The first error says more.
            let _ = netlink.end_diversion();
            return Err(step("adding rules")(source));
        }
        Ok(Diversion { listeners, rules, lock })
    }
}

/// The reason that a port cannot be listened on.
fn listening(port: u16, error: io::Error) -> NetworkError {
    match error.kind() {
        io::ErrorKind::AddrInUse => NetworkError::PortInUse(port),
        _ => NetworkError::of_gateway("listening", error),
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        drop(self.rules.take());
        // The supervisor tries again.
        let _ = end_diversion();
    }
}

/// What [`clean_up`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanedUp {
    /// No rules are left.
    Whole,
    /// A gateway runs, whose rules stay.
    Running,
}

/// Removes the rules and routes that a gateway has left, whichever process made them. Those of a
/// running one stay.
///
/// # Errors
/// The system error.
pub fn clean_up() -> io::Result<CleanedUp> {
    match NamespaceLock::take(LOCK)? {
        Some(_lock) => end_diversion().map(|()| CleanedUp::Whole),
        None => Ok(CleanedUp::Running),
    }
}

fn end_diversion() -> io::Result<()> {
    Netlink::open()?.end_diversion().map(drop)
}
