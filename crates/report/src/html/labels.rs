//! Names beside the lines they belong to, moved apart where lines are close.

use super::markup::{Markup, Px};

/// Least distance between two names, one above the other.
const APART: f64 = 17.0;

/// A name that belongs to a height in the drawing.
pub(super) struct Label {
    pub(super) text: String,
    pub(super) class: String,
    /// Where its line ends.
    pub(super) from: f64,
}

/// Writes them right of `x`, with a leader to each line; or, where there is no
/// room `beside`, above their lines inside the drawing.
pub(super) fn write(
    m: &mut Markup,
    mut labels: Vec<Label>,
    (x, top, bottom): (f64, f64, f64),
    beside: bool,
) {
    labels.sort_by(|a, b| a.from.total_cmp(&b.from));
    let lines: Vec<f64> = labels.iter().map(|l| l.from).collect();
    let places = if beside {
        spread(&lines, (top - 4.0, bottom - 2.0))
    } else {
        spread(&clear(&lines, top), (top - 4.0, bottom - 9.0))
    };
    for (label, y) in labels.iter().zip(places) {
        if beside {
            let leader = format!(
                "{},{} {},{} {},{}",
                Px(x + 3.0),
                Px(label.from),
                Px(x + 10.0),
                Px(y),
                Px(x + 15.0),
                Px(y)
            );
            m.shape(
                "polyline",
                &[("class", &format!("leader {}", label.class)), ("points", &leader)],
            );
            let class = format!("name {}", label.class);
            m.leaf(
                "text",
                &[("class", &class), ("x", &Px(x + 20.0)), ("y", &Px(y + 4.0))],
                &label.text,
            );
        } else {
            let class = format!("name inside {}", label.class);
            m.leaf(
                "text",
                &[("class", &class), ("x", &Px(x - 6.0)), ("y", &Px(y + 4.0))],
                &label.text,
            );
        }
    }
}

/// Heights at least [`APART`], each as near to where it wants to be as a pass
/// down and a pass up allow, within the bounds where they fit at all.
fn spread(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for want in wanted {
        let least = places.last().map_or(top, |above| above + APART);
        places.push(want.max(least));
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - APART;
    }
    places
}

/// Where names stand clear of the lines: lines that are close form a group,
/// whose names go above it where there is room, and beneath it where not.
fn clear(lines: &[f64], top: f64) -> Vec<f64> {
    let mut places = Vec::with_capacity(lines.len());
    let mut free = top - 14.0;
    for group in lines.chunk_by(|a, b| b - a < APART + 6.0) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let high = APART * group.len() as f64;
        let start = if first - free >= high + 4.0 {
            free = *last;
            first - 9.0 - (high - APART)
        } else {
            free = last + high;
            last + 14.0
        };
        places.extend((0..group.len()).map(|i| start + APART * i as f64));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_inside_stand_clear_of_their_lines() {
        // Three at the top have no room above; two at the bottom do.
        let places = clear(&[40.0, 47.0, 48.0, 250.0, 251.0], 26.0);
        assert_eq!(places, [62.0, 79.0, 96.0, 224.0, 241.0]);
    }

    #[test]
    fn names_do_not_overlap() {
        let places = spread(&[10.0, 12.0, 14.0, 290.0, 299.0], (0.0, 300.0));
        assert!(places.windows(2).all(|w| w[1] - w[0] >= APART - 1e-9), "{places:?}");
        assert!(places.iter().all(|p| (0.0..=300.0).contains(p)), "{places:?}");
    }
}
