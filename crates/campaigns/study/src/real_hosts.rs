//! The hosts of a study that runs between real hosts instead of in labs.

use crate::value::{Hosts, ValueError};
use std::fmt;

/// The hosts of a study that runs between real hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealHosts {
    /// Those that begin the connections, started over ssh; none: this host.
    pub clients: Vec<RemoteHost>,
    /// Those that accept them.
    pub servers: Servers,
}

/// Where the servers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Servers {
    /// A `longhaul server` that runs.
    Running {
        /// Its name or address.
        address: String,
        /// Its port.
        port: u16,
    },
    /// Agents at these hosts serve tests.
    Started(Vec<RemoteHost>),
}

/// A host that ssh reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteHost {
    /// As ssh knows it: `HOST` or `USER@HOST`.
    pub ssh: String,
    /// The name or address at which clients reach it, where that is another one.
    pub address: Option<String>,
}

impl RealHosts {
    /// How many there are.
    #[must_use]
    pub fn counts(&self) -> Hosts {
        let count = |all: usize| u8::try_from(all.max(1)).unwrap_or(u8::MAX);
        let servers = match &self.servers {
            Servers::Running { .. } => 1,
            Servers::Started(servers) => servers.len(),
        };
        Hosts { clients: count(self.clients.len()), servers: count(servers) }
    }

    /// The clients, as a plan names them.
    #[must_use]
    pub fn client_names(&self) -> Vec<String> {
        match self.clients.as_slice() {
            [] => vec!["this host".to_owned()],
            clients => clients.iter().map(ToString::to_string).collect(),
        }
    }

    /// The servers, as a plan names them.
    #[must_use]
    pub fn server_names(&self) -> Vec<String> {
        match &self.servers {
            Servers::Running { address, port } if address.contains(':') => {
                vec![format!("[{address}]:{port}")]
            }
            Servers::Running { address, port } => vec![format!("{address}:{port}")],
            Servers::Started(servers) => servers.iter().map(ToString::to_string).collect(),
        }
    }
}

impl RemoteHost {
    /// `HOST`, `USER@HOST`, or either with `=ADDRESS`.
    pub(crate) fn parse(text: &str) -> Result<Self, ValueError> {
        let (ssh, address) = match text.split_once('=') {
            Some((ssh, address)) => (ssh, Some(address)),
            None => (text, None),
        };
        let (user, host) =
            ssh.split_once('@').map_or((None, ssh), |(user, host)| (Some(user), host));
        if !is_host(host) || !user.is_none_or(is_user) {
            return Err(ValueError::form(text, "a host; write HOST or USER@HOST"));
        }
        if let Some(address) = address.filter(|address| !is_host(address)) {
            return Err(ValueError::Address { address: address.to_owned(), ssh: ssh.to_owned() });
        }
        Ok(RemoteHost { ssh: ssh.to_owned(), address: address.map(str::to_owned) })
    }
}

impl Servers {
    /// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`.
    pub(crate) fn running(text: &str) -> Result<Self, ValueError> {
        const PORT: u16 = 5201;
        let wrong = || ValueError::form(text, "a server; write HOST, HOST:PORT or [ADDRESS]:PORT");
        let (address, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, "")) => (address, None),
            Some((address, port)) => (address, Some(port.strip_prefix(':').ok_or_else(wrong)?)),
            // An IPv6 address without brackets has no port.
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port: u16 = port.map_or(Ok(PORT), str::parse).map_err(|_| wrong())?;
        if !is_host(address) || port == 0 {
            return Err(wrong());
        }
        Ok(Servers::Running { address: address.to_owned(), port })
    }
}

/// A user's name, without any character that a shell interprets.
fn is_user(text: &str) -> bool {
    let named = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(named)
}

/// A name or an address, and never an option of ssh.
fn is_host(text: &str) -> bool {
    let named = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
    (1..=253).contains(&text.len()) && !text.starts_with('-') && text.chars().all(named)
}

impl fmt::Display for RemoteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{}={address}", self.ssh),
            None => f.write_str(&self.ssh),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_hosts_with_a_port() {
        let parsed = |text| {
            Servers::running(text).map(|servers| match servers {
                Servers::Running { address, port } => (address, port),
                Servers::Started(_) => panic!("{text}"),
            })
        };
        let server = |address: &str, port| Ok((address.to_owned(), port));
        assert_eq!(parsed("host"), server("host", 5201));
        assert_eq!(parsed("192.0.2.1:5300"), server("192.0.2.1", 5300));
        assert_eq!(parsed("2001:db8::1"), server("2001:db8::1", 5201));
        assert_eq!(parsed("[2001:db8::1]:1"), server("2001:db8::1", 1));
        for wrong in ["", ":1", "host:", "host:0", "host:70000", "-o", "a b", "[::1]5", "[::1"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_are_no_options_and_may_have_another_address() {
        let host = RemoteHost::parse("me@far=192.0.2.1").unwrap();
        assert_eq!((host.ssh.as_str(), host.address.as_deref()), ("me@far", Some("192.0.2.1")));
        assert_eq!(host.to_string(), "me@far=192.0.2.1");
        for wrong in ["", "-oProxyCommand=x", "me@-o", "-l@x", "a b", "a=", "a=-x", "me@", "a\n"] {
            assert!(RemoteHost::parse(wrong).is_err(), "{wrong}");
        }
    }
}
