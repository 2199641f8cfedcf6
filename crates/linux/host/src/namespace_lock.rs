//! A lock of a network namespace, for what exists once in it, such as rules of routing.
//!
//! It is an abstract name of a Unix socket (unix(7)): each network namespace has its own, and the
//! kernel frees it with the process, however that ends. Any process of the namespace can take a
//! name, so it keeps programs of one kind apart and is no protection.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A lock that is held as long as this value.
#[derive(Debug)]
pub struct NamespaceLock {
    #[expect(dead_code, reason = "holding it is the use")]
    name: UnixDatagram,
}

impl NamespaceLock {
    /// Takes the lock `name` in the calling thread's network namespace; `None` if it is held.
    ///
    /// # Errors
    /// The system error.
    pub fn take(name: &str) -> io::Result<Option<Self>> {
        match UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?) {
            Ok(name) => Ok(Some(NamespaceLock { name })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_at_a_time() {
        let name = format!("longhaul-test-{}", std::process::id());
        let held = NamespaceLock::take(&name).unwrap();
        assert!(held.is_some());
        assert!(NamespaceLock::take(&name).unwrap().is_none());
        assert!(NamespaceLock::take(&format!("{name}-other")).unwrap().is_some());
        drop(held);
        assert!(NamespaceLock::take(&name).unwrap().is_some());
    }
}
