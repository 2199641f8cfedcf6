//! The baseline of a path: what is tested when, what the tests say together, and whether a
//! later baseline differs.
//!
//! ```text
//!  list of servers ─> choice ─> host ─> Schedule ─> tests ─> summary ─> differences ─> steps
//!                                                                └──────> comparison
//! ```
//!
//! Pure: no I/O, no clock. Whoever runs the tests says how long each took.
//!
//! | step | module |
//! |---|---|
//! | which tests, in which order, how many fit | `schedule` |
//! | how long to wait for a busy server | `backoff` |
//! | the tests of one condition: median, interval, limit, RTT under load | `summary` |
//! | IPv6 against IPv4, download against upload, several streams against one | `differences` |
//! | links that a goodput identifies | `links` |
//! | what to do first | `steps` |
//! | against an earlier baseline | `compare` |
//! | lists of public servers | `server_list`, `server_choice` |
//! | which RTT counts, and whether the address is a CDN's | `rtt_source`, `cdn` |

mod backoff;
mod cdn;
mod compare;
mod differences;
mod links;
mod rtt_source;
mod schedule;
mod server_choice;
mod server_list;
mod steps;
mod summary;
#[cfg(test)]
mod synthetic;

pub use backoff::Backoff;
pub use cdn::content_network;
pub use compare::{NothingInCommon, compare};
pub use differences::differences;
pub use links::links;
pub use rtt_source::{RttChoice, choose_rtt};
pub use schedule::{
    MIN_ROUNDS, Remaining, Schedule, TestCost, conditions, fitting_duration, measures_latency,
};
pub use server_choice::{NeededRate, ProbedServer, choose_server, reject_chosen, worth_probing};
pub use server_list::{EntryError, FormatError, ListError, ListedServer, MAX_SERVERS, ServerList};
pub use steps::steps;
pub use summary::{TestRun, summary};

/// Confidence level of intervals and tests.
const CONFIDENCE: f64 = 0.95;
