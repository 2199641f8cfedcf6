//! The destinations that far may connect to: public addresses unless a list says otherwise, and never
//! what a name in somebody else's hands could make far reach on its own network.
//!
//! ```text
//!  target ──> list has its host and port? ──> resolve once ──> each address: class, list ──> connect
//! ```
//!
//! A name is resolved once, each address is checked as it came out, IPv4 addresses within IPv6 ones
//! too, and only checked addresses are connected to. So a name that resolves to another address the
//! next time (DNS rebinding) gains nothing.
//!
//! Far's own name servers can be asked at port 53 whatever the list says: programs behind a near box resolve
//! names there, as far does itself for every name in a target.

mod address_class;
mod allow_rule;

pub use address_class::AddressClass;
pub use allow_rule::{AllowRule, InvalidRule};

use crate::policy::DestinationPolicy;
use host::address::canonical;
use lane::{Refusal, Target, TargetHost};
use std::fmt;
use std::net::SocketAddr;

/// Most addresses of a name that are considered.
const MAX_ADDRESSES: usize = 16;

/// Returns true if an address and port are this program's own, so that a connection to it would come
/// back.
pub type IsOwn = Box<dyn Fn(SocketAddr) -> bool + Send + Sync>;

/// The policy of a far box.
pub struct Destinations {
    /// Without rules every public address is allowed.
    rules: Vec<AllowRule>,
    is_own: IsOwn,
}

impl fmt::Debug for Destinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destinations").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Destinations {
    /// The destinations of a list; of an empty one all public addresses.
    #[must_use]
    pub fn new(rules: Vec<AllowRule>, is_own: IsOwn) -> Self {
        Destinations { rules, is_own }
    }

    fn allows(&self, target: &Target, address: SocketAddr) -> bool {
        let class = AddressClass::of(address.ip());
        let named = self.rules.iter().any(|rule| rule.admits(target, address, class));
        let public = self.rules.is_empty() && class == AddressClass::Public;
        // A connection to ourselves would come back without end.
        (named || public) && !(self.is_own)(address)
    }
}

impl DestinationPolicy for Destinations {
    fn before_resolving(&self, target: &Target) -> Result<(), Refusal> {
        let may_match = |rule: &AllowRule| match target.host {
            // Its addresses may be in a prefix of the list.
            TargetHost::Name(_) => rule.may_match_name(target),
            TargetHost::Address(address) => {
                let address = SocketAddr::new(address.to_canonical(), target.port);
                rule.admits(target, address, AddressClass::of(address.ip()))
            }
            TargetHost::NameServer => false,
        };
        if self.rules.is_empty()
            || *target == Target::NAME_SERVER
            || self.rules.iter().any(may_match)
        {
            Ok(())
        } else {
            Err(Refusal::NotAllowed)
        }
    }

    fn after_resolving(
        &self,
        target: &Target,
        resolved: &[SocketAddr],
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let is_allowed = |address: SocketAddr| match target.host {
            // Those of far's configuration, usually of its own network.
            TargetHost::NameServer => {
                address.port() == Target::NAME_SERVER.port && !(self.is_own)(address)
            }
            _ => self.allows(target, address),
        };
        let mut allowed: Vec<SocketAddr> = Vec::new();
        for address in resolved.iter().take(MAX_ADDRESSES).copied().map(canonical) {
            if address.port() == target.port && !allowed.contains(&address) && is_allowed(address) {
                allowed.push(address);
            }
        }
        if allowed.is_empty() { Err(Refusal::NotAllowed) } else { Ok(allowed) }
    }
}

#[cfg(test)]
mod tests;
