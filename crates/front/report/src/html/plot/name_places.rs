//! Names beside points, where they cover neither a point nor another name.

use crate::html::drawing::{Area, polyline, text};
use crate::html::markup::Markup;

/// A point and its name.
pub(in crate::html) struct Named {
    pub(in crate::html) at: (f64, f64),
    pub(in crate::html) name: String,
    pub(in crate::html) class: String,
}

/// Of a character, and of a line, in pixels.
const CHARACTER: f64 = 7.0;
const LINE: f64 = 15.0;
/// From a point to its name.
const GAP: f64 = 9.0;
/// Lines up to which a name is moved away from its point.
const MAX_LINES: i32 = 12;

/// Writes the names within an area. One that fits nowhere is left out: the legend has it.
pub(in crate::html) fn write(m: &mut Markup, points: &[Named], area: &Area) {
    let mut taken: Vec<Area> = points.iter().map(|point| around(point.at)).collect();
    let mut order: Vec<&Named> = points.iter().collect();
    order.sort_by(|one, other| one.at.1.total_cmp(&other.at.1));
    for point in order {
        let wide = point.name.chars().count() as f64 * CHARACTER;
        let free = candidates(point.at, wide).find(|(_, place)| {
            let inside = place.left >= area.left
                && place.right <= area.right
                && place.top >= area.top
                && place.bottom <= area.bottom;
            inside && !taken.iter().any(|other| overlap(place, other))
        });
        let Some((moved, place)) = free else { continue };
        let middle = f64::midpoint(place.top, place.bottom);
        if moved {
            let x = if place.left > point.at.0 { place.left - 2.0 } else { place.right + 2.0 };
            let leader = [point.at, (x, middle)];
            polyline(m, &format!("leader {}", point.class), leader.into_iter());
        }
        text(m, &format!("name {}", point.class), (place.left, middle + 4.5), &point.name);
        taken.push(place);
    }
}

/// What a marker covers.
fn around((x, y): (f64, f64)) -> Area {
    Area { left: x - 6.0, right: x + 6.0, top: y - 6.0, bottom: y + 6.0 }
}

/// Places of a name, the nearest first, and whether it is away from its point.
fn candidates((x, y): (f64, f64), wide: f64) -> impl Iterator<Item = (bool, Area)> {
    let rows = (0..=MAX_LINES).flat_map(|row| [row, -row]);
    rows.flat_map(move |row| {
        let middle = y + f64::from(row) * LINE;
        let away = if row == 0 { GAP } else { GAP + 8.0 };
        [x + away, x - away - wide].map(|left| {
            let (top, bottom) = (middle - LINE / 2.0, middle + LINE / 2.0);
            (row != 0, Area { left, right: left + wide, top, bottom })
        })
    })
}

fn overlap(one: &Area, other: &Area) -> bool {
    one.left < other.right
        && other.left < one.right
        && one.top < other.bottom
        && other.top < one.bottom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_at_one_place_are_all_written_apart() {
        let point = |index: usize| Named {
            at: (200.0, 100.0 + index as f64),
            name: format!("control-{index}"),
            class: String::new(),
        };
        let points: Vec<Named> = (0..8).map(point).collect();
        let mut m = Markup::new();
        write(&mut m, &points, &Area { left: 0.0, right: 400.0, top: 0.0, bottom: 300.0 });
        let svg = m.finish();
        assert_eq!(svg.matches("<text").count(), 8, "{svg}");
        assert!(svg.contains("<polyline"), "{svg}");
    }
}
