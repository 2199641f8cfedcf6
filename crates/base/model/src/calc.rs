//! The calculators: each turns a question into a [`CalcResult`] with equations, sources,
//! validity, tables and a curve.
//!
//! | calculator | question |
//! |---|---|
//! | [`window()`] | rate, RTT or window from the other two |
//! | [`scale()`] | the window scale that a path needs |
//! | [`loss()`] | the rate under a loss, and the maximum loss for a rate |
//! | [`wan()`] | throughput with and without a pair of WAN optimisers |
//! | [`overhead()`] | the payload rate of a line rate |
//! | [`line()`] | the link that a goodput identifies |
//! | [`distance()`] | the least RTT between two places |
//! | [`transfer_time()`] | the duration of a transfer |
//! | [`cdn()`] | the times of an object from its origin and from an edge cache |
//! | [`udt()`] | the rate increase of UDT |
//!
//! Unless noted otherwise, a link rate is a payload rate; [`overhead()`] converts a
//! line rate.

mod cdn;
mod distance;
mod line;
mod loss;
mod overhead;
mod result;
mod transfer_time;
mod udt_increase;
mod wan;
mod window;
mod window_limits;
mod window_scale;

pub use cdn::{CdnQuestion, cdn};
pub use distance::{DistanceQuestion, distance, fibre_rtt};
pub use line::{LineQuestion, line};
pub use loss::{Law, LossQuestion, loss};
pub use overhead::{OverheadQuestion, overhead};
pub use result::{
    Answer, CalcResult, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Table, Value,
};
pub use transfer_time::{TransferQuestion, transfer_time};
pub use udt_increase::{UdtQuestion, udt};
pub use wan::{WanQuestion, wan};
pub use window::{WindowQuestion, window};
pub use window_scale::{ScaleQuestion, scale};

use crate::{MAX_MTU, MAX_STREAMS, MIN_MTU};
use problem::Field;
use units::{ByteCount, Rtt};

/// Maximum MSS: the payload of the largest IP packet.
const MAX_MSS: u64 = 65_495;

/// Minimum MSS, that of Linux (`net.ipv4.tcp_min_snd_mss`).
const MIN_MSS: u64 = 48;

/// Why a question is invalid, in one line with a valid example or range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalcError {
    /// Not exactly two of the three.
    #[error(
        "give exactly two of {}, {} and {}; the third is computed",
        Field::Rate,
        Field::Rtt,
        Field::Window
    )]
    TwoOfThree,
    /// The RTT is zero.
    #[error("the round trip time must be above zero: give the RTT that ping shows, as in 173ms")]
    ZeroRtt,
    /// A target rate without an RTT.
    #[error("a rate needs an RTT: give {}, as in 173ms, too", Field::Rtt)]
    RateWithoutRtt,
    /// The plan's rate is zero.
    #[error("a plan of 0 bit/s is invalid: give the rate that the provider sells, as in 1gbit")]
    ZeroPlan,
    /// The window is zero.
    #[error("a window of zero is invalid: give a size up to 1 GiB, as in 64KiB")]
    ZeroWindow,
    /// The window exceeds TCP's maximum.
    #[error(transparent)]
    Window(#[from] crate::WindowTooLarge),
    /// The number of streams is out of range.
    #[error("{0} streams is out of range: give 1 to {MAX_STREAMS}")]
    Streams(u32),
    /// The MSS is out of range.
    #[error("an MSS of {0} bytes is out of range: give {field} from {MIN_MSS} to {MAX_MSS}", field = Field::Mss)]
    Mss(u64),
    /// The MTU is out of range.
    #[error("an MTU of {0} bytes is out of range: give {1} to {MAX_MTU}")]
    Mtu(u32, u32),
    /// A part of the frame is out of range.
    #[error("{0} is out of range: give {1} {2}")]
    Frame(String, Field, &'static str),
    /// The loss is zero.
    #[error("without loss {0} is unbounded: give a loss above zero, as in 0.1%")]
    NoLoss(&'static str),
    /// Neither a loss nor a rate.
    #[error(
        "give {} to compute the rate, {} to compute the maximum loss, or both",
        Field::Loss,
        Field::Rate
    )]
    LossOrRate,
    /// BBR's model without a link rate.
    #[error("BBR's model needs the link rate: give {}, as in 1gbit", Field::Rate)]
    NoLink,
    /// The loss exceeds the model's validity.
    #[error(
        "no model is known for BBR above 20 % loss: give {} up to 20%, or another {}",
        Field::Loss,
        Field::Congestion
    )]
    BbrLoss,
    /// The rate exceeds the link rate.
    #[error("{0} exceeds the link rate of {1}: give at most that")]
    Target(units::BitRate, units::BitRate),
    /// The data reduction ratio is out of range.
    #[error("a data reduction of {0}:1 is out of range: give 1:1 to 1000:1, as in 3:1")]
    Ratio(f64),
    /// The size is zero.
    #[error("a transfer of zero bytes is invalid: give a size, as in 1GB")]
    ZeroSize,
    /// The initial window is out of range.
    #[error("an initial window of {0} segments is out of range: give {field} from 1 to 10000", field = Field::InitialWindow)]
    Initial(u32),
    /// A rate is zero.
    #[error("a rate of 0 bit/s is invalid: give a rate above zero, as in 100mbit")]
    ZeroRate,
    /// The edge is not nearer than the origin.
    #[error("the RTT to the edge must be below the origin's: give {}, as in 4ms", Field::EdgeRtt)]
    EdgeRtt,
    /// The range has no byte of the object.
    #[error("the range has no byte of the object: give {} FIRST-LAST, from 0 on", Field::Range)]
    Range,
    /// The number of clients is out of range.
    #[error("{0} clients is out of range: give 1 to 4096")]
    Clients(u32),
    /// The slices are too small.
    #[error(
        "a slice has at least 16 KiB, and an object at most 1000000 of them: give a larger {}",
        Field::Slice
    )]
    Slice,
    /// The retransmission timeout is zero.
    #[error("the retransmission timeout must be above zero: give {}, as in 200ms", Field::Rto)]
    ZeroRto,
}

