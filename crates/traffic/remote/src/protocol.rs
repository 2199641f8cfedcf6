//! The messages between longhaul and an agent, which runs tests at another host: lines of
//! JSON, requests to the agent's standard input and a reply to each from its standard output.
//!
//! | module | |
//! |---|---|
//! | `message` | requests and replies, with their bounds |
//! | `line` | lines out of bytes, of a bounded length |
//! | `clock` | the difference of two hosts' clocks, and how precisely flows started together |
//!
//! Neither end trusts the other: a line, a list, a text and a number are bounded before they
//! are used. Pure: no I/O, no clock.

mod clock;
mod line;
mod message;

pub use clock::{Clock, Offset, Probe, Skew, Started, start_skew};
pub use line::{LineTooLong, Lines};
pub use message::{
    FlowReply, FlowRequest, Hello, MAX_FLOWS, MAX_REPLY, MAX_REQUEST, MAX_RESULTS, ProtocolError,
    Reply, Request, Secret, SysctlRequest, VERSION, parse_reply, parse_request, write,
};
