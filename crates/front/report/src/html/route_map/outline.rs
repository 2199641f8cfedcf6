//! The map: outlines of the land (Natural Earth, public domain, as packaged by world-atlas under
//! the ISC licence beside the file), great circles, places.
//!
//! Equirectangular, in tenths of degrees: x to the east, y to the south. The route's longitudes
//! are unwrapped, so that a leg over the Pacific stays in one piece.

use super::super::markup::{Markup, Px};
use places::Position;
use record::{PositionSource, RouteMap, RoutePoint};

/// Paths of the land's outlines, in tenths of degrees.
const LAND: &str = include_str!("land.path");

/// Width of the world, in tenths of degrees.
const WORLD: f64 = 3_600.0;

/// How far the land of one world reaches from its middle: Eurasia ends beyond the date line.
const REACH: f64 = 2_000.0;

/// Pieces of a great circle.
const PIECES: u32 = 48;

/// Free space around the places, and the least width, in tenths of degrees.
const MARGIN: f64 = 80.0;
const MIN_WIDTH: f64 = 400.0;

/// Width over height.
const ASPECT: f64 = 2.0;

pub(super) fn write(m: &mut Markup, map: &RouteMap) {
    let legs: Vec<Vec<(f64, f64)>> = legs(&map.points);
    let places: Vec<(f64, f64)> = legs
        .iter()
        .filter_map(|leg| leg.first())
        .chain(legs.last().and_then(|leg| leg.last()))
        .copied()
        .collect();
    let view = View::around(legs.iter().flatten().copied());
    // Names and dots have one size on the screen, whatever the view's.
    let em = view.width / 58.0;
    m.element("figure", &[("class", &"map")], |m| {
        let view_box = format!(
            "{} {} {} {}",
            Px(view.left),
            Px(view.top),
            Px(view.width),
            Px(view.width / ASPECT)
        );
        let label = format!("Map of the route over {} places", map.points.len());
        m.element(
            "svg",
            &[("viewBox", &view_box), ("role", &"img"), ("aria-label", &label)],
            |m| {
                m.element("defs", &[], |m| {
                    m.shape(
                        "path",
                        &[("id", &"land"), ("class", &"land"), ("d", &LAND.trim_end())],
                    );
                });
                for shift in view.worlds() {
                    m.shape("use", &[("href", &"#land"), ("x", &Px(shift))]);
                }
                for (leg, point) in legs.iter().zip(map.points.iter().skip(1)) {
                    m.shape("path", &[("class", &class("leg", point)), ("d", &path(leg))]);
                }
                for ((x, y), point) in places.iter().zip(&map.points) {
                    let radius = Px(em * 0.42);
                    m.shape(
                        "circle",
                        &[
                            ("class", &class("place", point)),
                            ("cx", &Px(*x)),
                            ("cy", &Px(*y)),
                            ("r", &radius),
                        ],
                    );
                }
                names(m, &places, map, &view, em);
            },
        );
        let caption = "Great circles between the places of the hops; dashed: a place by a hint in \
                       the host name.";
        m.leaf("figcaption", &[], &caption);
    });
}

/// The names, without one that would lie over another.
fn names(m: &mut Markup, places: &[(f64, f64)], map: &RouteMap, view: &View, em: f64) {
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    let last = places.len().saturating_sub(1);
    // Both ends first.
    let order = [0, last].into_iter().chain(1..last);
    for index in order {
        let (Some((x, y)), Some(point)) = (places.get(index), map.points.get(index)) else {
            continue;
        };
        let name = point.position.place.split(',').next().unwrap_or_default();
        let width = name.chars().count().min(30) as f64 * em * 0.6;
        let left = (x - width / 2.0).clamp(view.left, view.left + view.width - width);
        let baseline = if *y - 1.2 * em < view.top + em { y + 1.7 * em } else { y - 0.8 * em };
        let free = taken.iter().all(|(other, at, wide)| {
            (baseline - at).abs() > 1.1 * em || left > other + wide || left + width < *other
        });
        if free {
            taken.push((left, baseline, width));
            let size = format!("font-size:{}px", Px(em));
            let shown: String = name.chars().take(30).collect();
            m.leaf("text", &[("x", &Px(left)), ("y", &Px(baseline)), ("style", &size)], &shown);
        }
    }
}

