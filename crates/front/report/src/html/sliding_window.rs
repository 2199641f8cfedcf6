//! The picture of a sliding window: the data of one window on its way, its acknowledgements on
//! theirs, and the time in which the sender waits for them.

mod of_finding;

pub(super) use of_finding::of_finding;

use super::{
    drawing::{self, Area},
    markup::Markup,
};
use crate::axis::{Axis, DELAY};
use model::{SlidingWindow, Span, WindowRound};
use units::{BitRate, ByteCount, Rtt, percent_with};

pub(super) const STYLE: &str = include_str!("sliding_window.css");

/// The drawing, in pixels: time to the right, from the sender at the top to the receiver.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 244.0;
const PLOT: Area = Area { left: 68.0, right: 376.0, top: 64.0, bottom: 206.0 };
/// The line of the RTT, and the sender's activity.
const MEASURE: f64 = 22.0;
const ACTIVITY: Area = Area { left: 0.0, right: 0.0, top: 36.0, bottom: 58.0 };
/// Least width of a band: a thinner one would not be visible.
const MIN_WIDTH: f64 = 1.5;
/// Width below which a band is a line: in full colour, with one line of acknowledgements.
const THIN: f64 = 6.0;
/// Width of a character of a label, at most.
const CHARACTER: f64 = 8.0;

/// The round-trip times that are drawn.
const ROUND_TRIPS: f64 = 2.5;

/// Part of the RTT that a window takes on a link of unknown rate, in the drawing.
const SYMBOLIC: f64 = 0.06;

/// A window in flight.
pub(super) struct Picture {
    /// Unique on the page; prefix of element ids.
    pub(super) id: String,
    pub(super) caption: String,
    pub(super) times: SlidingWindow,
    pub(super) figures: Vec<(&'static str, String)>,
    /// Whether the width of the band has a meaning.
    pub(super) is_symbolic: bool,
}

impl Picture {
    /// A window of all streams on a link.
    pub(super) fn new(id: String, link: BitRate, rtt: Rtt, window: ByteCount) -> Option<Self> {
        let times = SlidingWindow::new(link, rtt, window)?;
        let allowed = model::window_rate(window, rtt)?;
        let caption = if times.idle_share() > 0.0 {
            let share = idle(times.idle_share());
            format!("{window} in flight: the sender is idle {share} of the time")
        } else {
            format!("{window} in flight: the sender is never idle")
        };
        let figures = vec![
            ("window", window.to_string()),
            ("RTT", rtt.to_string()),
            ("sending time", Rtt::from_secs(times.sending_s()).to_string()),
            ("throughput", allowed.min(link).to_string()),
        ];
        Some(Picture { id, caption, times, figures, is_symbolic: false })
    }

    /// A window on a link of unknown rate: with `share` 1 it fills the link.
    fn symbolic(
        id: String,
        rtt: Rtt,
        share: f64,
        [caption, window, throughput]: [String; 3],
    ) -> Option<Self> {
        let times = SlidingWindow::of_share(rtt, share)?;
        let figures =
            vec![("window", window), ("RTT", rtt.to_string()), ("throughput", throughput)];
        Some(Picture { id, caption, times, figures, is_symbolic: true })
    }

    /// In words.
    fn description(&self) -> String {
        let rtt = Rtt::from_secs(self.times.rtt_s());
        let sending = if self.is_symbolic {
            String::new()
        } else {
            format!(", for {}", Rtt::from_secs(self.times.sending_s()))
        };
        let then = if self.times.idle_share() > 0.0 {
            format!("then it waits until the first acknowledgement arrives, {rtt} after it began")
        } else {
            format!("and before it has sent all, the first acknowledgement arrives, after {rtt}")
        };
        format!(
            "The sender transmits one window{sending}, which takes half the RTT to the receiver; {then}."
        )
    }

    /// Returns true if a band is drawn wider than it is.
    fn is_widened(&self, across: &Axis) -> bool {
        !self.is_symbolic && PLOT.x(across.share(self.times.sending_s())) - PLOT.left < MIN_WIDTH
    }

    fn draw(&self, m: &mut Markup, across: &Axis) {
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        let [title, desc] = ["t", "d"].map(|part| format!("{}-{part}", self.id));
        let clip = format!("{}-c", self.id);
        let labelled = format!("{title} {desc}");
        m.element(
            "svg",
            &[("viewBox", &view), ("role", &"img"), ("aria-labelledby", &labelled)],
            |m| {
                m.leaf("title", &[("id", &title)], &self.caption);
                m.leaf("desc", &[("id", &desc)], &self.description());
                m.element("clipPath", &[("id", &clip)], |m| {
                    drawing::rect(m, "clip", &Area { top: 0.0, bottom: HEIGHT, ..PLOT });
                });
                let rounds = self.times.rounds(across.max);
                m.element("g", &[("clip-path", &format!("url(#{clip})"))], |m| {
                    for (index, round) in rounds.iter().enumerate() {
                        bands(m, across, round, index);
                    }
                });
                self.labels(m, across, &rounds);
            },
        );
    }

