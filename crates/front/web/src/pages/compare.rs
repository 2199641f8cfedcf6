//! Two kept results side by side.

use super::layout::{Page, Visit};
use super::run_file::{FIGURES, RunFile};
use super::texts;
use crate::query;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use report::html::Markup;

/// The results named by `a` and `b`, by ID or link; `read` reads the document of an ID.
///
/// # Errors
/// That of `read`.
pub(crate) fn compare_page<E>(
    given: &str,
    read: impl Fn(&str) -> Result<Option<Vec<u8>>, E>,
) -> Result<Response<Body>, E> {
    let pairs = query::pairs(given.as_bytes());
    let id = |name: &str| {
        let pair = pairs.iter().find(|(key, _)| key == name);
        pair.map(|(_, value)| id_of(value)).unwrap_or_default()
    };
    let (a, b) = (id("a"), id("b"));
    let run = |id: &str| -> Result<Option<RunFile>, E> {
        Ok(read(id)?.map(|text| RunFile::read(id, &text)))
    };
    let (first, second) = (run(&a)?, run(&b)?);
    let is_missing = !(a.is_empty() && b.is_empty()) && (first.is_none() || second.is_none());
    let status = if is_missing { StatusCode::NOT_FOUND } else { StatusCode::OK };
    let visit = Visit::default();
    let page = Page {
        visit: &visit,
        root: "",
        path: "compare",
        title: texts::COMPARE,
        lead: texts::COMPARE_LEAD,
        status,
    };
    Ok(page.response(|m| {
        if is_missing {
            m.element("div", &[("class", &"alert"), ("role", &"alert")], |m| {
                m.leaf("p", &[], &texts::COMPARE_MISSING);
            });
        }
        if let (Some(first), Some(second)) = (&first, &second) {
            table(m, first, second);
        }
        form(m, "compare", [&a, &b]);
    }))
}

/// The ID at the end of a link, or the ID.
fn id_of(value: &str) -> String {
    let last = value.trim().rsplit('/').next().unwrap_or_default();
    last.chars().take(32).filter(char::is_ascii_hexdigit).collect()
}

fn table(m: &mut Markup, first: &RunFile, second: &RunFile) {
    m.table("sheet", |m| {
        let heads = [first, second].map(|run| report::utc(run.at()));
        let [one, other] = heads;
        m.thead([texts::COMPARE_FIGURE, &one, &other, texts::COMPARE_DIFFERENCE]);
        m.element("tbody", &[], |m| {
            for figure in FIGURES {
                let values = [first, second].map(|run| (run.figure(figure), run.interval(figure)));
                let [(Some(one), before), (Some(other), after)] = values else { continue };
                let cell = |value, interval: Option<[f64; 2]>| {
                    let range = interval.map(|interval| format!(" ({})", figure.range(interval)));
                    figure.text(value) + &range.unwrap_or_default()
                };
                let said = match (before, after) {
                    (Some(before), Some(after)) => difference(one, other, before, after),
                    _ => texts::COMPARE_NO_INTERVAL.to_owned(),
                };
                m.row(&figure.name, [cell(one, before), cell(other, after), said]);
            }
            for (name, place) in texts::RESULT_GRADES {
                let [one, other] = [first, second].map(|run| run.text(place).unwrap_or("–"));
                m.row(&name, [one, other, ""]);
            }
        });
    });
    m.leaf("p", &[("class", &"note")], &texts::COMPARE_NOTE);
}

/// By how much the second value is higher or lower, if the intervals do not meet.
fn difference(one: f64, other: f64, before: [f64; 2], after: [f64; 2]) -> String {
    if before[0] <= after[1] && after[0] <= before[1] {
        return texts::COMPARE_CANNOT_TELL.to_owned();
    }
    let share = units::percent((other / one - 1.0).abs());
    match (one > 0.0, other > one) {
        (false, _) => texts::COMPARE_HIGHER.to_owned(),
        (true, true) => format!("{share} {}", texts::COMPARE_HIGHER),
        (true, false) => format!("{share} {}", texts::COMPARE_LOWER),
    }
}

/// The form for two results.
pub(super) fn form(m: &mut Markup, action: &str, [a, b]: [&str; 2]) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &texts::COMPARE);
        let attributes: report::html::Attributes<'_> =
            &[("method", &"get"), ("action", &action), ("class", &"card")];
        m.element("form", attributes, |m| {
            m.element("div", &[("class", &"fields")], |m| {
                for (name, label, value) in
                    [("a", texts::COMPARE_FIRST, a), ("b", texts::COMPARE_SECOND, b)]
                {
                    super::form::field(
                        m,
                        name,
                        label,
                        texts::COMPARE_HINT,
                        None,
                        |m, described| {
                            m.shape(
                                "input",
                                &[
                                    ("id", &name),
                                    ("name", &name),
                                    ("value", &value),
                                    ("autocomplete", &"off"),
                                    ("spellcheck", &"false"),
                                    ("aria-describedby", &described),
                                ],
                            );
                        },
                    );
                }
            });
            m.leaf("button", &[("type", &"submit"), ("class", &"primary")], &texts::COMPARE_RUN);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_intervals_that_do_not_meet_tell_results_apart() {
        let said = |before, after| difference(100.0, 150.0, before, after);
        assert_eq!(said([90.0, 110.0], [140.0, 160.0]), "50 % higher");
        assert_eq!(difference(100.0, 50.0, [90.0, 110.0], [40.0, 60.0]), "50 % lower");
        for (before, after) in [
            ([90.0, 145.0], [140.0, 160.0]),
            ([90.0, 140.0], [140.0, 160.0]),
            ([50.0, 300.0], [140.0, 160.0]),
            ([100.0, 110.0], [10.0, 160.0]),
        ] {
            assert_eq!(said(before, after), texts::COMPARE_CANNOT_TELL);
        }
    }

    #[test]
    fn links_are_ids() {
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(id_of(&format!(" https://speed.example/result/{id} ")), id);
        assert_eq!(id_of("\"><x y='"), "");
    }
}
