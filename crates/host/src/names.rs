//! The name that belongs to an address.

use std::net::{IpAddr, SocketAddr};

/// The name the system's resolver has for an address (getnameinfo(3)); `None`
/// where it has none. Whoever owns the address wrote it: it is to be made
/// harmless before it is shown. May take as long as the resolver waits.
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
        // RFC 5737: nobody has it, whether or not there is a resolver.
        assert_eq!(of("192.0.2.77".parse().unwrap()), None);
    }
}
