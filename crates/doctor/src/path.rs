//! The way to the far end: round trips, the largest packet, one handshake.
//! No more than a few dozen packets go there.

use crate::facts::{Fact, Mtu, PathFacts, Shook};
use reach::{PingConfig, PingMethod, ReachError, Shake};
use std::net::SocketAddr;
use std::time::Duration;
use units::Rtt;

/// Echoes for the round trip.
const PROBES: u64 = 10;
const INTERVAL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(2);
/// A handshake has time for one SYN sent again after a second, and its answer.
const HANDSHAKE: Duration = Duration::from_secs(4);

/// What is asked of [`path`].
pub struct Course<'a> {
    /// The far end as it was named.
    pub host: &'a str,
    /// Its address, with the port of the handshake.
    pub to: SocketAddr,
    /// The device's MTU, with which the search begins.
    pub mtu: u32,
    /// Hears what is done next.
    pub tell: &'a mut dyn FnMut(&str),
    /// Ends it.
    pub stop: &'a dyn Fn() -> bool,
}

/// Asks the far end.
///
/// # Errors
/// [`ReachError`]: no route there, or interrupted. What only part of the
/// questions met is a fact that could not be read.
pub fn path(course: &mut Course<'_>) -> Result<PathFacts, ReachError> {
    (course.tell)("round trips");
    let config = PingConfig {
        host: course.to.ip().to_string(),
        family: reach::Family::Any,
        method: PingMethod::IcmpOrTcp,
        count: PROBES,
        interval: INTERVAL,
        payload: 56,
        timeout: PATIENCE,
        bind: None,
        tos: None,
        ttl: None,
    };
    let pinged = reach::ping(&config, &mut |_| {}, course.stop)?;
    let goes_on = |course: &Course<'_>| match (course.stop)() {
        true => Err(ReachError::Interrupted),
        false => Ok(()),
    };
    goes_on(course)?;
    (course.tell)("a handshake");
    let shaken = reach::shake(course.to, HANDSHAKE)?;
    goes_on(course)?;
    let port = course.to.port();
    let handshake = match &shaken {
        Shake::Met(met) => Fact::Seen(Shook {
            port,
            window_scale: met.options.window_scale,
            peer_shift: met.options.peer_shift,
            own_shift: met.options.own_shift,
            sack: met.options.sack,
            timestamps: met.options.timestamps,
            ecn: met.options.ecn,
            segment_bytes: met.segment_bytes,
        }),
        Shake::Refused => Fact::unread(format!("nobody listens at port {port}")),
        Shake::Silent(why) => Fact::unread(format!("port {port}: {why}")),
    };
    let ours = pinged.round_trips.map(|trips| Rtt::from_secs(trips.min_ms / 1e3));
    // Where no echo came back, the SYN's round trip has to do.
    let theirs = match &shaken {
        Shake::Met(met) if met.rtt_us > 0 => Some(Rtt::from_micros(met.rtt_us.into())),
        _ => None,
    };
    let method = match (ours, theirs) {
        (None, Some(_)) => "handshake",
        _ => pinged.method,
    };
    let rtt = ours.or(theirs);
    (course.tell)("the largest packet");
    let mtu = mtu(course, rtt)?;
    Ok(PathFacts {
        host: course.host.to_owned(),
        address: course.to.ip().to_string(),
        method: method.to_owned(),
        rtt_ns: rtt.map_or_else(|| Fact::unread("nothing answered"), Fact::Seen),
        sent: pinged.sent,
        lost: pinged.lost,
        mtu,
        handshake,
    })
}

fn mtu(course: &Course<'_>, rtt: Option<Rtt>) -> Result<Fact<Mtu>, ReachError> {
    let trip = rtt.map_or(Duration::ZERO, Rtt::duration);
    let timeout = (trip * 3).clamp(Duration::from_millis(700), Duration::from_secs(3));
    match reach::path_mtu(course.to.ip(), course.mtu, timeout, course.stop) {
        Ok(_) if (course.stop)() => Err(ReachError::Interrupted),
        Ok(found) => Ok(Fact::Seen(Mtu {
            tried: found.tried,
            arrived: found.arrived,
            told: found.told.map(|(by, mtu)| (by.to_string(), mtu)),
            sent: found.sent,
        })),
        Err(error) => Ok(Fact::unread(match error {
            ReachError::Privileges => "this user may send no ICMP echoes".to_owned(),
            other => other.to_string(),
        })),
    }
}
