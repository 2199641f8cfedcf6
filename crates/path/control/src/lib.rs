//! Congestion control: how many packets a sender may have in flight, and how fast it
//! sends them.
//!
//! Pure: no I/O, no system clock, no thread, no allocation after construction. Time
//! comes in as [`Nanos`], windows are counted in packets as Linux does. Whoever drives a
//! controller detects losses and keeps the round-trip time; a controller only decides.
//!
//! | module | algorithm |
//! |---|---|
//! | `newreno` | Reno's slow start and congestion avoidance (RFC 5681) |
//! | `cubic` | CUBIC (RFC 9438) with Linux's constants and integer arithmetic |
//! | `hystart` | CUBIC's exit from slow start (Ha, Rhee 2011), as in Linux |
//! | `cubic_paper` | CUBIC by the RFC's equations, in real numbers |
//! | `hystart_plus_plus` | its slow start (RFC 9406) |
//! | `bbr` | BBR version 1 (Cardwell et al. 2016), as in Linux |
//! | `bbr3` | BBR version 3 (draft-ietf-ccwg-bbr) |
//! | `bic` | BIC: binary search for the window of the last loss (Xu, Harfoush, Rhee 2004) |
//! | `dctcp` | DCTCP (RFC 8257), and its share of marked packets |
//! | `fast` | FAST: a fixed number of packets queued (Wei, Jin, Low, Hegde 2006) |
//! | `high_speed` | HighSpeed TCP (RFC 3649) |
//! | `htcp` | H-TCP: growth by the time since congestion (Leith, Shorten 2004) |
//! | `hybla` | Hybla: the rate of a Reno of 25 ms (Caini, Firrincieli 2004) |
//! | `illinois` | Illinois: growth and reduction by delay (Liu, Basar, Srikant 2008) |
//! | `scalable` | Scalable TCP (Kelly 2003) |
//! | `vegas` | Vegas: two to four packets queued (Brakmo, Peterson 1995) |
//! | `westwood` | Westwood+: a loss reduces to bandwidth times RTT (Grieco, Mascolo 2004) |
//! | `xcp` | XCP: the window that routers grant (Katabi, Handley, Rohrs 2002) |
//! | `yeah` | YeAH: Scalable while the queue is short (Baiocchi et al. 2007) |
//! | `oracle` | none: paces at a known share of the path, the bound for all others |
//! | `prague` | Prague, for L4S (draft-briscoe-iccrg-prague-congestion-control) |
//! | `fixed_rate` | none: a fixed rate, with a circuit breaker (RFC 8084) |
//! | `udt` | UDT's native control (Gu, Grossman 2007; UDT 4.11), and SRT's variant for files |
//! | `named_control` | none: the names that people choose by, and PSockets (2000), N connections as one |
//! | `own` | any other implementation of [`CongestionControl`] |
//!
//! `delivery_rate` makes the samples of the delivery rate that both BBRs need. Controls that
//! adapt a window are a [`Law`] each: what they have in common is [`Windowed`]. They count in
//! one of two ways ([`Arithmetic`]): as Linux does, or by the equations of their papers.
//!
//! A driver calls [`CongestionControl::on_ack`] for each acknowledgement and the other
//! methods at changes of state:
//!
//! ```text
//!            loss detected, or CE marks echoed
//!   Open ──────────── on_congestion ───────────> Recovery ── on_recovery_end ──> Open
//!    │  └──<─────────────── undo ───────────────────┘ │
//!    └─────────── on_retransmission_timeout ──────────┴─> Loss ────── TCP: no call ───> Open
//! ```

mod aggregation;
mod bbr;
mod bbr3;
mod bic;
mod controller;
mod cubic;
mod cubic_paper;
mod dctcp;
mod delivery_rate;
#[cfg(test)]
mod driver;
mod fast;
mod fixed_rate;
mod high_speed;
mod htcp;
mod hybla;
mod hystart;
mod hystart_plus_plus;
mod illinois;
mod jiffies;
mod law;
mod max_filter;
mod named_control;
mod newreno;
mod oracle;
mod own;
mod prague;
mod random;
mod round_trips;
mod scalable;
mod udt;
mod vegas;
mod westwood;
mod window;
mod xcp;
mod yeah;

