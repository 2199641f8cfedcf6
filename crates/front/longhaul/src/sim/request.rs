//! Requests to simulate flows.

use super::prepared::Prepared;
use crate::Problem;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Flows over a path, in virtual time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimRequest {
    /// The path.
    pub path: SimPath,
    /// The flows, in the syntax of [`super::FlowGroup`]. Empty: those of the plan's programs; without
    /// a plan, one with CUBIC.
    #[serde(default)]
    pub flows: Vec<String>,
    /// The time to simulate, s; by default that of the plan, else 30.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The seed of the random numbers; by default that of the path, else 1.
    #[serde(default)]
    pub seed: Option<u64>,
    /// The program that controls the flows named `own`. Not part of a serialised request: whoever
    /// sends one does not choose what is executed here.
    #[serde(skip)]
    pub control: Option<PathBuf>,
}

/// The path of a simulation. Data goes from client to server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SimPath {
    /// A name (see [`crate::lab::named_paths`]), `KEY=VALUE,…` or both.
    Link(String),
    /// A lab's plan (TOML) with two hosts and one link.
    Plan {
        /// The name of the plan in messages.
        file: String,
        /// The plan.
        text: String,
    },
}

impl SimRequest {
    /// One CUBIC flow over a path.
    pub fn over(link: impl Into<String>) -> Self {
        let path = SimPath::Link(link.into());
        SimRequest { path, flows: Vec::new(), seconds: None, seed: None, control: None }
    }

    /// Checks the request, for which it reads the files that its path names.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts; what a plan has that the simulator does
    /// not run; more packets or memory than a simulation may take.
    pub fn check(&self) -> Result<(), Problem> {
        Prepared::of(self).map(drop)
    }
}
