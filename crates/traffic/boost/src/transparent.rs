//! The ingress of connections that are accepted for any address: the address that the application
//! connected to is the target.

use crate::ingress::{Accepted, Ingress, Negotiation, Step};
use host::address::canonical;
use lane::Target;
use std::net::SocketAddr;

/// A transparent listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transparent {
    /// The address that stands for far's name server, if one does.
    pub name_server: Option<SocketAddr>,
}

impl Ingress for Transparent {
    fn begin(&self, accepted: Accepted) -> Box<dyn Negotiation> {
        let local = canonical(accepted.local);
        Box::new(Known(if Some(local) == self.name_server {
            Target::NAME_SERVER
        } else {
            Target { host: lane::TargetHost::Address(local.ip()), port: local.port() }
        }))
    }
}

/// A target that is known without any input. One that refuses resets the connection, which the
/// kernel has accepted already.
struct Known(Target);

impl Negotiation for Known {
    fn advance(&mut self, _input: &[u8]) -> Step {
        Step::open(self.0.clone())
    }
}
