//! Samples the running TCP connections of any program: rates, limits and owners, and
//! the host's network counters.
//!
//! | step | module |
//! |---|---|
//! | one poll: dump, differences, owners, counters | `watcher` |
//! | all connections, by socket cookie | `table`, and `track` for one |
//! | filtering and sorting | `select` |
//! | every sample of every connection | `connection_log` |
//! | samples of one connection as a measurement, with a finding | `transfer` |
//! | which process has a socket open | `owners` |
//! | counters of the host, and what they mean | `counters`, with what `record` says of them |
//! | recording samples to a file | `recorder` |
//!
//! The `diagnose` crate decides what limited a connection, as for a test.

mod connection_log;
mod counters;
mod owners;
mod recorder;
mod select;
mod table;
mod track;
mod transfer;
mod watcher;

pub use connection_log::{ConnectionLog, LoggedConnection};
pub use recorder::{Recorder, Written};
pub use select::{Prefix, PrefixError, Selection, Sort};
pub use transfer::{Transfer, stream_of_both_ends, transfer};
pub use watcher::{WatchError, Watcher};