    fn labels(&self, m: &mut Markup, across: &Axis, rounds: &[WindowRound]) {
        let rtt = PLOT.x(across.share(self.times.rtt_s()));
        drawing::line(m, "measure", (PLOT.left, MEASURE), (rtt, MEASURE));
        for x in [PLOT.left, rtt] {
            drawing::line(m, "measure", (x, MEASURE - 5.0), (x, MEASURE + 5.0));
        }
        let label = format!("RTT {}", Rtt::from_secs(self.times.rtt_s()));
        drawing::text(m, "measure-name", ((PLOT.left + rtt) / 2.0, MEASURE - 7.0), &label);
        let of_time = format!("idle {}", idle(self.times.idle_share()));
        let labels = if self.is_symbolic { ["idle", "idle"] } else { [of_time.as_str(), "idle"] };
        for waits in rounds.iter().filter_map(|round| round.idle) {
            let (left, right) = places(across, waits);
            let fits = |label: &&str| right - left >= CHARACTER * label.chars().count() as f64;
            if let Some(label) = labels.into_iter().find(fits) {
                drawing::text(m, "idle-name", ((left + right) / 2.0, ACTIVITY.bottom - 6.0), label);
            }
        }
        for (name, y) in [("sender", PLOT.top), ("receiver", PLOT.bottom)] {
            drawing::line(m, "end", (PLOT.left, y), (PLOT.right, y));
            drawing::text(m, "end-name", (PLOT.left - 8.0, y + 4.0), name);
        }
        let mut ticks = across.shares().peekable();
        while let Some((share, label)) = ticks.next() {
            let unit = if ticks.peek().is_none() { across.unit } else { "" };
            PLOT.tick(m, PLOT.x(share), format!("{label} {unit}").trim_end());
        }
    }
}

/// Where a time begins and ends on the axis.
fn places(across: &Axis, time: Span) -> (f64, f64) {
    (PLOT.x(across.share(time.from_s)), PLOT.x(across.share(time.to_s)))
}

/// One window: what the sender does above its line, and below it the data and acknowledgements.
fn bands(m: &mut Markup, across: &Axis, round: &WindowRound, index: usize) {
    // Beyond the end of the axis as well: the clip cuts it.
    let x = |t_s: f64| PLOT.left + (PLOT.right - PLOT.left) * (t_s / across.max);
    let start = x(round.sent.from_s);
    let width = (x(round.sent.to_s) - start).max(MIN_WIDTH);
    if let Some(waits) = round.idle {
        let (left, right) = (start + width, x(waits.to_s));
        drawing::rect(m, "waits", &Area { left, right, ..PLOT });
        drawing::rect(m, "idle", &Area { left, right, ..ACTIVITY });
    }
    drawing::rect(m, "sent", &Area { left: start, right: start + width, ..ACTIVITY });
    let [arrival, back] = [round.received.from_s, round.acknowledged.from_s].map(x);
    let slanted = |m: &mut Markup, class: &str, from: (f64, f64), to: (f64, f64)| {
        let corners = [from, (from.0 + width, from.1), (to.0 + width, to.1), to];
        let points = drawing::points(corners.into_iter());
        m.shape("polygon", &[("class", &class), ("points", &points)]);
    };
    // Windows without a gap have two shades in turn.
    let class = match round.idle {
        Some(_) if width < THIN => "data-band thin",
        _ if index.is_multiple_of(2) => "data-band",
        _ => "data-band next",
    };
    slanted(m, "ack-band", (arrival, PLOT.bottom), (back, PLOT.top));
    slanted(m, class, (start, PLOT.top), (arrival, PLOT.bottom));
    drawing::line(m, "ack", (arrival, PLOT.bottom), (back, PLOT.top));
    if width >= THIN && round.idle.is_some() {
        drawing::line(m, "ack", (arrival + width, PLOT.bottom), (back + width, PLOT.top));
    }
}

/// Both pictures side by side, what their marks mean, and what they assume.
pub(super) fn write(m: &mut Markup, pictures: &[Picture], assumption: &str) {
    let across = |picture: &Picture| Axis::to(ROUND_TRIPS * picture.times.rtt_s(), DELAY, 6.0);
    m.element("div", &[("class", &"windows")], |m| {
        for picture in pictures {
            m.element("figure", &[], |m| {
                m.leaf("figcaption", &[], &picture.caption);
                picture.draw(m, &across(picture));
                m.element("dl", &[("class", &"numbers")], |m| {
                    for (label, value) in &picture.figures {
                        m.element("div", &[], |m| {
                            m.leaf("dt", &[], label).leaf("dd", &[], value);
                        });
                    }
                });
            });
        }
    });
    m.element("ul", &[("class", &"legend")], |m| {
        let keys = [
            ("key-data", "data"),
            ("key-ack", "acknowledgements"),
            ("key-idle", "the sender waits"),
        ];
        let waits = pictures.iter().any(|picture| picture.times.idle_share() > 0.0);
        for (class, meaning) in keys.into_iter().filter(|key| waits || key.0 != "key-idle") {
            m.element("li", &[], |m| {
                m.leaf("i", &[("class", &class)], &"").text(&meaning);
            });
        }
    });
    let widened = pictures.iter().find(|picture| picture.is_widened(&across(picture)));
    let widened = widened.map_or(String::new(), |picture| {
        let sending = Rtt::from_secs(picture.times.sending_s());
        format!(" The band of {sending} is drawn wider than to scale, to be visible.")
    });
    let note = format!(
        "{assumption} Drawn without headers, loss and queues, with half the RTT in each \
         direction.{widened}"
    );
    m.leaf("p", &[("class", &"note")], &note);
}

/// A share of idle time, with as many digits as tell it from all of the time.
fn idle(share: f64) -> String {
    let texts = (2..=9).map(|digits| percent_with(share, digits));
    let mut texts = texts.filter(|text| share >= 1.0 || text != "100 %");
    texts.next().unwrap_or_else(|| "almost 100 %".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(link: &str, rtt: &str, window: u64) -> Picture {
        let window = ByteCount::from_bytes(window);
        let (link, rtt) = (link.parse().unwrap(), rtt.parse().unwrap());
        Picture::new("w".to_owned(), link, rtt, window).unwrap()
    }

    fn drawn(pictures: &[Picture]) -> String {
        let mut m = Markup::new();
        write(&mut m, pictures, "The link is given.");
        m.finish()
    }

    /// The width of each rectangle of a class.
    fn widths(html: &str, class: &str) -> Vec<f64> {
        let mark = format!("<rect class=\"{class}\"");
        let of = |rest: &str| {
            let (_, value) = rest.split_once(" width=\"").unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        };
        html.split(&mark).skip(1).map(of).collect()
    }

    #[test]
    fn idle_time_is_shaded_to_scale_and_labelled() {
        let html = drawn(&[picture("100mbit", "173ms", 64 << 10)]);
        assert!(html.contains("64 KiB in flight: the sender is idle 97 % of the time"), "{html}");
        assert_eq!(html.matches(">idle 97 %<").count(), 2, "{html}");
        for part in
            ["RTT 173 ms", ">5.24 ms<", ">3.03 Mbit/s<", ">400 ms<", ">sender<", ">receiver<"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("wider than to scale"), "{html}");
        let rtt = (PLOT.right - PLOT.left) / ROUND_TRIPS;
        let (sent, idle) = (widths(&html, "sent"), widths(&html, "idle"));
        assert_eq!((sent.len(), idle.len()), (3, 3));
        assert!((idle[0] / rtt - 0.9697).abs() < 0.002, "{idle:?}");
        assert!((sent[0] + idle[0] - rtt).abs() < 0.11, "{sent:?} {idle:?}");
    }

    #[test]
    fn a_full_link_has_no_idle_time() {
        for window in [2_162_500, 30_000_000] {
            let html = drawn(&[picture("100mbit", "173ms", window)]);
            assert!(html.contains("in flight: the sender is never idle"), "{html}");
            assert!(widths(&html, "idle").is_empty() && !html.contains("key-idle"), "{html}");
            assert!(html.contains(">100 Mbit/s<"), "the link's rate, not more: {html}");
        }
    }

    #[test]
    fn a_band_that_would_not_be_visible_is_widened_and_said_to_be() {
        let html = drawn(&[picture("100gbit", "173ms", 64 << 10)]);
        assert!(widths(&html, "sent").iter().all(|width| *width >= MIN_WIDTH), "{html}");
        assert!(html.contains("The band of 5.24 µs is drawn wider"), "{html}");
        assert!(html.contains("idle 99.997 %"), "{html}");
    }

    #[test]
    fn almost_all_of_the_time_is_not_all() {
        for (share, text) in [
            (0.969_7, "97 %"),
            (0.999, "99.9 %"),
            (0.999_97, "99.997 %"),
            (1.0 - 1e-12, "almost 100 %"),
            (1.0, "100 %"),
            (0.002, "0.2 %"),
        ] {
            assert_eq!(idle(share), text);
        }
    }
}
