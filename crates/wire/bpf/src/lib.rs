//! Capture filters in tcpdump's syntax, compiled to classic BPF.
//!
//! Pure: no I/O, no clock, no threads. Names of hosts are resolved by the caller. Length and
//! nesting of a filter, and the length of its program, are bounded.
//!
//! ```text
//!  text ─> words ─> parser ─> Expression ─> Condition ─> Instruction
//!                             what is asked  tests of     jumps between
//!                             for            bytes        them
//! ```
//!
//! The syntax is a subset of pcap-filter(7); what a filter matches, and that a load beyond the
//! end of a packet rejects it, is as in libpcap.

mod condition;
mod expression;
mod generator;
mod parser;
mod words;

pub use generator::{Instruction, MAX_INSTRUCTIONS};

use condition::Condition;
use core::net::IpAddr;

/// Longest filter, in bytes.
pub const MAX_LENGTH: usize = 4096;

/// Deepest nesting of parentheses and `not`.
pub const MAX_NESTING: usize = 64;

/// What a filter accepts, for help and errors.
pub const ACCEPTED: &str = "[src|dst] host, net, port, portrange; ip, ip6, arp, rarp, tcp, udp, \
     sctp, icmp, icmp6, igmp, proto; vlan, less, greater, inbound, outbound; and, or, not, ()";

/// What the bytes of a packet begin with when a filter sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstHeader {
    /// That of Ethernet.
    Ethernet,
    /// That of the network layer; its EtherType is the kernel's (a socket of type SOCK_DGRAM).
    Network,
}

/// Why a filter is refused: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The filter has more than [`MAX_LENGTH`] bytes.
    #[error("the filter has more than {MAX_LENGTH} bytes")]
    TooLong,
    /// Parentheses and `not` nest deeper than [`MAX_NESTING`].
    #[error("the filter nests deeper than {MAX_NESTING} levels")]
    TooDeep,
    /// Its program would have more than [`MAX_INSTRUCTIONS`].
    #[error("the filter needs more than {MAX_INSTRUCTIONS} BPF instructions; use fewer terms")]
    TooComplex,
    /// A word that no filter has.
    #[error("'{word}' in the filter is not supported; accepted: {ACCEPTED}")]
    Unsupported {
        /// The word.
        word: String,
    },
    /// `tcp[13]` and the like.
    #[error("'{word}' in the filter: comparisons of bytes are not supported; accepted: {ACCEPTED}")]
    Bytes {
        /// The word.
        word: String,
    },
    /// Something else is expected here.
    #[error("the filter has {found} where {expected} is expected")]
    Expected {
        /// The word in quotes, or its end.
        found: String,
        /// What may be there.
        expected: &'static str,
    },
    /// A qualifier does not apply to what follows.
    #[error("the filter has '{qualifier}' before '{kind}', to which it does not apply")]
    Qualifier {
        /// The qualifier.
        qualifier: &'static str,
        /// What follows.
        kind: &'static str,
    },
    /// A network whose address has bits behind the prefix.
    #[error("{text} in the filter has bits set beyond its prefix length")]
    HostBits {
        /// The network.
        text: String,
    },
    /// A name that does not resolve.
    #[error("cannot resolve '{name}' in the filter; give an address")]
    Name {
        /// The name.
        name: String,
    },
}

/// Compiles a filter to a program that returns `snaplen` for packets that match, and 0 for
/// others. An empty filter matches every packet. `resolve` gives the addresses of a name.
///
/// # Errors
/// [`FilterError`].
pub fn compile(
    filter: &str,
    first: FirstHeader,
    snaplen: u32,
    resolve: &mut dyn FnMut(&str) -> Vec<IpAddr>,
) -> Result<Vec<Instruction>, FilterError> {
    let expression = parser::parse(filter, resolve)?;
    generator::program(&Condition::of(&expression, first), snaplen)
}

/// A program that matches no packet.
#[must_use]
pub fn reject_all() -> [Instruction; 1] {
    [generator::returns(0)]
}
