//! A calculator's result: figures with equations and sources, validity, plot and tables.

use super::calculator_plot;
use super::markup::Markup;
use model::BdpReport;
use model::calc::{CalcResult, Table, Value};
use units::Rtt;

const WINDOW: &str = "RFC 7323, section 2.3";
const PAYLOAD: &str = "IEEE 802.3; RFC 791, 8200, 9293, 7323 (appendix A)";

/// The result of a calculator.
pub fn calc_result(m: &mut Markup, result: &CalcResult) {
    m.element("section", &[("class", &"answers"), ("aria-label", &"Result")], |m| {
        for one in &result.answers {
            let value = one.value.as_ref().map_or("none".to_owned(), Value::text);
            figure(m, &one.label, Some(value), &one.equation, one.source);
        }
    });
    if let Some(curve) = &result.curve {
        calculator_plot::write(m, curve);
    }
    validity(m, &result.holds);
    for one in &result.tables {
        table(m, one);
    }
}

/// The BDP report of a path.
pub fn bdp_report(m: &mut Markup, result: &BdpReport) {
    let size = |bytes| Some(Value::Size(bytes).text());
    let rate = |bps| Some(Value::Rate(bps).text());
    m.element("section", &[("class", &"answers"), ("aria-label", &"Result")], |m| {
        let (bdp, window) = (&result.bdp, &result.window);
        figure(m, "BDP", size(bdp.bytes), &bdp.equation, "RFC 7323, section 1.1");
        figure(m, "required window", size(window.bytes), &window.equation, WINDOW);
        if result.streams > 1 {
            let each = &result.window_per_stream;
            figure(m, "window per stream", size(each.bytes), &each.equation, WINDOW);
        }
        let unscaled = &result.unscaled;
        figure(m, "64 KiB window", rate(unscaled.rate_bps), &unscaled.equation, WINDOW);
        if let Some(given) = result.given.as_ref().filter(|given| **given != result.unscaled) {
            let label = format!("{} window", given.window_bytes);
            figure(m, &label, rate(given.rate_bps), &given.equation, WINDOW);
        }
        let buffers = &result.buffers;
        let source = "Linux Documentation/networking/ip-sysctl.rst: tcp_rmem, tcp_adv_win_scale";
        figure(m, "buffers", size(buffers.bytes), &buffers.equation, source);
        for case in &result.payload {
            let label = format!("payload, {}", case.case);
            figure(m, &label, rate(case.rate_bps), &case.equation, PAYLOAD);
        }
        let ramp = Value::Rtt(Rtt::from_secs(result.ramp.seconds)).text();
        let source = "RFC 5681, section 3.1; RFC 6928";
        figure(m, "slow start", Some(ramp), &result.ramp.equation, source);
        let source = "Mathis et al. 1997; RFC 9438, section 5.1";
        let loss = Value::Loss(result.loss.cubic).text();
        figure(m, "tolerable loss, CUBIC", Some(loss), &result.loss.equation, source);
    });
    validity(
        m,
        &[
            "The rate is that of the bottleneck, as payload unless a payload row converts it. The \
             RTT is the one under load, including queueing delay."
                .to_owned(),
            "A window is an upper bound of one window per RTT: loss, a smaller buffer at the other \
             end or the link rate can reduce the throughput."
                .to_owned(),
            "The tolerable loss assumes random loss on a long-lived flow, not the drops of a queue \
             that the flow itself fills."
                .to_owned(),
        ],
    );
}

/// A figure with its equation and source.
fn figure(m: &mut Markup, label: &str, value: Option<String>, equation: &str, source: &str) {
    m.element("div", &[("class", &"answer")], |m| {
        m.leaf("h3", &[], &label);
        if let Some(value) = value {
            m.leaf("p", &[("class", &"value")], &value);
        }
        m.leaf("p", &[("class", &"equation")], &equation);
        m.leaf("p", &[("class", &"source")], &source);
    });
}

fn validity(m: &mut Markup, sentences: &[String]) {
    m.element("section", &[("class", &"validity")], |m| {
        m.leaf("h2", &[], &"Valid for");
        for sentence in sentences {
            m.leaf("p", &[], sentence);
        }
    });
}

/// A table; the row of the given values is marked.
fn table(m: &mut Markup, table: &Table) {
    let is_text = |column: usize| {
        table.rows.iter().any(|row| matches!(row.cells.get(column), Some(Some(Value::Text(_)))))
    };
    let class = |column: usize| if is_text(column) { "words" } else { "right" };
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &super::header::capital(&table.title));
        m.table("sheet", |m| {
            m.element("thead", &[], |m| {
                m.element("tr", &[], |m| {
                    for (column, head) in table.columns.iter().enumerate() {
                        let attributes: super::Attributes<'_> =
                            &[("scope", &"col"), ("class", &class(column))];
                        m.leaf("th", attributes, &head.title);
                    }
                });
            });
            m.element("tbody", &[], |m| {
                for row in &table.rows {
                    let marked = if row.marked { "marked" } else { "" };
                    m.element("tr", &[("class", &marked)], |m| {
                        for (column, cell) in row.cells.iter().enumerate() {
                            let text = cell.as_ref().map_or("–".to_owned(), Value::text);
                            m.leaf("td", &[("class", &class(column))], &text);
                        }
                    });
                }
            });
        });
    });
}
