//! XCP with the router that it needs, over short and long round trips.

use super::{Measured, Runs, link_bps};
use crate::built_in::runs::mbit;

const PART: &str = "xcp";

/// Share of the link's payload rate that XCP keeps.
const FULL: f64 = 0.95;

/// The longest mean queueing delay, ms: some packets of each flow at 100 Mbit/s; and as a share of
/// a long round trip, in which the queue of the start takes longer to drain.
const SHORT_MS: f64 = 5.0;
const SHORT_SHARE: f64 = 0.05;

/// The least goodput, the longest mean queueing delay and all retransmitted segments.
pub(super) fn measure(runs: &Runs<'_>) -> Option<Measured> {
    let link = link_bps(runs, PART)?;
    let (mut least, mut longest_ms, mut retransmits) = (f64::INFINITY, 0.0_f64, 0);
    let mut is_short = true;
    for rtt in runs.values(PART, "rtt") {
        let idle_ms = runs.number(PART, "rtt", &rtt)? * 1e3;
        let all = runs.valid(PART, &[("rtt", &rtt)]);
        if all.is_empty() {
            return None;
        }
        for run in all {
            let flow = run.flows.first()?;
            least = least.min(run.throughput_bps());
            let delay_ms = flow.mean_rtt_ms? - idle_ms;
            is_short &= delay_ms <= SHORT_MS.max(SHORT_SHARE * idle_ms);
            longest_ms = longest_ms.max(delay_ms);
            retransmits += flow.retransmits.unwrap_or(0);
        }
    }
    Some(Measured {
        text: format!(
            "at least {}, at most {longest_ms:.1} ms in the queue, {retransmits} retransmitted \
             segments",
            mbit(least)
        ),
        holds: least >= FULL * link && is_short && retransmits == 0,
    })
}
