//! The search for the highest rate: one row per trial, and loss against rate.

use super::{
    Style,
    graph::graph,
    line::{Line, block, wrap},
    style,
};
use model::calc::{Curve, Scale, Series};
use record::{FindRateReport, RateTry, TryFailure};

/// The table header of the trials, without newline.
#[must_use]
pub fn trial_header(style: &Style) -> String {
    let mut line = Line::new(style);
    for (name, column) in [("target", 12), ("sent", 24), ("received", 36), ("loss", 45)] {
        line = line.right(style::DIM, name, column);
    }
    line.finish()
}

/// One trial, without newline: the reason of a failure is on a line of its own where the
/// terminal is too narrow.
#[must_use]
pub fn trial_row(tried: &RateTry, loss_target: f64, style: &Style) -> String {
    let text_style = if tried.within { style::GOOD } else { style::BAD };
    let reason = match tried.failed {
        None => String::new(),
        Some(TryFailure::Loss) => {
            format!(": loss above {}", units::percent_with(loss_target, 3))
        }
        Some(TryFailure::QueueGrows) => ": sent faster than received".to_owned(),
        Some(TryFailure::NothingArrived) => ": nothing arrived".to_owned(),
    };
    let word = if tried.within { "pass" } else { "fail" };
    let line = Line::new(style)
        .right(style::STRONG, &tried.asked_bps.to_string(), 12)
        .right(style::PLAIN, &tried.sent_bps.to_string(), 24)
        .right(style::PLAIN, &tried.received_bps.to_string(), 36)
        .right(text_style, &units::percent(tried.loss), 45)
        .to(47)
        .put(text_style, word);
    if line.used() + reason.len() <= style.width {
        return line.put(text_style, &reason).finish();
    }
    let reason = reason.trim_start_matches(": ");
    let lines = wrap(style, reason, style.width.saturating_sub(4)).into_iter();
    let below =
        lines.map(|part| "\n".to_owned() + &Line::new(style).to(4).put(text_style, &part).finish());
    line.finish() + &below.collect::<String>()
}

/// The result of the search, with the curve of loss against rate.
#[must_use]
pub fn find_rate(found: &FindRateReport, style: &Style) -> String {
    let mut lines = vec![Line::new(style)];
    for text in wrap(style, &found.sentence, style.text_width()) {
        lines.push(Line::new(style).put(style::STRONG, &text));
    }
    let curve = graph(&knee(found), style);
    if found.tries.len() > 1 && !curve.is_empty() {
        lines.push(Line::new(style));
        lines.extend(curve);
    }
    block(lines)
}

/// Loss against target rate. Zero loss is drawn on the axis, as the scale is logarithmic.
fn knee(found: &FindRateReport) -> Curve {
    let floor = (found.loss_target / 10.0).max(1e-6);
    let mut points: Vec<(f64, f64)> =
        found.tries.iter().map(|t| (t.asked_bps.as_f64(), t.loss.max(floor))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // Of several trials at one rate, the one with least loss.
    points.dedup_by_key(|point| point.0);
    Curve {
        title: "Loss against target rate (zero loss is drawn on the axis)".to_owned(),
        x: Scale::LogRate,
        y: Scale::LogLoss,
        series: vec![Series { name: "loss", points }],
        rule: (found.loss_target > 0.0).then_some(("target", found.loss_target)),
        asked: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    #[test]
    fn trials_are_rows_and_the_curve_is_drawn() {
        let tried = |mbit: u64, loss: f64| RateTry {
            asked_bps: BitRate::from_bps(mbit * 1_000_000),
            sent_bps: BitRate::from_bps(mbit * 1_000_000),
            received_bps: BitRate::from_bps(mbit * 1_000_000),
            loss,
            within: loss < 0.001,
            failed: (loss >= 0.001).then_some(TryFailure::Loss),
        };
        let found = FindRateReport {
            schema: record::FIND_RATE_SCHEMA.to_owned(),
            version: String::new(),
            started_unix_s: 0,
            target: "server".to_owned(),
            peer: String::new(),
            reverse: false,
            loss_target: 0.001,
            try_s: 2.0,
            rate_bps: None,
            loss: None,
            lossy_bps: None,
            ending: "found".to_owned(),
            tries: vec![tried(10, 0.0), tried(20, 0.0), tried(40, 0.3)],
            sentence: "The highest rate without loss is 20 Mbit/s.".to_owned(),
        };
        for width in [20, 80, 200] {
            let style = Style { colour: false, width, unicode: false };
            let rows = found.tries.iter().map(|tried| trial_row(tried, 0.001, &style) + "\n");
            let text = trial_header(&style) + "\n" + &rows.collect::<String>();
            let text = text + &find_rate(&found, &style);
            assert!(text.is_ascii() && text.lines().all(|line| line.len() <= width), "{text}");
            assert_eq!(text.contains("Loss against target rate"), width >= 80, "{text}");
            assert!(width < 80 || text.contains("30 %  fail: loss above 0.1 %\n"), "{text}");
            assert!(width != 20 || text.contains("\n    loss above 0.1 %\n"), "{text}");
        }
    }
}
