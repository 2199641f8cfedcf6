//! What the receiving end tells alone, where the sender's clocks are not at
//! hand: its own window, its own core, and whether the rate that was asked came.

use crate::{evidence::Evidence, judge};
use record::{Limit, Measurement};

/// A window that over the least round trip carries so much of what arrived is
/// what held it. One that adapts itself stays at about twice of it.
const ACCOUNTS: std::ops::RangeInclusive<f64> = 0.8..=1.15;

/// The limit, where the receiver can tell; most that holds a transfer it cannot see.
pub(crate) fn limit(m: &Measurement, e: &Evidence) -> Option<Limit> {
    if m.streams.iter().any(|stream| stream.receiver.len() < 2) {
        return None;
    }
    if judge::asked_for_no_more(m, e) {
        return Some(Limit::Application);
    }
    if m.receiver_core().is_some_and(|share| share >= judge::CPU_FULL) {
        return Some(Limit::Cpu);
    }
    let carries = model::window_rate(e.window_sum()?, e.min_rtt?)?;
    let share = e.goodput.as_f64() / carries.as_f64().max(1.0);
    (ACCOUNTS.contains(&share) && e.is_flat()).then_some(Limit::ReceiveWindow)
}
