//! The ingress of connections that are accepted for any address: the address that the application
//! connected to is the target.

use crate::ingress::{Accepted, Ingress, Negotiation, Next, Step};
use host::address::canonical;
use lane::Target;
use std::net::SocketAddr;

/// A transparent listener.
#[derive(Debug, Clone, Copy)]
pub struct Transparent {
    /// The address that stands for far's name server, if one does.
    pub name_server: Option<SocketAddr>,
    /// Returns true for addresses whose connections stay here: they are reset, as are those to loopback
    /// addresses.
    pub is_own: fn(SocketAddr) -> bool,
    /// Connections are routed here until the box has ended: see
    /// [`Ingress::accepts_while_draining`].
    pub accepts_while_draining: bool,
}

impl Ingress for Transparent {
    fn begin(&self, accepted: Accepted) -> Box<dyn Negotiation> {
        let local = canonical(accepted.local);
        let is_own = || local.ip().is_loopback() || (self.is_own)(local);
        Box::new(Known(if Some(local) == self.name_server {
            Some(Target::NAME_SERVER)
        } else if is_own() {
            None
        } else {
            Some(Target { host: lane::TargetHost::Address(local.ip()), port: local.port() })
        }))
    }

    fn accepts_while_draining(&self) -> bool {
        self.accepts_while_draining
    }
}

/// A target that is known without any input, if it has one. One that refuses resets the connection,
/// which the kernel has accepted already.
struct Known(Option<Target>);

impl Negotiation for Known {
    fn advance(&mut self, _input: &[u8]) -> Step {
        match &self.0 {
            Some(target) => Step::open(target.clone()),
            None => {
                let next = Next::Reset("it is to an address of this host itself".to_owned());
                Step { used: 0, reply: Vec::new(), next }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_no_targets() {
        let name_server = Some("192.0.0.4:5300".parse().unwrap());
        let is_own = |address: SocketAddr| address.ip().to_string().starts_with("10.");
        let ingress = Transparent { name_server, is_own, accepts_while_draining: false };
        let target = |local: &str| {
            let peer = "192.0.2.1:1".parse().unwrap();
            let accepted = Accepted { peer, local: local.parse().unwrap() };
            match ingress.begin(accepted).advance(&[]).next {
                Next::Open(target) => Some(target.to_string()),
                _ => None,
            }
        };
        assert_eq!(target("198.51.100.7:80").as_deref(), Some("198.51.100.7:80"));
        assert_eq!(target("[::ffff:198.51.100.7]:80").as_deref(), Some("198.51.100.7:80"));
        assert_eq!(target("192.0.0.4:5300").as_deref(), Some("far's name server:53"));
        for own in
            ["127.0.0.1:22", "127.9.0.1:22", "[::1]:22", "[::ffff:127.0.0.1]:22", "10.0.0.1:9"]
        {
            assert_eq!(target(own), None, "{own}");
        }
    }
}
