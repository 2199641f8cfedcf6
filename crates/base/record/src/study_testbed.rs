//! Where the runs of a study take place.

use serde::{Deserialize, Serialize};

/// Where the runs of a study take place.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StudyTestbed {
    /// A lab in one machine for each.
    #[default]
    Lab,
    /// Between real hosts.
    Hosts,
    /// Simulated in virtual time.
    Simulator,
}

impl StudyTestbed {
    /// All of them.
    pub const ALL: [StudyTestbed; 3] =
        [StudyTestbed::Lab, StudyTestbed::Hosts, StudyTestbed::Simulator];

    /// Its name, as stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StudyTestbed::Lab => "lab",
            StudyTestbed::Hosts => "hosts",
            StudyTestbed::Simulator => "simulator",
        }
    }
}
