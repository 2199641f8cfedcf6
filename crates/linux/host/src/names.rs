//! Names by the system's resolver: that of an address, and the canonical one of a host.

use crate::sys;
use std::ffi::{CStr, CString};
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

/// The name that the CNAME records of `host` end with (getaddrinfo(3), `AI_CANONNAME`); `None`
/// if it has no address. The name is chosen by its owner: escape it before display. Blocks for
/// as long as the resolver does.
#[must_use]
pub fn canonical(host: &str) -> Option<String> {
    let host = CString::new(host).ok()?;
    let mut hints: libc::addrinfo = sys::zeroed();
    hints.ai_flags = libc::AI_CANONNAME;
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut found: *mut libc::addrinfo = std::ptr::null_mut();
    // SAFETY: the name and the hints live across the call, no service is asked for, and
    // `found` outlives it.
    let result = unsafe {
        libc::getaddrinfo(host.as_ptr(), std::ptr::null(), &raw const hints, &raw mut found)
    };
    if result != 0 || found.is_null() {
        return None;
    }
    // SAFETY: a successful call set `found` to a list that is valid until it is freed, whose
    // first entry has the name, terminated by zero, or null.
    let name = unsafe {
        let name = (*found).ai_canonname;
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    };
    // SAFETY: it is from getaddrinfo, freed once, and `name` is a copy.
    unsafe { libc::freeaddrinfo(found) };
    name.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canonical_name_is_of_a_host_only() {
        // An address is its own canonical name.
        assert_eq!(canonical("127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(canonical("a\0b"), None);
        assert_eq!(canonical("name.invalid"), None);
    }

    #[test]
    fn documentation_addresses_have_no_name() {
        // RFC 5737: not assigned, with or without a resolver.
        assert_eq!(of("192.0.2.77".parse().unwrap()), None);
    }
}
