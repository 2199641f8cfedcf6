//! Counters and connections read from the text of other tools.

use super::header::{capital, sentence};
use super::markup::Markup;
use crate::wording;
use ::doctor::{PastedConnection, PastedCounter, PastedReport};
use units::percent;

/// Connections shown.
const MAX_CONNECTIONS: usize = 20;

/// Counters with value, share and meaning, then the connections.
pub fn pasted(m: &mut Markup, report: &PastedReport) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &format!("Read: {}", report.format));
        let shown: Vec<_> = report.counters.iter().filter(|one| one.value > 0).collect();
        if !shown.is_empty() {
            counters(m, &shown);
        }
        for note in notes(report, report.counters.len() - shown.len()) {
            m.leaf("p", &[("class", &"note")], &sentence(&note));
        }
    });
    for one in report.connections.iter().take(MAX_CONNECTIONS) {
        m.element("section", &[], |m| connection(m, one));
    }
}

fn notes(report: &PastedReport, zeros: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if zeros > 0 {
        notes.push(format!("{} at zero", wording::counted(zeros, "more counter")));
    }
    let rest = report.connections.len().saturating_sub(MAX_CONNECTIONS);
    if rest > 0 {
        notes.push(format!("{} not shown", wording::counted(rest, "more connection")));
    }
    if report.unread_lines > 0 {
        let lines = wording::counted(report.unread_lines, "more line");
        notes.push(format!("{lines} not explained"));
    }
    notes.extend(report.notes.iter().cloned());
    notes
}

fn counters(m: &mut Markup, counters: &[&PastedCounter]) {
    m.table("sheet counters", |m| {
        m.thead(["Counter", "Value", "Share", "Meaning and remedy"]);
        m.element("tbody", &[], |m| {
            for one in counters {
                m.element("tr", &[], |m| {
                    m.leaf("th", &[("scope", &"row")], &one.name);
                    let value = wording::grouped(one.value);
                    m.leaf("td", &[("class", &"right")], &value);
                    let share = match (one.share, &one.of) {
                        (Some(share), Some(of)) => format!("{} of {of}", percent(share)),
                        _ => String::new(),
                    };
                    m.leaf("td", &[], &share);
                    m.element("td", &[], |m| {
                        m.text(&capital(&one.meaning));
                        if let Some(remedy) = &one.remedy {
                            m.leaf("p", &[("class", &"fix")], &capital(remedy));
                        }
                    });
                });
            }
        });
    });
}

fn connection(m: &mut Markup, one: &PastedConnection) {
    m.leaf("h2", &[], &format!("{} → {}", one.local, one.peer));
    let rows = [
        ("congestion control", one.congestion.clone()),
        ("RTT", one.rtt_ms.map(|rtt| format!("{rtt:.1} ms"))),
        ("minimum RTT", one.min_rtt_ms.map(|rtt| format!("{rtt:.1} ms"))),
        ("cwnd", one.cwnd_segments.map(|cwnd| format!("{cwnd} segments"))),
        ("cwnd / RTT", one.cwnd_rate_bps.map(|rate| rate.to_string())),
        ("delivery rate", one.delivery_rate_bps.map(|rate| rate.to_string())),
        ("sent", one.sent_bytes.map(|sent| sent.to_string())),
        ("retransmitted", one.retransmitted_share.map(percent)),
        ("received", one.received_bytes.map(|received| received.to_string())),
    ];
    m.element("dl", &[("class", &"numbers")], |m| {
        for (label, value) in rows {
            let Some(value) = value else { continue };
            m.element("div", &[], |m| {
                m.leaf("dt", &[], &label);
                m.leaf("dd", &[], &value);
            });
        }
    });
    m.element("ul", &[("class", &"findings")], |m| {
        for finding in &one.findings {
            m.leaf("li", &[], &sentence(finding));
        }
    });
}