pub use bbr::{Bbr, BbrMode};
pub use bbr3::{Bbr3, Bbr3State};
pub use bic::Bic;
pub use controller::{
    Algorithm, Controller, FAST_BACKLOG, NATIVE_ALGORITHMS, UDT_ALGORITHMS, UDT_FLOW_WINDOW,
};
pub use cubic::Cubic;
pub use cubic_paper::{CubicPaper, FastConvergence};
pub use dctcp::{Dctcp, MarkedShare};
pub use delivery_rate::{DeliveryRate, DeliverySnapshot, SentPackets};
pub use fast::Fast;
pub use fixed_rate::FixedRate;
pub use high_speed::HighSpeed;
pub use htcp::Htcp;
pub use hybla::Hybla;
pub use illinois::Illinois;
pub use law::{Law, Windowed};
pub use named_control::{NamedControl, simulated_only};
pub use newreno::NewReno;
pub use oracle::{Oracle, PathShare};
pub use own::{MAX_WINDOW, OwnController};
pub use prague::Prague;
pub use scalable::Scalable;
pub use udt::{Udt, UdtRules};
pub use vegas::Vegas;
pub use westwood::Westwood;
pub use window::{Arithmetic, Window};
pub use xcp::Xcp;
pub use yeah::Yeah;

use units::{BitRate, Nanos, Rtt, WindowChange};

/// Initial congestion window in packets (RFC 6928).
pub const INITIAL_WINDOW: u64 = 10;

/// What a driver knows at an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ack {
    /// When it came.
    pub now: Nanos,
    /// Packets acknowledged in order that were not before.
    pub newly_acked: u64,
    /// Packets acknowledged or selectively acknowledged that were not before.
    pub newly_delivered: u64,
    /// Packets detected as lost at this acknowledgement.
    pub newly_lost: u64,
    /// Packets delivered since the connection began, this acknowledgement included.
    pub delivered: u64,
    /// Packets of those that bore a CE mark, newly reported.
    pub newly_marked: u64,
    /// The next packet expected in order, as a count of packets (`snd_una`).
    pub acked_to: u64,
    /// The next new packet to be sent, as a count of packets (`snd_nxt`).
    pub sent_to: u64,
    /// Packets in flight after this acknowledgement.
    pub in_flight: u64,
    /// Packets in flight before it.
    pub prior_in_flight: u64,
    /// The congestion window limited the sender within the last round trip (in slow
    /// start: more than half of it was used, RFC 7661). Where not, it does not grow.
    pub cwnd_limited: bool,
    /// RTT of the packet sent last among those newly delivered, if never retransmitted.
    pub rtt: Option<Rtt>,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Option<Rtt>,
    /// Delivery-rate sample, if this acknowledgement gave one.
    pub rate: Option<RateSample>,
    /// What the receiver reported of arrivals; `None` where the protocol does not (TCP).
    pub receiver: Option<ReceiverReport>,
    /// The state of the driver.
    pub phase: Phase,
}

/// Estimates that a UDT receiver sends with its acknowledgements, each `None` until it is
/// known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReceiverReport {
    /// Arrival rate of packets, packets a second.
    pub arrival_pps: Option<f64>,
    /// Capacity of the path by packet pairs, packets a second.
    pub capacity_pps: Option<f64>,
}

/// One sample of the delivery rate (draft-ietf-ccwg-bbr section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered between the sending of the newest delivered packet and now.
    pub delivered: u64,
    /// Packets that had been delivered when it was sent.
    pub prior_delivered: u64,
    /// The longer of the times in which they were sent and acknowledged, in ns; zero if
    /// shorter than the minimum RTT and so no rate.
    pub interval_ns: u64,
    /// The application had nothing to send at some time in it: a lower bound only.
    pub app_limited: bool,
    /// Packets in flight when the newest delivered packet was sent, that one included.
    pub in_flight: u64,
    /// Packets detected as lost since then.
    pub lost: u64,
}

/// The state of a driver (RFC 5681 section 3.2; Linux's `tcp_ca_state`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired.
    #[default]
    Open,
    /// From the detection of a loss, or of congestion by CE marks, until what was in
    /// flight then is acknowledged.
    Recovery,
    /// The same from a retransmission timeout.
    Loss,
}

/// What a driver knows where congestion is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// When.
    pub now: Nanos,
    /// Packets in flight, without those detected as lost.
    pub in_flight: u64,
    /// Congestion within a recovery that is under way is not new: the window
    /// then was reduced already.
    pub is_new: bool,
    /// The first packet newly detected as lost, as a count of packets.
    pub first_lost: u64,
    /// Packets detected as lost that are not yet retransmitted.
    pub lost: u64,
    /// The next new packet to be sent, as a count of packets (`snd_nxt`).
    pub sent_to: u64,
}

/// Who reduces the window in recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The driver, to [`CongestionControl::ssthresh`] by Proportional Rate Reduction
    /// (RFC 9937).
    Proportional,
    /// The controller: its window holds in recovery too.
    Controlled,
}

