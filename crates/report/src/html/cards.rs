//! One card a run: the verdict, its sentence, and the numbers it rests on.

use super::{
    Page, Run, curves,
    head::{capital, class},
    markup::{Markup, Px},
};
use crate::words::{self, Cause};
use record::{Finding, Shares};

pub(super) fn write(m: &mut Markup, page: &Page<'_>) {
    if page.runs.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"What limited it");
        m.element("div", &[("class", if page.runs.len() > 1 { &"pair" } else { &"alone" })], |m| {
            for (index, run) in page.runs.iter().enumerate() {
                m.element("article", &[("class", &"card")], |m| card(m, page, index, run));
            }
        });
    });
}

fn card(m: &mut Markup, page: &Page<'_>, index: usize, run: &Run<'_>) {
    let finding = run.finding;
    m.element("p", &[("class", &"card-run")], |m| {
        m.leaf("span", &[("class", &curves::run_class(page, index))], &run.label);
        let chip = format!("chip {}", class(words::tone(finding.limit)));
        m.leaf("span", &[("class", &chip)], &words::limit_with_doubt(finding));
    });
    m.leaf("h3", &[], &capital(words::verdict(finding.limit)));
    m.leaf("p", &[("class", &"sentence")], &finding.sentence);
    m.element("div", &[("class", &"evidence")], |m| evidence(m, page, index, run));
}

/// What the verdict rests on; at the foot, so that neighbours' evidence lines up.
fn evidence(m: &mut Markup, page: &Page<'_>, index: usize, run: &Run<'_>) {
    let finding = run.finding;
    numbers(m, finding);
    if let Some(equation) = &finding.equation {
        m.leaf("p", &[("class", &"equation")], equation);
    }
    curves::own_scale(m, page, index, run);
    match &finding.shares {
        Some(shares) => stacked(m, shares),
        None => {
            let says = format!("{}, so time cannot be told by cause.", capital(words::NO_CLOCKS));
            m.leaf("p", &[("class", &"empty")], &says);
        }
    }
}

fn numbers(m: &mut Markup, finding: &Finding) {
    let dash = || "–".to_owned();
    let predicted = finding.predicted_bps.map_or_else(dash, |p| p.to_string());
    let ratio = words::of_predicted(finding).map_or_else(dash, words::percent);
    let rtt = finding.loaded_rtt.or(finding.min_rtt).map_or_else(dash, |r| r.to_string());
    m.element("dl", &[("class", &"numbers")], |m| {
        for (label, value) in [
            ("achieved", finding.throughput_bps.to_string()),
            ("predicted", predicted),
            ("of predicted", ratio),
            ("loaded RTT", rtt),
        ] {
            m.element("div", &[], |m| {
                m.leaf("dt", &[], &label);
                m.leaf("dd", &[], &value);
            });
        }
    });
}

/// Time by cause: one bar, and every cause with its share in words.
fn stacked(m: &mut Markup, shares: &Shares) {
    let parts = words::causes(shares);
    let said: Vec<String> = parts
        .iter()
        .filter(|(_, share)| *share >= 0.0005)
        .map(|(cause, share)| format!("{} {}", cause.name(), words::percent(*share)))
        .collect();
    m.leaf("p", &[("class", &"bar-title")], &"Where the time went");
    let label = said.join(", ");
    m.element("div", &[("class", &"bar"), ("role", &"img"), ("aria-label", &label)], |m| {
        for (cause, share) in parts.iter().filter(|(_, share)| *share >= 0.0005) {
            let style = format!("flex-grow:{}", Px(share * 1000.0));
            m.leaf("span", &[("class", &cause_class(*cause)), ("style", &style)], &"");
        }
    });
    m.element("ul", &[("class", &"legend")], |m| {
        for (cause, share) in parts.iter().filter(|(_, share)| *share >= 0.0005) {
            m.element("li", &[], |m| {
                m.leaf("i", &[("class", &cause_class(*cause))], &"");
                m.text(&cause.name()).text(&" ").leaf("b", &[], &words::percent(*share));
            });
        }
    });
}

fn cause_class(cause: Cause) -> &'static str {
    match cause {
        Cause::ReceiveWindow => "c-rwnd",
        Cause::SendBuffer => "c-sndbuf",
        Cause::Network => "c-network",
        Cause::Application => "c-app",
    }
}
