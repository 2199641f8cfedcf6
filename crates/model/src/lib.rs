//! The equations of a long fat path, each with its source.
//!
//! Rates, sizes, round trips and loss come in and go out as the types of
//! `units`; what makes no sense (a round trip of zero, a window no TCP can
//! announce) is answered with `None` or an error, never with a panic. Pure: no
//! I/O, no clock, no global.
//!
//! | question | answer | source |
//! |---|---|---|
//! | what is in flight on a full path | [`bdp`] | RFC 7323, section 1.1 |
//! | what a window carries | [`window_rate`] | RFC 7323, section 1.1 |
//! | which window scale that takes | [`window_scale`] | RFC 7323, section 2.3 |
//! | which buffer makes that window | [`buffer_for`] | Linux `tcp_input.c` |
//! | how much of a packet is payload | [`Payload`] | RFC 791, 8200, 9293, 7323, 2018 |
//! | what random loss allows | [`mathis`], [`cubic`] | Mathis et al. 1997, RFC 9438 |
//! | how much loss a rate bears | [`loss_budget_mathis`], [`loss_budget_cubic`] | the same |
//! | how long slow start takes | [`slow_start_time`] | RFC 5681, RFC 6928 |
//!
//! [`worksheet()`] answers them all at once, each with its numbers in words.

mod figures;
mod loss;
mod payload;
mod ramp;
mod window;
mod worksheet;

pub use loss::{
    CUBIC_BETA, CUBIC_C, cubic, cubic_region, loss_budget_cubic, loss_budget_mathis,
    loss_from_fraction, mathis, mathis_constant,
};
pub use payload::{ETHERNET_FRAMING, IpVersion, Payload, VLAN_TAG, share_of};
pub use ramp::{INITIAL_WINDOW_SEGMENTS, SlowStart, slow_start, slow_start_time};
pub use window::{
    HEAD_ROOM, INITIAL_WINDOW_SHARE, MAX_SHIFT, MAX_WINDOW, UNSCALED_WINDOW, WindowTooLarge, bdp,
    buffer_for, per_stream, window_for, window_rate, window_scale,
};
pub use worksheet::{
    BdpLine, BuffersLine, LossLine, MAX_MTU, MAX_STREAMS, MIN_MTU, PayloadLine, Question, RampLine,
    WORKSHEET_SCHEMA, WindowLine, WindowRateLine, Worksheet, WorksheetError, worksheet,
};
