//! The algorithms behind one type, chosen at run time without allocation.

use crate::{
    Ack, Bbr, Bbr3, Congestion, CongestionControl, Cubic, FixedRate, NewReno, Reduction, Udt,
    UdtRules,
};
use units::{BitRate, Nanos};

/// The algorithms there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// [`NewReno`].
    NewReno,
    /// [`Cubic`], Linux's default.
    #[default]
    Cubic,
    /// [`Bbr`].
    Bbr,
    /// [`Bbr3`].
    Bbr3,
    /// [`FixedRate`], at this rate.
    FixedRate(BitRate),
    /// [`Udt`], by these rules.
    Udt(UdtRules),
}

/// The algorithms that a UDT sender can have: those that need no samples of the delivery
/// rate. The first is the default.
pub const UDT_ALGORITHMS: [Algorithm; 4] = [
    Algorithm::Udt(UdtRules::Udt),
    Algorithm::Udt(UdtRules::Srt),
    Algorithm::NewReno,
    Algorithm::Cubic,
];

/// The algorithms that a sender in UDT's native mode can have: those that need no reports of
/// the receiver. The first is the default.
pub const NATIVE_ALGORITHMS: [Algorithm; 3] =
    [Algorithm::Bbr3, Algorithm::NewReno, Algorithm::Cubic];

/// Flow window of a UDT receiver by default, packets.
pub const UDT_FLOW_WINDOW: u64 = 25_600;

impl Algorithm {
    /// The congestion controls of a TCP sender, as tables list them.
    pub const ALL: &[Algorithm] =
        &[Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr, Algorithm::Bbr3];

    /// That of [`Algorithm::ALL`] with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|algorithm| algorithm.name() == name)
    }

    /// Its name: in Linux, where it has one there.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::NewReno => "reno",
            Algorithm::Cubic => "cubic",
            Algorithm::Bbr => "bbr",
            Algorithm::Bbr3 => "bbr3",
            Algorithm::FixedRate(_) => "fixed-rate",
            Algorithm::Udt(rules) => rules.name(),
        }
    }

    /// The algorithms of [`UDT_ALGORITHMS`] by name.
    #[must_use]
    pub fn for_udt(name: &str) -> Option<Self> {
        UDT_ALGORITHMS.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The algorithms of [`NATIVE_ALGORITHMS`] by name; `bbr` is BBR version 3 there.
    #[must_use]
    pub fn for_native(name: &str) -> Option<Self> {
        let name = if name == Algorithm::Bbr.name() { Algorithm::Bbr3.name() } else { name };
        NATIVE_ALGORITHMS.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// A controller for a new connection with packets of `mss` bytes of payload; the
    /// seed is for algorithms that draw random numbers.
    #[must_use]
    pub fn start(self, mss: u32, seed: u64) -> Controller {
        match self {
            Algorithm::NewReno => Controller::NewReno(NewReno::new()),
            Algorithm::Cubic => Controller::Cubic(Cubic::new(mss)),
            Algorithm::Bbr => Controller::Bbr(Bbr::new(mss, seed)),
            Algorithm::Bbr3 => Controller::Bbr3(Bbr3::new(mss, seed)),
            Algorithm::FixedRate(rate) => Controller::FixedRate(FixedRate::new(rate, mss)),
            Algorithm::Udt(rules) => Controller::Udt(Udt::new(rules, mss, UDT_FLOW_WINDOW, seed)),
        }
    }
}

/// A controller of any algorithm.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is named after its algorithm")]
pub enum Controller {
    NewReno(NewReno),
    Cubic(Cubic),
    Bbr(Bbr),
    Bbr3(Bbr3),
    FixedRate(FixedRate),
    Udt(Udt),
}

macro_rules! dispatch {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            Controller::NewReno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Bbr($controller) => $call,
            Controller::Bbr3($controller) => $call,
            Controller::FixedRate($controller) => $call,
            Controller::Udt($controller) => $call,
        }
    };
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        dispatch!(self, controller => controller.name())
    }

    fn on_ack(&mut self, ack: &Ack) {
        dispatch!(self, controller => controller.on_ack(ack));
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        dispatch!(self, controller => controller.on_congestion(congestion));
    }

    fn on_recovery_end(&mut self, now: Nanos) {
        dispatch!(self, controller => controller.on_recovery_end(now));
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        dispatch!(self, controller => controller.on_retransmission_timeout(congestion));
    }

    fn undo(&mut self, now: Nanos) {
        dispatch!(self, controller => controller.undo(now));
    }

    fn on_idle_end(&mut self, now: Nanos, idle_ns: u64, timeouts: u32) {
        dispatch!(self, controller => controller.on_idle_end(now, idle_ns, timeouts));
    }

    fn cwnd(&self) -> u64 {
        dispatch!(self, controller => controller.cwnd())
    }

    fn ssthresh(&self) -> Option<u64> {
        dispatch!(self, controller => controller.ssthresh())
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        dispatch!(self, controller => controller.pacing_rate())
    }

    fn reduction(&self) -> Reduction {
        dispatch!(self, controller => controller.reduction())
    }

    fn min_burst(&self) -> u64 {
        dispatch!(self, controller => controller.min_burst())
    }

    fn send_buffer_windows(&self) -> u64 {
        dispatch!(self, controller => controller.send_buffer_windows())
    }
}
