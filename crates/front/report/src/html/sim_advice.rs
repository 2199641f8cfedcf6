//! The page of an advice: every control's goodput and queueing delay over the path, its harm and its
//! loss.

use super::markup::Markup;
use super::plot::{self, AgainstDelay, Bar, Tradeoff, bars};
use super::{CSS, document, footer};
use crate::axis::{MILLIS, RATE, SHARE, Unit, readable};
use crate::wording;
use record::{AdvisedControl, RunRange, SimAdvice};
use units::significant;

/// The control that the others are compared with: the neighbour in every run.
const NEIGHBOUR: &str = "cubic";

/// The page as one HTML document.
#[must_use]
pub fn sim_advice_page(advice: &SimAdvice) -> String {
    let title = format!("Which congestion control for {}?", advice.link);
    let mut m = Markup::new();
    let styles = [CSS, plot::STYLE, &plot::control_styles()];
    document(&mut m, &title, &styles, "", |m| {
        m.element("main", &[], |m| {
            header(m, advice, &title);
            plots(m, advice);
            table(m, advice);
            conditions(m, advice);
        });
        footer(m, &advice.version);
    });
    m.finish()
}

fn header(m: &mut Markup, advice: &SimAdvice, title: &str) {
    m.element("header", &[], |m| {
        m.leaf("p", &[("class", &"eyebrow")], &"Longhaul");
        m.leaf("h1", &[], &title);
        m.leaf("p", &[("class", &"lead")], &advice.sentence);
        if !advice.price.is_empty() {
            m.leaf("p", &[("class", &"lead")], &advice.price);
        }
        if let Some(setting) = &advice.setting {
            m.element("p", &[("class", &"lead")], |m| {
                m.leaf("code", &[("class", &"setting")], setting);
            });
        }
        for note in &advice.notes {
            m.leaf("p", &[("class", &"note")], note);
        }
    });
}

fn plots(m: &mut Markup, advice: &SimAdvice) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Goodput against queueing delay");
        let point = |one: &AdvisedControl| Tradeoff {
            name: one.control.clone(),
            control: one.control.clone(),
            delay_ms: one.queueing_ms,
            rate_bps: one.goodput_bps,
        };
        let plot = AgainstDelay {
            caption: "Goodput against queueing delay of a single flow",
            delay: "95th percentile of the queueing delay",
            rate: "goodput",
            points: advice.controls.iter().map(point).collect(),
        };
        let note = "Points: the median of the runs. Bars: their range. As in Pantheon's plots the \
                    delay falls to the right: controls at the top right have the most goodput at the \
                    least delay.";
        if let Some(chart) = plot.draw() {
            chart.with_note(note).figure(m);
        }
    });
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"The price for others");
        let harm = sorted(advice, |one| one.harm);
        let note = "The share of its solo goodput that a CUBIC flow loses beside one flow of each \
                    control (Ware, Mukerjee, Seshan and Sherry 2019). Dashed: beside another CUBIC \
                    flow. Bars: the median of the runs; lines: their range.";
        bars("Harm to a CUBIC flow", ("harm", SHARE), &harm, Some(NEIGHBOUR))
            .with_note(note)
            .figure(m);
        let loss = sorted(advice, |one| one.retransmitted);
        let note = "Retransmitted segments as a share of the packets sent, of a single flow: losses \
                    of the path, and those that the control brings about.";
        bars("Retransmitted", ("retransmitted", SHARE), &loss, None).with_note(note).figure(m);
    });
}

/// The least first.
fn sorted(advice: &SimAdvice, of: fn(&AdvisedControl) -> RunRange) -> Vec<Bar> {
    let bar = |one: &AdvisedControl| Bar { control: one.control.clone(), figure: of(one) };
    let mut bars: Vec<Bar> = advice.controls.iter().map(bar).collect();
    bars.sort_by(|one, other| one.figure.median.total_cmp(&other.figure.median));
    bars
}

fn table(m: &mut Markup, advice: &SimAdvice) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Figures");
        m.leaf("p", &[("class", &"note")], &"Medians; the range of the runs in parentheses.");
        m.table("figures", |m| {
            m.thead([
                "control",
                "goodput",
                "queueing delay, p95",
                "retransmitted",
                "beside a CUBIC flow",
                "harm to it",
            ]);
            m.element("tbody", &[], |m| {
                for one in &advice.controls {
                    let best = advice.best.as_ref() == Some(&one.control);
                    let name =
                        if best { format!("{} (best)", one.control) } else { one.control.clone() };
                    let cells = [
                        ranged(one.goodput_bps, RATE),
                        ranged(one.queueing_ms, MILLIS),
                        ranged(one.retransmitted, SHARE),
                        ranged(one.beside_cubic_bps, RATE),
                        ranged(one.harm, SHARE),
                    ];
                    m.row(&name, cells);
                }
            });
        });
    });
}

fn ranged(range: RunRange, units: &'static [Unit]) -> String {
    let ends = [range.median, range.low, range.high].map(|value| readable(value, units));
    wording::spread(ends, '–')
}

fn conditions(m: &mut Markup, advice: &SimAdvice) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Conditions");
        let seeds: Vec<String> = advice.seeds.iter().map(u64::to_string).collect();
        let runs = format!(
            "{} of {} s with each control, alone and beside a CUBIC flow; {} data packets in all",
            advice.seeds.len(),
            significant(advice.seconds, 3),
            advice.packets
        );
        m.table("conditions", |m| {
            m.element("tbody", &[], |m| {
                m.row(&"Path", [&advice.link]);
                m.row(&"Runs", [&runs]);
                m.row(&"Seeds", [&seeds.join(", ")]);
                m.row(&"Testbed", [&"simulated in virtual time: no packet was sent"]);
                if let Some(next) = &advice.next {
                    m.row(&"Next", [&format!("{} ({})", next.command, next.why)]);
                }
            });
        });
    });
}
