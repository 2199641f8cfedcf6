//! A result that its visitor has kept, as a page without scripts and as CSV.

use super::layout::{Page, Visit};
use super::run_file::{FIGURES, RunFile, Step};
use super::texts;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use diagnose::explain;
use longhaul::explain::page_run;
use record::{Finding, Measurement};
use report::html::{self, Markup};
use serde_json::{Value, from_value};
use std::fmt::Write;

/// The page of a result; `measurement` reads that of a step.
pub(crate) fn result_page(
    run: &RunFile,
    measurement: impl Fn(u32) -> Option<Vec<u8>>,
) -> Response<Body> {
    let visit = Visit::default();
    let title = format!("{} {}", texts::RESULT, report::utc(run.at()));
    let page = Page {
        visit: &visit,
        root: "../",
        path: "result",
        title: &title,
        lead: texts::RESULT_LEAD,
        status: StatusCode::OK,
    };
    page.response(|m| {
        invalid(m, run);
        figures(m, run);
        if let Some((step, measured)) = run.explained().and_then(|step| {
            let text = measurement(step.number())?;
            Some((step, serde_json::from_slice::<Measurement>(&text).ok()?))
        }) {
            transfer(m, &step, &measured);
        }
        found(m, run);
        sentences(m, run);
        steps(m, run);
        differs(m, run);
        files(m, run);
    })
}

fn invalid(m: &mut Markup, run: &RunFile) {
    let reasons = run.texts("/result/invalid_because");
    if reasons.is_empty() {
        return;
    }
    m.element("div", &[("class", &"alert"), ("role", &"alert")], |m| {
        m.leaf("h2", &[], &texts::RESULT_INVALID);
        m.element("ul", &[], |m| {
            for reason in reasons {
                m.leaf("li", &[], &reason);
            }
        });
    });
}

fn figures(m: &mut Markup, run: &RunFile) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &texts::RESULT_FIGURES);
        m.table("sheet", |m| {
            m.thead(texts::RESULT_HEADS);
            m.element("tbody", &[], |m| {
                for figure in FIGURES {
                    let Some(value) = run.figure(figure) else { continue };
                    let interval = run.interval(figure).map(|interval| figure.range(interval));
                    let interval = interval.unwrap_or_else(|| "–".to_owned());
                    m.row(&figure.name, [figure.text(value), interval]);
                }
                for (name, place) in texts::RESULT_GRADES {
                    if let Some(text) = run.text(place) {
                        m.row(&name, [text.to_owned(), "–".to_owned()]);
                    }
                }
            });
        });
    });
}

/// The transfer whose limit is told, with its curves.
fn transfer(m: &mut Markup, step: &Step<'_>, measured: &Measurement) {
    let finding = step.value.get("finding").cloned().map(from_value::<Finding>);
    let mut finding = finding.and_then(Result::ok).unwrap_or_else(|| explain(measured));
    // A command of the command line.
    finding.next = None;
    let label = step.kind();
    let page =
        html::Page { runs: vec![page_run(label, measured, &finding)], ..html::Page::default() };
    html::sections(m, &page);
}

/// What experiments showed, what would help, and by how much.
fn found(m: &mut Markup, run: &RunFile) {
    let experiments = run.texts("/result/finding/experiments");
    if !experiments.is_empty() {
        m.element("section", &[], |m| {
            m.leaf("h2", &[], &texts::RESULT_EXPERIMENTS);
            m.element("ul", &[("class", &"findings")], |m| {
                for experiment in experiments {
                    m.leaf("li", &[], &experiment);
                }
            });
        });
    }
    remedies(m, run, texts::RESULT_REMEDIES, "/result/remedies");
    remedies(m, run, texts::RESULT_UPLOAD_REMEDIES, "/result/upload_remedies");
}

fn remedies(m: &mut Markup, run: &RunFile, heading: &'static str, place: &str) {
    let remedies = run.list(place);
    if remedies.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &heading);
        for remedy in remedies {
            let text = |name: &str| remedy.get(name).and_then(super::run_file::text);
            m.element("article", &[("class", &"remedy")], |m| {
                let place = match text("where") {
                    Some("server") => texts::RESULT_AT_SERVER,
                    _ => texts::RESULT_AT_VISITOR,
                };
                m.leaf("h3", &[], &place);
                if let Some(line) = text("line") {
                    m.leaf("pre", &[], &line);
                }
                m.leaf("p", &[("class", &"note")], &text("why").unwrap_or_default());
                let gain = remedy.get("gain");
                let factor = gain.and_then(|gain| gain.get("factor")?.as_f64());
                if let Some(factor) = factor.filter(|factor| (0.0..1e6).contains(factor)) {
                    let is_measured = gain.and_then(|gain| gain.get("basis")?.as_str());
                    let basis = match is_measured {
                        Some("measured") => texts::RESULT_GAIN_MEASURED,
                        _ => texts::RESULT_GAIN,
                    };
                    m.leaf("p", &[("class", &"note")], &format!("{basis}: {factor:.1} ×"));
                }
            });
        }
    });
}

