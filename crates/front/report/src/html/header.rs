//! Top of the page: title, result and path.

use super::{Page, markup::Markup, path, paths};
use crate::wording::{self, Tone};
use record::{LatencyUnderLoad, PathReport};

/// Title and lead.
pub(super) fn title(m: &mut Markup, page: &Page<'_>) {
    m.element("header", &[], |m| {
        m.leaf("p", &[("class", &"eyebrow")], &"Longhaul");
        m.leaf("h1", &[], &page.title);
        if !page.lead.is_empty() {
            m.leaf("p", &[("class", &"lead")], &sentence(&page.lead));
        }
        if let Some(back) = page.back {
            m.element("p", &[("class", &"note")], |m| {
                m.leaf("a", &[("href", &back)], &"All cells of the study");
            });
        }
    });
}

/// Result and path.
pub(super) fn write(m: &mut Markup, page: &Page<'_>) {
    invalid(m, page);
    result(m, page);
    if let Some(path) = path(page) {
        path_strip(m, path, valid(page));
    }
}

/// Whether every path report is valid.
fn valid(page: &Page<'_>) -> bool {
    paths(page).iter().all(|path| path.valid)
}

/// The warning that the path was not emulated as configured, with the reasons.
fn invalid(m: &mut Markup, page: &Page<'_>) {
    let bad: Vec<&PathReport> = paths(page).into_iter().filter(|p| !p.valid).collect();
    if bad.is_empty() {
        return;
    }
    let mut reasons: Vec<&str> = bad.iter().flat_map(|p| &p.reasons).map(String::as_str).collect();
    reasons.dedup();
    m.element("section", &[("class", &"alert"), ("role", &"alert")], |m| {
        m.leaf("h2", &[], &"Invalid result");
        m.leaf(
            "p",
            &[],
            &"The path was not emulated as configured. The figures below depend on \
              this machine as much as on the path.",
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
    let class = if valid(page) { "result" } else { "result invalid" };
    m.element("section", &[("class", &class)], |m| match page.gain.and_then(wording::gain) {
        Some(gain) if page.runs.len() > 1 => {
            m.leaf("p", &[("class", &"figure-big")], &gain);
            m.element("div", &[], |m| {
                let step = wording::step(first.finding.throughput_bps, rate);
                m.leaf("p", &[("class", &"figure-step")], &step);
                m.element("p", &[("class", &"figure-note")], |m| {
                    m.text(&first.label).text(&": ");
                    m.text(&wording::verdict(first.finding.limit)).text(&". ");
                    m.text(&capital(last.label)).text(&": ");
                    m.text(&wording::verdict(last.finding.limit)).text(&".");
                });
                grades(m, page);
            });
        }
        _ => {
            let text = rate.to_string();
            let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
            m.element("p", &[("class", &"figure-big")], |m| {
                m.text(&number).leaf("small", &[], &format!(" {unit}"));
            });
            m.element("div", &[], |m| {
                let verdict = capital(wording::verdict(last.finding.limit));
                m.leaf("p", &[("class", &"figure-step")], &verdict);
                // Of both directions the number is that of the last.
                for run in page.runs.iter().filter(|_| page.runs.len() > 1) {
                    let (rate, limit) = (run.finding.throughput_bps, run.finding.limit);
                    let note = format!("{}: {rate}, {}", run.label, wording::verdict(limit));
                    m.leaf("p", &[("class", &"figure-note")], &note);
                }
                if let Some(ratio) =
                    wording::of_predicted(last.finding).filter(|_| page.runs.len() == 1)
                {
                    let note = format!("{} of the predicted rate", wording::whole_percent(ratio));
                    m.leaf("p", &[("class", &"figure-note")], &note);
                }
                grades(m, page);
            });
        }
    });
}

/// The grade of the latency under load, of each run that has one; of both directions of one test
/// it is the same.
fn grades(m: &mut Markup, page: &Page<'_>) {
    let mut shown: Vec<&LatencyUnderLoad> = Vec::new();
    for run in &page.runs {
        let Some(latency) = &run.measurement.latency else { continue };
        let Some(grade) = latency.grade.as_ref().filter(|_| !shown.contains(&latency)) else {
            continue;
        };
        shown.push(latency);
        m.element("p", &[("class", &"grade")], |m| {
            m.leaf("b", &[], grade);
            m.text(&"latency under load");
            if let Some(rise) = wording::rtt_rise(latency) {
                m.text(&format!(": {rise}"));
            }
            if page.gain.is_some() {
                m.text(&format!(", {}", run.label));
            }
        });
    }
}

/// The path as configured and as measured.
fn path_strip(m: &mut Markup, path: &PathReport, valid: bool) {
    let achieved = &path.achieved;
    let (rate, idle) = if path.is_simulated() {
        ("at the bottleneck".to_owned(), "without a queue".to_owned())
    } else {
        let none = || "not measured".to_owned();
        let rate = achieved.rate_bps.map_or_else(none, |rate| rate.to_string());
        let idle = wording::idle_rtt(achieved, 1).unwrap_or_else(none);
        (format!("actual {rate}"), format!("idle {idle}"))
    };
    let bdp = path
        .rate_bps
        .map_or_else(|| "–".to_owned(), |rate| rate.bytes_in(path.rtt.duration()).to_string());
    m.element("section", &[("class", &"path"), ("aria-label", &"Path")], |m| {
        m.element("dl", &[], |m| {
            tile(m, "Bottleneck rate", &wording::rate(path.rate_bps), &rate);
            tile(m, "RTT", &path.rtt.to_string(), &idle);
            tile(m, "BDP", &bdp, "rate × RTT");
            let lost = format!(
                "{} of {} packets",
                wording::grouped(achieved.lost),
                wording::grouped(achieved.packets)
            );
            tile(m, "Random loss", &path.loss.to_string(), &lost);
            let (queue, size) = match path.queue.split_once(" (") {
                Some((words, size)) => (words, size.trim_end_matches(')')),
                None => (path.queue.as_str(), "at the bottleneck"),
            };
            tile(m, "Queue", queue, size);
            if path.is_simulated() {
                return tile(m, "Testbed", "simulator", "in virtual time");
            }
            let tone = if valid { Tone::Good } else { Tone::Fixable };
            m.element("div", &[("class", &class(tone))], |m| {
                m.leaf("dt", &[], &"Emulation");
                m.leaf("dd", &[], &if valid { "valid" } else { "invalid" });
                let late = format!("p99 lateness {} µs", achieved.lateness_us.p99);
                m.leaf("dd", &[("class", &"sub")], &late);
            });
        });
    });
}

pub(super) fn tile(m: &mut Markup, label: &str, value: &str, sub: &str) {
    m.element("div", &[], |m| {
        m.leaf("dt", &[], &label);
        m.leaf("dd", &[], &value);
        m.leaf("dd", &[("class", &"sub")], &sub);
    });
}

/// The CSS class of a tone.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Fixable => "fixable",
        Tone::Unknown => "unknown",
    }
}

/// The text with its first letter in upper case, and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let end = if text.ends_with(['.', '?', '!', ':']) { "" } else { "." };
    capital(text) + end
}

/// The text with its first letter in upper case.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}