impl CalcError {
    /// The field whose value removes the error.
    #[must_use]
    pub fn field(&self) -> Field {
        match self {
            CalcError::TwoOfThree | CalcError::NoLink | CalcError::ZeroRate => Field::Rate,
            CalcError::EdgeRtt => Field::EdgeRtt,
            CalcError::Range => Field::Range,
            CalcError::Clients(_) => Field::Clients,
            CalcError::Slice => Field::Slice,
            CalcError::ZeroRtt | CalcError::RateWithoutRtt => Field::Rtt,
            CalcError::ZeroPlan => Field::Plan,
            CalcError::ZeroWindow | CalcError::Window(_) => Field::Window,
            CalcError::Streams(_) => Field::Streams,
            CalcError::Mss(_) => Field::Mss,
            CalcError::Mtu(..) => Field::Mtu,
            CalcError::Frame(_, field, _) => *field,
            CalcError::NoLoss(_) | CalcError::LossOrRate | CalcError::BbrLoss => Field::Loss,
            CalcError::Target(..) => Field::Target,
            CalcError::Ratio(_) => Field::Ratio,
            CalcError::ZeroSize => Field::Bytes,
            CalcError::Initial(_) => Field::InitialWindow,
            CalcError::ZeroRto => Field::Rto,
        }
    }
}

fn check_rtt(rtt: Rtt) -> Result<Rtt, CalcError> {
    if rtt == Rtt::ZERO { Err(CalcError::ZeroRtt) } else { Ok(rtt) }
}

/// A window that TCP can advertise; the last 16 KiB of 1 GiB count as [`crate::MAX_WINDOW`].
fn check_window(window: ByteCount) -> Result<ByteCount, CalcError> {
    match window {
        ByteCount::ZERO => Err(CalcError::ZeroWindow),
        _ if window <= ByteCount::from_bytes(1 << 30) => Ok(window),
        _ => Ok(crate::window_scale(window).map(|_| window)?),
    }
}

fn check_mss(mss: ByteCount) -> Result<ByteCount, CalcError> {
    if (MIN_MSS..=MAX_MSS).contains(&mss.bytes()) {
        Ok(mss)
    } else {
        Err(CalcError::Mss(mss.bytes()))
    }
}

fn check_mtu(mtu: u32, least: u32) -> Result<u32, CalcError> {
    let least = least.max(MIN_MTU);
    if (least..=MAX_MTU).contains(&mtu) { Ok(mtu) } else { Err(CalcError::Mtu(mtu, least)) }
}

fn check_streams(streams: u32) -> Result<u32, CalcError> {
    if (1..=MAX_STREAMS).contains(&streams) {
        Ok(streams)
    } else {
        Err(CalcError::Streams(streams))
    }
}
