//! What a route's metrics are computed for.

use model::Payload;
use record::RoutePrefix;
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// MTU of a path that nothing else is known of, bytes.
const MTU: u32 = 1500;

/// A destination, the path to it, and values to set whatever the path needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteGoal {
    /// The destination.
    pub route: RoutePrefix,
    /// The path's rate, of all connections together.
    pub rate: BitRate,
    /// Its RTT.
    pub rtt: Rtt,
    /// Connections that share the rate; 0 counts as 1.
    #[serde(default = "one")]
    pub streams: u32,
    /// Random loss of the path, if known.
    #[serde(default)]
    pub loss: Option<LossRatio>,
    /// Bytes of a transfer to predict besides a long one.
    #[serde(default)]
    pub bytes: Option<ByteCount>,
    /// A congestion control to set, by the kernel's name.
    #[serde(default)]
    pub congestion: Option<String>,
    /// The initial congestion window to set, in segments.
    #[serde(default)]
    pub initcwnd: Option<u32>,
    /// The initial receive window to set, in segments.
    #[serde(default)]
    pub initrwnd: Option<u32>,
}

const fn one() -> u32 {
    1
}

impl RouteGoal {
    /// One connection at a rate over an RTT.
    #[must_use]
    pub const fn new(route: RoutePrefix, rate: BitRate, rtt: Rtt) -> Self {
        RouteGoal {
            route,
            rate,
            rtt,
            streams: 1,
            loss: None,
            bytes: None,
            congestion: None,
            initcwnd: None,
            initrwnd: None,
        }
    }

    /// In words.
    pub(crate) fn text(&self) -> String {
        let &RouteGoal { route, rate, rtt, streams, loss, .. } = self;
        let mut text = format!("{rate} over {rtt} to {route}");
        if streams > 1 {
            text += &format!(", {streams} streams");
        }
        if let Some(loss) = loss {
            text += &format!(", {} loss", units::percent(loss.fraction()));
        }
        text
    }

    /// Headers and payload of the path's packets, at this MTU of the route.
    pub(crate) fn payload(&self, mtu: Option<u32>) -> Payload {
        let ip = match self.route.is_ipv4() {
            true => model::IpVersion::Ipv4,
            false => model::IpVersion::Ipv6,
        };
        Payload { ip, ..Payload::of_ip(mtu.unwrap_or(MTU)) }
    }
}
