//! The equations of a long fat path, each with its source.
//!
//! Rates, sizes, RTTs and loss are the types of `units`; invalid values (an RTT of
//! zero, a window above TCP's maximum) give `None` or an error, never a panic. Pure: no
//! I/O, no clock, no global.
//!
//! | quantity | function | source |
//! |---|---|---|
//! | bandwidth-delay product | [`bdp`] | RFC 7323, section 1.1 |
//! | rate that a window allows | [`window_rate`] | RFC 7323, section 1.1 |
//! | when a window is sent, acknowledged, and the sender idle | [`SlidingWindow`] | RFC 7323, section 1.1 |
//! | window scale for a window | [`window_scale`] | RFC 7323, section 2.3 |
//! | socket buffer for a window | [`buffer_for`], [`BufferTarget`] | Linux `tcp_input.c` |
//! | payload share of a packet | [`Payload`] | RFC 791, 8200, 9293, 7323, 2018 |
//! | link that a goodput identifies | [`line_class()`] | IEEE 802.3, and as above |
//! | rate of a Wi-Fi link | [`WifiStandard::rate`] | IEEE 802.11-2020 and 802.11ax-2021 |
//! | rate under random loss | [`mathis`], [`cubic`] | Mathis et al. 1997, RFC 9438 |
//! | mean window under random loss, of other controls too | [`ResponseFunction`] | RFC 3649, Kelly 2003, and the same |
//! | maximum loss for a rate | [`loss_budget_mathis`], [`loss_budget_cubic`] | the same |
//! | the same with timeouts and a window | [`pftk()`] | Padhye et al. 1998, RFC 5348 |
//! | BBR's rate under loss | [`bbr()`] | Cardwell et al. 2016 |
//! | goodput direct, over split TCP, over UDT | [`boost`] | as above; Yuan et al. 2025 |
//! | times of an object from an edge cache | [`edge`] | RFC 5681, 6928, 9111; nginx |
//! | UDT's rate increase | [`udt_alpha`], [`udt_recovery`] | Gu, Grossman 2007 |
//! | duration of slow start | [`slow_start_time`] | RFC 5681, RFC 6928 |
//! | least time of a transfer | [`least_transfer_time`] | RFC 5681, 6928, 9293 |
//! | duration of a transfer | [`transfer()`] | RFC 5681, Cardwell et al. 2000 |
//!
//! [`statistics`] has medians, percentiles, confidence intervals and Welch's t-test.
//! [`bdp_report()`] computes all figures of a path, [`calc`] one at a time, each with its
//! equation.

pub mod aim;
mod bbr;
mod bdp_report;
pub mod boost;
mod buffers;
pub mod calc;
pub mod edge;
mod figures;
mod least_time;
mod line_class;
mod loss;
mod payload;
mod pftk;
mod ramp;
mod random_loss;
mod response;
mod short_path;
mod sliding_window;
pub mod statistics;
mod transfer;
mod udt;
mod wifi;
mod wilson;
mod window;

pub use bbr::{
    BBR_ACCURATE_LOSS, BBR_CWND_GAIN, BBR_PROBE_GAIN, BBR_STARTUP_GAIN, bbr, bbr_inflight,
    bbr_loss_limit, bbr_probe_rtt_share, loss_budget_bbr,
};
pub use bdp_report::{
    BDP_SCHEMA, BdpError, BdpLine, BdpReport, BuffersLine, LossLine, MAX_MTU, MAX_STREAMS, MIN_MTU,
    PayloadLine, Question, RampLine, WindowLine, WindowRateLine, bdp_report,
};
pub use buffers::{
    AUTOTUNED_SEND_SHARE, AUTOTUNED_SHARES, BufferTarget, BufferTooLarge, MAX_BUFFER, SEND_SHARE,
    raised_triple, share_of_buffer,
};
pub use least_time::least_transfer_time;
pub use line_class::{LINE_RATES, LineClass, line_class};
pub use loss::{
    CUBIC_BETA, CUBIC_C, cubic, cubic_recovery, cubic_region, loss_budget_cubic,
    loss_budget_mathis, loss_budget_mathis_for, loss_from_fraction, mathis, mathis_constant,
    mathis_constant_for, mathis_for,
};
pub use payload::{ETHERNET_FRAMING, IpVersion, Payload, VLAN_TAG, share_of};
pub use pftk::{RenoPath, TIMEOUT_LOSS, linux_rto, loss_budget_pftk, pftk, pftk_simple};
pub use ramp::{INITIAL_WINDOW_SEGMENTS, SlowStart, slow_start, slow_start_time};
pub use response::ResponseFunction;
pub use short_path::{CACHES, SHORT_PATH_RATE, SHORT_RTT, is_short_path};
pub use sliding_window::{SlidingWindow, Span, WindowInFlight, WindowRound};
pub use transfer::{Congestion, RampUp, Transfer, transfer};
pub use udt::{
    UDT_DECREASE, UDT_MIN_INCREASE, UDT_SYN_S, UDT_TAU, loss_budget_udt, udt_alpha, udt_recovery,
    udt_under_loss,
};
pub use wifi::{WIFI_TCP_SHARE, WifiStandard};
pub use wilson::wilson_interval;
pub use window::{
    HEAD_ROOM, INITIAL_WINDOW_SHARE, MAX_SHIFT, MAX_WINDOW, STEADY_WINDOW_SHARE, UNSCALED_WINDOW,
    WindowTooLarge, bdp, buffer_for, per_stream, window_for, window_rate, window_scale,
};
