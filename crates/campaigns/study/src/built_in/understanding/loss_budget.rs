//! The loss that CUBIC tolerates: what the equation gives for the published path, and what the
//! lab shows where a run can see it.

use super::super::Measured;
use super::super::runs::{Runs, mbit};
use model::{cubic, loss_budget_cubic};
use units::{BitRate, ByteCount, LossRatio, Rtt, percent};

/// The published path.
const PUBLISHED_RATE: BitRate = BitRate::from_bps(10_000_000_000);
const RTT: Rtt = Rtt::from_micros(100_000);
/// Payload of a segment with timestamps.
const MSS: ByteCount = ByteCount::from_bytes(1_448);
/// Share of the link from which it counts as filled: a loss costs CUBIC 0.15 of a sawtooth.
const FILLED: f64 = 0.8;
/// Tolerance of a goodput far from the link's rate, over few losses.
const TOLERANCE: f64 = 0.5;
const PART: &str = "loss-budget";

/// Goodput at a tenth of the budget, at the budget and at ten times the budget.
pub(super) fn measure(runs: &Runs<'_>) -> Option<Measured> {
    let losses = runs.values(PART, "up.loss");
    let [tenth, budget, tenfold] = &losses[..] else { return None };
    let goodput = |loss: &str| runs.goodput(PART, &[("up.loss", loss)]);
    let (least, at_budget, most) = (goodput(tenth)?, goodput(budget)?, goodput(tenfold)?);
    let equation = cubic(MSS, RTT, tenfold.parse().ok()?)?;
    let published = loss_budget_cubic(PUBLISHED_RATE, MSS, RTT)?;
    let is_near = (most / equation.as_f64()).ln().abs() <= (1.0 + TOLERANCE).ln();
    Some(Measured {
        text: format!(
            "100 Mbit/s: {} at {tenth} loss, {} at {budget}, {} at {tenfold}, where the equation \
             gives {equation}; it gives {} as the budget of {PUBLISHED_RATE}",
            mbit(least),
            mbit(at_budget),
            mbit(most),
            share(published)
        ),
        holds: least >= FILLED * LINK_BPS && most < at_budget && is_near,
    })
}

/// What 100 Mbit/s of IP packets carries.
const LINK_BPS: f64 = 1e8 * 1_448.0 / 1_500.0;

fn share(loss: LossRatio) -> String {
    percent(loss.fraction())
}
