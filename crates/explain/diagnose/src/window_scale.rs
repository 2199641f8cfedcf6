//! Whether the receive window is scaled (RFC 7323), as far as that is known.

use crate::posterior::Posterior;
use crate::statistics::{Statistic, Statistics};
use record::Limit;

/// The probability that a window of at most 65,535 bytes is scaled, where that is not known: hosts
/// and middleboxes that disable scaling have become rare.
const SCALED: f64 = 0.95;

/// Without a window scale a window of at most 65,535 bytes is one without scaling; with one,
/// or larger, or where the scale is not known, it is not.
pub(crate) fn window_scale(posterior: Posterior, s: &Statistics) -> Posterior {
    match is_scaled(s) {
        None => posterior.moved(Limit::WindowScaling, Limit::ReceiveWindow).split(
            Limit::ReceiveWindow,
            Limit::WindowScaling,
            SCALED,
        ),
        Some(false) => posterior.moved(Limit::ReceiveWindow, Limit::WindowScaling),
        Some(true) => posterior.moved(Limit::WindowScaling, Limit::ReceiveWindow),
    }
}

/// Whether the window is scaled, if that is known: a larger one than 65,535 bytes is, whatever scale
/// is reported, and one that was requested smaller is not for want of a scale.
pub(crate) fn is_scaled(s: &Statistics) -> Option<bool> {
    if s.get(Statistic::SmallRequested).is_some_and(|small| small > 0.5) {
        return Some(true);
    }
    // The statistic is ln(window / 65,535 + 0.001). A receiver alone knows its own windows.
    let is_small = s
        .first([Statistic::LnWindow64k, Statistic::RxLnWindow64k])
        .is_some_and(|ln| ln <= 1.001f64.ln() + 1e-6);
    let scaled =
        s.first([Statistic::Unscaled, Statistic::RxUnscaled]).map(|unscaled| unscaled <= 0.5);
    if is_small { scaled } else { Some(true) }
}
