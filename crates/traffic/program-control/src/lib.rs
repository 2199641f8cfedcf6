//! Congestion control by a program beside the simulator, in any language.
//!
//! ```text
//!   simulator                      shared page                       program
//!   ProgramController ── event ──> [bell][record of 256 bytes] ──> lh_next()
//!                     <── reply ── [bell][record of  64 bytes] <── lh_answer()
//! ```
//!
//! [`ProgramController`] is a [`control::CongestionControl`]: each call is written into a page
//! of shared memory, and virtual time does not advance until the program has answered. The
//! records are those of `include/longhaul_control.h` ([`records`]).
//!
//! The program is in a process group of its own, which ends with the controller and with this
//! process. A program that ends, hangs, speaks another version or gives an answer that makes
//! no sense ends its own flow's simulation, with one line that says what it did, and nothing
//! else.

mod controller;
mod output;
mod process;
pub mod records;

pub use controller::{FlowParameters, ProgramController, StartError};
pub use process::{ControlProgram, Moment, ProgramError};
