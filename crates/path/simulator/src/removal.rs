//! Ground truth by removal: what helps a transfer, found by running it again.
//!
//! [`measure`] repeats a scenario with the same seed, once with each [`Action`] of a menu: what
//! the path and the hosts leave to chance stays the same. The goodput over that of the run as it
//! was is the action's gain. A finding is then judged by what following it gains, not by
//! whether it names the limit: two limits may have the same best action, and where two cost the
//! same, removing either gains nothing.
//!
//! ```text
//!   Scenario ──> with each Action ──> Outcomes ───┐
//!      │                                          v
//!      └──> Measurement ──> Finding ─> Action ─> Advised ──> Figures
//! ```
//!
//! Beside each run is one with a CUBIC neighbour that has no limit of its own: what an action
//! costs it is the action's harm. `docs/design/ground-truth.md` defines the figures.

mod action;
mod advice;
mod figures;
mod outcome;
mod tables;

pub use action::{Action, MENU};
pub use advice::Advised;
pub use figures::{Arm, ArmFigures, Figures, Group, Mistake, Share};
pub use outcome::{Outcome, Outcomes, RIGHT, SLOWER, WORTH, measure};
