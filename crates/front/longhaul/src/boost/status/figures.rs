//! The counters of a box.

use ::boost::{NotBoosted, Totals};
use record::{BoxRole, BoxStatus, NotBoostedCount};

/// The status of a box by its counters.
pub(super) fn of(name: String, role: BoxRole, totals: &Totals) -> BoxStatus {
    let counts = NotBoosted::ALL.iter().zip(totals.not_boosted);
    BoxStatus {
        active_flows: totals.active_flows,
        flows: totals.flows,
        reused: totals.reused,
        reset: totals.reset,
        active_lanes: totals.active_lanes,
        in_bytes: totals.bytes_in,
        out_bytes: totals.bytes_out,
        wan_sent_bytes: totals.wan_sent,
        wan_received_bytes: totals.wan_received,
        not_boosted: counts
            .map(|(reason, count)| NotBoostedCount { reason: reason.name().to_owned(), count })
            .collect(),
        udp_refused: totals.udp_refused,
        saved_s: (role != BoxRole::Far).then_some(totals.saved.as_secs_f64()),
        ..BoxStatus::new(name, role)
    }
}
