//! Agents at other hosts: `longhaul agent --stdio`, started over the user's own ssh, and what
//! is asked of them.
//!
//! | module | |
//! |---|---|
//! | `host_name` | which hosts are given to ssh |
//! | `resolved_host` | the host that ssh connects to for a name |
//! | `protocol` | messages and their bounds, and the difference of two clocks, without I/O |
//! | `process` | the process, and lines to and from it: each with a deadline and a bound |
//! | `agent` | requests, their replies, and the agent's clock |

mod agent;
mod host_name;
mod process;
pub mod protocol;
mod resolved_host;

pub use agent::{Agent, FIRST_REPLY};
pub use host_name::{WrongHost, check_host};
pub use process::{Launcher, RemoteError};
pub use resolved_host::resolved_host;
