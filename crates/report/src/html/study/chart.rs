//! A chart: a drawing with its caption, in a page or as an SVG file of its own.

use crate::html::markup::Markup;

/// Colours and fonts of an SVG file. It is for papers and other programs, which know neither
/// the variables of a page's style sheet nor a dark theme.
const STYLE: &str = include_str!("chart.css");

/// A drawing, what it shows, and how to read it.
pub(super) struct Chart {
    pub(super) caption: String,
    note: String,
    size: (f64, f64),
    drawing: Markup,
}

impl Chart {
    /// A drawing of `size`, in pixels.
    pub(super) fn new(caption: String, size: (f64, f64), draw: impl FnOnce(&mut Markup)) -> Self {
        let mut drawing = Markup::new();
        draw(&mut drawing);
        Chart { caption, note: String::new(), size, drawing }
    }

    pub(super) fn with_note(self, note: impl Into<String>) -> Self {
        Chart { note: note.into(), ..self }
    }

    fn view(&self) -> String {
        format!("0 0 {} {}", self.size.0, self.size.1)
    }

    /// As a figure of a page.
    pub(super) fn figure(&self, m: &mut Markup) {
        let view = self.view();
        let attributes: [(_, &dyn std::fmt::Display); 3] =
            [("viewBox", &view), ("role", &"img"), ("aria-label", &self.caption)];
        m.element("figure", &[("class", &"chart")], |m| {
            m.leaf("figcaption", &[], &self.caption);
            m.element("svg", &attributes, |m| {
                m.append(&self.drawing);
            });
            if !self.note.is_empty() {
                m.leaf("p", &[("class", &"note")], &self.note);
            }
        });
    }

    /// As an SVG document.
    pub(super) fn document(&self) -> String {
        let (width, height) = self.size;
        let view = self.view();
        let attributes: [(_, &dyn std::fmt::Display); 4] = [
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("viewBox", &view),
            ("width", &width),
            ("height", &height),
        ];
        let mut m = Markup::new();
        m.element("svg", &attributes, |m| {
            m.leaf("title", &[], &self.caption);
            if !self.note.is_empty() {
                m.leaf("desc", &[], &self.note);
            }
            m.element("style", &[], |m| {
                m.raw(STYLE);
            });
            m.shape("rect", &[("width", &"100%"), ("height", &"100%"), ("fill", &"white")]);
            m.append(&self.drawing);
        });
        m.finish()
    }
}

/// The fill of a field whose value is `share` of the highest: from white to the colour of the
/// second series. A page's style sheet overrides it with the theme's.
pub(super) fn tint(share: f64) -> String {
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
        let chart = Chart::new("a < b & c".to_owned(), (100.0, 50.5), |m| {
            m.leaf("text", &[("class", &"axis")], &"<script>");
        });
        let svg = chart.with_note("see \"d\"").document();
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 50.5\"")
        );
        assert!(svg.contains("<title>a &lt; b &amp; c</title>") && svg.contains("&lt;script&gt;"));
        // Nothing is fetched, and nothing comes from a page's style sheet.
        assert!(!svg.contains("var(") && !svg.contains("url(") && !svg.contains("href"));
    }

    #[test]
    fn tints_go_from_white_to_the_full_colour() {
        assert_eq!([tint(0.0), tint(1.0), tint(f64::NAN)], ["#ffffff", "#00639c", "#ffffff"]);
        assert_eq!(tint(0.5), "#80b1ce");
    }
}
