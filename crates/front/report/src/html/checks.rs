//! The checks of a host: what was seen, what the target needs, and the remedy.

use super::header::sentence;
use super::markup::Markup;
use super::remedies::command;
use ::doctor::DoctorReport;
use record::{Check, Verdict};

/// The checks, failures first; those that pass are folded.
pub fn checks(m: &mut Markup, report: &DoctorReport) {
    for (verdict, heading) in
        [(Verdict::Fail, "Too low for the target"), (Verdict::Warn, "Worth a look")]
    {
        let of: Vec<&Check> = report.checks.iter().filter(|one| one.verdict == verdict).collect();
        if of.is_empty() {
            continue;
        }
        m.element("section", &[("class", &"remedies")], |m| {
            m.leaf("h2", &[], &heading);
            for one in of {
                open(m, one);
            }
        });
    }
    for (verdict, heading) in [(Verdict::Pass, "Sufficient"), (Verdict::Unknown, "Not in the text")]
    {
        let of: Vec<&Check> = report.checks.iter().filter(|one| one.verdict == verdict).collect();
        if of.is_empty() {
            continue;
        }
        m.element("section", &[], |m| {
            m.leaf("h2", &[], &heading);
            m.table("sheet", |m| {
                m.thead(["Setting", "Value", "Needed"]);
                m.element("tbody", &[], |m| {
                    for one in of {
                        m.row(&one.id, [&one.seen, &one.needed]);
                    }
                });
            });
        });
    }
    for note in &report.notes {
        m.leaf("p", &[("class", &"note")], &sentence(note));
    }
}

fn open(m: &mut Markup, one: &Check) {
    let needed =
        if one.needed.is_empty() { String::new() } else { format!("; needs {}", one.needed) };
    let heading = format!("{}: {}{needed}", one.id, one.seen);
    let line = one.command.as_ref().map(ToString::to_string).unwrap_or_default();
    let remark = format!("{} {} [{}]", sentence(&one.remedy), sentence(&one.why), one.source);
    command(m, &heading, &line, &remark);
}
