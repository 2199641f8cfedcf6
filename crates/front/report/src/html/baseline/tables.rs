//! The tables of a baseline's page.

use crate::calendar;
use crate::html::header::{capital, class};
use crate::html::markup::Markup;
use crate::wording::{self, Tone};
use record::{
    BaselineComparison, BaselineDifference, BaselineLink, BaselineReport, Check, ServerChoice,
    Verdict,
};

/// Servers of a list that are shown; JSON has all.
const MAX_SERVERS: usize = 60;

/// A table whose rows become blocks on a narrow screen. `rows` are the texts of each row, the
/// first of which names it; `tone` that of the last.
fn table(m: &mut Markup, heads: &[&'static str], rows: &[(Vec<String>, Option<Tone>)]) {
    m.table("plan stacked", |m| {
        m.thead(heads);
        m.element("tbody", &[], |m| {
            for (texts, tone) in rows {
                m.element("tr", &[], |m| {
                    for (at, text) in texts.iter().enumerate() {
                        let label = heads.get(at).copied().unwrap_or_default();
                        match tone.filter(|_| at + 1 == texts.len()) {
                            Some(tone) => {
                                let chip = format!("chip {}", class(tone));
                                m.element("td", &[("data-label", &label)], |m| {
                                    m.leaf("span", &[("class", &chip)], text);
                                });
                            }
                            None if at == 0 => {
                                m.leaf("td", &[("class", &"first")], text);
                            }
                            None => {
                                m.leaf("td", &[("data-label", &label)], text);
                            }
                        }
                    }
                });
            }
        });
    });
}

fn section(m: &mut Markup, title: &str, inside: impl FnOnce(&mut Markup)) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &title);
        inside(m);
    });
}

pub(super) fn differences(m: &mut Markup, all: &[BaselineDifference]) {
    if all.is_empty() {
        return;
    }
    let row = |one: &BaselineDifference| {
        let (what, within) = wording::difference(one);
        let found = &one.comparison;
        let (tone, verdict) = match (one.significant, one.matters) {
            (Some(true), true) => (Tone::Fixable, "significant"),
            (Some(true), false) => (Tone::Good, "significant, small"),
            (other, _) => (Tone::Unknown, wording::significance(other)),
        };
        let texts = vec![
            what,
            within,
            format!("{} / {}", wording::bps(found.baseline_bps), wording::bps(found.now_bps)),
            wording::relative(found.difference_share),
            verdict.to_owned(),
        ];
        (texts, Some(tone))
    };
    section(m, "Differences", |m| {
        m.leaf("p", &[("class", &"note")], &"Mean goodput over the tests of each condition.");
        let rows: Vec<_> = all.iter().map(row).collect();
        table(m, &["Compared", "Within", "Means", "Change", "Verdict"], &rows);
    });
}

pub(super) fn links(m: &mut Markup, links: &[BaselineLink]) {
    if links.is_empty() {
        return;
    }
    let row = |one: &BaselineLink| {
        let texts = vec![
            one.condition.to_string(),
            one.median_bps.to_string(),
            one.link_bps.to_string(),
            one.means.clone(),
        ];
        (texts, None)
    };
    section(m, "Links on the path", |m| {
        let note = "A goodput that equals the payload rate of an Ethernet link identifies the \
                    slowest link, or the provisioned rate.";
        m.leaf("p", &[("class", &"note")], &note);
        let rows: Vec<_> = links.iter().map(row).collect();
        table(m, &["Condition", "Median goodput", "Link", "Meaning"], &rows);
    });
}

pub(super) fn comparison(m: &mut Markup, found: &BaselineComparison) {
    let title = format!("Compared with {}", calendar::utc(found.started_unix_s));
    section(m, &title, |m| {
        m.leaf("p", &[("class", &"note")], &found.sentence);
        for warning in &found.warnings {
            m.leaf("p", &[("class", &"note")], &format!("{}.", capital(warning)));
        }
        let rows: Vec<_> = found
            .conditions
            .iter()
            .map(|one| {
                let compared = &one.comparison;
                let tone = match (one.significant, compared.difference_bps < 0.0) {
                    (Some(true), true) => Tone::Fixable,
                    (Some(true), false) => Tone::Good,
                    _ => Tone::Unknown,
                };
                let rise = one.rise.map_or("–".to_owned(), |rise| {
                    let significant = if rise.significant == Some(true) { " *" } else { "" };
                    format!("{:+.0} → {:+.0} ms{significant}", rise.baseline_ms, rise.now_ms)
                });
                let texts = vec![
                    one.condition.to_string(),
                    wording::bps(compared.baseline_bps),
                    wording::bps(compared.now_bps),
                    wording::relative(compared.difference_share),
                    rise,
                    wording::significance(one.significant).to_owned(),
                ];
                (texts, Some(tone))
            })
            .collect();
        table(
            m,
            &["Condition", "Mean before", "Mean now", "Change", "Mean RTT rise", "Goodput"],
            &rows,
        );
        if found.conditions.iter().any(|one| one.rise.is_some_and(|r| r.significant == Some(true)))
        {
            m.leaf("p", &[("class", &"note")], &"* The RTT rise changed significantly.");
        }
    });
}

