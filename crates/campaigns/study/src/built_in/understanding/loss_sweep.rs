//! CUBIC and BBR over loss, from one packet in a million to one in ten.

use super::super::Measured;
use super::super::runs::{Runs, mbit};

const PART: &str = "loss-sweep";
/// What 100 Mbit/s of IP packets carries.
const LINK_BPS: f64 = 1e8 * 1_448.0 / 1_500.0;
/// At the least loss both fill this share of it: slow start is in the mean of a short test.
const FILLED: f64 = 0.7;
/// From this loss on BBR has so many times CUBIC's goodput.
const HIGH_LOSS: f64 = 0.01;
const TIMES: f64 = 10.0;
/// CUBIC has collapsed where it is left this share of the link.
const COLLAPSED: f64 = 0.1;

pub(super) fn measure(runs: &Runs<'_>) -> Option<Measured> {
    let mut words = Vec::new();
    let mut points = Vec::new();
    for loss in runs.values(PART, "up.loss") {
        let at = |congestion| {
            runs.goodput(PART, &[("up.loss", loss.as_str()), ("congestion", congestion)])
        };
        let (cubic, bbr) = (at("cubic")?, at("bbr")?);
        points.push((runs.number(PART, "up.loss", &loss)?, cubic, bbr));
        words.push(format!("{loss}: {} and {}", mbit(cubic), mbit(bbr)));
    }
    let (_, cubic, bbr) = *points.first()?;
    let collapsed = points.iter().find(|(_, cubic, _)| *cubic < LINK_BPS * COLLAPSED);
    let at = collapsed.map_or("at no loss here".to_owned(), |(loss, ..)| {
        format!("from {} loss on", units::percent(*loss))
    });
    let high = || points.iter().filter(|(loss, ..)| *loss >= HIGH_LOSS * 0.99);
    Some(Measured {
        text: format!(
            "CUBIC and BBR at {}; CUBIC has less than a tenth of the link {at}",
            words.join("; ")
        ),
        holds: cubic >= LINK_BPS * FILLED
            && bbr >= LINK_BPS * FILLED
            && high().count() > 0
            && high().all(|(_, cubic, bbr)| *bbr >= TIMES * cubic),
    })
}
