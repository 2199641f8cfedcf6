//! Quantities with types: rates, sizes, round trips and loss.
//!
//! One parser and one printer for the whole of Longhaul, so that bits and
//! bytes, 1000 and 1024, seconds and milliseconds are never in doubt.
//! Pure: no I/O, no clock, no global.
//!
//! | type | holds | written |
//! |---|---|---|
//! | [`BitRate`] | bit/s, 1 to 100 Tbit/s | `100mbit`, `2.5gbit`, iperf3's `200m` |
//! | [`ByteCount`] | bytes | `64KiB` (1024), `64KB` (1000), iperf3's `96K` (1024), `65536` |
//! | [`Rtt`] | a round trip or a delay, to the nanosecond, up to 1 h | `173ms`, `250us`, `1.5s` |
//! | [`LossRatio`] | a share of packets, 0 up to but not 100 % | `1%`, `0.01` |
//! | [`Probability`] | 0 up to and with 100 % | `100%`, `0.3` |
//!
//! ```
//! use units::{BitRate, Rtt};
//! let rate: BitRate = "100mbit".parse().unwrap();
//! let rtt: Rtt = "173ms".parse().unwrap();
//! assert_eq!(rate.bytes_in(rtt.duration()).to_string(), "2.16 MB");
//! ```

mod bytes;
mod loss;
mod number;
mod rate;
mod rtt;

pub use bytes::ByteCount;
pub use loss::{LossRatio, Probability};
pub use rate::BitRate;
pub use rtt::Rtt;

/// A quantity that was written down wrongly: what stood there, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not a {quantity}: {remedy}")]
pub struct ParseError {
    /// The text as it was given.
    pub given: String,
    /// What it should have been: "rate", "size", "time" or "loss".
    pub quantity: &'static str,
    /// What is wrong with it and what would be right.
    pub remedy: String,
}

impl ParseError {
    fn new(given: &str, quantity: &'static str, remedy: impl Into<String>) -> Self {
        // A hostile argument can be megabytes long; the message stays one line.
        let given: String = given.chars().filter(|c| !c.is_control()).take(40).collect();
        ParseError { given, quantity, remedy: remedy.into() }
    }
}
