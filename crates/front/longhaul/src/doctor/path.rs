//! Probes of the path to the far end: RTT, path MTU, one handshake. A few dozen packets in all.

use ::doctor::{Fact, HandshakeFacts, Mtu, PathFacts};
use host::address::host_text;
use probe::{PingConfig, ProbeError, TcpHandshake};
use std::net::SocketAddr;
use std::time::Duration;
use units::Rtt;

/// Echo requests for the RTT.
const PROBES: u64 = 10;
const INTERVAL: Duration = Duration::from_millis(100);
/// Time to wait for a reply.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Long enough for one SYN retransmission after a second, and its reply.
const HANDSHAKE: Duration = Duration::from_secs(4);

/// The input of [`path`].
pub struct PathProbe<'a> {
    /// The far end as selected with --device.
    pub host: &'a str,
    /// Its address, with the port of the handshake.
    pub to: SocketAddr,
    /// The device's MTU, where the search starts.
    pub mtu: u32,
    /// Called with each next step.
    pub tell: &'a mut dyn FnMut(&str),
    /// Ends it.
    pub stop: &'a dyn Fn() -> bool,
}

/// Probes the far end.
///
/// # Errors
/// [`ProbeError`]: no route, or interrupted. A single failed probe becomes an unavailable fact.
pub fn path(probe: &mut PathProbe<'_>) -> Result<PathFacts, ProbeError> {
    (probe.tell)("RTT");
    let config = PingConfig::plain(probe.to, PROBES, INTERVAL, TIMEOUT);
    let pinged = probe::ping(&config, &mut |_| {}, probe.stop)?;
    let check_stop = |probe: &PathProbe<'_>| match (probe.stop)() {
        true => Err(ProbeError::Interrupted),
        false => Ok(()),
    };
    check_stop(probe)?;
    (probe.tell)("TCP handshake");
    let outcome = probe::probe_handshake(probe.to, HANDSHAKE)?;
    check_stop(probe)?;
    let port = probe.to.port();
    let handshake = match &outcome {
        TcpHandshake::Completed(met) => Fact::Seen(HandshakeFacts {
            port,
            window_scale: met.options.window_scale,
            peer_shift: met.options.peer_shift,
            own_shift: met.options.own_shift,
            sack: met.options.sack,
            timestamps: met.options.timestamps,
            ecn: met.options.ecn,
            segment_bytes: met.segment_bytes,
            rtt_us: met.rtt_us,
        }),
        TcpHandshake::Refused => Fact::unread(format!("connection refused at port {port}")),
        TcpHandshake::NoReply(why) => Fact::unread(format!("port {port}: {why}")),
    };
    let echo_rtt = pinged.round_trips.map(|trips| Rtt::from_secs(trips.min_ms / 1e3));
    // Without an echo reply, use the SYN's RTT.
    let syn_rtt = match &outcome {
        TcpHandshake::Completed(met) if met.rtt_us > 0 => Some(Rtt::from_micros(met.rtt_us.into())),
        _ => None,
    };
    let method = match (echo_rtt, syn_rtt) {
        (None, Some(_)) => "handshake",
        _ => pinged.method,
    };
    let rtt = echo_rtt.or(syn_rtt);
    (probe.tell)("path MTU");
    let mtu = mtu(probe, rtt)?;
    Ok(PathFacts {
        host: probe.host.to_owned(),
        address: host_text(probe.to),
        method: method.to_owned(),
        rtt_ns: rtt.map_or_else(|| Fact::unread("no reply"), Fact::Seen),
        echo_rtt_ns: match (pinged.method, echo_rtt) {
            ("icmp", Some(rtt)) => Fact::Seen(rtt),
            ("icmp", None) => Fact::unread("no reply"),
            _ => Fact::unread("no permission to send ICMP echoes"),
        },
        sent: pinged.sent,
        lost: pinged.lost,
        mtu,
        handshake,
    })
}

fn mtu(probe: &PathProbe<'_>, rtt: Option<Rtt>) -> Result<Fact<Mtu>, ProbeError> {
    let trip = rtt.map_or(Duration::ZERO, Rtt::duration);
    let timeout = (trip * 3).clamp(Duration::from_millis(700), Duration::from_secs(3));
    match probe::path_mtu(probe.to, probe.mtu, timeout, probe.stop) {
        Ok(_) if (probe.stop)() => Err(ProbeError::Interrupted),
        Ok(found) => Ok(Fact::Seen(Mtu {
            tried: found.tried,
            arrived: found.arrived,
            told: found.told.map(|(by, mtu)| (by.to_string(), mtu)),
            sent: found.sent,
        })),
        Err(error) => Ok(Fact::unread(match error {
            ProbeError::Privileges => "no permission to send ICMP echoes".to_owned(),
            other => other.to_string(),
        })),
    }
}
