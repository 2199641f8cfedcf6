//! The goodput of transfers that this host sends over a route, without and with other metrics.
//!
//! > long: min(link, tcp_wmem x 0.82 / RTT, congestion control at that loss) per connection
//! >
//! > of a size: handshake, rounds of slow start from `initcwnd`, then that rate ([`model::transfer`])
//!
//! The models are those of `longhaul calc` and of the predictions of findings: Mathis et al. 1997
//! and RFC 9438 for Reno and CUBIC, `link x (1 - loss)` less ProbeRTT for BBR.

use super::RouteGoal;
use model::{Congestion, Payload, Transfer};
use record::{RouteMetrics, RoutePrediction};
use units::{BitRate, ByteCount, LossRatio, percent};

/// A transfer whose start matters, where no size is given.
const SMALL: ByteCount = ByteCount::from_bytes(1_000_000);

/// The path of a goal, and what else limits a transfer.
pub(super) struct Path {
    transfer: Transfer,
    streams: u32,
    /// The largest send buffer (`tcp_wmem`), if it can be read.
    send_buffer: Option<ByteCount>,
    size: ByteCount,
}

/// How connections over a route start and send: by its metrics, else by the host's defaults.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InForce {
    /// The congestion control's name.
    pub(super) congestion: String,
    /// The initial congestion window, in segments.
    pub(super) initcwnd: u32,
}

impl InForce {
    /// With these metrics of the route, and the host's congestion control.
    pub(super) fn new(metrics: &RouteMetrics, host: &str) -> Self {
        InForce {
            congestion: metrics.congctl.clone().unwrap_or_else(|| host.to_owned()),
            initcwnd: metrics.initcwnd.unwrap_or(model::INITIAL_WINDOW_SEGMENTS as u32),
        }
    }

    /// Returns true for BBR.
    pub(super) fn is_bbr(&self) -> bool {
        self.model() == Some(Congestion::Bbr)
    }

    fn model(&self) -> Option<Congestion> {
        Congestion::ALL.into_iter().find(|one| one.name() == self.congestion)
    }
}

impl Path {
    /// `None` if packets leave no room for payload.
    pub(super) fn new(
        goal: &RouteGoal,
        payload: &Payload,
        send_buffer: Option<ByteCount>,
    ) -> Option<Self> {
        let size = goal.bytes.unwrap_or(SMALL);
        let window = send_buffer
            .map(|buffer| model::share_of_buffer(buffer, model::AUTOTUNED_SEND_SHARE))
            .map(|window| window.min(model::MAX_WINDOW));
        let transfer = Transfer {
            size,
            link: payload.goodput(goal.rate)?,
            rtt: goal.rtt,
            loss: goal.loss.unwrap_or(LossRatio::NONE),
            mss: ByteCount::from_bytes(u64::from(payload.mss()?)),
            window,
            initial: model::INITIAL_WINDOW_SEGMENTS as u32,
        };
        Some(Path { transfer, streams: goal.streams.max(1), send_buffer, size })
    }

    /// Returns true if the send buffer holds less than the path: no equation then gives BBR's rate,
    /// which was measured at half of CUBIC's (docs/design/routes.md).
    pub(super) fn is_behind_send_buffer(&self) -> bool {
        let Transfer { link, rtt, window, .. } = self.transfer;
        window.is_some_and(|window| window < model::bdp(link, rtt))
    }

    /// The rate of all connections once slow start is over; `None` without a model.
    pub(super) fn long(&self, of: &InForce) -> Option<BitRate> {
        let congestion = self.modelled(of)?;
        let (rate, _) = model::boost::long_rate(&self.transfer, congestion, self.streams)?;
        Some(rate)
    }

    /// The mean rate of one transfer of the goal's size.
    fn sized(&self, of: &InForce) -> Option<BitRate> {
        let transfer = Transfer { initial: of.initcwnd, ..self.transfer };
        Some(model::transfer(&transfer, self.modelled(of)?)?.mean)
    }

    /// The congestion control, if an equation gives its rate on this path.
    fn modelled(&self, of: &InForce) -> Option<Congestion> {
        of.model().filter(|_| !(of.is_bbr() && self.is_behind_send_buffer()))
    }

    /// Both predictions; none for a congestion control without a model.
    pub(super) fn predictions(&self, before: &InForce, after: &InForce) -> Vec<RoutePrediction> {
        let of = |bytes: Option<ByteCount>| {
            let rate = |of: &InForce| match bytes {
                Some(_) => self.sized(of),
                None => self.long(of),
            };
            let (before_bps, after_bps) = (rate(before)?, rate(after)?);
            let (now, then) = (self.why(before, bytes), self.why(after, bytes));
            let why = if now == then { now } else { format!("{now}; {then}") };
            Some(RoutePrediction { bytes, before_bps, after_bps, why })
        };
        [None, Some(self.size)].into_iter().filter_map(of).collect()
    }

