//! The calculators: a question in, a [`Sheet`] out, with the equations, their
//! sources, where they hold, a table and a curve.
//!
//! | calculator | question |
//! |---|---|
//! | [`window()`] | of rate, round trip and window, two give the third |
//! | [`scale()`] | which window scale a path takes |
//! | [`loss()`] | what a loss leaves of a rate, and how much loss a rate bears |
//! | [`wan()`] | with and without a pair of WAN optimisers |
//! | [`overhead()`] | from a line rate to payload |
//! | [`transfer_sheet()`] | how long a transfer takes |
//! | [`udt()`] | how UDT raises its rate |
//!
//! Where not said otherwise a link's rate is taken as the rate of payload;
//! [`overhead()`] says how much that is of a line's.

mod loss_sheet;
mod overhead;
mod scale_sheet;
mod sheet;
mod transfer_sheet;
mod udt_sheet;
mod wan;
mod window_sheet;

pub use loss_sheet::{Law, LossQuestion, loss};
pub use overhead::{OverheadQuestion, overhead};
pub use scale_sheet::{ScaleQuestion, scale};
pub use sheet::{
    Answer, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Sheet, Table, Value,
};
pub use transfer_sheet::{TransferQuestion, transfer_sheet};
pub use udt_sheet::{UdtQuestion, udt};
pub use wan::{WanQuestion, wan};
pub use window_sheet::{WindowQuestion, window};

use crate::{MAX_MTU, MAX_STREAMS, MIN_MTU};
use units::{ByteCount, Rtt};

/// Largest segment taken: what the largest IP packet carries.
const MAX_MSS: u64 = 65_495;

/// Least segment taken: below it Linux refuses (`net.ipv4.tcp_min_snd_mss`).
const MIN_MSS: u64 = 48;

/// Why a question has no answer: one line with what would be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalcError {
    /// Not two of the three.
    #[error("give two of --rate, --rtt and --window: the third is what is computed")]
    TwoOfThree,
    /// No round trip.
    #[error("a round trip of zero gives no rate: give the one 'ping' shows, as in 173ms")]
    ZeroRtt,
    /// No window.
    #[error("a window of zero carries nothing: give a size up to 1 GiB, as in 64KiB")]
    ZeroWindow,
    /// A window beyond TCP's.
    #[error(transparent)]
    Window(#[from] crate::WindowTooLarge),
    /// No streams or too many.
    #[error("{0} streams cannot be asked for: give a number from 1 to {MAX_STREAMS}")]
    Streams(u32),
    /// A segment that no TCP sends.
    #[error("a segment of {0} bytes cannot be asked for: give --mss from {MIN_MSS} to {MAX_MSS}")]
    Mss(u64),
    /// An MTU that no path has.
    #[error("an MTU of {0} bytes cannot be asked for: give one from {1} to {MAX_MTU}")]
    Mtu(u32, u32),
    /// More than a frame has room for.
    #[error("{0} cannot be asked for: give {1}")]
    Frame(String, &'static str),
    /// No loss.
    #[error("without loss {0} gives no bound: give a loss above zero, as in 0.1%")]
    NoLoss(&'static str),
    /// Nothing to compute.
    #[error("give --loss for the rate it leaves, --rate for the loss that rate bears, or both")]
    LossOrRate,
    /// BBR is told by its link.
    #[error("BBR's model needs the link's rate: give --rate, as in 1gbit")]
    NoLink,
    /// Loss beyond what the model speaks of.
    #[error(
        "no model is known for BBR above 20 % loss: give --loss up to 20%, or another --congestion"
    )]
    BbrLoss,
    /// More than the link carries.
    #[error("{0} is over the link's {1}: give a rate up to the link's")]
    Target(units::BitRate, units::BitRate),
    /// A ratio that is none.
    #[error("a data reduction of {0}:1 cannot be asked for: give 1:1 up to 1000:1, as in 3:1")]
    Ratio(f64),
    /// Nothing to carry.
    #[error("a transfer of zero bytes takes no time: give a size, as in 1GB")]
    ZeroSize,
    /// An initial window that no sender has.
    #[error("an initial window of {0} segments cannot be asked for: give --iw from 1 to 10000")]
    Initial(u32),
    /// A timeout that no sender has.
    #[error("a timeout of zero cannot be asked for: give --rto, as in 200ms")]
    ZeroRto,
}

fn check_rtt(rtt: Rtt) -> Result<Rtt, CalcError> {
    if rtt == Rtt::ZERO { Err(CalcError::ZeroRtt) } else { Ok(rtt) }
}

/// A window that TCP can announce; the last 16 KiB of 1 GiB count as [`crate::MAX_WINDOW`].
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
