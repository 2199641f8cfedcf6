//! The search for the highest rate: each try in a row, and the knee as a curve.

use super::{
    Style,
    graph::graph,
    ink,
    line::{Line, block, wrap},
};
use model::calc::{Curve, Scale, Series};
use record::{FindRateReport, RateTry};

/// The heading of the tries, without newline.
#[must_use]
pub fn try_header(style: &Style) -> String {
    let mut line = Line::new(style);
    for (name, column) in [("asked", 14), ("sent", 28), ("arrived", 42), ("loss", 52)] {
        line = line.right(ink::DIM, name, column);
    }
    line.finish()
}

/// One try in a row, without newline.
#[must_use]
pub fn try_row(tried: &RateTry, style: &Style) -> String {
    let (ink, word) = if tried.within { (ink::GOOD, "holds") } else { (ink::BAD, "does not hold") };
    Line::new(style)
        .right(ink::STRONG, &tried.asked_bps.to_string(), 14)
        .right(ink::PLAIN, &tried.sent_bps.to_string(), 28)
        .right(ink::PLAIN, &tried.received_bps.to_string(), 42)
        .right(ink, &crate::words::lost(tried.loss), 52)
        .to(54)
        .put(ink, word)
        .finish()
}

/// What the search found, with the knee.
#[must_use]
pub fn find_rate(found: &FindRateReport, style: &Style) -> String {
    let mut lines = vec![Line::new(style)];
    for text in wrap(style, &found.sentence, style.text_width()) {
        lines.push(Line::new(style).put(ink::STRONG, &text));
    }
    let curve = graph(&knee(found), style);
    if found.tries.len() > 1 && !curve.is_empty() {
        lines.push(Line::new(style));
        lines.extend(curve);
    }
    block(lines)
}

/// Loss against the rate asked. What lost nothing lies on the axis.
fn knee(found: &FindRateReport) -> Curve {
    let floor = (found.loss_target / 10.0).max(1e-6);
    let mut points: Vec<(f64, f64)> =
        found.tries.iter().map(|t| (t.asked_bps.as_f64(), t.loss.max(floor))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // Of several tries at a rate the one that lost least: chance only adds.
    points.dedup_by_key(|point| point.0);
    Curve {
        title: "Loss against rate, where no loss lies on the axis".to_owned(),
        x: Scale::LogRate,
        y: Scale::LogLoss,
        series: vec![Series { name: "loss", points }],
        rule: (found.loss_target > 0.0).then_some(("most", found.loss_target)),
        asked: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    #[test]
    fn tries_are_rows_and_the_knee_is_drawn() {
        let tried = |mbit: u64, loss: f64| RateTry {
            asked_bps: BitRate::from_bps(mbit * 1_000_000),
            sent_bps: BitRate::from_bps(mbit * 1_000_000),
            received_bps: BitRate::from_bps(mbit * 1_000_000),
            loss,
            within: loss < 0.001,
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
            sentence: "The path carries what it carries.".to_owned(),
        };
        for width in [20, 80, 200] {
            let style = Style { colour: false, width, unicode: false };
            let rows = found.tries.iter().map(|tried| try_row(tried, &style) + "\n");
            let text = try_header(&style) + "\n" + &rows.collect::<String>();
            let text = text + &find_rate(&found, &style);
            assert!(text.is_ascii() && text.lines().all(|line| line.len() <= width), "{text}");
            assert_eq!(text.contains("Loss against rate"), width >= 80, "{text}");
            assert!(width < 80 || text.contains("30 %  does not hold"), "{text}");
        }
    }
}
