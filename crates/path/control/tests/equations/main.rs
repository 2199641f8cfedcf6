//! Controllers against their equations: no links, no packets, only acknowledgements of a path.
//!
//! "Mean window" is the mean over time outside recovery, which lasts a round trip and in which
//! neither packets count towards the next loss nor the window towards the mean: what response
//! functions describe.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod delay;
mod marks;
mod path;
mod recovery;
mod response;
