//! Running connections of any program, look by look: what each carried since the
//! look before, what limited it, whose it is; and the counters of the host.
//!
//! | step | room |
//! |---|---|
//! | one look: dump, differences, owners, counters | `watcher` |
//! | every connection, by its cookie | `table`, and `track` for one |
//! | which are wanted, in which order | `select` |
//! | samples of one as a measurement, and what limited it | `transfer` |
//! | which process has a socket open | `owners` |
//! | counters of the host, and what they mean | `counters`, `meanings` |
//! | looks as lines of a file | `recorder` |
//!
//! What limited a connection is `diagnose`'s word, as for a test: nothing here judges.

mod counters;
mod meanings;
mod owners;
mod recorder;
mod select;
mod table;
mod track;
mod transfer;
mod watcher;

pub use recorder::Recorder;
pub use select::{Prefix, PrefixError, Selection, Sort};
pub use transfer::{Transfer, transfer};
pub use watcher::{WatchError, Watcher};
