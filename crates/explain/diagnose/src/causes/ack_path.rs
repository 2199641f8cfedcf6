//! The path of the acknowledgements is saturated or loses them: data cannot be sent
//! faster than it is acknowledged.
//!
//! > goodput <= ACK rate x payload per ACK
//!
//! A receiver acknowledges at least each second full segment (RFC 9293, section 3.8.6.3),
//! so a return path of rate R carries R / 52 B ACKs, of two segments each. Receivers with
//! GRO acknowledge more at once, and ACK filters drop all but the latest ACK: then the
//! bound is higher. See RFC 3449.

use crate::{
    causes::{Cause, Observed},
    predict::{self, Prediction},
};
use record::{Direction, Limit};
use units::BitRate;

/// An acknowledgement: IPv4 and TCP with timestamps.
const ACK_BYTES: f64 = 20.0 + 20.0 + 12.0;

/// Full segments per acknowledgement.
const SEGMENTS: f64 = 2.0;

pub(super) struct AckPath;

impl Cause for AckPath {
    fn limit(&self) -> Limit {
        Limit::AckPath
    }

    fn noun(&self) -> &'static str {
        "the ACK path"
    }

    /// Only over a known path: elsewhere its return direction is not measured.
    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let back = return_rate(o)?;
        let mss = o.e.mss?;
        let overhead = o.m.path.as_ref().map_or(0.0, |path| f64::from(path.overhead_bytes));
        let size = ACK_BYTES + overhead;
        let rate = back.scaled(SEGMENTS * mss.as_f64() / size);
        let equation = format!(
            "ACK rate x payload per ACK = {back} / {size:.0} B x {SEGMENTS:.0} x {} B = {rate} \
             of TCP payload",
            mss.bytes()
        );
        Some(predict::capped(rate, equation, o))
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let most = self.prediction(o).map_or(String::new(), |p| {
            format!(": with an ACK for every second segment it allows {}", p.rate)
        });
        format!(
            "Limited by the ACK path at {}{most}; reduce the other traffic in that direction, give \
             ACKs priority there (an AQM, an ACK filter), or use a larger MTU.",
            o.e.goodput
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("limited by the ACK path at {}: other traffic or loss there", o.e.goodput)
    }
}

/// The rate of the known path in the direction of the acknowledgements.
fn return_rate(o: &Observed<'_>) -> Option<BitRate> {
    let asked = &o.m.path.as_ref()?.asked;
    let back = if o.m.spec.direction == Direction::Reverse { &asked.up } else { &asked.down };
    back.rate_bps.filter(|rate| *rate > BitRate::ZERO)
}

#[cfg(test)]
mod tests {
    use super::AckPath;
    use crate::{causes::Cause, example::Example};
    use units::BitRate;

    /// 200 kbit/s carry 481 ACKs of 52 B per second, for 2896 B each.
    #[test]
    fn acknowledgements_bound_the_data() {
        let mut example = Example::new(10.0, 40.0);
        assert_eq!(AckPath.prediction(&example.observed()), None);
        example = example.on_path(100);
        assert_eq!(AckPath.prediction(&example.observed()), None);
        if let Some(path) = &mut example.m.path {
            path.asked.down.rate_bps = Some(BitRate::from_bps(200_000));
        }
        let p = AckPath.prediction(&example.observed()).unwrap();
        assert!((p.rate.as_f64() / 11.138e6 - 1.0).abs() < 1e-3, "{}", p.equation);
        let sentence = AckPath.sentence(&example.observed());
        assert!(sentence.contains("allows 11.1 Mbit/s"), "{sentence}");
        // No more than the path of the data.
        if let Some(path) = &mut example.m.path {
            path.asked.down.rate_bps = Some(BitRate::from_bps(100_000_000));
        }
        let p = AckPath.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps() / 1000, 96_533, "{}", p.equation);
    }
}
