//! Resolves a host name to the address to probe.

use crate::ProbeError;
use host::resolve;
pub use host::resolve::Family;
use std::net::{IpAddr, SocketAddr};

/// The first address of `host` in the family of the arguments and of `bind`; `stop` ends
/// the wait for the resolver.
///
/// # Errors
/// [`ProbeError::Resolve`] if there is none; [`ProbeError::Interrupted`].
pub fn resolve(
    host: &str,
    port: u16,
    family: Family,
    bind: Option<IpAddr>,
    stop: &dyn Fn() -> bool,
) -> Result<SocketAddr, ProbeError> {
    let addresses = resolve::resolve(host, port, family, bind, stop)?;
    addresses.and_then(|all| all.first().copied()).ok_or(ProbeError::Interrupted)
}
