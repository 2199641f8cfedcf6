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
//! | what timeouts and a window add | [`pftk()`] | Padhye et al. 1998, RFC 5348 |
//! | what loss leaves of BBR | [`bbr()`] | Cardwell et al. 2016 |
//! | how UDT raises its rate | [`udt_alpha`], [`udt_recovery`] | Gu, Grossman 2007 |
//! | how long slow start takes | [`slow_start_time`] | RFC 5681, RFC 6928 |
//! | how long a transfer takes | [`transfer()`] | RFC 5681, Cardwell et al. 2000 |
//!
//! [`statistics`] says how far a mean of few values can be trusted.
//! [`worksheet()`] answers what a path needs at once, and [`calc`] one question at
//! a time, each with its numbers in words.

mod bbr;
pub mod calc;
mod figures;
mod loss;
mod payload;
mod pftk;
mod ramp;
pub mod statistics;
mod transfer;
mod udt;
mod window;
mod worksheet;

pub use bbr::{
    BBR_CWND_GAIN, BBR_PROBE_GAIN, BBR_STARTUP_GAIN, bbr, bbr_inflight, bbr_loss_limit,
    loss_budget_bbr,
};
pub use loss::{
    CUBIC_BETA, CUBIC_C, cubic, cubic_region, loss_budget_cubic, loss_budget_mathis,
    loss_budget_mathis_for, loss_from_fraction, mathis, mathis_constant, mathis_constant_for,
    mathis_for,
};
pub use payload::{ETHERNET_FRAMING, IpVersion, Payload, VLAN_TAG, share_of};
pub use pftk::{RenoPath, linux_rto, loss_budget_pftk, pftk, pftk_simple};
pub use ramp::{INITIAL_WINDOW_SEGMENTS, SlowStart, slow_start, slow_start_time};
pub use transfer::{Congestion, Course, Transfer, transfer};
pub use udt::{
    UDT_DECREASE, UDT_LEAST_INCREASE, UDT_SYN_S, UDT_TAU, loss_budget_udt, udt_alpha, udt_recovery,
    udt_under_loss,
};
pub use window::{
    HEAD_ROOM, INITIAL_WINDOW_SHARE, MAX_SHIFT, MAX_WINDOW, UNSCALED_WINDOW, WindowTooLarge, bdp,
    buffer_for, per_stream, window_for, window_rate, window_scale,
};
pub use worksheet::{
    BdpLine, BuffersLine, LossLine, MAX_MTU, MAX_STREAMS, MIN_MTU, PayloadLine, Question, RampLine,
    WORKSHEET_SCHEMA, WindowLine, WindowRateLine, Worksheet, WorksheetError, worksheet,
};
