//! The page of a baseline: what to do first, the goodput of each condition, what limits it,
//! what differs, the comparison, and the conditions of the tests.

mod goodputs;
mod tables;

pub(super) use goodputs::{track, track_axis};

use super::{
    CSS, document, findings as finding_cards, footer,
    header::{capital, tile},
    markup::Markup,
};
use crate::{calendar, wording};
use record::{
    AddressFamily, BaselineCondition, BaselinePath, BaselineReport, BaselineStep, Direction,
};

pub(super) const STYLE: &str = include_str!("baseline/baseline.css");

/// The page as one HTML document; `json` is the name of the file with the same as JSON.
#[must_use]
pub fn baseline_page(report: &BaselineReport, json: &str) -> String {
    let mut m = Markup::new();
    let title = format!("Baseline of {}", report.target);
    document(&mut m, &title, &[CSS, STYLE], "", |m| {
        m.element("main", &[], |m| {
            header(m, report, &title);
            steps(m, &report.steps);
            goodputs::write(m, report);
            findings(m, &report.conditions);
            tables::differences(m, &report.differences);
            tables::links(m, &report.links);
            if let Some(comparison) = &report.comparison {
                tables::comparison(m, comparison);
            }
            tables::checks(m, &report.checks);
            if let Some(choice) = &report.choice {
                tables::servers(m, choice);
            }
            tables::conditions(m, report, json);
        });
        footer(m, &report.version);
    });
    m.finish()
}

fn header(m: &mut Markup, report: &BaselineReport, title: &str) {
    m.element("header", &[], |m| {
        m.leaf("p", &[("class", &"eyebrow")], &"Longhaul baseline");
        m.leaf("h1", &[], &title);
        m.leaf("p", &[("class", &"lead")], &lead(report));
    });
    if report.interrupted {
        m.element("section", &[("class", &"alert"), ("role", &"alert")], |m| {
            m.leaf("h2", &[], &"Interrupted");
            let text = "The page shows the results up to that point.";
            m.leaf("p", &[], &text);
        });
    }
    strip(m, report);
}

/// The highest median of each direction, and how much changed.
fn lead(report: &BaselineReport) -> String {
    let best = |direction: Direction| {
        let of_direction = report.conditions.iter().filter(|c| c.condition.direction == direction);
        let median = |one: &BaselineCondition| one.summary.median_bps.unwrap_or(0.0);
        let best = of_direction.max_by(|a, b| median(a).total_cmp(&median(b)))?;
        Some(format!(
            "{} {} ({}, {})",
            best.condition.direction_name(),
            wording::bps(median(best)),
            best.condition.family.name(),
            best.condition.streams_name()
        ))
    };
    let directions = [Direction::Reverse, Direction::Forward].into_iter().filter_map(best);
    let text = directions.collect::<Vec<_>>().join(", ");
    let text = if text.is_empty() { "No test completed".to_owned() } else { capital(&text) };
    match &report.comparison {
        Some(comparison) => {
            let all = &comparison.conditions;
            let changed = all.iter().filter(|one| one.significant == Some(true)).count();
            format!(
                "{text}. The goodput of {changed} of {} conditions changed significantly since {}.",
                all.len(),
                calendar::utc(comparison.started_unix_s)
            )
        }
        None => format!("{text}."),
    }
}

/// The figures of the whole: always six tiles.
fn strip(m: &mut Markup, report: &BaselineReport) {
    let tests: usize = report.conditions.iter().map(|one| one.runs.len()).sum();
    let worst = report
        .conditions
        .iter()
        .filter_map(|one| one.latency.as_ref())
        .max_by(|a, b| a.rise_ms.unwrap_or(0.0).total_cmp(&b.rise_ms.unwrap_or(0.0)));
    m.element("section", &[("class", &"path"), ("aria-label", &"Path")], |m| {
        m.element("dl", &[], |m| {
            for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
                let path = report.paths.iter().find(|path| path.family == family);
                let (value, sub) = path.map_or_else(
                    || ("–".to_owned(), "not requested".to_owned()),
                    |path| (rtt(path), address(path)),
                );
                tile(m, &format!("RTT, {}", family.name()), &value, &sub);
            }
            let grade = worst.and_then(|latency| latency.grade.clone());
            let rise = worst.and_then(|latency| latency.rise_ms);
            let rise = rise.map_or("not measured".to_owned(), |ms| format!("RTT {ms:+.0} ms"));
            tile(m, "Worst bufferbloat", &grade.unwrap_or_else(|| "–".to_owned()), &rise);
            let link = report.link_bps.map_or("unknown".to_owned(), |rate| rate.to_string());
            let source =
                if report.link_bps.is_some() { "reported by its driver" } else { "not reported" };
            tile(m, "This host's link", &link, source);
            let each = wording::seconds(report.duration_s);
            tile(m, "Tests", &tests.to_string(), &format!("of {each} each"));
            let rounds = format!("{} rounds, random order", report.rounds);
            tile(m, "Time", &wording::long_time(report.took_s), &rounds);
        });
    });
}

fn rtt(path: &BaselinePath) -> String {
    match (&path.skipped, path.rtt_ms) {
        (Some(_), _) => "not tested".to_owned(),
        (None, Some(ms)) => format!("{ms:.1} ms"),
        (None, None) => "unknown".to_owned(),
    }
}

fn address(path: &BaselinePath) -> String {
    match &path.skipped {
        Some(why) => why.clone(),
        None => path.address.clone().unwrap_or_default(),
    }
}

fn steps(m: &mut Markup, steps: &[BaselineStep]) {
    if steps.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Next steps");
        m.element("ol", &[("class", &"steps")], |m| {
            for step in steps {
                m.element("li", &[], |m| {
                    m.text(&step.text);
                    if let Some(command) = &step.command {
                        m.leaf("code", &[("class", &"command")], command);
                    }
                });
            }
        });
    });
}

/// A card for each condition.
fn findings(m: &mut Markup, conditions: &[BaselineCondition]) {
    if conditions.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Limit of each condition");
        let note = "The finding of the test nearest to the median among those with the most \
                    frequent limit.";
        m.leaf("p", &[("class", &"note")], &note);
        m.element("div", &[("class", &"pair")], |m| {
            for one in conditions {
                m.element("article", &[("class", &"card")], |m| card(m, one));
            }
        });
    });
}

fn card(m: &mut Markup, one: &BaselineCondition) {
    m.element("p", &[("class", &"card-run")], |m| {
        m.leaf("span", &[], &one.condition);
        finding_cards::chip(m, one.limit, wording::limit_name(one.limit));
    });
    m.leaf("h3", &[], &capital(wording::verdict(one.limit)));
    let Some(finding) = &one.finding else { return };
    m.leaf("p", &[("class", &"sentence")], &finding.sentence);
    if let Some(remedy) = finding.remedies.first() {
        let expected = match remedy.expects_bps {
            Some(rate) => format!("Expected: {rate}, {}", remedy.why),
            None => remedy.why.clone(),
        };
        m.element("p", &[("class", &"note")], |m| {
            m.leaf("code", &[], &remedy.command).text(&" ").text(&expected);
        });
    }
    let found = format!("In {} of {} tests", one.limit_runs, one.runs.len());
    m.element("div", &[("class", &"evidence")], |m| {
        m.leaf("p", &[("class", &"note")], &found);
    });
}
