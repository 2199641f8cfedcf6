//! An SVG line chart over time, with labels at the ends of the curves.

use super::{
    bands,
    drawing::{self, Area},
    labels::{self, Label},
    markup::{Markup, Px},
    naks,
};
use crate::{
    axis::{Axis, ELAPSED},
    timeline::Timeline,
    wording,
};
use record::Steady;

/// A line over time, in base units.
pub(super) struct Curve {
    /// Label at its right end and in the table.
    pub(super) name: String,
    /// CSS classes: run colour and stroke.
    pub(super) class: String,
    /// (seconds, value), in order of time.
    pub(super) points: Vec<(f64, f64)>,
    /// Whether the area below is filled.
    pub(super) filled: bool,
}

/// A horizontal line across the chart.
pub(super) struct Mark {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) value: f64,
}

/// NAKs that a UDT sender received in an interval, at a point of its curve.
pub(super) struct Naks {
    pub(super) t_s: f64,
    pub(super) value: f64,
    pub(super) count: u64,
}

/// A span of time.
pub(super) struct Band {
    pub(super) name: &'static str,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
}

impl Band {
    /// The steady state, over which the finding is computed.
    pub(super) fn steady(steady: Steady) -> Self {
        Band { name: "steady state", from_s: steady.from_s, to_s: steady.to_s }
    }
}

/// One chart, drawn once per shape.
pub(super) struct Chart {
    /// Unique on the page; prefix of element ids.
    pub(super) id: String,
    pub(super) title: String,
    /// Text alternative for screen readers.
    pub(super) description: String,
    pub(super) y: Axis,
    pub(super) until_s: f64,
    pub(super) curves: Vec<Curve>,
    pub(super) marks: Vec<Mark>,
    /// Marked on the curves.
    pub(super) naks: Vec<Naks>,
    /// A highlighted time span; not drawn where there are segments.
    pub(super) band: Option<Band>,
    /// The limits over time.
    pub(super) segments: Option<Timeline>,
}

/// The dimensions of a drawing, in pixels.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    width: f64,
    height: f64,
    /// Margin for labels at the right; if 0, labels go inside the plot.
    label_margin: f64,
}

/// Full page width.
pub(super) const WIDE: Shape =
    Shape { name: "wide", width: 960.0, height: 380.0, label_margin: 190.0 };
/// Full page width on a phone.
pub(super) const NARROW: Shape =
    Shape { name: "narrow", width: 400.0, height: 300.0, label_margin: 0.0 };
/// Half the page width, two side by side.
pub(super) const HALF: Shape =
    Shape { name: "half", width: 470.0, height: 300.0, label_margin: 0.0 };
/// Within a card.
pub(super) const SMALL: Shape =
    Shape { name: "small", width: 440.0, height: 190.0, label_margin: 0.0 };

const LEFT: f64 = 46.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 30.0;

/// The plot within a drawing: its rectangle, and the axis of time.
pub(super) struct Frame {
    pub(super) area: Area,
    x: Axis,
}

impl Frame {
    /// The place of a time, within the plot.
    pub(super) fn across(&self, t_s: f64) -> f64 {
        self.area.x(self.x.share(t_s))
    }
}

impl Chart {
    /// Whether it has no points.
    pub(super) fn is_empty(&self) -> bool {
        self.curves.iter().all(|c| c.points.is_empty())
    }

    /// The figure: a drawing per shape, and the values as a table.
    pub(super) fn figure(&self, m: &mut Markup, shapes: &[Shape], caption: Option<(&str, String)>) {
        m.element("figure", &[("class", &"chart")], |m| {
            if let Some((caption, class)) = caption {
                m.leaf("figcaption", &[("class", &class)], &caption);
            }
            for shape in shapes {
                self.draw(m, *shape);
            }
            // Within a card the names above the plot suffice: the table follows.
            let large = shapes.iter().any(|shape| shape.name != SMALL.name);
            if let Some(timeline) = self.segments.as_ref().filter(|_| large) {
                bands::legend(m, timeline);
            }
            self.nak_legend(m);
            super::curves::table(m, self);
        });
    }

    fn draw(&self, m: &mut Markup, shape: Shape) {
        let ticks = ((shape.width - shape.label_margin) / 90.0).clamp(3.0, 8.0);
        let right = if shape.label_margin > 0.0 { shape.label_margin } else { 12.0 };
        let (right, bottom) = (shape.width - right, shape.height - BOTTOM);
        let area = Area { left: LEFT, right, top: TOP, bottom };
        let frame = Frame { area, x: Axis::to(self.until_s, ELAPSED, ticks) };
        let view = format!("0 0 {} {}", shape.width, shape.height);
        let (title, desc) =
            (format!("{}-{}-t", self.id, shape.name), format!("{}-{}-d", self.id, shape.name));
        let labelled = format!("{title} {desc}");
        m.element(
            "svg",
            &[
                ("class", &shape.name),
                ("viewBox", &view),
                ("role", &"img"),
                ("aria-labelledby", &labelled),
                ("data-chart", &self.y.unit),
                ("data-x", &format!("{} {}", Px(area.left), Px(area.right))),
                ("data-y", &format!("{} {}", Px(area.top), Px(area.bottom))),
                ("data-until", &format!("{:.6}", frame.x.max)),
            ],
            |m| {
                m.leaf("title", &[("id", &title)], &self.title);
                let limits = self.segments.as_ref().map(bands::description).unwrap_or_default();
                m.leaf("desc", &[("id", &desc)], &format!("{}{limits}", self.description));
                self.grid(m, &frame);
                self.lines(m, &frame, shape);
                labels::write(m, self.labels(&frame), &area, shape.label_margin > 0.0);
            },
        );
    }

