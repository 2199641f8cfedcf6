//! Text of other tools: counters and settings of a host, results of tests.

use super::form::{self, Entry, Form, Kind, Wrong};
use super::layout::{Page, Visit};
use super::texts;
use crate::query;
use crate::{Connection, guard};
use axum::body::{self, Body};
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, Response, StatusCode};
use host::address_key::AddressKey;
use host::lock::lock;
use longhaul::doctor::{self, DoctorReport, PastedReport, PastedRequest, PastedSettingsRequest};
use longhaul::explain::{self as explained_by, ExplainedTransfer, PastedResultRequest};
use longhaul::{Field, Problem};
use report::html::{self, Markup};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Bytes of a text.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// Bytes of a form: each byte of the text may take three, the fields a little.
pub(super) const MAX_BODY: usize = 3 * MAX_TEXT + 4096;
/// The time within which a form arrives.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Texts that are read at a time, of all and of an address.
const MAX_READ: u32 = 32;
const MAX_READ_PER_ADDRESS: u32 = 2;
/// Seconds after which a refused client may try again.
const RETRY_AFTER: u32 = 5;

/// Bytes of a transfer's name that a chart has room for.
const MAX_LABEL: usize = 16;

const TEXT: &str = "text";

/// The target of settings.
static TARGET: &[Entry] = &[
    Entry {
        name: "rate",
        key: "rate",
        field: Field::Rate,
        label: "Rate",
        hint: "For sysctl -a: the rate that the host has to sustain, as in 1gbit",
        kind: Kind::Rate,
        default: Some("1gbit"),
        example: "1gbit",
    },
    Entry {
        name: "rtt",
        key: "rtt",
        field: Field::Rtt,
        label: "RTT",
        hint: "For sysctl -a: the longest round-trip time, as in 100ms",
        kind: Kind::Rtt,
        default: Some("100ms"),
        example: "100ms",
    },
    Entry {
        name: "streams",
        key: "streams",
        field: Field::Streams,
        label: "Streams",
        hint: "For sysctl -a: connections that share the rate",
        kind: Kind::Count,
        default: Some("1"),
        example: "1",
    },
];

static NO_FIELDS: &[Entry] = &[];

/// One of the two pages.
#[derive(Debug)]
struct Paste {
    path: &'static str,
    title: &'static str,
    lead: &'static str,
    commands: &'static [(&'static str, &'static str)],
    label: &'static str,
    button: &'static str,
    fields: &'static [Entry],
    answer: fn(&str, &Form) -> Result<Read, Wrong>,
}

static CHECK: Paste = Paste {
    path: "check",
    title: texts::CHECK,
    lead: texts::CHECK_LEAD,
    commands: &texts::CHECK_COMMANDS,
    label: texts::CHECK_TEXT,
    button: texts::CHECK_RUN,
    fields: TARGET,
    answer: read_counters,
};

static EXPLAIN: Paste = Paste {
    path: "explain",
    title: texts::EXPLAIN,
    lead: texts::EXPLAIN_LEAD,
    commands: &texts::EXPLAIN_COMMANDS,
    label: texts::EXPLAIN_TEXT,
    button: texts::EXPLAIN_RUN,
    fields: NO_FIELDS,
    answer: read_result,
};

/// What a text says.
#[derive(Debug)]
enum Read {
    Counters(Box<PastedReport>),
    Settings(Box<DoctorReport>),
    Transfers(Vec<ExplainedTransfer>),
}

pub(super) async fn check(visit: Visit) -> Response<Body> {
    CHECK.page(&visit, &Form::of(CHECK.fields, &[]), "", None)
}

pub(super) async fn explain(visit: Visit) -> Response<Body> {
    EXPLAIN.page(&visit, &Form::of(EXPLAIN.fields, &[]), "", None)
}

pub(super) async fn checked(request: Request) -> Response<Body> {
    posted(&CHECK, request).await
}

pub(super) async fn explained(request: Request) -> Response<Body> {
    posted(&EXPLAIN, request).await
}

