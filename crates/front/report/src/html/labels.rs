//! Curve labels, moved apart where they would overlap.

use super::drawing::{self, Area};
use super::markup::Markup;

/// Least vertical distance between two labels, in pixels.
const MIN_SPACING: f64 = 17.0;

/// A label and the height of its line.
pub(super) struct Label {
    pub(super) text: String,
    pub(super) class: String,
    /// Height at which its line ends.
    pub(super) from: f64,
}

/// Writes the labels right of the plot with a leader line to each curve; without room
/// there (`beside` false), inside the plot above their curves.
pub(super) fn write(m: &mut Markup, mut labels: Vec<Label>, area: &Area, beside: bool) {
    let (x, top, bottom) = (area.right, area.top, area.bottom);
    labels.sort_by(|a, b| a.from.total_cmp(&b.from));
    let lines: Vec<f64> = labels.iter().map(|l| l.from).collect();
    let places = if beside {
        spread(&lines, (top - 4.0, bottom - 2.0))
    } else {
        spread(&off_the_lines(&lines, top), (top - 4.0, bottom - 9.0))
    };
    for (label, y) in labels.iter().zip(places) {
        if beside {
            let leader = [(x + 3.0, label.from), (x + 10.0, y), (x + 15.0, y)];
            drawing::polyline(m, &format!("leader {}", label.class), leader.into_iter());
            let class = format!("name {}", label.class);
            drawing::text(m, &class, (x + 20.0, y + 4.0), &label.text);
        } else {
            let class = format!("name inside {}", label.class);
            drawing::text(m, &class, (x - 6.0, y + 4.0), &label.text);
        }
    }
}

/// Heights at least [`MIN_SPACING`] apart and within the bounds if they fit, close to
/// the wanted ones: one pass down and one pass up.
fn spread(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for want in wanted {
        let least = places.last().map_or(top, |above| above + MIN_SPACING);
        places.push(want.max(least));
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - MIN_SPACING;
    }
    places
}

/// Heights of labels that do not cover the lines: close lines form a group, whose
/// labels go above it if there is room, else below it.
fn off_the_lines(lines: &[f64], top: f64) -> Vec<f64> {
    let mut places = Vec::with_capacity(lines.len());
    let mut free = top - 14.0;
    for group in lines.chunk_by(|a, b| b - a < MIN_SPACING + 6.0) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let high = MIN_SPACING * group.len() as f64;
        let start = if first - free >= high + 4.0 {
            free = *last;
            first - 9.0 - (high - MIN_SPACING)
        } else {
            free = last + high;
            last + 14.0
        };
        places.extend((0..group.len()).map(|i| start + MIN_SPACING * i as f64));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_inside_do_not_cover_their_lines() {
        // Three at the top have no room above; two at the bottom do.
        let places = off_the_lines(&[40.0, 47.0, 48.0, 250.0, 251.0], 26.0);
        assert_eq!(places, [62.0, 79.0, 96.0, 224.0, 241.0]);
    }

    #[test]
    fn labels_do_not_overlap() {
        let places = spread(&[10.0, 12.0, 14.0, 290.0, 299.0], (0.0, 300.0));
        assert!(places.windows(2).all(|w| w[1] - w[0] >= MIN_SPACING - 1e-9), "{places:?}");
        assert!(places.iter().all(|p| (0.0..=300.0).contains(p)), "{places:?}");
    }
}
