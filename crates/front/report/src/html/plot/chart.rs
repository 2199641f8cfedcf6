//! A chart: a drawing with its caption and its values, in a page or as an SVG file of its own.

use super::control_style;
use super::values::Values;
use crate::html::markup::Markup;

/// Colours and fonts of an SVG file. It is for papers and other programs, which know neither
/// the variables of a page's style sheet nor a dark theme.
const STYLE: &str = include_str!("chart.css");

/// Where a drawing is shown: its texts keep their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::html) enum Width {
    /// The full width of a page, and an SVG file.
    Wide,
    /// The full width of a phone.
    Narrow,
}

impl Width {
    /// In pixels.
    pub(in crate::html) const fn pixels(self) -> f64 {
        match self {
            Width::Wide => 960.0,
            Width::Narrow => 400.0,
        }
    }

    /// One of two values.
    pub(in crate::html) fn of<T>(self, wide: T, narrow: T) -> T {
        match self {
            Width::Wide => wide,
            Width::Narrow => narrow,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Width::Wide => "wide",
            Width::Narrow => "narrow",
        }
    }
}

/// A drawing of a width.
struct Drawing {
    width: Width,
    height: f64,
    markup: Markup,
}

impl Drawing {
    /// `draw` gets the width, and returns the height in pixels.
    fn of(width: Width, draw: &impl Fn(&mut Markup, Width) -> f64) -> Self {
        let mut markup = Markup::new();
        let height = draw(&mut markup, width);
        Drawing { width, height, markup }
    }

    fn view(&self) -> String {
        format!("0 0 {} {}", self.width.pixels(), self.height)
    }
}

/// A drawing, what it shows, how to read it, and its values.
pub(in crate::html) struct Chart {
    pub(in crate::html) caption: String,
    note: String,
    wide: Drawing,
    narrow: Drawing,
    values: Values,
}

impl Chart {
    /// A drawing for each width; `draw` returns the height in pixels.
    pub(in crate::html) fn new(
        caption: String,
        values: Values,
        draw: impl Fn(&mut Markup, Width) -> f64,
    ) -> Self {
        let [wide, narrow] = [Width::Wide, Width::Narrow].map(|width| Drawing::of(width, &draw));
        Chart { caption, note: String::new(), wide, narrow, values }
    }

    pub(in crate::html) fn with_note(self, note: impl Into<String>) -> Self {
        Chart { note: note.into(), ..self }
    }

    /// As a figure of a page.
    pub(in crate::html) fn figure(&self, m: &mut Markup) {
        m.element("figure", &[("class", &"chart")], |m| {
            m.leaf("figcaption", &[], &self.caption);
            for drawing in [&self.wide, &self.narrow] {
                let (class, view) = (drawing.width.class(), drawing.view());
                let attributes: [(_, &dyn std::fmt::Display); 4] = [
                    ("class", &class),
                    ("viewBox", &view),
                    ("role", &"img"),
                    ("aria-label", &self.caption),
                ];
                m.element("svg", &attributes, |m| {
                    self.alternative(m);
                    m.append(&drawing.markup);
                });
            }
            if !self.note.is_empty() {
                m.leaf("p", &[("class", &"note")], &self.note);
            }
            self.values.write(m);
        });
    }

    /// The text alternative (SVG accessibility: a title names it, a desc describes it).
    fn alternative(&self, m: &mut Markup) {
        m.leaf("title", &[], &self.caption);
        if !self.note.is_empty() {
            m.leaf("desc", &[], &self.note);
        }
    }

    /// As an SVG document.
    pub(in crate::html) fn document(&self) -> String {
        let (width, height) = (self.wide.width.pixels(), self.wide.height);
        let view = self.wide.view();
        let attributes: [(_, &dyn std::fmt::Display); 4] = [
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("viewBox", &view),
            ("width", &width),
            ("height", &height),
        ];
        let mut m = Markup::new();
        m.element("svg", &attributes, |m| {
            self.alternative(m);
            m.element("style", &[], |m| {
                m.raw(STYLE).text(&control_style::file_style());
            });
            m.shape("rect", &[("width", &"100%"), ("height", &"100%"), ("fill", &"white")]);
            m.append(&self.wide.markup);
        });
        m.finish()
    }
}

/// The fill of a field whose value is `share` of the highest: from white to the colour of the
/// second series. A page's style sheet overrides it with the theme's.
pub(in crate::html) fn tint(share: f64) -> String {
    const FULL: [f64; 3] = [0.0, 99.0, 156.0];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let [red, green, blue] = FULL.map(|full| (255.0 - (255.0 - full) * share).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_stands_alone_and_escapes_its_texts() {
        let chart = Chart::new("a < b & c".to_owned(), Values::default(), |m, width| {
            m.leaf("text", &[("class", &"axis")], &"<script>");
            width.of(50.5, 70.0)
        });
        let svg = chart.with_note("see \"d\"").document();
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 50.5\"")
        );
        assert!(svg.contains("<title>a &lt; b &amp; c</title>") && svg.contains("&lt;script&gt;"));
        // Nothing is fetched, and nothing comes from a page's style sheet.
        assert!(!svg.contains("var(") && !svg.contains("url(") && !svg.contains("href"));
    }

    #[test]
    fn a_figure_has_a_drawing_for_each_width_and_its_values() {
        let values = Values {
            heads: vec!["window".to_owned(), "<b>".to_owned()],
            rows: vec![vec!["64KiB".to_owned(), "1 Mbit/s".to_owned()]],
        };
        let chart = Chart::new(String::new(), values, |_, width| width.of(300.0, 200.0));
        let mut m = Markup::new();
        chart.figure(&mut m);
        let html = m.finish();
        for part in [
            "class=\"wide\" viewBox=\"0 0 960 300\"",
            "class=\"narrow\" viewBox=\"0 0 400 200\"",
            "<summary>Values</summary>",
            ">&lt;b&gt;</th>",
            ">64KiB</th><td>1 Mbit/s</td>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn tints_go_from_white_to_the_full_colour() {
        assert_eq!([tint(0.0), tint(1.0), tint(f64::NAN)], ["#ffffff", "#00639c", "#ffffff"]);
        assert_eq!(tint(0.5), "#80b1ce");
    }
}
