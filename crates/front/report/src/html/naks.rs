//! Marks on the curve of a UDT flow where its sender received NAKs: triangles that point at the
//! curve, so that no colour tells them from it.

use super::drawing::points;
use super::markup::Markup;

/// Half the width of a triangle, its height, and its distance from the curve, in pixels.
const HALF: f64 = 5.0;
const HIGH: f64 = 8.0;
const ABOVE: f64 = 2.0;

/// The sign of legends and notes.
pub(super) const SIGN: &str = "▼";

/// A triangle above a place of a curve.
pub(super) fn mark(m: &mut Markup, (x, y): (f64, f64), count: u64, when: &str) {
    let (tip, top) = (y - ABOVE, y - ABOVE - HIGH);
    let corners = [(x - HALF, top), (x + HALF, top), (x, tip)];
    m.element("polygon", &[("class", &"nak"), ("points", &points(corners.into_iter()))], |m| {
        m.leaf("title", &[], &format!("{} {when}", received(count)));
    });
}

/// `1 NAK`, `5 NAKs`.
pub(super) fn received(count: u64) -> String {
    if count == 1 { "1 NAK".to_owned() } else { format!("{count} NAKs") }
}
