//! One IP version's path to the server: address, RTT by ICMP and by TCP, MTU, CDN.

use super::{BaselineEvent, Server};
use crate::StopFlag;
use crate::doctor::{self, PathProbe};
use ::doctor::PathFacts;
use host::{clock, names};
use probe::{Family, ProbeError};
use record::{AddressFamily, BaselinePath};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Longest wait for the resolver's addresses, and for the names that betray a CDN.
const RESOLVE: Duration = Duration::from_secs(15);
const NAMES: Duration = Duration::from_secs(3);

/// The server's address of an IP version.
pub(super) fn address(
    server: &Server,
    family: AddressFamily,
    stop: &StopFlag,
) -> Result<SocketAddr, ProbeError> {
    let wanted = match family {
        AddressFamily::Ipv4 => Family::V4,
        AddressFamily::Ipv6 => Family::V6,
    };
    let until = clock::now() + RESOLVE;
    let over = || stop.is_raised() || clock::now() >= until;
    probe::resolve(&server.host, *server.ports.start(), wanted, None, &over)
}

/// The reason there is no address of this version.
pub(super) fn without_address(family: AddressFamily, error: &ProbeError) -> BaselinePath {
    let why = match error {
        ProbeError::Resolve(error) => error.reason.clone(),
        ProbeError::Interrupted => "the resolver did not answer".to_owned(),
        other => other.to_string(),
    };
    BaselinePath { skipped: Some(why), ..untested(family) }
}

fn untested(family: AddressFamily) -> BaselinePath {
    BaselinePath {
        family,
        address: None,
        skipped: None,
        icmp_rtt_ms: None,
        handshake_rtt_ms: None,
        rtt_ms: None,
        rtt_from: None,
        mtu_bytes: None,
        cdn: None,
        warnings: Vec::new(),
    }
}

/// Probes the path. What fails is missing; only a path without a route is skipped.
pub(super) fn probe(
    server: &Server,
    family: AddressFamily,
    to: SocketAddr,
    device_mtu: u32,
    on_event: &mut dyn FnMut(BaselineEvent),
    stop: &StopFlag,
) -> (BaselinePath, Option<PathFacts>) {
    let address = Some(to.ip().to_string());
    let mut tell = |step: &str| {
        let (host, step) = (server.host.clone(), step.to_owned());
        on_event(BaselineEvent::Probing { host, family, step });
    };
    let mut request = PathProbe {
        host: &server.host,
        to,
        mtu: device_mtu,
        tell: &mut tell,
        stop: &|| stop.is_raised(),
    };
    let facts = match doctor::path(&mut request) {
        Ok(facts) => facts,
        Err(error) => {
            let skipped = Some(error.to_string());
            return (BaselinePath { address, skipped, ..untested(family) }, None);
        }
    };
    let icmp = facts.echo_rtt_ns.seen().map(|rtt| rtt.millis_f64());
    let handshake = facts.handshake.seen().map(|shook| f64::from(shook.rtt_us) / 1e3);
    let handshake = handshake.filter(|rtt| *rtt > 0.0);
    let chosen = baseline::choose_rtt(icmp, handshake);
    let cdn = baseline::content_network(to.ip(), &names_of(&server.host, to.ip()));
    let of_cdn = cdn.map(|cdn| {
        format!(
            "the address belongs to {cdn}, a content delivery network: the tests and the RTT end \
             at its nearest site"
        )
    });
    let path = BaselinePath {
        address,
        icmp_rtt_ms: icmp,
        handshake_rtt_ms: handshake,
        rtt_ms: chosen.rtt_ms,
        rtt_from: chosen.from,
        mtu_bytes: facts.mtu.seen().and_then(|mtu| mtu.arrived),
        cdn: cdn.map(str::to_owned),
        warnings: chosen.warning.into_iter().chain(of_cdn).collect(),
        ..untested(family)
    };
    (path, Some(facts))
}

/// The host's canonical name and its address's name. The resolver cannot be interrupted: it
/// runs in a thread of its own, which may outlive the wait.
fn names_of(host: &str, address: IpAddr) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    let host = host.to_owned();
    let work = move || {
        let found = [names::canonical(&host), names::of(address)];
        let _ = sender.send(found.into_iter().flatten().collect());
    };
    let thread = thread::Builder::new().name("names".to_owned()).spawn(work);
    thread.ok().and_then(|_| receiver.recv_timeout(NAMES).ok()).unwrap_or_default()
}
