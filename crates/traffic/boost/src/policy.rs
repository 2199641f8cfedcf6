//! Where far may connect. Far decides: near is not trusted.

use lane::{Refusal, Target};
use std::net::SocketAddr;

/// Decides about every target, before its name is resolved and about each address after.
pub trait DestinationPolicy: Send + Sync {
    /// Whether the name may be resolved, or the address be considered at all.
    ///
    /// # Errors
    /// The reason that near is told, usually [`Refusal::NotAllowed`].
    fn before_resolving(&self, target: &Target) -> Result<(), Refusal>;

    /// The addresses that far may connect to, in order of preference. Far connects to no others
    /// and resolves no second time.
    ///
    /// # Errors
    /// As above, if none is left.
    fn after_resolving(
        &self,
        target: &Target,
        resolved: &[SocketAddr],
    ) -> Result<Vec<SocketAddr>, Refusal>;
}
