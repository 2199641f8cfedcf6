//! A path MTU black hole: full-size packets are lost, and no ICMP message reports the path's MTU
//! (RFC 2923, section 2.1). TCP stalls as soon as it sends a full segment.

use crate::causes::{Cause, Observed};
use record::{Limit, SegmentSizes};

/// The payload that RFC 4821, section 7.2 recommends to begin with: packets of 1,024 bytes, less
/// the headers of IPv4 and TCP with timestamps (52 bytes), rounded down.
const SAFE_MSS: u32 = 960;

/// Headers of a segment over IPv4: IP and TCP. The MSS option counts TCP's options as payload.
const HEADERS: u32 = 40;

pub(super) struct PmtuBlackHole;

impl Cause for PmtuBlackHole {
    fn limit(&self) -> Limit {
        Limit::PmtuBlackHole
    }

    fn noun(&self) -> &'static str {
        "a path MTU black hole"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let mss =
            sizes(o).and_then(|sizes| sizes.path_mtu_bytes).map(|mtu| mtu.saturating_sub(HEADERS));
        format!(
            "Path MTU black hole: {}, and no ICMP message reports a smaller MTU. Repeat the test with \
             -M {}; then lower the interface's MTU or clamp the MSS at the tunnel or router, allow \
             ICMP type 3 code 4 (IPv6: type 2), or set net.ipv4.tcp_mtu_probing=1 (RFC 4821).",
            lost(o),
            mss.unwrap_or(SAFE_MSS)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("path MTU black hole: {}; clamp the MSS or set net.ipv4.tcp_mtu_probing=1", lost(o))
    }
}

fn sizes(o: &Observed<'_>) -> Option<SegmentSizes> {
    o.m.streams.iter().find_map(|stream| stream.segment_sizes).filter(SegmentSizes::is_black_hole)
}

/// Which sizes arrive and which do not.
fn lost(o: &Observed<'_>) -> String {
    match sizes(o) {
        Some(SegmentSizes { path_mtu_bytes: Some(mtu), .. }) => {
            format!("no full-size segment arrives, but packets of up to {mtu} B do")
        }
        Some(SegmentSizes { largest_delivered_bytes: 0, smallest_lost_bytes, .. }) => {
            format!("no segment of {smallest_lost_bytes} B arrives")
        }
        Some(SegmentSizes { largest_delivered_bytes, smallest_lost_bytes, .. }) => format!(
            "segments of up to {largest_delivered_bytes} B arrive, but none of \
             {smallest_lost_bytes} B or more"
        ),
        None => "no full-size segment arrives, but smaller ones do".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::PmtuBlackHole;
    use crate::{causes::Cause, example::Example};
    use record::SegmentSizes;

    #[test]
    fn it_names_the_sizes_and_the_mss_to_set() {
        let mut example = Example::new(0.0, 20.0);
        let sentence = |example: &Example| PmtuBlackHole.sentence(&example.observed());
        example.m.streams[0].segment_sizes = Some(SegmentSizes {
            largest_delivered_bytes: 600,
            smallest_lost_bytes: 1448,
            path_mtu_bytes: None,
        });
        let text = sentence(&example);
        assert!(
            text.contains("up to 600 B arrive, but none of 1448 B") && text.contains("-M 960"),
            "{text}"
        );
        let sizes = example.m.streams[0].segment_sizes.as_mut().unwrap();
        sizes.path_mtu_bytes = Some(1400);
        assert!(sentence(&example).contains("packets of up to 1400 B do"));
        assert!(sentence(&example).contains("-M 1360"));
    }
}