fn class(kind: &'static str, point: &RoutePoint) -> &'static str {
    match (kind, point.position.source) {
        ("leg", PositionSource::Name) => "leg hint",
        ("leg", _) => "leg",
        (_, PositionSource::Name) => "place hint",
        (_, _) => "place",
    }
}

/// The great circles between consecutive points.
fn legs(points: &[RoutePoint]) -> Vec<Vec<(f64, f64)>> {
    let mut previous = None;
    points
        .windows(2)
        .map(|pair| {
            (0..=PIECES)
                .map(|piece| {
                    let share = f64::from(piece) / f64::from(PIECES);
                    let (latitude, longitude) = between(&pair[0], &pair[1], share);
                    let x = unwrapped(longitude * 10.0, previous);
                    previous = Some(x);
                    (x, -latitude * 10.0)
                })
                .collect()
        })
        .collect()
}

/// The point at a share of the great circle, degrees.
fn between(from: &RoutePoint, to: &RoutePoint, share: f64) -> (f64, f64) {
    let vector = |point: &RoutePoint| {
        let at =
            Position::new(point.position.latitude, point.position.longitude).unwrap_or_default();
        let (latitude, longitude) = (at.latitude().to_radians(), at.longitude().to_radians());
        [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
    };
    let (a, b) = (vector(from), vector(to));
    let angle = a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>().clamp(-1.0, 1.0).acos();
    // Of antipodes every great circle is one; any direction will do.
    let (of_a, of_b) = if angle.sin() < 1e-9 {
        (1.0 - share, share)
    } else {
        (((1.0 - share) * angle).sin() / angle.sin(), (share * angle).sin() / angle.sin())
    };
    let [x, y, z] = [0, 1, 2].map(|axis| of_a * a[axis] + of_b * b[axis]);
    (z.atan2(x.hypot(y)).to_degrees(), y.atan2(x).to_degrees())
}

/// The longitude nearest to the one before, whole turns away.
fn unwrapped(x: f64, previous: Option<f64>) -> f64 {
    previous.map_or(x, |previous| x + ((previous - x) / WORLD).round() * WORLD)
}

fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        text += &format!("{}{} {}", if index == 0 { "M" } else { "L" }, Px(*x), Px(*y));
    }
    text
}

/// The part of the plane that is shown.
struct View {
    left: f64,
    top: f64,
    width: f64,
}

impl View {
    fn around(points: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut west, mut east, mut north, mut south) = (f64::MAX, f64::MIN, f64::MAX, f64::MIN);
        for (x, y) in points {
            (west, east) = (west.min(x), east.max(x));
            (north, south) = (north.min(y), south.max(y));
        }
        let width = (east - west + 2.0 * MARGIN)
            .max((south - north + 2.0 * MARGIN) * ASPECT)
            .clamp(MIN_WIDTH, WORLD);
        let height = width / ASPECT;
        let top = ((north + south - height) / 2.0).clamp(-900.0, (900.0 - height).max(-900.0));
        View { left: (west + east - width) / 2.0, top, width }
    }

    /// Shifts of the worlds that are in view.
    fn worlds(&self) -> impl Iterator<Item = f64> {
        let (left, right) = (self.left, self.left + self.width);
        (-2..=2)
            .map(|turn| f64::from(turn) * WORLD)
            .filter(move |shift| left < shift + REACH && right > shift - REACH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::HopPosition;

    fn point(latitude: f64, longitude: f64) -> RoutePoint {
        let position = HopPosition {
            latitude,
            longitude,
            place: "A place".to_owned(),
            country: None,
            source: PositionSource::Database,
        };
        RoutePoint { first_ttl: 1, last_ttl: 1, position, leg_km: 0.0, best_ms: None }
    }

    #[test]
    fn a_leg_over_the_date_line_is_one_piece() {
        let legs = legs(&[point(34.0, -118.0), point(-37.8, 145.0), point(-12.5, 130.8)]);
        for pair in legs.concat().windows(2) {
            assert!((pair[0].0 - pair[1].0).abs() < 200.0, "{pair:?}");
        }
        let view = View::around(legs.concat().into_iter());
        assert_eq!(view.worlds().count(), 2, "{} {}", view.left, view.width);
    }

    #[test]
    fn great_circles_pass_their_midpoint() {
        // From 0,0 to 0,90 along the equator; over the pole.
        let (latitude, longitude) = between(&point(0.0, 0.0), &point(0.0, 90.0), 0.5);
        assert!(latitude.abs() < 1e-9 && (longitude - 45.0).abs() < 1e-9);
        let (latitude, _) = between(&point(60.0, 0.0), &point(60.0, 180.0), 0.5);
        assert!((latitude - 90.0).abs() < 1e-6);
        for share in [0.0, 0.5, 1.0] {
            let (latitude, longitude) = between(&point(10.0, 20.0), &point(-10.0, -160.0), share);
            assert!(latitude.is_finite() && longitude.is_finite());
        }
    }

    #[test]
    fn the_view_holds_every_place_and_no_more_than_the_world() {
        for places in [
            vec![point(89.0, 0.0), point(-89.0, 179.0)],
            vec![point(48.9, 2.3), point(48.8, 2.4)],
            vec![point(0.0, -179.0), point(1.0, 179.0)],
        ] {
            let legs = legs(&places);
            let view = View::around(legs.concat().into_iter());
            assert!(view.width <= WORLD && view.top >= -900.0);
            let (x, y) = legs[0][0];
            assert!((view.left..=view.left + view.width).contains(&x));
            assert!((view.top..=view.top + view.width / ASPECT).contains(&y));
        }
    }
}