/// How an algorithm responds to CE marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnResponse {
    /// As to a loss, once a round trip (RFC 3168, section 6.1.2): the driver begins a
    /// recovery.
    Classic,
    /// By the share of marked packets (RFC 9331, section 4.3): the driver goes on, and
    /// [`Ack::newly_marked`] tells the algorithm.
    Scalable,
}

/// A congestion control algorithm.
///
/// # Order of calls
/// Time never goes back from one call to the next. After each call the driver reads
/// [`cwnd`](CongestionControl::cwnd), [`ssthresh`](CongestionControl::ssthresh) and
/// [`pacing_rate`](CongestionControl::pacing_rate), any number of times, and sends what they
/// permit: it has at most `cwnd` packets in flight, but for retransmissions and probes.
///
/// An acknowledgement that changes the state gives up to four calls, in this order: `undo`,
/// `on_recovery_end`, `on_congestion`, then `on_ack`, whose [`Ack::phase`] is the new state.
/// `on_congestion` also comes alone, where the timer of RACK finds a loss.
///
/// # What TCP's driver guarantees
/// - `on_congestion` comes in [`Phase::Open`] only, so at most once a round trip; its
///   [`Congestion::is_new`] is true.
/// - Every recovery ends with one of `on_recovery_end`, `undo` and
///   `on_retransmission_timeout`; the recovery that a timeout begins ends without a call.
/// - Packets are counted once: the sum of [`Ack::newly_delivered`] is [`Ack::delivered`].
/// - It takes any window that the controller has: not to let one grow that was not used
///   ([`Ack::cwnd_limited`]) is up to the controller.
pub trait CongestionControl {
    /// Its name: in Linux (`tcp_congestion_control`), where it has one there.
    fn name(&self) -> &str;

    /// An acknowledgement came.
    fn on_ack(&mut self, ack: &Ack);

    /// A loss was detected or CE marks were echoed: recovery begins, and
    /// [`CongestionControl::ssthresh`] is the window to reduce to.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// All that was in flight when recovery began is acknowledged. Where the driver reduced
    /// the window ([`Reduction::Proportional`]), `cwnd` holds again from here on, and is
    /// usually set to `ssthresh`.
    fn on_recovery_end(&mut self, now: Nanos);

    /// The retransmission timer expired: all that was in flight is taken as lost. The window
    /// should be 1 (RFC 5681 section 3.1), and the threshold be reduced if
    /// [`Congestion::is_new`].
    fn on_retransmission_timeout(&mut self, congestion: &Congestion);

    /// The recovery was entered because of reordering or delay, not of loss (RFC 4015):
    /// the window is again what it was. By default it stays reduced.
    fn undo(&mut self, _now: Nanos) {}

    /// Data is sent after `idle_ns` without any in flight; `timeouts` retransmission
    /// timeouts long (RFC 2861, RFC 5681 section 4.1). By default the window stays.
    fn on_idle_end(&mut self, _now: Nanos, _idle_ns: u64, _timeouts: u32) {}

    /// The window in packets, at least 1.
    fn cwnd(&self) -> u64;

    /// The slow-start threshold in packets; `None` until the first loss or exit.
    fn ssthresh(&self) -> Option<u64>;

    /// The rate at which it asks to be paced; `None`, the default, if it does not.
    fn pacing_rate(&self) -> Option<BitRate> {
        None
    }

    /// Who reduces the window in recovery. By default the driver.
    fn reduction(&self) -> Reduction {
        Reduction::Proportional
    }

    /// How it responds to CE marks.
    fn ecn_response(&self) -> EcnResponse {
        EcnResponse::Classic
    }

    /// Smallest burst it asks for while paced, in packets.
    fn min_burst(&self) -> u64 {
        2
    }

    /// Largest burst it allows, in packets; `None`: as the driver has it.
    fn max_burst(&self) -> Option<u64> {
        None
    }

    /// Congestion windows by which the send buffer is sized: by what their segments take of its
    /// memory, as Linux's `sndbuf_expand` (2, BBR 3); by payload in UDT.
    fn send_buffer_windows(&self) -> u64 {
        2
    }

    /// Whether its data packets carry window and RTT for routers to read, whose answers come to
    /// [`CongestionControl::on_router_feedback`] (XCP). By default not.
    fn reads_router_feedback(&self) -> bool {
        false
    }

    /// An acknowledgement brought back what routers grant or ask for, before
    /// [`CongestionControl::on_ack`]. By default it changes nothing.
    fn on_router_feedback(&mut self, _change: WindowChange) {}

    /// Why it cannot go on, in one line; `None`, the default, while it can. A driver that can
    /// end the connection then does; its answers are the last good ones until that.
    fn failure(&self) -> Option<&str> {
        None
    }
}
