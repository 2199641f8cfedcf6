//! The calculators' pages.

use super::calculators::{self, CALCULATORS, Calculator};
use super::form::{self, Form, Wrong};
use super::layout::{Page, Visit};
use super::texts;
use crate::query;
use axum::body::Body;
use axum::extract::{Path, RawQuery};
use axum::http::{Response, StatusCode};
use longhaul::calc::{self, BdpQuestion, BdpReport, CalcRequest, CalcResult};
use longhaul::{Fault, Problem};
use report::html::{self, Markup};
use serde_json::{Value, json};

/// What a calculator computes.
#[derive(Debug)]
pub(super) enum Answer {
    Sheet(Box<CalcResult>),
    Bdp(Box<BdpReport>),
}

/// The list of the calculators.
pub(super) async fn list(visit: Visit) -> Response<Body> {
    let page = Page {
        visit: &visit,
        root: "",
        path: "calc",
        title: texts::CALCULATORS,
        lead: texts::CALCULATORS_LEAD,
        status: StatusCode::OK,
    };
    page.response(|m| {
        m.element("ul", &[("class", &"cards")], |m| {
            for one in CALCULATORS {
                m.element("li", &[], |m| {
                    m.leaf(
                        "a",
                        &[("href", &visit.link(&format!("calc/{}", one.name)))],
                        &one.title,
                    );
                    m.leaf("p", &[], &one.question);
                });
            }
        });
    })
}

/// The page of one.
pub(super) async fn one(
    visit: Visit,
    Path(name): Path<String>,
    RawQuery(given): RawQuery,
) -> Response<Body> {
    let Some(calculator) = calculators::of(&name) else {
        return crate::guard::refused(StatusCode::NOT_FOUND, "there is no such calculator");
    };
    let form = Form::of(calculator.fields, &query::pairs(given.unwrap_or_default().as_bytes()));
    let answer = answer(calculator, &form);
    let page = Page {
        visit: &visit,
        root: "../",
        path: "calc",
        title: calculator.title,
        lead: calculator.question,
        status: if answer.is_ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY },
    };
    page.response(|m| content(m, &visit, &form, answer.as_ref()))
}

fn content(m: &mut Markup, visit: &Visit, form: &Form, answer: Result<&Answer, &Wrong>) {
    let wrong = answer.err();
    if let Some(wrong) = wrong {
        form::summary(m, wrong);
    }
    m.element("form", &[("method", &"get"), ("class", &"card"), ("novalidate", &"")], |m| {
        visit.hidden(m);
        form.write(m, wrong);
        m.leaf("button", &[("type", &"submit"), ("class", &"primary")], &texts::COMPUTE);
    });
    if form.is_example {
        m.leaf("p", &[("class", &"note")], &texts::EXAMPLE);
    }
    match answer {
        Ok(Answer::Sheet(result)) => html::calc_result(m, result),
        Ok(Answer::Bdp(result)) => html::bdp_report(m, result),
        Err(_) => {}
    }
    m.element("p", &[("class", &"back")], |m| {
        m.leaf("a", &[("href", &visit.link("../calc"))], &texts::ALL_CALCULATORS);
    });
}

/// The answer to a form.
pub(super) fn answer(calculator: &Calculator, form: &Form) -> Result<Answer, Wrong> {
    let mut request = form.request()?;
    for (key, value) in calculator.fixed {
        if request.get(key).is_none() {
            request[*key] = serde_json::from_str(value).unwrap_or(json!(value));
        }
    }
    if calculator.variant.is_empty() {
        let question: BdpQuestion = typed(request)?;
        let result = calc::compute_bdp(&question);
        let result = result.map_err(|error| wrong(form, error.field(), &error))?;
        return Ok(Answer::Bdp(Box::new(result)));
    }
    let request: CalcRequest = typed(json!({ calculator.variant: request }))?;
    let result = calc::compute(&request);
    let result = result.map_err(|error| wrong(form, error.field(), &error))?;
    Ok(Answer::Sheet(Box::new(result)))
}

fn wrong(form: &Form, field: longhaul::Field, error: &impl std::fmt::Display) -> Wrong {
    let problem = Problem::new(Fault::Request, error);
    let fields: Vec<_> = problem.fields().into_iter().chain([field]).collect();
    form.wrong(&fields, &problem.message)
}

/// A request of the library. The table of the calculators has its fields, so this cannot fail.
fn typed<T: serde::de::DeserializeOwned>(request: Value) -> Result<T, Wrong> {
    serde_json::from_value(request).map_err(|error| Wrong { name: "", message: error.to_string() })
}
