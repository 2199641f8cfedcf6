//! A gateway that boosts what its hosts send through it, without their knowledge: connections that
//! arrive at a device are accepted here, whatever their address.
//!
//! ```text
//!   LAN ──TCP──> device ──rule──> listener ──> near        named ports: policy routing
//!                        └─mark───┘                        all ports: nf_tables, policy routing
//! ```
//!
//! The rules of nf_tables end with the process that made them; those of policy routing do not, so a
//! parent ([`host::supervisor`]) calls [`clean_up`], and so does the next start. Connections to the
//! gateway's own addresses stay its own.

use crate::program::{NetworkError, Ports};
use host::diversion::Diverted;
use host::netlink::Netlink;
use host::tproxy::{Arriving, Tproxy};
use host::transparent;
use std::io;
use std::net::TcpListener;

/// Most ports by name: each has a listener.
pub const MAX_PORTS: usize = 64;

/// The name of the table of rules.
const TABLE: &str = "longhaul-boost-gateway";

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
}

impl Gateway {
    /// Accepts connections from here on. Removes first what a killed process left.
    ///
    /// # Errors
    /// [`NetworkError`]; rules that were made are removed.
    pub fn open(&self) -> Result<Diversion, NetworkError> {
        let step = |step| move |source| NetworkError::Gateway { step, source };
        let netlink = Netlink::open().map_err(step("opening netlink"))?;
        netlink.index(&self.device).map_err(step("finding the device"))?;
        netlink.end_diversion().map_err(step("removing old rules"))?;
        let listen = |port| transparent::listen(port).map_err(step("listening"));
        let (listeners, rules, what) = match &self.ports {
            Ports::All => {
                let listener = listen(0)?;
                let port = listener.local_addr().map_err(step("listening"))?.port();
                let rules = Tproxy::start(TABLE, port, Arriving::At(&self.device));
                (vec![listener], Some(rules.map_err(NetworkError::Tproxy)?), Diverted::Marked)
            }
            Ports::Listed(ports) => {
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
        Ok(Diversion { listeners, rules })
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        drop(self.rules.take());
        // The supervisor tries again.
        let _ = clean_up();
    }
}

/// Removes the rules and routes of a gateway, whichever process made them.
///
/// # Errors
/// The system error.
pub fn clean_up() -> io::Result<()> {
    Netlink::open()?.end_diversion().map(drop)
}
