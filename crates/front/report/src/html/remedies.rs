//! Remedies: the change, where to make it, and the expected goodput.

use super::markup::Markup;
use record::{NextCommand, Remedy, RemedyPlace};

/// The remedies of a finding, then the command to run next.
pub fn remedies(m: &mut Markup, remedies: &[Remedy], next: Option<&NextCommand>) {
    if remedies.is_empty() && next.is_none() {
        return;
    }
    m.element("section", &[("class", &"remedies")], |m| {
        m.leaf("h2", &[], &"What would help");
        for one in remedies {
            let place = match one.place {
                RemedyPlace::Sender => "On the sender",
                RemedyPlace::Receiver => "On the receiver",
                RemedyPlace::Call => "In the options of the test",
                RemedyPlace::Boxes => "With boxes on the path",
            };
            let expected =
                one.expects_bps.map_or_else(String::new, |rate| format!("expected: {rate}, "));
            command(m, place, &one.command.to_string(), &format!("{expected}{}", one.why));
        }
        if let Some(next) = next {
            command(m, "To learn more", &next.command.to_string(), &next.remark());
        }
    });
}

/// A command to paste, with a heading and a remark.
pub(super) fn command(m: &mut Markup, heading: &str, line: &str, remark: &str) {
    m.element("div", &[("class", &"remedy")], |m| {
        m.leaf("h3", &[], &heading);
        if !line.is_empty() {
            m.element("pre", &[], |m| {
                m.element("code", &[], |m| {
                    m.lines(line);
                });
            });
        }
        if !remark.is_empty() {
            m.leaf("p", &[("class", &"note")], &super::header::sentence(remark));
        }
    });
}
