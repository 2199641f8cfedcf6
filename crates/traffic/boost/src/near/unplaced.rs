//! Flows of near that no lane carries: they wait for one, or the one that was begun for them failed.

use super::NewFlow;
use crate::local_flow::{Local, LocalFlow};
use std::time::Instant;

/// A flow without a lane.
pub(super) struct Unplaced {
    pub(super) flow: NewFlow,
    pub(super) since: Instant,
    /// Lanes that were begun for it and have failed.
    pub(super) attempts: usize,
}

impl Unplaced {
    /// The flow of a lane that far never took; `None` if it is not as near opened it.
    pub(super) fn of_lane(local: LocalFlow) -> Option<Self> {
        let LocalFlow { began: since, attempts, peer, target, to_lane, .. } = local;
        let Local::Connected(stream) = local.local else { return None };
        let (negotiation, share) = (local.negotiation?, local.share?);
        let early = to_lane.unproven;
        let flow = NewFlow { stream, peer, target, negotiation, early, share };
        Some(Unplaced { flow, since, attempts })
    }
}
