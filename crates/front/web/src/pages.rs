//! The pages beside the speed test: calculators, glossary, and text of other tools. All are
//! rendered here, of the library's documents, and work without scripts.
//!
//! | page | module |
//! |---|---|
//! | `/calc`, `/calc/NAME` | [`calc`], the calculators' fields [`calculators`] |
//! | `/glossary` | [`glossary`] |
//! | `/check`, `/explain` | [`paste`] |
//! | `/result/ID`, `/compare`, for [`crate::history`] | [`result`], [`compare`], [`run_file`] |
//! | what all share | [`layout`], [`form`], [`crate::query`], [`texts`] |

mod calc;
mod calculators;
mod compare;
mod form;
mod glossary;
mod layout;
mod paste;
mod result;
mod run_file;
#[cfg(test)]
mod tests;
mod texts;

use crate::assets::{self, Prepared};
use axum::Router;
use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::get;
use std::sync::LazyLock;

pub(crate) use compare::compare_page;
pub(crate) use paste::Readers;
pub(crate) use result::result_page;
pub(crate) use run_file::RunFile;

/// The style sheet of [`report::html`]'s sections.
const REPORT_SHEET: &str = "/report.css";

/// The routes of the pages.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/calc", get(calc::list))
        .route("/calc/{name}", get(calc::one))
        .route("/glossary", get(glossary::page))
        .route("/check", get(paste::check).post(paste::checked))
        .route("/explain", get(paste::explain).post(paste::explained))
        .route(REPORT_SHEET, get(report_sheet))
}

/// Returns true for the paths of [`routes`].
pub(crate) fn is_page(path: &str) -> bool {
    let paths = ["/calc", "/glossary", "/check", "/explain", REPORT_SHEET];
    paths.contains(&path) || path.starts_with("/calc/")
}

async fn report_sheet(headers: HeaderMap) -> Response<Body> {
    static SHEET: LazyLock<(String, Prepared)> = LazyLock::new(|| {
        let sheet = report::html::style_sheet();
        let prepared = assets::prepare(sheet.as_bytes());
        (sheet, prepared)
    });
    let (sheet, prepared) = &*SHEET;
    assets::served(sheet.as_bytes(), "text/css; charset=utf-8", prepared, &headers)
}

/// A page of [`layout`].
fn html(status: StatusCode, text: String) -> Response<Body> {
    answer(status, "text/html; charset=utf-8", text)
}

fn answer(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