pub(super) fn checks(m: &mut Markup, checks: &[Check]) {
    if checks.is_empty() {
        return;
    }
    let row = |check: &Check| {
        let (tone, word) = match check.verdict {
            Verdict::Fail => (Tone::Fixable, "fail"),
            Verdict::Warn => (Tone::Fixable, "warn"),
            Verdict::Unknown => (Tone::Unknown, "unknown"),
            Verdict::Pass => (Tone::Good, "pass"),
        };
        let why = match check.verdict {
            Verdict::Warn | Verdict::Fail => format!("{}; {}", check.why, check.remedy),
            _ => String::new(),
        };
        (vec![check.id.clone(), check.seen.clone(), why, word.to_owned()], Some(tone))
    };
    section(m, "Before the tests", |m| {
        let note = "Power saving and other traffic make the results unreliable.";
        m.leaf("p", &[("class", &"note")], &note);
        let rows: Vec<_> = checks.iter().map(row).collect();
        table(m, &["Check", "Found", "Reason and remedy", "Verdict"], &rows);
    });
}

pub(super) fn servers(m: &mut Markup, choice: &ServerChoice) {
    section(m, "Server selection", |m| {
        let note = format!("Needed: {} ({}).", choice.needed_bps, choice.needed_from);
        m.leaf("p", &[("class", &"note")], &note);
        let shown = choice.servers.iter().take(MAX_SERVERS);
        let rows: Vec<_> = shown
            .map(|server| {
                let texts = vec![
                    server.host.clone(),
                    server.location.clone(),
                    server.rate_bps.map_or("–".to_owned(), |rate| rate.to_string()),
                    server.rtt_ms.map_or("–".to_owned(), |rtt| format!("{rtt:.1} ms")),
                    server.rejected.clone().unwrap_or_else(|| "chosen".to_owned()),
                ];
                (texts, None)
            })
            .collect();
        table(m, &["Server", "Location", "Rate", "RTT", "Why"], &rows);
        if choice.servers.len() > MAX_SERVERS {
            let more = format!("{} more are in JSON.", choice.servers.len() - MAX_SERVERS);
            m.leaf("p", &[("class", &"note")], &more);
        }
    });
}

pub(super) fn conditions(m: &mut Markup, report: &BaselineReport, json: &str) {
    let mut rows = vec![
        ("Started", calendar::utc(report.started_unix_s)),
        ("Server", format!("{}, port {}", report.target, report.port)),
        ("Peer software", report.peer.clone()),
        ("Order seed", report.seed.to_string()),
        ("Time budget", wording::long_time(report.within_s)),
        ("Kernel", format!("client: {}", report.host.kernel)),
        ("CPU cores", format!("client: {}", report.host.cores)),
        ("Longhaul version", report.version.clone()),
        ("JSON file", json.to_owned()),
    ];
    let notes = report.architecture.iter();
    rows.extend(notes.map(|note| (note.part.as_str(), note.text.clone())));
    for path in &report.paths {
        let name = path.family.name();
        let ms = |value: Option<f64>| value.map_or("none".to_owned(), |ms| format!("{ms:.2} ms"));
        let mut text = match (&path.skipped, &path.address) {
            (Some(why), _) => format!("not tested: {why}"),
            (None, address) => format!(
                "{}; RTT by ICMP {}, by TCP handshake {}; MTU {}",
                address.as_deref().unwrap_or_default(),
                ms(path.icmp_rtt_ms),
                ms(path.handshake_rtt_ms),
                path.mtu_bytes.map_or("unknown".to_owned(), |mtu| mtu.to_string())
            ),
        };
        for warning in &path.warnings {
            text += &format!("; {warning}");
        }
        rows.push((name, text));
    }
    rows.extend(report.notes.iter().map(|note| ("Note", note.clone())));
    section(m, "Test conditions", |m| {
        m.table("conditions", |m| {
            m.element("tbody", &[], |m| {
                for (name, text) in &rows {
                    m.row(name, [text]);
                }
            });
        });
    });
}
