//! Markers of points that are told apart by their shapes.

use crate::html::drawing::{self, circle, line};
use crate::html::markup::Markup;

/// A marker: a shape, filled or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::html) struct Marker {
    pub(super) shape: Shape,
    pub(super) hollow: bool,
}

/// Its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Diamond,
    /// A triangle that points up.
    Up,
    /// One that points down.
    Down,
    Star,
    /// Two diagonal strokes.
    Cross,
    /// An upright and a level stroke.
    Plus,
}

/// Half the size of a marker, in pixels.
const RADIUS: f64 = 5.0;

impl Marker {
    pub(super) const CROSS: Marker = Marker { shape: Shape::Cross, hollow: true };
    pub(super) const PLUS: Marker = Marker { shape: Shape::Plus, hollow: true };

    /// Draws it in the colour of a class.
    pub(in crate::html) fn draw(self, m: &mut Markup, class: &str, (x, y): (f64, f64)) {
        let class = format!("{} {class}", if self.hollow { "point hollow" } else { "point" });
        let at = |corners: &[(f64, f64)]| -> Vec<(f64, f64)> {
            corners.iter().map(|(right, down)| (x + right * RADIUS, y + down * RADIUS)).collect()
        };
        let corners = match self.shape {
            Shape::Circle => return circle(m, &class, (x, y), RADIUS * 0.9),
            Shape::Cross => {
                return strokes(
                    m,
                    &class,
                    &at(&[(-0.8, -0.8), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8)]),
                );
            }
            Shape::Plus => {
                return strokes(
                    m,
                    &class,
                    &at(&[(-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0)]),
                );
            }
            Shape::Square => at(&[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)]),
            Shape::Diamond => at(&[(0.0, -1.2), (1.1, 0.0), (0.0, 1.2), (-1.1, 0.0)]),
            Shape::Up => at(&[(0.0, -1.1), (1.1, 0.9), (-1.1, 0.9)]),
            Shape::Down => at(&[(0.0, 1.1), (1.1, -0.9), (-1.1, -0.9)]),
            Shape::Star => at(&STAR),
        };
        let corners = drawing::points(corners.into_iter());
        m.shape("polygon", &[("class", &class), ("points", &corners)]);
    }
}

/// A star of four points.
const STAR: [(f64, f64); 8] = [
    (0.0, -1.3),
    (0.35, -0.35),
    (1.3, 0.0),
    (0.35, 0.35),
    (0.0, 1.3),
    (-0.35, 0.35),
    (-1.3, 0.0),
    (-0.35, -0.35),
];

/// A line between each two ends.
fn strokes(m: &mut Markup, class: &str, ends: &[(f64, f64)]) {
    for pair in ends.chunks_exact(2) {
        if let [from, to] = *pair {
            line(m, class, from, to);
        }
    }
}
