//! Events of simulations.

use serde::{Deserialize, Serialize};
use units::ByteCount;

/// Events, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimEvent {
    /// The simulation begins.
    Started {
        /// Data packets that it carries at most; `None` if the path has no rate.
        packets: Option<u64>,
        /// Memory that it needs at most.
        memory: ByteCount,
    },
    /// Time has passed in the simulation: now and then, from two seconds after the start on.
    Simulated {
        /// Its time, s.
        at_s: f64,
        /// The time at which it ends, s.
        of_s: f64,
        /// Data packets so far.
        packets: u64,
    },
    /// A run of several begins.
    Run {
        /// Its number, from 1.
        number: usize,
        /// The number of runs.
        of: usize,
        /// What is run, such as `bbr beside cubic` or `lab, seed 3`.
        what: String,
    },
    /// A run in the lab does not count.
    NotValid {
        /// The seed of the run.
        seed: u64,
        /// The reason.
        reason: String,
    },
}
