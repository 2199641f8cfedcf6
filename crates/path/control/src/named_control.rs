//! Congestion controls by the names that people choose them by: an algorithm, or PSockets.
//!
//! PSockets (Sivakumar, Bailey, Grossman: "PSockets: the case for application-level network
//! striping for data intensive applications using high speed wide area networks", SC 2000)
//! stripes the data of one flow over N TCP connections, each with a NewReno of its own. At a
//! random loss of p the flow has N times the window of one, N 1.22 / sqrt(p), until the link
//! is full.

use crate::Algorithm;
use std::fmt;

/// Most connections of a flow, as of a test.
const MAX_CONNECTIONS: u32 = 128;

/// A congestion control as it is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedControl {
    /// One connection with this algorithm.
    Single(Algorithm),
    /// PSockets, with that many connections.
    PSockets(u32),
}

impl NamedControl {
    /// Connections of PSockets by default: the most between one pair of hosts in the tests over
    /// the NetherLight lambda (2001), which are of its time. The abstract of its paper has no
    /// number.
    pub const PSOCKETS: NamedControl = NamedControl::PSockets(8);

    const PSOCKETS_NAME: &str = "psockets";

    /// Those that a flow can have over any path, in the order in which people use them.
    pub fn all() -> impl Iterator<Item = Self> {
        Algorithm::ALL.into_iter().map(NamedControl::Single).chain([NamedControl::PSOCKETS])
    }

    /// The names of [`NamedControl::all`] and of XCP, which needs a router.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let xcp = NamedControl::Single(Algorithm::Xcp);
        NamedControl::all().chain([xcp]).map(NamedControl::name).collect()
    }

    /// By name: that of an algorithm, `psockets` or `psockets:N` with N from 1 to 128.
    #[must_use]
    pub fn by_name(text: &str) -> Option<Self> {
        match text.strip_prefix(NamedControl::PSOCKETS_NAME) {
            None => Algorithm::by_name(text).map(NamedControl::Single),
            Some("") => Some(NamedControl::PSOCKETS),
            Some(count) => {
                let count = count.strip_prefix(':')?.parse().ok()?;
                (1..=MAX_CONNECTIONS).contains(&count).then_some(NamedControl::PSockets(count))
            }
        }
    }

    /// Its name, without the number of connections.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NamedControl::Single(algorithm) => algorithm.name(),
            NamedControl::PSockets(_) => NamedControl::PSOCKETS_NAME,
        }
    }

    /// The algorithm of each of its connections.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        match self {
            NamedControl::Single(algorithm) => algorithm,
            NamedControl::PSockets(_) => Algorithm::NewReno,
        }
    }

    /// The connections of a flow, at least 1.
    #[must_use]
    pub const fn connections(self) -> u32 {
        match self {
            NamedControl::Single(_) => 1,
            NamedControl::PSockets(count) => count,
        }
    }
}

/// Why no kernel can be asked for the control of that name, in one line; `None`: it may have it.
#[must_use]
pub fn simulated_only(name: &str) -> Option<String> {
    match NamedControl::by_name(name)? {
        NamedControl::PSockets(count) => Some(format!(
            "{name} is no congestion control of a kernel, but {count} connections with {}",
            Algorithm::NewReno.name()
        )),
        NamedControl::Single(algorithm) if algorithm.needs_xcp_router() => Some(format!(
            "no kernel has {name}, and no network the routers that it needs (longhaul sim has both)"
        )),
        NamedControl::Single(_) => None,
    }
}

impl From<Algorithm> for NamedControl {
    fn from(algorithm: Algorithm) -> Self {
        NamedControl::Single(algorithm)
    }
}

/// As [`NamedControl::by_name`] reads it.
impl fmt::Display for NamedControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            NamedControl::PSockets(count) if *self != NamedControl::PSOCKETS => {
                write!(f, ":{count}")
            }
            NamedControl::Single(_) | NamedControl::PSockets(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_is_found_by_what_it_is_shown_as() {
        for control in NamedControl::all().chain([1, 4, 128].map(NamedControl::PSockets)) {
            assert_eq!(NamedControl::by_name(&control.to_string()), Some(control));
        }
        let four = NamedControl::by_name("psockets:4").unwrap();
        assert_eq!((four.algorithm(), four.connections()), (Algorithm::NewReno, 4));
        for text in ["psockets:", "psockets:0", "psockets:129", "psockets4", "cubic:2", ""] {
            assert_eq!(NamedControl::by_name(text), None, "{text}");
        }
        assert!(simulated_only("psockets:4").unwrap().contains("4 connections with reno"));
        assert!(simulated_only("xcp").unwrap().contains("no kernel has xcp"));
        assert_eq!((simulated_only("cubic"), simulated_only("lola")), (None, None));
    }
}
