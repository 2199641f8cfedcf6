//! Why an option brings no gain.

use super::situation::Situation;
use model::Congestion;
use model::boost::{self, Bound, Goodput};
use record::{BoostKind, BoostReason};

/// A transfer with this share of the path's rate saturates it.
const SATURATED: f64 = 0.9;

/// Below this factor an option is worse than nothing, for a reason of its own.
const SAME: f64 = 0.95;

/// Returns true if an option leaves the limit of a transfer in place. A compressed transfer needs less
/// of a saturated bottleneck, and one from an edge a shorter path; further connections and another
/// program have windows of their own.
pub(super) const fn remains(reason: BoostReason, kind: BoostKind) -> bool {
    match reason {
        BoostReason::LineFull | BoostReason::Shared | BoostReason::Policed => {
            !matches!(kind, BoostKind::CompressedPair | BoostKind::Edge)
        }
        BoostReason::ProgramWindow => !matches!(kind, BoostKind::Streams | BoostKind::Copy),
        _ => true,
    }
}

/// What a saturated bottleneck is called in a verdict.
pub(super) const fn is_saturation(reason: BoostReason) -> bool {
    matches!(reason, BoostReason::LineFull | BoostReason::Shared | BoostReason::Policed)
}

/// Why an option with a model brings nothing, or less than nothing.
pub(super) fn no_gain(
    of: &Situation,
    kind: BoostKind,
    goodput: &Goodput,
    factor: f64,
) -> BoostReason {
    let own = of_bound(kind, goodput.bound);
    let is_path = matches!(goodput.bound, Bound::Link | Bound::Congestion);
    if factor < SAME || !is_path {
        return own;
    }
    // A path without a transfer is not known to be saturated: BBR is what fills it.
    let is_drawn = of.limit.is_none() && of.finding.is_none();
    if of.is_already_bbr() && (is_drawn || !is_saturated(of)) {
        return BoostReason::AlreadyBbr;
    }
    if is_saturated(of) { BoostReason::LineFull } else { own }
}

/// Why a sender with BBR gains nothing by BBR.
pub(super) fn with_bbr(of: &Situation) -> BoostReason {
    let bound = match &of.path {
        // A measured transfer has a window where one is its limit.
        Ok(_) if of.limit.is_some() && of.connections.window.is_some() => Some(Bound::Window),
        Ok(path) => boost::direct(path, &of.with_buffers(Congestion::Bbr)).map(|now| now.bound),
        Err(_) => None,
    };
    match bound {
        None | Some(Bound::Link | Bound::Congestion) => BoostReason::AlreadyBbr,
        Some(bound) => of_bound(BoostKind::Route, bound),
    }
}

/// Returns true if the transfer has the rate of its path.
fn is_saturated(of: &Situation) -> bool {
    let (Some(now), Ok(path)) = (of.now, &of.path) else { return false };
    let most = path.rate.expected.scaled(1.0 - path.loss.expected.fraction());
    now.expected >= most.scaled(SATURATED)
}

/// What bounds an option, as the reason why it does not gain more.
const fn of_bound(kind: BoostKind, bound: Bound) -> BoostReason {
    match (bound, kind) {
        (Bound::ProgramWindow, _) => BoostReason::ProgramWindow,
        (Bound::Lan, _) => BoostReason::Lan,
        (Bound::Cpu, BoostKind::Pair | BoostKind::CompressedPair) => BoostReason::BoxCpu,
        (Bound::Cpu, _) => BoostReason::HostCpu,
        (Bound::Window, _) => BoostReason::WindowRemains,
        (Bound::LargestWindow, _) => BoostReason::LargestWindow,
        (Bound::Congestion, _) => BoostReason::Loss,
        (Bound::Link, _) => BoostReason::LineFull,
    }
}
