//! An edge cache: nginx near the clients, in front of one origin.
//!
//! ```text
//!  Origin, EdgeConfig ──> configuration ──> nginx -t ──> nginx (a child, in a private directory)
//!                                                          │ access log: a pipe
//!       Totals <── Entry, a line of a request or slice <───┤
//!       Connections <── stub_status, a Unix socket <───────┘
//! ```
//!
//! The configuration is text from checked values: [`configuration()`] has no other input. nginx never
//! outlives the process that started it.

mod access_log;
mod configuration;
mod nginx;
mod origin;
mod stub_status;
mod totals;

pub use access_log::{CacheStatus, Entry, MAX_LINE, Subject};
pub use configuration::{
    Authorities, CacheDirectory, CachePath, EdgeConfig, MIN_RATE, Output, Pseudonym, configuration,
};
pub use nginx::{EdgeError, INSTALL, Nginx, program};
pub use origin::{Origin, OriginError, Scheme};
pub use stub_status::Connections;
pub use totals::Totals;
