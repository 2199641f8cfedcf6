//! The colour, the dashes and the marker of each congestion control: the same in every plot, so that
//! none is told by its colour alone.
//!
//! In both themes every colour has a contrast of at least 4.5 to 1 to the background and to a card
//! (WCAG 2.2, 1.4.3), and a distance of at least 0.09 in OKLab to every other one.
//! `tests/report/colours.rs` checks it.

use super::marker::{Marker, Shape};

/// How a control is drawn.
#[derive(Debug)]
pub(in crate::html) struct ControlStyle {
    name: &'static str,
    /// In the light and in the dark theme.
    colours: [&'static str; 2],
    /// As of `stroke-dasharray`.
    dashes: &'static str,
    pub(in crate::html) marker: Marker,
}

const fn style(
    name: &'static str,
    colours: [&'static str; 2],
    dashes: &'static str,
    marker: Marker,
) -> ControlStyle {
    ControlStyle { name, colours, dashes, marker }
}

const fn filled(shape: Shape) -> Marker {
    Marker { shape, hollow: false }
}

const fn hollow(shape: Shape) -> Marker {
    Marker { shape, hollow: true }
}

/// The table.
static STYLES: [ControlStyle; 19] = [
    style("cubic", ["#0160c1", "#1983fb"], "none", filled(Shape::Circle)),
    style("bbr", ["#ad5010", "#d6743d"], "9 4", filled(Shape::Square)),
    style("bbr3", ["#4c1e01", "#f0b597"], "9 3 2 3", filled(Shape::Diamond)),
    style("prague", ["#277b87", "#0bddf3"], "3 3", filled(Shape::Up)),
    style("dctcp", ["#223a51", "#5bb1fe"], "14 4", filled(Shape::Down)),
    style("htcp", ["#308334", "#04a322"], "6 3", Marker::CROSS),
    style("reno", ["#d03275", "#f83b8c"], "2 3", hollow(Shape::Circle)),
    style("highspeed", ["#6d58ca", "#dcd9fe"], "12 3 3 3", hollow(Shape::Square)),
    style("scalable", ["#37116a", "#a071fc"], "5 5", hollow(Shape::Diamond)),
    style("bic", ["#0332c7", "#6e86b7"], "9 4", hollow(Shape::Up)),
    style("westwood", ["#826e04", "#9a852b"], "3 3", hollow(Shape::Down)),
    style("vegas", ["#3b5700", "#92ce14"], "9 3 2 3", Marker::PLUS),
    style("illinois", ["#b542b5", "#d574d3"], "14 4", filled(Shape::Star)),
    style("yeah", ["#8e128e", "#fe99fb"], "6 3", hollow(Shape::Star)),
    style("hybla", ["#905b7a", "#b67f9e"], "2 3", filled(Shape::Circle)),
    style("fast", ["#193607", "#92fe4f"], "12 3 3 3", filled(Shape::Up)),
    style("psockets", ["#71481d", "#fcd936"], "2 3", filled(Shape::Diamond)),
    style("xcp", ["#434487", "#1daaa7"], "14 4", filled(Shape::Square)),
    style("own", ["#702337", "#f4839a"], "5 5", filled(Shape::Square)),
];

/// Of several controls together, and of one that the table does not have.
static OTHER: ControlStyle = style("other", ["#5a616b", "#a3abb5"], "1 3", Marker::CROSS);

impl ControlStyle {
    /// The style of a control by its name.
    pub(in crate::html) fn of(control: &str) -> &'static Self {
        STYLES.iter().find(|style| style.name == control).unwrap_or(&OTHER)
    }

    /// The class of its shapes.
    pub(in crate::html) fn class(&self) -> String {
        format!("cc-{}", self.name)
    }
}

fn all() -> impl Iterator<Item = &'static ControlStyle> {
    STYLES.iter().chain([&OTHER])
}

fn dashes() -> String {
    let dashed = all().filter(|one| one.dashes != "none");
    dashed
        .map(|one| {
            format!(
                ".curve.cc-{}{{stroke-dasharray:{};stroke-linecap:butt}}\n",
                one.name, one.dashes
            )
        })
        .collect()
}

/// The rules of a page: custom properties of both themes, a class of each control.
pub(in crate::html) fn page_style() -> String {
    let properties = |theme: usize| -> String {
        all().map(|one| format!("--cc-{}:{};", one.name, one.colours[theme])).collect()
    };
    let classes: String =
        all().map(|one| format!(".cc-{0}{{--c:var(--cc-{0})}}\n", one.name)).collect();
    format!(
        ":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root:not(.print){{{}}}}}\n\
         {classes}{}",
        properties(0),
        properties(1),
        dashes()
    )
}

/// The rules of an SVG file, which has light colours.
pub(super) fn file_style() -> String {
    let classes: String =
        all().map(|one| format!(".cc-{}{{color:{}}}\n", one.name, one.colours[0])).collect();
    classes + &dashes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_controls_have_the_same_marker_and_dashes() {
        let all: Vec<_> = all().collect();
        for (index, one) in all.iter().enumerate() {
            for other in &all[..index] {
                let same = one.dashes == other.dashes && one.marker == other.marker;
                assert!(!same, "{} and {}", one.name, other.name);
            }
        }
        assert_eq!(ControlStyle::of("bbr").class(), "cc-bbr");
        assert_eq!(ControlStyle::of("<b>").class(), "cc-other");
    }
}