    /// The equation that gives the rate, with its numbers.
    fn why(&self, of: &InForce, bytes: Option<ByteCount>) -> String {
        let Transfer { link, rtt, loss, mss, window, .. } = self.transfer;
        let lossy = loss > LossRatio::NONE;
        let p = percent(loss.fraction());
        let steady = of.model().and_then(|one| one.steady(&self.transfer));
        let bound = window.and_then(|window| model::window_rate(window, rtt));
        let equation = match of.model() {
            _ if steady.is_some() && steady == bound && bound < Some(link) => {
                let buffer = self.send_buffer.unwrap_or_default();
                format!("tcp_wmem {buffer} x 0.82 / {rtt}")
            }
            Some(Congestion::Bbr) if lossy => {
                format!("{link} of payload x (1 - {p}) (Cardwell et al. 2016)")
            }
            Some(Congestion::Cubic) if lossy && is_reno_friendly(&self.transfer) => {
                format!("sqrt(3/2) x {mss} / ({rtt} x sqrt({p})) (Mathis et al. 1997)")
            }
            Some(Congestion::Cubic) if lossy => {
                format!("1.054 x ({rtt} / {p})^(3/4) x {mss} / {rtt} (RFC 9438, section 5.1)")
            }
            Some(Congestion::Reno) if lossy => {
                format!("sqrt(3/2) x {mss} / ({rtt} x sqrt({p})) (Mathis et al. 1997)")
            }
            _ => format!("{link} of payload"),
        };
        let start = match bytes {
            Some(_) => format!(" after slow start from {} segments (RFC 5681)", of.initcwnd),
            None if of.model() == Some(Congestion::Bbr) => " less ProbeRTT".to_owned(),
            None if lossy && of.model().is_some() => {
                ", adapted to independent losses, less timeouts (Padhye et al. 1998)".to_owned()
            }
            None => String::new(),
        };
        format!("{}: {equation}{start}", of.congestion)
    }
}

/// Returns true where CUBIC grows as Reno does (RFC 9438, section 4.3).
fn is_reno_friendly(&Transfer { mss, rtt, loss, .. }: &Transfer) -> bool {
    model::mathis(mss, rtt, loss) >= model::cubic_region(mss, rtt, loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rate: &str, rtt: &str, loss: &str, wmem: Option<u64>, streams: u32) -> Path {
        let route = "192.0.2.0/24".parse().unwrap();
        let goal = RouteGoal {
            loss: Some(loss.parse().unwrap()),
            streams,
            ..RouteGoal::new(route, rate.parse().unwrap(), rtt.parse().unwrap())
        };
        Path::new(&goal, &goal.payload(None), wmem.map(ByteCount::from_bytes)).unwrap()
    }

    fn with(congestion: &str, initcwnd: u32) -> InForce {
        InForce { congestion: congestion.to_owned(), initcwnd }
    }

    fn mbit(rate: Option<BitRate>) -> f64 {
        (rate.unwrap().as_f64() / 1e4).round() / 100.0
    }

    #[test]
    fn the_gain_under_loss_is_the_congestion_controls() {
        let lossy = path("100mbit", "50ms", "1%", None, 1);
        // 1.04 x sqrt(3/2) x 1448 x 8 / (0.05 x 0.1), less 0.1 in timeouts; 96.53 x 0.99 x 0.9775.
        assert_eq!(mbit(lossy.long(&with("cubic", 10))), 2.66);
        assert_eq!(mbit(lossy.long(&with("bbr", 10))), 93.42);
        assert_eq!(mbit(path("100mbit", "50ms", "1%", None, 8).long(&with("cubic", 10))), 21.25);
        assert_eq!(lossy.long(&with("vegas", 10)), None);
        let both = lossy.predictions(&with("cubic", 10), &with("bbr", 10));
        assert_eq!(both.len(), 2);
        assert!(both[0].bytes.is_none() && both[0].gain() > 30.0, "{both:?}");
        assert!(both[0].why.contains("Mathis et al. 1997") && both[0].why.contains("ProbeRTT"));
    }

    #[test]
    fn without_loss_and_behind_a_small_buffer_there_is_no_gain() {
        let clean = path("100mbit", "50ms", "0%", None, 1);
        assert_eq!(mbit(clean.long(&with("cubic", 10))), 96.53);
        let short = path("100mbit", "100ms", "1%", Some(1 << 16), 1);
        // 1.48 alone, less 0.06 in timeouts, beside a window of 64 KiB x 0.82 / 100 ms.
        assert_eq!(mbit(short.long(&with("cubic", 10))), 1.37);
        let clean_and_short = path("100mbit", "100ms", "0%", Some(1 << 16), 1);
        let both = clean_and_short.predictions(&with("cubic", 10), &with("reno", 10));
        assert!((both[0].gain() - 1.0).abs() < 1e-9, "{both:?}");
        assert!(clean_and_short.is_behind_send_buffer() && !clean.is_behind_send_buffer());
        assert!(clean_and_short.predictions(&with("cubic", 10), &with("bbr", 10)).is_empty());
        assert!(both[0].why.contains("tcp_wmem 64 KiB x 0.82 / 100 ms"), "{}", both[0].why);
    }

    #[test]
    fn a_larger_initial_window_saves_round_trips() {
        let clean = path("100mbit", "173ms", "0%", None, 1);
        let [long, small] = &clean.predictions(&with("cubic", 10), &with("cubic", 44))[..] else {
            panic!("two predictions");
        };
        assert!((long.gain() - 1.0).abs() < 1e-9);
        // 1 MB: 691 segments are 10 x (2^7 - 1) at the latest, 7 rounds, or 44 x (2^5 - 1), 5.
        assert!(small.gain() > 1.25 && small.gain() < 1.5, "{small:?}");
    }
}