async fn posted(paste: &'static Paste, request: Request) -> Response<Body> {
    let key = request.extensions().get::<Connection>().map(Connection::key);
    let Some(_reading) = TEXTS.begin(key) else {
        return guard::too_many(texts::BUSY, RETRY_AFTER);
    };
    let visit = Visit::of(request.uri().query().unwrap_or_default());
    let body = match timeout(MAX_TIME, body_of(request)).await {
        Err(_) => return guard::refused(StatusCode::REQUEST_TIMEOUT, texts::TOO_SLOW),
        Ok(Err((status, why))) => return guard::refused(status, why),
        Ok(Ok(body)) => body,
    };
    let answered = spawn_blocking(move || paste.answered(&visit, &body)).await;
    answered.unwrap_or_else(|_| {
        let why = "the text could not be read";
        guard::refused(StatusCode::INTERNAL_SERVER_ERROR, why)
    })
}

async fn body_of(request: Request) -> Result<body::Bytes, (StatusCode, &'static str)> {
    check_headers(request.headers())?;
    let too_large = (StatusCode::PAYLOAD_TOO_LARGE, texts::TOO_LARGE);
    body::to_bytes(request.into_body(), MAX_BODY).await.map_err(|_| too_large)
}

fn check_headers(headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, texts::ENCODED));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        Ok(())
    } else {
        Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, texts::NOT_A_FORM))
    }
}

/// Requests that are answered where it may block, in all and of an address: few at a time.
pub(crate) struct Readers {
    all: u32,
    per_address: u32,
    held: LazyLock<Mutex<HashMap<Option<AddressKey>, u32>>>,
}

/// Posted texts have places of their own: their bodies may arrive slowly.
static TEXTS: Readers = Readers::new(MAX_READ, MAX_READ_PER_ADDRESS);

impl Readers {
    pub(crate) const fn new(all: u32, per_address: u32) -> Self {
        Readers { all, per_address, held: LazyLock::new(Mutex::default) }
    }

    /// Takes a place; `None` if there is none.
    pub(crate) fn begin(&'static self, key: Option<AddressKey>) -> Option<Reading> {
        let mut held = lock(&self.held);
        let total: u32 = held.values().sum();
        let own = held.get(&key).copied().unwrap_or_default();
        if total >= self.all || own >= self.per_address {
            return None;
        }
        held.insert(key, own + 1);
        Some(Reading { of: self, key })
    }
}

/// A place that is taken until it is dropped.
pub(crate) struct Reading {
    of: &'static Readers,
    key: Option<AddressKey>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut held = lock(&self.of.held);
        if let Some(own) = held.get_mut(&self.key) {
            *own = own.saturating_sub(1);
        }
        held.retain(|_, count| *count > 0);
    }
}

impl Paste {
    /// The page that answers a form.
    fn answered(&self, visit: &Visit, body: &[u8]) -> Response<Body> {
        let pairs = query::pairs(body);
        let text = pairs.iter().find(|(name, _)| name == TEXT).map_or("", |(_, text)| text);
        if text.len() > MAX_TEXT {
            return guard::refused(StatusCode::PAYLOAD_TOO_LARGE, texts::TOO_LARGE);
        }
        let form = Form::of(self.fields, &pairs);
        let read = (self.answer)(text, &form);
        self.page(visit, &form, text, Some(&read))
    }

    fn page(
        &self,
        visit: &Visit,
        form: &Form,
        text: &str,
        read: Option<&Result<Read, Wrong>>,
    ) -> Response<Body> {
        let wrong = read.and_then(|read| read.as_ref().err());
        let status =
            if wrong.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        let Paste { path, title, lead, .. } = *self;
        let page = Page { visit, root: "", path, title, lead, status };
        page.response(|m| {
            if let Some(wrong) = wrong {
                form::summary(m, wrong);
            }
            if let Some(Ok(read)) = read {
                m.element("div", &[("class", &"outcome")], |m| outcome(m, read));
            }
            self.form(m, &visit.link(self.path), form, text, wrong);
        })
    }

