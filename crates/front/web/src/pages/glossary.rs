//! The glossary of the documentation as a page, with an anchor for each term.

use super::layout::{Page, Visit};
use super::{calculators, texts};
use axum::body::Body;
use axum::http::{Response, StatusCode};
use report::html::Markup;
use std::collections::BTreeMap;

/// A table in Markdown: `| term | meaning |`.
const SOURCE: &str = include_str!("../../../../../docs/reference/glossary.md");

/// The terms and their meanings, in the order of the source.
pub(super) fn terms() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = SOURCE.lines().filter_map(|line| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        row.split_once(" | ")
    });
    rows.filter(|row| *row != ("term", "meaning"))
}

/// The anchor of a term: `congestion-window-cwnd`.
pub(super) fn anchor(term: &str) -> String {
    let words = term.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// The heading that a term is below: its first letter, or `0–9`.
fn letter(term: &str) -> String {
    match term.chars().next() {
        Some(c) if c.is_alphabetic() => c.to_uppercase().collect(),
        _ => "0–9".to_owned(),
    }
}

pub(super) async fn page(visit: Visit) -> Response<Body> {
    let page = Page {
        visit: &visit,
        root: "",
        path: "glossary",
        title: texts::GLOSSARY,
        lead: texts::GLOSSARY_LEAD,
        status: StatusCode::OK,
    };
    let mut letters: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
    for (term, meaning) in terms() {
        letters.entry(letter(term)).or_default().push((term, meaning));
    }
    let id = |letter: &str| format!("letter-{}", anchor(letter));
    page.response(|m| {
        m.element("nav", &[("class", &"letters"), ("aria-label", &texts::LETTERS)], |m| {
            for letter in letters.keys() {
                m.leaf("a", &[("href", &format!("#{}", id(letter)))], letter).text(&" ");
            }
        });
        for (letter, terms) in &letters {
            m.element("section", &[("class", &"terms")], |m| {
                m.leaf("h2", &[("id", &id(letter))], letter);
                m.element("dl", &[], |m| {
                    for (term, meaning) in terms {
                        entry(m, &visit, term, meaning);
                    }
                });
            });
        }
    })
}

fn entry(m: &mut Markup, visit: &Visit, term: &str, meaning: &str) {
    let id = anchor(term);
    m.element("div", &[("id", &id)], |m| {
        m.element("dt", &[], |m| {
            m.leaf("a", &[("href", &format!("#{id}"))], &term);
        });
        m.element("dd", &[], |m| inline(m, visit, meaning));
    });
}

/// Markdown within a line: code, emphasis, and links, of which those to calculators lead to
/// their pages; other pages of the documentation are not served.
fn inline(m: &mut Markup, visit: &Visit, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, marked) = rest.split_at(at);
        m.text(&before);
        let inside = &marked[1..];
        let end = match marked.as_bytes().first() {
            Some(b'`') => inside.split_once('`').map(|(code, after)| {
                m.leaf("code", &[], &code);
                after
            }),
            Some(b'*') => inside.split_once('*').map(|(words, after)| {
                m.leaf("em", &[], &words);
                after
            }),
            _ => inside.split_once("](").and_then(|(words, target)| {
                let (target, after) = target.split_once(')')?;
                link(m, visit, words, target);
                Some(after)
            }),
        };
        rest = end.unwrap_or_else(|| {
            m.text(&&marked[..1]);
            inside
        });
    }
    m.text(&rest);
}

fn link(m: &mut Markup, visit: &Visit, words: &str, target: &str) {
    let name = words.strip_prefix("calc ").unwrap_or(words);
    match calculators::of(name).filter(|_| target.contains("calculators.md")) {
        Some(calculator) => {
            let href = visit.link(&format!("calc/{}", calculator.name));
            m.element("a", &[("href", &href)], |m| inline(m, visit, words));
        }
        None => inline(m, visit, words),
    }
}
