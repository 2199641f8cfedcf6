//! A pair of boxes that splits TCP, as the remedy where neither host can be changed.
//!
//! The prediction is the one of `boost plan` ([`model::boost`]): the remedy is named only where that
//! has a gain worth the boxes.

use crate::next_limit::NextLimit;
use crate::predict;
use model::boost::{Boxes, Connections, Estimate, LongPath, split};
use model::{Congestion, bdp};
use record::{BOOST_WORTH, Limit, Remedy, RemedyCommand, RemedyPlace, path_flags};
use units::{BitRate, ByteCount, LossRatio, Rtt, percent};

/// RTT between a host and its box, as `boost plan` assumes it.
const LAN_RTT: Rtt = Rtt::from_micros(200);

/// The remedy for a limit that the boxes take away: a window, or loss with Reno or CUBIC. `None`
/// without a path, or a gain.
pub(crate) fn remedy(limit: Limit, next: &NextLimit<'_>) -> Option<Remedy> {
    let is_bbr = next.o.facts.is_bbr();
    let is_window = match limit {
        Limit::ReceiveWindow | Limit::SendBuffer | Limit::FixedWindow | Limit::WindowScaling => {
            true
        }
        Limit::Loss if !is_bbr => false,
        _ => return None,
    };
    let (link, goodput) = next.goal_path()?;
    let e = next.o.e;
    let count = u32::try_from(e.streams).unwrap_or(u32::MAX).max(1);
    let each = e.goodput.scaled(1.0 / f64::from(count));
    let window = is_window.then(|| bdp(each, e.rtt().unwrap_or(link.rtt)));
    let congestion = match (is_bbr, next.o.facts.is_reno()) {
        (true, _) => Congestion::Bbr,
        (_, true) => Congestion::Reno,
        _ => Congestion::Cubic,
    };
    let loss = predict::loss_ratio(next.o.m, e).unwrap_or(LossRatio::NONE);
    let path = LongPath {
        rate: Estimate::exact(goodput),
        rtt: Estimate::exact(link.rtt),
        loss: Estimate::exact(loss),
        mss: e.mss.filter(|mss| *mss > ByteCount::ZERO)?,
    };
    let connections = Connections { congestion, window, program_window: None, count };
    let boxes = Boxes {
        congestion: Congestion::Bbr,
        window: None,
        lan_rtt: LAN_RTT,
        lan_rate: None,
        reduction: 1.0,
    };
    let rate = split(&path, &connections, &boxes)?.rate.expected;
    let is_gain = rate.as_f64() >= BOOST_WORTH * e.goodput.as_f64();
    let command = command(link.rate, link.rtt, loss, window, congestion);
    let why = "a pair of boxes splits each connection: for hosts that cannot be changed".to_owned();
    is_gain.then_some(Remedy {
        place: RemedyPlace::Boxes,
        command,
        setting: None,
        expects_bps: Some(rate),
        why,
    })
}

fn command(
    rate: BitRate,
    rtt: Rtt,
    loss: LossRatio,
    window: Option<ByteCount>,
    congestion: Congestion,
) -> RemedyCommand {
    let flags = path_flags(rate, rtt);
    let mut link: Vec<String> = flags
        .chunks_exact(2)
        .filter_map(|pair| Some(format!("{}={}", pair.first()?.strip_prefix("--")?, pair.last()?)))
        .collect();
    if loss > LossRatio::NONE {
        link.push(format!("loss={}", percent(loss.fraction()).replace(' ', "")));
    }
    RemedyCommand::BoostPlan {
        link: link.join(","),
        window_bytes: window.map(ByteCount::bytes),
        congestion: congestion.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;
    use crate::remedy::Goal;

    fn of(limit: Limit, example: &Example) -> Option<Remedy> {
        let goal = Goal::of_path(&example.m);
        remedy(limit, &NextLimit::new(goal.as_ref(), example.observed()))
    }

    #[test]
    fn a_window_that_cannot_be_raised_is_split() {
        let example = Example::new(3.03, 173.0).on_path(100);
        let found = of(Limit::ReceiveWindow, &example).unwrap();
        let text = found.command.to_string();
        let path = "longhaul boost plan --link rate=100mbit,rtt=173ms --window 655";
        assert!(text.starts_with(path) && text.ends_with(" --congestion cubic"), "{text}");
        assert!(found.expects_bps.unwrap() > BitRate::from_bps(85_000_000), "{found:?}");
        assert_eq!(of(Limit::Application, &example), None);
    }

    #[test]
    fn without_a_gain_or_a_path_there_is_no_remedy() {
        assert_eq!(of(Limit::ReceiveWindow, &Example::new(3.03, 173.0)), None);
        assert_eq!(of(Limit::ReceiveWindow, &Example::new(93.0, 173.0).on_path(100)), None);
        let mut lossy = Example::new(5.0, 80.0).on_path(100);
        lossy.e.loss = Some(0.001);
        assert!(of(Limit::Loss, &lossy).is_some());
        lossy.m.streams[0].congestion = Some("bbr".to_owned());
        assert_eq!(of(Limit::Loss, &lossy), None);
    }
}
