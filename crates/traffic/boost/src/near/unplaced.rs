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
    /// The flow of a lane that far never took.
    ///
    /// # Errors
    /// The application has gone, or far has answered: no other lane can carry it.
    pub(super) fn of_lane(local: LocalFlow) -> Result<Self, LocalFlow> {
        let LocalFlow { began: since, attempts, peer, .. } = local;
        match local {
            LocalFlow {
                local: Local::Connected(stream),
                negotiation: Some(negotiation),
                share: Some(share),
                target,
                to_lane,
                ..
            } => {
                let early = to_lane.unproven;
                let flow = NewFlow { stream, peer, target, negotiation, early, share };
                Ok(Unplaced { flow, since, attempts })
            }
            other => Err(other),
        }
    }
}
