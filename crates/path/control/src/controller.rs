//! The algorithms behind one type, chosen at run time without allocation.

use crate::{
    Ack, Arithmetic, Bbr, Bbr3, Bic, Congestion, CongestionControl, Cubic, CubicPaper, Dctcp,
    EcnResponse, Fast, FastConvergence, FixedRate, HighSpeed, Htcp, Hybla, Illinois, Law, NewReno,
    Oracle, OwnController, PathShare, Prague, Reduction, Scalable, Udt, UdtRules, Vegas, Westwood,
    Windowed, Xcp, Yeah,
};
use units::{BitRate, Nanos, WindowChange};

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
    /// [`Bic`].
    Bic,
    /// [`Dctcp`].
    Dctcp,
    /// [`Fast`], with that many packets kept queued.
    Fast(u32),
    /// [`HighSpeed`].
    HighSpeed,
    /// [`Htcp`].
    Htcp,
    /// [`Hybla`].
    Hybla,
    /// [`Illinois`].
    Illinois,
    /// [`Scalable`].
    Scalable,
    /// [`Vegas`].
    Vegas,
    /// [`Westwood`].
    Westwood,
    /// [`Xcp`]; wants routers that have it.
    Xcp,
    /// [`Yeah`].
    Yeah,
    /// [`Oracle`], which knows its share of the path.
    Oracle(PathShare),
    /// [`Prague`]; wants ECT(1) and exact counts of marks.
    Prague,
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

/// Packets that FAST keeps queued by default: the paper's 200 at 1 Gbit/s, for 100 Mbit/s.
pub const FAST_BACKLOG: u32 = 20;

impl Algorithm {
    /// The algorithms that a TCP sender can have over any path, in the order in which people use them.
    pub const ALL: [Algorithm; 16] = [
        Algorithm::Cubic,
        Algorithm::Bbr,
        Algorithm::Bbr3,
        Algorithm::Prague,
        Algorithm::Dctcp,
        Algorithm::Htcp,
        Algorithm::NewReno,
        Algorithm::HighSpeed,
        Algorithm::Scalable,
        Algorithm::Bic,
        Algorithm::Westwood,
        Algorithm::Vegas,
        Algorithm::Illinois,
        Algorithm::Yeah,
        Algorithm::Hybla,
        Algorithm::Fast(FAST_BACKLOG),
    ];

    /// The algorithms of [`Algorithm::ALL`] and XCP by name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut known = Algorithm::ALL.into_iter().chain([Algorithm::Xcp]);
        known.find(|algorithm| algorithm.name() == name)
    }

    /// Whether Linux has it, built in or as a module.
    #[must_use]
    pub const fn is_in_linux(self) -> bool {
        !matches!(
            self,
            Algorithm::Bbr3
                | Algorithm::Prague
                | Algorithm::Fast(_)
                | Algorithm::Oracle(_)
                | Algorithm::FixedRate(_)
                | Algorithm::Udt(_)
                | Algorithm::Xcp
        )
    }

    /// Whether it needs a router with XCP (`queue=xcp`) at the bottleneck: without one its window
    /// stays what it is.
    #[must_use]
    pub const fn needs_xcp_router(self) -> bool {
        matches!(self, Algorithm::Xcp)
    }

    /// Its name: in Linux, where it has one there.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::NewReno => "reno",
            Algorithm::Cubic => "cubic",
            Algorithm::Bbr => "bbr",
            Algorithm::Bbr3 => "bbr3",
            Algorithm::Bic => "bic",
            Algorithm::Dctcp => "dctcp",
            Algorithm::Fast(_) => "fast",
            Algorithm::HighSpeed => "highspeed",
            Algorithm::Htcp => "htcp",
            Algorithm::Hybla => "hybla",
            Algorithm::Illinois => "illinois",
            Algorithm::Oracle(_) => "oracle",
            Algorithm::Scalable => "scalable",
            Algorithm::Vegas => "vegas",
            Algorithm::Westwood => "westwood",
            Algorithm::Xcp => "xcp",
            Algorithm::Yeah => "yeah",
            Algorithm::Prague => "prague",
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

    /// A controller for a new connection with packets of `mss` bytes of payload, in the
    /// kernel's arithmetic; the seed is for algorithms that draw random numbers.
    #[must_use]
    pub fn start(self, mss: u32, seed: u64) -> Controller {
        self.start_in(Arithmetic::Kernel, mss, seed)
    }

    /// The same in an arithmetic. BBR, UDT, XCP, a fixed rate and the oracle have one only,
    /// and so has FAST, which no kernel has.
    #[must_use]
    pub fn start_in(self, arithmetic: Arithmetic, mss: u32, seed: u64) -> Controller {
        const fn by<L: Law>(law: L, arithmetic: Arithmetic) -> Windowed<L> {
            Windowed::new(law, arithmetic)
        }
        match self {
            Algorithm::NewReno => Controller::NewReno(by(NewReno, arithmetic)),
            Algorithm::Cubic => match arithmetic {
                Arithmetic::Kernel => Controller::Cubic(Cubic::new(mss)),
                Arithmetic::Paper => {
                    let law = CubicPaper::new(FastConvergence::On);
                    Controller::CubicPaper(by(law, arithmetic))
                }
            },
            Algorithm::Bbr => Controller::Bbr(Bbr::new(mss, seed)),
            Algorithm::Bbr3 => Controller::Bbr3(Bbr3::new(mss, seed)),
            Algorithm::Bic => Controller::Bic(by(Bic::default(), arithmetic)),
            Algorithm::Dctcp => Controller::Dctcp(by(Dctcp::new(arithmetic), arithmetic)),
            Algorithm::Fast(backlog) => Controller::Fast(by(Fast::new(backlog), Arithmetic::Paper)),
            Algorithm::HighSpeed => Controller::HighSpeed(by(HighSpeed::default(), arithmetic)),
            Algorithm::Htcp => Controller::Htcp(by(Htcp::default(), arithmetic)),
            Algorithm::Hybla => Controller::Hybla(by(Hybla::default(), arithmetic)),
            Algorithm::Illinois => Controller::Illinois(by(Illinois::default(), arithmetic)),
            Algorithm::Oracle(share) => Controller::Oracle(Oracle::new(share, mss)),
            Algorithm::Scalable => Controller::Scalable(by(Scalable, arithmetic)),
            Algorithm::Vegas => Controller::Vegas(by(Vegas::default(), arithmetic)),
            Algorithm::Westwood => Controller::Westwood(by(Westwood::new(mss), arithmetic)),
            Algorithm::Xcp => Controller::Xcp(Xcp::default()),
            Algorithm::Yeah => Controller::Yeah(by(Yeah::default(), arithmetic)),
            Algorithm::Prague => Controller::Prague(Prague::new(mss)),
            Algorithm::FixedRate(rate) => Controller::FixedRate(FixedRate::new(rate, mss)),
            Algorithm::Udt(rules) => Controller::Udt(Udt::new(rules, mss, UDT_FLOW_WINDOW, seed)),
        }
    }
}