/// What else the server says in words.
fn sentences(m: &mut Markup, run: &RunFile) {
    for (heading, places) in texts::RESULT_SENTENCES {
        let told = places.iter().filter_map(|(name, place)| Some((*name, run.text(place)?)));
        let told: Vec<(&str, &str)> = told.collect();
        if told.is_empty() {
            continue;
        }
        m.element("section", &[], |m| {
            m.leaf("h2", &[], &heading);
            for (name, sentence) in told {
                let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
                m.leaf("p", &[], &format!("{name}{sentence}"));
            }
        });
    }
}

fn steps(m: &mut Markup, run: &RunFile) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &texts::RESULT_STEPS);
        m.table("sheet", |m| {
            m.thead(texts::RESULT_STEP_HEADS);
            m.element("tbody", &[], |m| {
                for step in run.steps() {
                    let [rate, rtt] = step.cells();
                    let sentence = step.text("sentence").unwrap_or("–").to_owned();
                    m.row(&step.name(), [rate, rtt, sentence]);
                }
            });
        });
    });
}

fn differs(m: &mut Markup, run: &RunFile) {
    let rows = run.list("/result/differs");
    if rows.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &texts::RESULT_DIFFERS);
        m.table("sheet", |m| {
            m.thead(texts::RESULT_DIFFERS_HEADS);
            m.element("tbody", &[], |m| {
                for row in rows {
                    let text =
                        |name: &str| row.get(name).and_then(super::run_file::text).unwrap_or("–");
                    let rate = row.get("rate").and_then(Value::as_f64).map(super::run_file::rate);
                    let rate = rate.unwrap_or_else(|| "–".to_owned());
                    m.row(&text("method"), [rate, text("rule").to_owned()]);
                }
            });
        });
    });
}

/// The files of the result, and the form that compares it with another one.
fn files(m: &mut Markup, run: &RunFile) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &texts::RESULT_FILES);
        m.leaf("p", &[("class", &"note")], &texts::RESULT_FILES_NOTE);
        m.element("ul", &[], |m| {
            let id = &run.id;
            let measured = run.steps().filter(Step::is_measured);
            let measured = measured.map(|step| {
                let name = format!("measurement-{}.json", step.number());
                (format!("{id}/{name}"), format!("{name}: {}", step.name()))
            });
            let own = [(format!("{id}.json"), "JSON"), (format!("{id}.csv"), "CSV")];
            let own = own.map(|(address, name)| (address, name.to_owned()));
            for (address, name) in own.into_iter().chain(measured) {
                m.element("li", &[], |m| {
                    m.leaf("a", &[("href", &address)], &name);
                });
            }
        });
    });
    super::compare::form(m, "../compare", [&run.id, ""]);
}

const HEADS: &str =
    "row,step,kind,flows,experiment,flow,t_s,bytes,rtt_ms,cwnd_bytes,retransmits\r\n";

impl RunFile {
    /// Every sample of every flow, and every probe.
    pub(crate) fn csv(&self, measurement: impl Fn(u32) -> Option<Vec<u8>>) -> String {
        let mut csv = HEADS.to_owned();
        for step in self.steps() {
            let begin = format!(
                "{},{},{},{}",
                step.number(),
                step.kind(),
                step.flows(),
                step.experiment().unwrap_or_default()
            );
            for (row, probes) in [("probe", "own"), ("loaded-probe", "loaded")] {
                for (t_s, rtt_ms) in step.probes(probes) {
                    let _ = write!(csv, "{row},{begin},,{t_s},,{rtt_ms},,\r\n");
                }
            }
            let text = measurement(step.number()).unwrap_or_default();
            let Ok(measured) = serde_json::from_slice::<Measurement>(&text) else { continue };
            for stream in &measured.streams {
                let id = stream.id;
                for s in &stream.sender {
                    let _ = write!(
                        csv,
                        "sample,{begin},{id},{},{},{},{},{}\r\n",
                        s.t_s,
                        s.delivered_bytes,
                        f64::from(s.rtt_us) / 1e3,
                        s.cwnd_bytes,
                        s.retransmits
                    );
                }
                for s in stream.receiver.iter().filter(|_| stream.sender.is_empty()) {
                    let rtt = s.rtt_us.map(|us| (f64::from(us) / 1e3).to_string());
                    let (t_s, bytes, rtt) = (s.t_s, s.received_bytes, rtt.unwrap_or_default());
                    let _ = write!(csv, "sample,{begin},{id},{t_s},{bytes},{rtt},,\r\n");
                }
            }
        }
        csv
    }
}
