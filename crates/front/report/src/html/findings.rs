//! One card per run: the finding and the figures it is based on.

use super::{
    Page, PageRun, curves,
    header::{capital, class, sentence},
    limit_colours,
    markup::{Markup, Px},
    sliding_window,
};
use crate::{timeline, wording};
use record::{Finding, Limit, Shares};

pub(super) fn write(m: &mut Markup, page: &Page<'_>) {
    if page.runs.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"What limited the transfer");
        m.element("div", &[("class", if page.runs.len() > 1 { &"pair" } else { &"alone" })], |m| {
            for (index, run) in page.runs.iter().enumerate() {
                m.element("article", &[("class", &"card")], |m| card(m, page, index, run));
            }
        });
        for (index, run) in page.runs.iter().enumerate() {
            sliding_window::of_finding(m, page, index, run);
        }
        if let Some(decided) = page.decision {
            m.element("p", &[("class", &"decision")], |m| {
                m.leaf("b", &[], &"Second test: ").text(&decided.sentence);
            });
        }
    });
}

fn card(m: &mut Markup, page: &Page<'_>, index: usize, run: &PageRun<'_>) {
    let finding = run.finding;
    m.element("p", &[("class", &"card-run")], |m| {
        m.leaf("span", &[("class", &curves::run_class(page, index))], &run.label);
        chip(m, finding.limit, &wording::limit_with_confidence(finding));
    });
    m.leaf("h3", &[], &capital(wording::verdict(finding.limit)));
    m.leaf("p", &[("class", &"sentence")], &sentence(&finding.sentence));
    if let Some(text) = timeline::probabilities(&finding.posterior) {
        let text = format!("{}: {text}", capital(wording::confidence(finding)));
        m.leaf("p", &[("class", &"note")], &text);
    }
    if let Some(estimate) = &finding.bottleneck {
        let text = format!("Bottleneck rate: {}", timeline::bottleneck(estimate));
        m.leaf("p", &[("class", &"note")], &text);
    }
    if let Some(next) = &finding.next {
        m.element("p", &[("class", &"note")], |m| {
            m.leaf("b", &[], &"Next: ").leaf("code", &[("class", &"next")], &next.command);
            m.text(&format!(" ({})", next.remark()));
        });
    }
    m.element("div", &[("class", &"evidence")], |m| evidence(m, page, index, run));
}

/// A limit in the colours of its tone, with the mark of its own.
pub(super) fn chip(m: &mut Markup, limit: Option<Limit>, text: &str) {
    m.element("span", &[("class", &format!("chip {}", class(wording::tone(limit))))], |m| {
        if let Some(limit) = limit {
            limit_colours::mark(m, limit);
        }
        m.text(&text);
    });
}

/// The figures behind a finding; at the bottom, so that neighbouring cards line up.
fn evidence(m: &mut Markup, page: &Page<'_>, index: usize, run: &PageRun<'_>) {
    let finding = run.finding;
    numbers(m, finding);
    if let Some(equation) = &finding.equation {
        m.leaf("p", &[("class", &"equation")], equation);
    }
    curves::own_scale(m, page, index, run);
    match &finding.shares {
        Some(shares) => stacked(m, shares),
        None => {
            let note = format!("The time per limit is unknown: {}.", wording::NO_TIMERS);
            m.leaf("p", &[("class", &"empty")], &note);
        }
    }
}

fn numbers(m: &mut Markup, finding: &Finding) {
    let dash = || "–".to_owned();
    let predicted = finding.predicted_bps.map_or_else(dash, |p| p.to_string());
    let ratio = wording::of_predicted(finding).map_or_else(dash, wording::whole_percent);
    let rtt = finding.loaded_rtt.or(finding.min_rtt).map_or_else(dash, |r| r.to_string());
    let rtt_label = if finding.loaded_rtt.is_some() { "RTT under load" } else { "min RTT" };
    m.element("dl", &[("class", &"numbers")], |m| {
        for (label, value) in [
            ("achieved", finding.throughput_bps.to_string()),
            ("predicted", predicted),
            ("vs. predicted", ratio),
            (rtt_label, rtt),
        ] {
            m.element("div", &[], |m| {
                m.leaf("dt", &[], &label);
                m.leaf("dd", &[], &value);
            });
        }
    });
}

/// Time per limit: a stacked bar, and a legend with each share.
fn stacked(m: &mut Markup, shares: &Shares) {
    let parts = wording::causes(shares);
    let shares_text: Vec<String> = parts
        .iter()
        .filter(|(_, share)| *share >= 0.0005)
        .map(|(cause, share)| format!("{} {}", cause.name(), wording::whole_percent(*share)))
        .collect();
    m.leaf("p", &[("class", &"bar-title")], &"Time per limit");
    let label = shares_text.join(", ");
    m.element("div", &[("class", &"bar"), ("role", &"img"), ("aria-label", &label)], |m| {
        for (cause, share) in parts.iter().filter(|(_, share)| *share >= 0.0005) {
            let style = format!("flex-grow:{}", Px(share * 1000.0));
            m.leaf(
                "span",
                &[("class", &limit_colours::class_of_cause(*cause)), ("style", &style)],
                &"",
            );
        }
    });
    m.element("ul", &[("class", &"legend")], |m| {
        for (cause, share) in parts.iter().filter(|(_, share)| *share >= 0.0005) {
            m.element("li", &[], |m| {
                m.leaf("i", &[("class", &limit_colours::class_of_cause(*cause))], &"");
                m.text(&cause.name()).text(&" ").leaf("b", &[], &wording::whole_percent(*share));
            });
        }
    });
}
