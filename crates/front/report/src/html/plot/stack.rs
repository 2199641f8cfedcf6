//! Areas over time that lie on each other.

use crate::html::drawing::points;
use crate::html::markup::Markup;

/// One area, between the values of two sets of steps; `place` has a step and a value.
pub(in crate::html) fn layer(
    m: &mut Markup,
    class: &str,
    below: &[f64],
    above: &[f64],
    place: impl Fn(usize, f64) -> (f64, f64),
) {
    let outline = steps(above).chain(steps(below).rev());
    let outline = points(outline.map(|(number, value)| place(number, value)));
    m.shape("polygon", &[("class", &format!("stack {class}")), ("points", &outline)]);
}

/// Each step has one value, at its beginning and at its end, as (step, value).
pub(in crate::html) fn steps(values: &[f64]) -> impl DoubleEndedIterator<Item = (usize, f64)> + '_ {
    values.iter().enumerate().flat_map(|(number, value)| [(number, *value), (number + 1, *value)])
}