    fn up(&self, frame: &Frame, value: f64) -> f64 {
        frame.area.y(self.y.share(value))
    }

    fn grid(&self, m: &mut Markup, f: &Frame) {
        if let Some(timeline) = &self.segments {
            bands::draw(m, timeline, f);
        } else if let Some(band) = &self.band {
            let (left, right) = (f.across(band.from_s), f.across(band.to_s));
            drawing::rect(m, "band", &Area { left, right, ..f.area });
            drawing::text(m, "band-name", (left + 7.0, f.area.top + 14.0), band.name);
        }
        drawing::text(m, "unit", (f.area.left - 8.0, f.area.top - 12.0), self.y.unit);
        f.area.levels(m, self.y.shares());
        f.area.seconds(m, &f.x);
    }

    fn lines(&self, m: &mut Markup, f: &Frame, shape: Shape) {
        for mark in self.marks.iter().filter(|mark| mark.value <= self.y.max) {
            let y = self.up(f, mark.value);
            let class = format!("mark {}", mark.class);
            drawing::line(m, &class, (f.area.left, y), (f.area.right, y));
        }
        // Curves are clipped at the top; an arrow in the label marks it.
        let clip = format!("{}-{}-c", self.id, shape.name);
        m.element("clipPath", &[("id", &clip)], |m| {
            let Area { top, bottom, .. } = f.area;
            drawing::rect(m, "clip", &Area { top: top - 1.0, bottom: bottom + 1.0, ..f.area });
        });
        let clip = format!("url(#{clip})");
        m.element("g", &[("clip-path", &clip)], |m| {
            for curve in &self.curves {
                self.curve(m, f, curve);
            }
        });
        for one in &self.naks {
            let at = (f.across(one.t_s), self.up(f, one.value).max(f.area.top));
            naks::mark(m, at, one.count, &format!("at {}", wording::seconds(one.t_s)));
        }
    }

    fn nak_legend(&self, m: &mut Markup) {
        if self.naks.is_empty() {
            return;
        }
        let count = self.naks.iter().map(|one| one.count).sum();
        let intervals = match self.naks.len() {
            1 => "1 interval".to_owned(),
            several => format!("{several} intervals"),
        };
        m.element("ul", &[("class", &"legend")], |m| {
            m.element("li", &[], |m| {
                m.leaf("b", &[], &format!("{} {}", naks::SIGN, naks::received(count)));
                m.text(&format!(" received by the sender, in {intervals}"));
            });
        });
    }

    fn curve(&self, m: &mut Markup, f: &Frame, curve: &Curve) {
        let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { return };
        let place = |p: &(f64, f64)| {
            // Twice the height is outside the clip and keeps the slope about right.
            let over = if p.1.is_finite() { (p.1 / self.y.max).clamp(0.0, 2.0) } else { 0.0 };
            (f.across(p.0), f.area.y(over))
        };
        let points = drawing::points(curve.points.iter().map(place));
        if curve.filled {
            let base =
                |p: &(f64, f64)| drawing::points([(f.across(p.0), f.area.bottom)].into_iter());
            let area = format!("{} {points} {}", base(first), base(last));
            m.shape("polygon", &[("class", &format!("area {}", curve.class)), ("points", &area)]);
        }
        let values: Vec<String> = curve.points.iter().map(|p| self.y.number(p.1)).collect();
        m.shape(
            "polyline",
            &[
                ("class", &format!("curve {}", curve.class)),
                ("points", &points),
                ("data-name", &curve.name),
                ("data-values", &values.join(" ")),
            ],
        );
    }

    fn labels(&self, f: &Frame) -> Vec<Label> {
        let over = |name: &str, value: f64| {
            if value > self.y.max { format!("{name} ↑") } else { name.to_owned() }
        };
        let marks = self.marks.iter().map(|mark| Label {
            text: over(&mark.name, mark.value),
            class: mark.class.clone(),
            from: self.up(f, mark.value),
        });
        let curves = self.curves.iter().filter(|c| !c.name.is_empty()).filter_map(|curve| {
            let last = curve.points.last()?;
            Some(Label {
                text: over(&curve.name, last.1),
                class: curve.class.clone(),
                from: self.up(f, last.1),
            })
        });
        marks.chain(curves).collect()
    }
}
