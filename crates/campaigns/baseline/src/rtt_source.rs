//! Which RTT counts. Hosts may drop ICMP echo requests, and routers and hosts may answer them
//! late, as they have the lowest priority there; a SYN is answered by TCP itself.

use record::RttSource;

/// How much later than a SYN an echo request is answered, as a ratio and in ms, for ICMP to
/// count as delayed: both, as RTTs of a few ms vary by as much.
const LATE_RATIO: f64 = 1.5;
const LATE_MS: f64 = 2.0;

/// An RTT and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct RttChoice {
    /// The RTT, ms.
    pub rtt_ms: Option<f64>,
    /// The source of the RTT.
    pub from: Option<RttSource>,
    /// The problem with ICMP, if any.
    pub warning: Option<String>,
}

/// Chooses between the shortest RTT of ICMP echo requests and that of a TCP handshake, ms.
#[must_use]
pub fn choose_rtt(icmp: Option<f64>, handshake: Option<f64>) -> RttChoice {
    let of = |rtt_ms, from, warning| RttChoice { rtt_ms, from, warning };
    match (icmp, handshake) {
        (Some(icmp), Some(syn)) if icmp > syn * LATE_RATIO && icmp > syn + LATE_MS => of(
            Some(syn),
            Some(RttSource::Handshake),
            Some(format!(
                "ICMP replies are late ({icmp:.1} ms; the TCP handshake takes {syn:.1} ms): ICMP \
                 has low priority there, so the handshake's RTT is used"
            )),
        ),
        (Some(icmp), _) => of(Some(icmp), Some(RttSource::Icmp), None),
        (None, Some(syn)) => of(
            Some(syn),
            Some(RttSource::Handshake),
            Some(format!("No ICMP replies: the RTT is that of the TCP handshake, {syn:.1} ms")),
        ),
        (None, None) => of(None, None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_counts_unless_it_is_late_or_missing() {
        let from = |icmp, syn| choose_rtt(icmp, syn).from;
        assert_eq!(from(Some(20.0), Some(20.5)), Some(RttSource::Icmp));
        assert_eq!(from(Some(20.0), None), Some(RttSource::Icmp));
        // 1.5 times and 2 ms: just not, and just.
        assert_eq!(from(Some(30.0), Some(20.0)), Some(RttSource::Icmp));
        assert_eq!(from(Some(30.1), Some(20.0)), Some(RttSource::Handshake));
        assert_eq!(from(Some(2.4), Some(0.5)), Some(RttSource::Icmp));
        assert_eq!(from(Some(2.6), Some(0.5)), Some(RttSource::Handshake));
        let silent = choose_rtt(None, Some(15.0));
        assert_eq!((silent.rtt_ms, silent.from), (Some(15.0), Some(RttSource::Handshake)));
        assert!(silent.warning.unwrap().contains("No ICMP replies"));
        assert_eq!(choose_rtt(None, None).rtt_ms, None);
    }
}
