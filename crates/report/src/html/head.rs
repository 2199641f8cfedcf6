//! The page's first screen: what it is about, what came of it, and on which path.

use super::{Page, markup::Markup, path, paths};
use crate::words::{self, Tone};
use record::PathReport;

pub(super) fn write(m: &mut Markup, page: &Page<'_>) {
    m.element("header", &[], |m| {
        m.leaf("p", &[("class", &"eyebrow")], &"Longhaul");
        m.leaf("h1", &[], &page.title);
        if !page.lead.is_empty() {
            m.leaf("p", &[("class", &"lead")], &page.lead);
        }
    });
    doubts(m, page);
    result(m, page);
    if let Some(path) = path(page) {
        path_strip(m, path, valid(page));
    }
}

/// Whether every path that is known did what was asked of it.
fn valid(page: &Page<'_>) -> bool {
    paths(page).iter().all(|path| path.valid)
}

/// Why the figures below may not be quoted; first of all, because it comes first.
fn doubts(m: &mut Markup, page: &Page<'_>) {
    let bad: Vec<&PathReport> = paths(page).into_iter().filter(|p| !p.valid).collect();
    if bad.is_empty() {
        return;
    }
    let mut reasons: Vec<&str> = bad.iter().flat_map(|p| &p.reasons).map(String::as_str).collect();
    reasons.dedup();
    m.element("section", &[("class", &"alert"), ("role", &"alert")], |m| {
        m.leaf("h2", &[], &"Not a valid result");
        m.leaf(
            "p",
            &[],
            &"The emulated path did not do what was asked of it. The figures \
                           below describe this machine at least as much as the path.",
        );
        m.element("ul", &[], |m| {
            for reason in reasons {
                m.leaf("li", &[], &reason);
            }
        });
    });
}

fn result(m: &mut Markup, page: &Page<'_>) {
    let (Some(first), Some(last)) = (page.runs.first(), page.runs.last()) else { return };
    let rate = last.finding.throughput_bps;
    let class = if valid(page) { "result" } else { "result doubtful" };
    m.element("section", &[("class", &class)], |m| match page.gain.and_then(words::gain) {
        Some(gain) if page.runs.len() > 1 => {
            m.leaf("p", &[("class", &"figure-big")], &gain);
            m.element("div", &[], |m| {
                let step = words::step(first.finding.throughput_bps, rate);
                m.leaf("p", &[("class", &"figure-step")], &step);
                m.element("p", &[("class", &"figure-says")], |m| {
                    m.text(&first.label).text(&": ");
                    m.text(&words::verdict(first.finding.limit)).text(&". ");
                    m.text(&capital(last.label)).text(&": ");
                    m.text(&words::verdict(last.finding.limit)).text(&".");
                });
            });
        }
        _ => {
            let text = rate.to_string();
            let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
            m.element("p", &[("class", &"figure-big")], |m| {
                m.text(&number).leaf("small", &[], &format!(" {unit}"));
            });
            m.element("div", &[], |m| {
                m.leaf(
                    "p",
                    &[("class", &"figure-step")],
                    &capital(words::verdict(last.finding.limit)),
                );
                if let Some(ratio) = words::of_predicted(last.finding) {
                    let says = format!("{} of what was predicted", words::percent(ratio));
                    m.leaf("p", &[("class", &"figure-says")], &says);
                }
            });
        }
    });
}

/// Asked and achieved, side by side.
fn path_strip(m: &mut Markup, path: &PathReport, valid: bool) {
    let achieved = &path.achieved;
    let rate = achieved.rate_bps.map_or_else(|| "not told".to_owned(), |r| r.to_string());
    let idle = achieved.idle_rtt_ms.filter(|ms| ms.is_finite());
    let idle = idle.map_or_else(|| "not told".to_owned(), |ms| format!("{ms:.1} ms"));
    let bdp = path.rate_bps.map_or_else(
        || "not told".to_owned(),
        |rate| rate.bytes_in(path.rtt.duration()).to_string(),
    );
    m.element("section", &[("class", &"path"), ("aria-label", &"The path")], |m| {
        m.element("dl", &[], |m| {
            tile(m, "Bottleneck", &words::rate(path.rate_bps), &format!("achieved {rate}"));
            tile(m, "Round trip", &path.rtt.to_string(), &format!("idle {idle}"));
            tile(m, "In flight to fill it", &bdp, "rate × round trip");
            let lost = format!(
                "{} of {} packets",
                words::grouped(achieved.lost),
                words::grouped(achieved.packets)
            );
            tile(m, "Random loss", &path.loss.to_string(), &lost);
            let (queue, size) = match path.queue.split_once(" (") {
                Some((words, size)) => (words, size.trim_end_matches(')')),
                None => (path.queue.as_str(), "before the bottleneck"),
            };
            tile(m, "Queue", queue, size);
            let tone = if valid { Tone::Good } else { Tone::Mend };
            m.element("div", &[("class", &class(tone))], |m| {
                m.leaf("dt", &[], &"Emulation");
                m.leaf("dd", &[], &if valid { "valid" } else { "not valid" });
                let late = format!("99 % within {} µs", achieved.lateness_us.p99);
                m.leaf("dd", &[("class", &"sub")], &late);
            });
        });
    });
}

fn tile(m: &mut Markup, label: &str, value: &str, sub: &str) {
    m.element("div", &[], |m| {
        m.leaf("dt", &[], &label);
        m.leaf("dd", &[], &value);
        m.leaf("dd", &[("class", &"sub")], &sub);
    });
}

/// The style class of a tone.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Mend => "mend",
        Tone::Open => "open",
    }
}

/// With a capital first letter, for the beginning of a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}
