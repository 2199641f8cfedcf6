//! What to do about an error of the system, by its number (errno(3)): one table, so that the
//! advice fits the error wherever it is met.

use std::io;

/// What to do about an error of a connection, a socket or a file; `None` for errors that have no
/// advice of their own.
#[must_use]
pub fn of(error: &io::Error) -> Option<&'static str> {
    error.raw_os_error().map_or_else(|| of_kind(error.kind()), of_number)
}

const REFUSED: &str =
    "nothing listens on that port, or a firewall rejects it: start a server there";
const NO_REPLY: &str =
    "no reply: check the address, whether that host is up, and firewalls for that port";

/// Errors of the standard library, which have no number: those of timeouts.
const fn of_kind(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Some(NO_REPLY),
        io::ErrorKind::ConnectionRefused => Some(REFUSED),
        _ => None,
    }
}

fn of_number(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::ECONNREFUSED => REFUSED,
        libc::ETIMEDOUT | libc::EAGAIN => NO_REPLY,
        libc::ECONNRESET | libc::ECONNABORTED | libc::EPIPE => {
            "the other end or a middlebox reset the connection: look at the other end's output, and \
             repeat the test"
        }
        libc::ENETUNREACH | libc::ENETDOWN => "no route: check the address and 'ip route'",
        libc::EHOSTUNREACH | libc::EHOSTDOWN => {
            "the host does not answer its neighbours, or a router refuses the packets: check the \
             address, 'ip neigh' and the firewalls on the path"
        }
        libc::EMSGSIZE => {
            "the datagram is larger than the path's MTU or the maximum of 65507 bytes: make it smaller \
             (-l), or permit fragments"
        }
        libc::EADDRNOTAVAIL => {
            "this host does not have that local address, or no local port is free: 'ip address', \
             net.ipv4.ip_local_port_range"
        }
        libc::EADDRINUSE => {
            "the address and port are in use: choose another port, or end that program ('ss -lntup')"
        }
        libc::EAFNOSUPPORT => "this system has no such IP version or protocol: use -4 or -6",
        libc::EPROTONOSUPPORT | libc::ENOPROTOOPT | libc::EOPNOTSUPP => {
            "this kernel does not support it"
        }
        libc::EACCES | libc::EPERM => {
            "not permitted: check this host's firewall rules (nft list ruleset), the permissions, and \
             for a broadcast address or a port below 1024"
        }
        libc::ENOBUFS | libc::ENOMEM => {
            "the system is out of buffers: less memory, streams or rate"
        }
        libc::EMFILE | libc::ENFILE => "too many files or sockets are open: raise 'ulimit -n'",
        libc::ENODEV | libc::ENXIO => "there is no such interface: 'ip link' lists them",
        libc::EISDIR => "it is a directory: name a file",
        libc::ENOTDIR => "a part of the path is no directory: check the path",
        libc::ENOENT => "it does not exist: check the path",
        libc::ENOSPC | libc::EDQUOT => "no space is left: free some, or write elsewhere",
        libc::EROFS => "the file system is read-only: write elsewhere",
        libc::EFBIG => "the file exceeds a limit: 'ulimit -f', or the file system's",
        libc::EIO => "the disk or device failed: see dmesg",
        _ => return None,
    })
}

/// An error with what to do about it, or with `otherwise`, if that says anything.
#[must_use]
pub fn with_advice(error: &io::Error, otherwise: &str) -> String {
    match of(error).unwrap_or(otherwise) {
        "" => error.to_string(),
        advice => format!("{error}; {advice}"),
    }
}

/// The same for a connection to a server, which `server` starts.
#[must_use]
pub fn of_connect(error: &io::Error, server: &str) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("{error}; start a server there: {server}, on that port")
        }
        _ => with_advice(error, "check the address and the port"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_resets_are_blamed_on_middleboxes() {
        for number in 1..134 {
            let error = io::Error::from_raw_os_error(number);
            let resets = [libc::ECONNRESET, libc::ECONNABORTED, libc::EPIPE].contains(&number);
            let blamed = of(&error).is_some_and(|advice| advice.contains("middlebox"));
            assert_eq!(blamed, resets, "{error}");
        }
    }

    #[test]
    fn advice_names_what_to_look_at() {
        for (number, expected) in [
            (libc::EHOSTUNREACH, "ip neigh"),
            (libc::ENETUNREACH, "ip route"),
            (libc::EMSGSIZE, "-l"),
            (libc::EISDIR, "name a file"),
            (libc::ECONNREFUSED, "start a server"),
        ] {
            let text = with_advice(&io::Error::from_raw_os_error(number), "");
            assert!(text.contains(expected), "{text}");
        }
        let late = io::Error::from(io::ErrorKind::TimedOut);
        assert!(with_advice(&late, "").ends_with(NO_REPLY));
        let odd = io::Error::other("odd");
        assert_eq!(with_advice(&odd, "retry"), "odd; retry");
        assert_eq!(with_advice(&odd, ""), "odd");
        let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        assert!(of_connect(&refused, "iperf -s").ends_with("iperf -s, on that port"));
    }
}