    fn form(&self, m: &mut Markup, action: &str, form: &Form, text: &str, wrong: Option<&Wrong>) {
        let attributes: html::Attributes<'_> =
            &[("method", &"post"), ("action", &action), ("class", &"card paste")];
        m.element("form", attributes, |m| {
            m.element("dl", &[("class", &"commands")], |m| {
                for (command, what) in self.commands {
                    m.element("div", &[], |m| {
                        m.element("dt", &[], |m| {
                            m.leaf("code", &[], command);
                        });
                        m.leaf("dd", &[], what);
                    });
                }
            });
            let own = wrong.filter(|wrong| wrong.name == TEXT);
            form::field(m, TEXT, self.label, texts::NOT_KEPT, own, |m, described| {
                let attributes: html::Attributes<'_> = &[
                    ("id", &TEXT),
                    ("name", &TEXT),
                    ("rows", &12),
                    ("spellcheck", &"false"),
                    ("autocomplete", &"off"),
                    ("aria-describedby", &described),
                    ("aria-invalid", &own.is_some()),
                ];
                m.element("textarea", attributes, |m| {
                    // A parser drops the first line feed of a textarea.
                    m.raw("\n").lines(text);
                });
            });
            form.write(m, wrong);
            m.leaf("button", &[("type", &"submit"), ("class", &"primary")], &self.button);
        });
    }
}

fn read_counters(text: &str, form: &Form) -> Result<Read, Wrong> {
    let wrong = |problem: Problem| wrong(form, &problem);
    let text = text.to_owned();
    if !doctor::is_sysctl(&text) {
        let report = doctor::pasted(&PastedRequest { text }).map_err(wrong)?;
        return Ok(Read::Counters(Box::new(report)));
    }
    let mut request = form.request()?;
    request["text"] = text.into();
    let request: PastedSettingsRequest = serde_json::from_value(request)
        .map_err(|error| Wrong { name: "", message: error.to_string() })?;
    let report = doctor::pasted_settings(&request).map_err(wrong)?;
    Ok(Read::Settings(Box::new(report)))
}

fn read_result(text: &str, form: &Form) -> Result<Read, Wrong> {
    let request = PastedResultRequest { text: text.to_owned() };
    let transfers = explained_by::pasted(&request).map_err(|problem| wrong(form, &problem))?;
    Ok(Read::Transfers(transfers))
}

/// A problem at its field: the text, unless another one removes it.
fn wrong(form: &Form, problem: &Problem) -> Wrong {
    let line = problem.line(|field| field.to_string());
    let wrong = form.wrong(&problem.fields(), &line);
    Wrong { name: if wrong.name.is_empty() { TEXT } else { wrong.name }, ..wrong }
}

fn outcome(m: &mut Markup, read: &Read) {
    match read {
        Read::Counters(report) => html::pasted(m, report),
        Read::Settings(report) => html::checks(m, report),
        Read::Transfers(transfers) => findings(m, transfers),
    }
}

fn findings(m: &mut Markup, transfers: &[ExplainedTransfer]) {
    // A chart has room for `download`, but not for both ends of a connection.
    let label = |(index, one): (usize, &ExplainedTransfer)| match (transfers.len(), &one.name) {
        (_, name) if (1..=MAX_LABEL).contains(&name.len()) => name.clone(),
        (1, _) => "transfer".to_owned(),
        _ => format!("transfer {}", index + 1),
    };
    let labels: Vec<String> = transfers.iter().enumerate().map(label).collect();
    let runs = transfers.iter().zip(&labels);
    let runs =
        runs.map(|(one, label)| explained_by::page_run(label, &one.measurement, &one.finding));
    let page = html::Page { runs: runs.collect(), ..html::Page::default() };
    html::sections(m, &page);
    for one in transfers {
        // The card of the finding has the next command.
        html::remedies(m, &one.finding.remedies, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_two_texts_at_a_time() {
        let key = |last| Some(AddressKey::of([192, 0, 2, last].into()));
        static SOME: Readers = Readers::new(4, 2);
        let first = SOME.begin(key(1)).unwrap();
        let second = SOME.begin(key(1)).unwrap();
        assert!(SOME.begin(key(1)).is_none());
        let other = SOME.begin(key(2));
        assert!(other.is_some());
        drop(first);
        let third = SOME.begin(key(1));
        assert!(third.is_some() && SOME.begin(key(1)).is_none());
        drop((second, third, other));
        let reading = SOME.held.lock().unwrap();
        assert!(!reading.contains_key(&key(1)) && !reading.contains_key(&key(2)));
    }
}
