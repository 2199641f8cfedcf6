//! Reverse lookup of an address.

use std::net::{IpAddr, SocketAddr};

/// The host name of an address according to the system's resolver
/// (getnameinfo(3)); `None` if it has none. The name is chosen by the owner of
/// the address: escape it before display. Blocks for as long as the resolver does.
#[must_use]
pub fn of(address: IpAddr) -> Option<String> {
    let address = socket2::SockAddr::from(SocketAddr::new(address, 0));
    let mut name = [0u8; 1025]; // NI_MAXHOST
    // SAFETY: the address and the buffer live across the call, with their
    // lengths; no service is asked for.
    let result = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr().cast(),
            libc::socklen_t::try_from(name.len()).unwrap_or_default(),
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    let name = name.split(|byte| *byte == 0).next().filter(|name| result == 0 && !name.is_empty());
    name.map(|name| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_addresses_have_no_name() {
        // RFC 5737: not assigned, with or without a resolver.
        assert_eq!(of("192.0.2.77".parse().unwrap()), None);
    }
}
