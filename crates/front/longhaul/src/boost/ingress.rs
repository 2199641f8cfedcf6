//! How applications reach the near box: ports that are forwarded, proxies, a gateway's device.

use super::event::BoostEvent;
use super::problem;
use super::request::NearRequest;
use super::settings::warn_if_shared;
use crate::secrets::{self, MAX_LIST, tokens};
use crate::{Fault, Field, Problem};
use ::boost::gateway::{Diversion, Gateway, MAX_PORTS};
use ::boost::program::Ports;
use ::boost::{Listener, PortForward, Proxy, Transparent, sockets};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// A proxy of SOCKS5 and HTTP CONNECT.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProxySettings {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// A file with the token that clients give as the password; required where other hosts reach it.
    pub token_file: Option<PathBuf>,
}

/// Connections that arrive at a device, on their way to any address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewaySettings {
    /// The device of the hosts that are boosted.
    pub interface: String,
    /// The ports; none: all of them.
    pub ports: Vec<u16>,
}

/// Ports as text; none: all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayPorts(pub Vec<u16>);

impl FromStr for GatewayPorts {
    type Err = String;

    /// `all`, or `PORT,…`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(GatewayPorts(Vec::new()));
        }
        let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0);
        let ports = text.split(',').map(port).collect::<Option<_>>();
        ports.map(GatewayPorts).ok_or_else(|| "give all, or ports such as 80,443".to_owned())
    }
}

/// The open listeners of a near box.
pub(super) struct Ingresses {
    pub(super) listeners: Vec<Listener>,
    /// What each is for.
    pub(super) addresses: Vec<String>,
    /// Rules that end with the box.
    pub(super) diversion: Option<Diversion>,
}

impl ProxySettings {
    pub(super) fn check(&self) -> Result<(), Problem> {
        let is_wide = |listen: &&SocketAddr| !listen.ip().to_canonical().is_loopback();
        if let Some(wide) = self.listen.iter().find(is_wide).filter(|_| self.token_file.is_none()) {
            let message = format!("other hosts can use the proxy at {wide}");
            return Err(Problem::field(Field::TokenFile, message, "a file with a token"));
        }
        Ok(())
    }
}

impl GatewaySettings {
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.ports.len() > MAX_PORTS || self.ports.contains(&0) {
            let accepted = format!("all, or at most {MAX_PORTS} ports from 1 to 65535");
            return Err(Problem::field(Field::Ports, "the list of ports is invalid", accepted));
        }
        Ok(())
    }
}

/// Opens the listeners of a request.
pub(super) fn open(
    request: &NearRequest,
    on_event: &mut dyn FnMut(BoostEvent),
) -> Result<Ingresses, Problem> {
    let mut open = Ingresses { listeners: Vec::new(), addresses: Vec::new(), diversion: None };
    let mut add = |listen: SocketAddr, ingress: Arc<dyn ::boost::Ingress>, what: &str| {
        let socket = sockets::application_listener(listen).map_err(problem)?;
        let listen = socket.local_addr().unwrap_or(listen);
        open.addresses.push(format!("{listen} {what}"));
        open.listeners.push(Listener { socket, ingress });
        Ok::<(), Problem>(())
    };
    for forward in &request.forwards {
        let ingress = Arc::new(PortForward(forward.target.clone()));
        add(forward.listen, ingress, &format!("-> {}", forward.target))?;
    }
    let token = request.proxy.token_file.as_deref().map(|file| read_token(file, on_event));
    let token = token.transpose()?;
    for listen in &request.proxy.listen {
        let ingress = Arc::new(Proxy { token: token.clone() });
        add(*listen, ingress, "(SOCKS5, HTTP CONNECT)")?;
    }
    if let Some(gateway) = &request.gateway {
        let device = gateway.interface.clone();
        let ports = match gateway.ports.as_slice() {
            [] => Ports::All,
            ports => Ports::Listed(ports.to_vec()),
        };
        let ingress = Transparent {
            name_server: None,
            is_own: host::transparent::is_own,
            // Of all ports, those connections pass that no listener accepts.
            accepts_while_draining: matches!(ports, Ports::Listed(_)),
        };
        let opened = Gateway { device, ports }.open();
        let mut diversion = opened.map_err(|error| Problem::new(Fault::Host, error))?;
        for socket in diversion.listeners.drain(..) {
            open.listeners.push(Listener { socket, ingress: Arc::new(ingress) });
        }
        open.addresses.push(format!("{} (transparent)", gateway.interface));
        open.diversion = Some(diversion);
    }
    Ok(open)
}

fn read_token(
    file: &Path,
    on_event: &mut dyn FnMut(BoostEvent),
) -> Result<::boost::proxy::Token, Problem> {
    let read = secrets::read(file, "token", MAX_LIST)?;
    warn_if_shared(&read, file, on_event);
    let token = tokens(&read.text).next().map(::boost::proxy::Token::new);
    token.ok_or_else(|| {
        let message = format!("no token in {}; make one: openssl rand -hex 16", file.display());
        Problem::new(Fault::Request, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_that_others_can_read_is_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "secret\n").unwrap();
        for (mode, count) in [(0o600, 0), (0o644, 1)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let mut warnings = Vec::new();
            read_token(&file, &mut |event| warnings.push(event)).unwrap();
            assert_eq!(warnings.len(), count, "{warnings:?}");
        }
    }
}
