//! What to write instead of a name that is no field and no protocol here.

use super::error::quoted;
use super::literal::integer;
use crate::field::nearest;

/// Fields of Wireshark, and below them, that there is something else for.
const INSTEAD: [(&str, &str); 18] = [
    (
        "tcp.segment",
        "application data is not reassembled; 'tcp.len > 0' has the segments with data",
    ),
    (
        "tcp.segments",
        "application data is not reassembled; 'tcp.len > 0' has the segments with data",
    ),
    (
        "tcp.reassembled",
        "application data is not reassembled; 'tcp.len > 0' has the segments with data",
    ),
    ("tcp.reassembled_in", "application data is not reassembled; use 'tcp.stream'"),
    ("tcp.pdu", "application data is not reassembled; use 'tcp.len'"),
    ("tcp.checksum_bad", "write 'tcp.checksum.status == Bad'"),
    ("tcp.checksum_good", "write 'tcp.checksum.status == Good'"),
    ("ip.checksum_bad", "write 'ip.checksum.status == Bad'"),
    ("ip.checksum_good", "write 'ip.checksum.status == Good'"),
    ("udp.checksum_bad", "write 'udp.checksum.status == Bad'"),
    ("tcp.flags.ns", "the bit is 'tcp.flags.ae' today"),
    ("tcp.flags.ecn", "the bit is 'tcp.flags.ece'"),
    ("ip.tos", "the byte is 'ip.dsfield' today"),
    ("ip.geoip", "locations need a database; compare 'ip.addr' with a prefix"),
    (
        "frame.coloring_rule",
        "packets have no colouring rules; 'tcp.analysis.flags' is the one for bad TCP",
    ),
    ("expert.severity", "the field is '_ws.expert.severity' today"),
    ("expert.message", "the field is '_ws.expert.message' today"),
    ("wlan", "802.11 headers have no fields; use 'eth' or 'ip'"),
];

/// Why a name is refused, and the nearest one that is not.
pub(super) fn unknown(name: &str) -> String {
    if integer(name).is_some() {
        return format!("{} is a number; a comparison begins with a field", quoted(name));
    }
    let shown = quoted(name);
    let instead = INSTEAD.iter().find(|(its, _)| {
        name.strip_prefix(its).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    if let Some((_, instead)) = instead {
        return format!("{shown} is not supported: {instead}");
    }
    match nearest(name) {
        Some(nearest) => format!("{shown} is no field or protocol; did you mean '{nearest}'?"),
        None => {
            format!(
                "{shown} is no field or protocol; 'pcap packets {}' lists them",
                problem::Field::Fields
            )
        }
    }
}
