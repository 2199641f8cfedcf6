//! A test compared with an earlier result.

use super::header::class;
use super::markup::Markup;
use crate::wording::{self, Tone};
use record::Comparison;
use units::percent;

/// The comparison as a section, if there is one.
pub(super) fn write(m: &mut Markup, comparison: Option<&Comparison>) {
    let Some(found) = comparison else { return };
    let tone = match (found.real, found.difference_bps < 0.0) {
        (Some(true), true) => Tone::Fixable,
        (Some(true), false) => Tone::Good,
        _ => Tone::Unknown,
    };
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Compared with the earlier result");
        m.leaf("p", &[("class", &"sentence")], &found.sentence);
        m.element("table", &[("class", &"conditions")], |m| {
            m.element("tbody", &[], |m| {
                let mut row = |name: &str, text: &str| {
                    m.row(&name, [&text]);
                };
                let mean = |bps: f64, count: u64| {
                    format!("{}, mean of {count} {}", wording::bps(bps), found.method)
                };
                row("Earlier", &mean(found.baseline_bps, found.baseline_count));
                row("Now", &mean(found.now_bps, found.count));
                row("Change", &wording::relative(found.difference_share));
                if let Some((low, high)) = found.low_bps.zip(found.high_bps) {
                    let interval = format!("{} to {}", signed(low), signed(high));
                    row(&format!("Difference, {}", percent(found.confidence)), &interval);
                }
                if let Some(p) = found.p {
                    row("p-value (Welch)", &units::significant(p, 2));
                }
            });
        });
        m.element("p", &[("class", &"decision")], |m| {
            let chip = format!("chip {}", class(tone));
            m.leaf("span", &[("class", &chip)], &wording::significance(found.real));
        });
    });
}

/// A difference of goodputs with its sign.
pub(super) fn signed(bps: f64) -> String {
    format!("{}{}", if bps < 0.0 { "−" } else { "+" }, wording::bps(bps.abs()))
}
