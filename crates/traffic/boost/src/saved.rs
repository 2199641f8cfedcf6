//! The least time that a flow was spared: what it would have taken without the boxes, less what it took.

use crate::local_flow::{FlowEnd, FlowSummary};
use model::least_transfer_time;
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// Saved time of a flow that ended in order at near, at least: `max(0, T_direct - T_boosted)` with
/// the [bound](least_transfer_time) for the larger direction. Zero where the RTT is unknown.
///
/// The path of a direct connection is taken to be no shorter than that between the boxes. Bytes of
/// the application count only if its target ended its own direction a round trip or more after the
/// last of them: else the flow may have ended here before they had arrived there.
pub(crate) fn saved_time(summary: &FlowSummary, direct_rate: Option<BitRate>) -> Duration {
    let Some(rtt) = summary.rtt.filter(|_| summary.end == FlowEnd::Orderly) else {
        return Duration::ZERO;
    };
    let has_arrived = summary.answered_after.is_some_and(|after| after >= rtt);
    let sent = if has_arrived { summary.sent } else { 0 };
    let size = ByteCount::from_bytes(sent.max(summary.received));
    let rtt = Rtt::from_nanos(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX));
    let direct = least_transfer_time(size, rtt, direct_rate).unwrap_or_default();
    direct.saturating_sub(summary.duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(sent: u64, received: u64, duration_ms: u64) -> FlowSummary {
        FlowSummary {
            peer: "192.0.2.1:1".parse().unwrap(),
            target: "example.com:443".parse().unwrap(),
            sent,
            received,
            wan_sent: sent,
            wan_received: received,
            uncompressed: None,
            duration: Duration::from_millis(duration_ms),
            rtt: Some(Duration::from_millis(100)),
            answered_after: Some(Duration::from_millis(100)),
            end: FlowEnd::Orderly,
        }
    }

    fn saved_ms(summary: &FlowSummary) -> u128 {
        saved_time(summary, None).as_millis()
    }

    #[test]
    fn a_download_saves_what_slow_start_would_have_taken() {
        // Seven windows and a half round trip.
        assert_eq!(saved_ms(&flow(100, 1_000_000, 250)), 500);
        assert_eq!(saved_ms(&flow(100, 1_000_000, 751)), 0);
        let rate = Some("1mbit".parse().unwrap());
        assert_eq!(saved_time(&flow(0, 1_000_000, 100), rate), Duration::from_secs(8));
    }

    #[test]
    fn nothing_is_counted_that_is_not_known() {
        let whole = flow(100, 1_000_000, 250);
        assert_eq!(saved_ms(&FlowSummary { rtt: None, ..whole.clone() }), 0);
        assert_eq!(saved_ms(&FlowSummary { end: FlowEnd::LocalReset, ..whole }), 0);
        let upload = flow(1_000_000, 100, 120);
        assert_eq!(saved_ms(&upload), 630);
        // The larger direction may not have arrived: that of 100 bytes takes 1.5 round trips.
        for answered_after in [None, Some(Duration::from_millis(99))] {
            assert_eq!(saved_ms(&FlowSummary { answered_after, ..upload.clone() }), 30);
        }
    }
}
