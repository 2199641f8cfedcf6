//! Types for quantities: rates, sizes, round-trip times and loss.
//!
//! One parser and one formatter for all of Longhaul, so that bits and bytes, 1000
//! and 1024, seconds and milliseconds cannot be confused. Pure: no I/O, no clock, no
//! global.
//!
//! | type | holds | syntax |
//! |---|---|---|
//! | [`BitRate`] | bit/s, 1 to 100 Tbit/s | `100mbit`, `2.5gbit`, iperf3's `200m` |
//! | [`ByteCount`] | bytes | `64KiB` (1024), `64KB` (1000), iperf3's `96K` (1024), `65536` |
//! | [`Rtt`] | a round-trip time or delay in nanoseconds, up to 1 h | `173ms`, `250us`, `1.5s` |
//! | [`Nanos`] | a moment on a virtual clock in nanoseconds, up to 584 years | |
//! | [`LossRatio`] | a share of packets, 0 to below 100 % | `1%`, `0.01` |
//! | [`Probability`] | 0 to 100 % inclusive | `100%`, `0.3` |
//! | [`WindowChange`] | a change of a congestion window in 1/65536 of a packet | |
//!
//! ```
//! use units::{BitRate, Rtt};
//! let rate: BitRate = "100mbit".parse().unwrap();
//! let rtt: Rtt = "173ms".parse().unwrap();
//! assert_eq!(rate.bytes_in(rtt.duration()).to_string(), "2.16 MB");
//! ```

mod bytes;
mod loss;
mod nanos;
mod number;
mod percent;
mod rate;
mod rtt;
pub mod seconds;
mod window_change;

pub use bytes::ByteCount;
pub use loss::{LossRatio, Probability};
pub use nanos::{Nanos, nanos};
pub use number::significant;
pub use percent::{change, percent, percent_with, share};
pub use rate::BitRate;
pub use rtt::Rtt;
pub use window_change::WindowChange;

/// A quantity that does not parse: the text, and what would be valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not a {quantity}: {remedy}")]
pub struct ParseError {
    /// The text given, shortened and without control characters.
    pub given: String,
    /// The quantity expected: "rate", "size", "time", "loss" or "probability".
    pub quantity: &'static str,
    /// What is wrong, and a valid example.
    pub remedy: String,
}

impl ParseError {
    fn new(given: &str, quantity: &'static str, remedy: impl Into<String>) -> Self {
        // A hostile argument can be megabytes long; the message stays one line.
        let given: String = given.chars().filter(|c| !c.is_control()).take(40).collect();
        ParseError { given, quantity, remedy: remedy.into() }
    }
}
