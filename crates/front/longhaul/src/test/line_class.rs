//! The link, or the provisioned rate, that a test's goodput identifies.

use diagnose::repeats;
use model::IpVersion;
use record::{Direction, Measurement, Protocol};

/// Payload of a segment with an MTU of 1500 and timestamps, by IP version.
const SEGMENTS: [(u32, IpVersion, &str); 2] =
    [(1_448, IpVersion::Ipv4, "IPv4"), (1_428, IpVersion::Ipv6, "IPv6")];

/// A note where one direction over a real path reached the payload rate of an Ethernet link.
pub(super) fn note(measurement: &Measurement) -> Option<String> {
    let spec = &measurement.spec;
    if spec.protocol != Protocol::Tcp || spec.direction == Direction::Both {
        return None;
    }
    // An emulated path has the requested rate.
    if measurement.path.is_some() {
        return None;
    }
    let sample = measurement.streams.iter().find_map(|stream| stream.sender.last())?;
    let (_, ip, name) = SEGMENTS.iter().find(|(mss, ..)| *mss == sample.mss_bytes)?;
    let goodput = repeats::figures(measurement).throughput_bps;
    let class = model::line_class(goodput, *ip)?;
    Some(format!(
        "a link of {} carries {} of TCP payload over {name}, which matches the goodput: {}",
        class.link, class.goodput, class.means
    ))
}
