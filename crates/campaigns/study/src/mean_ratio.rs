//! The mean of ratios that are alike.

use model::statistics;

/// Factor between the mean ratio and each one, and the ends of its interval, up to which ratios
/// are alike.
const ALIKE: f64 = 2.0;

/// The geometric mean of several ratios.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeanRatio {
    pub(crate) ratio: f64,
    /// Confidence interval (Student's t, of the logarithms); `None` below two ratios.
    pub(crate) interval: Option<[f64; 2]>,
}

/// The mean of ratios by their logarithms. `None` without any, or unless they are alike: a mean
/// of ratios of which some are far from it describes none of them.
pub(crate) fn mean_ratio(logarithms: &[f64], confidence: f64) -> Option<MeanRatio> {
    let mean = statistics::mean(logarithms)?;
    let interval = statistics::mean_interval(logarithms, confidence);
    let is_near = |logarithm: f64| (logarithm - mean).abs() <= ALIKE.ln();
    let ends = interval.iter().flat_map(|interval| [interval.low, interval.high]);
    logarithms.iter().copied().chain(ends).all(is_near).then(|| MeanRatio {
        ratio: mean.exp(),
        interval: interval.map(|interval| [interval.low.exp(), interval.high.exp()]),
    })
}