/// A controller of any algorithm.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is named after its algorithm")]
pub enum Controller {
    NewReno(Windowed<NewReno>),
    Cubic(Cubic),
    Bbr(Bbr),
    Bbr3(Bbr3),
    Bic(Windowed<Bic>),
    CubicPaper(Windowed<CubicPaper>),
    Dctcp(Windowed<Dctcp>),
    Fast(Windowed<Fast>),
    HighSpeed(Windowed<HighSpeed>),
    Htcp(Windowed<Htcp>),
    Hybla(Windowed<Hybla>),
    Illinois(Windowed<Illinois>),
    Oracle(Oracle),
    Scalable(Windowed<Scalable>),
    Vegas(Windowed<Vegas>),
    Westwood(Windowed<Westwood>),
    Xcp(Xcp),
    Yeah(Windowed<Yeah>),
    Prague(Prague),
    FixedRate(FixedRate),
    Udt(Udt),
    Own(OwnController),
}

macro_rules! dispatch {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            Controller::NewReno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Bbr($controller) => $call,
            Controller::Bbr3($controller) => $call,
            Controller::Bic($controller) => $call,
            Controller::CubicPaper($controller) => $call,
            Controller::Dctcp($controller) => $call,
            Controller::Fast($controller) => $call,
            Controller::HighSpeed($controller) => $call,
            Controller::Htcp($controller) => $call,
            Controller::Hybla($controller) => $call,
            Controller::Illinois($controller) => $call,
            Controller::Oracle($controller) => $call,
            Controller::Scalable($controller) => $call,
            Controller::Vegas($controller) => $call,
            Controller::Westwood($controller) => $call,
            Controller::Xcp($controller) => $call,
            Controller::Yeah($controller) => $call,
            Controller::Prague($controller) => $call,
            Controller::FixedRate($controller) => $call,
            Controller::Udt($controller) => $call,
            Controller::Own($controller) => $call,
        }
    };
}

impl CongestionControl for Controller {
    fn name(&self) -> &str {
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

    fn ecn_response(&self) -> EcnResponse {
        dispatch!(self, controller => controller.ecn_response())
    }

    fn min_burst(&self) -> u64 {
        dispatch!(self, controller => controller.min_burst())
    }

    fn max_burst(&self) -> Option<u64> {
        dispatch!(self, controller => controller.max_burst())
    }

    fn send_buffer_windows(&self) -> u64 {
        dispatch!(self, controller => controller.send_buffer_windows())
    }

    fn reads_router_feedback(&self) -> bool {
        dispatch!(self, controller => controller.reads_router_feedback())
    }

    fn on_router_feedback(&mut self, change: WindowChange) {
        dispatch!(self, controller => controller.on_router_feedback(change));
    }

    fn failure(&self) -> Option<&str> {
        dispatch!(self, controller => controller.failure())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_found_by_the_name_of_its_controller() {
        for algorithm in Algorithm::ALL.into_iter().chain([Algorithm::Xcp]) {
            assert_eq!(Algorithm::by_name(algorithm.name()), Some(algorithm));
            for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
                let control = algorithm.start_in(arithmetic, 1_448, 1);
                assert_eq!(control.name(), algorithm.name());
            }
        }
        assert_eq!(Algorithm::by_name("copa"), None);
        // Debian's 6.1: reno and cubic built in, bbr and ten more as modules.
        assert_eq!(Algorithm::ALL.into_iter().filter(|one| one.is_in_linux()).count(), 13);
    }
}
