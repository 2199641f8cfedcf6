//! A simulation beside the same flows under a kernel.

use super::sim_table::{Row, table};
use super::tune::row;
use super::{
    Style,
    line::{Line, block},
    style,
};
use record::{SimAgreement, SimComparison, SimVerdict};
use units::{BitRate, significant};

/// Columns of the figures.
const HEAD: [&str; 4] = ["median of runs", "simulator", "lab", "ratio (95 % interval)"];

/// The figures under both, and the verdict.
#[must_use]
pub fn sim_comparison(of: &SimComparison, style: &Style) -> String {
    let mut lines = row(style, "Path", style::PLAIN, &of.link);
    lines.extend(row(style, "Flows", style::PLAIN, &of.flows.join("; ")));
    let valid = of.lab.iter().filter(|run| run.not_valid.is_empty()).count();
    let runs = format!(
        "{} of {} s each; {valid} valid in the lab under Linux {}",
        of.lab.len(),
        significant(of.seconds, 3),
        of.kernel
    );
    lines.extend(row(style, "Runs", style::PLAIN, &runs));
    if !of.figures.is_empty() {
        lines.push(Line::new(style));
        let rows: Vec<Row> = of.figures.iter().map(figure).collect();
        lines.extend(table(&HEAD, &rows, style));
    }
    lines.push(Line::new(style));
    let tone = match of.verdict {
        SimVerdict::Agrees => style::GOOD,
        SimVerdict::Differs | SimVerdict::CannotTell => style::WARN,
    };
    lines.extend(row(style, "Result", tone, &of.sentence));
    for run in of.lab.iter().filter(|run| !run.not_valid.is_empty()) {
        let why =
            format!("seed {} in the lab is not valid: {}", run.seed, run.not_valid.join("; "));
        lines.extend(row(style, "Note", style::DIM, &why));
    }
    block(lines)
}

fn figure(of: &SimAgreement) -> Row {
    let shown = |value: f64| match of.unit.as_str() {
        "bit/s" => BitRate::from_bps_f64(value).to_string(),
        "" => significant(value, 4),
        unit => format!("{} {unit}", significant(value, 3)),
    };
    let ratio = match (of.ratio, of.interval) {
        (None, _) => "-".to_owned(),
        (Some(ratio), None) => format!("{ratio:.3}"),
        (Some(ratio), Some([low, high])) => {
            let [low, high] = [low, high].map(|end| significant(end, 3));
            format!("{ratio:.3} ({low}-{high})")
        }
    };
    Row {
        cells: vec![of.figure.clone(), shown(of.simulated), shown(of.lab), ratio],
        tone: style::STRONG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::SimRunFigures;

    #[test]
    fn invalid_runs_are_named() {
        let run = |seed, not_valid: &[&str]| SimRunFigures {
            seed,
            all_bps: BitRate::from_bps(9_000_000),
            goodput_bps: vec![BitRate::from_bps(9_000_000)],
            retransmits: 2,
            rtt_median_ms: Some(20.0),
            not_valid: not_valid.iter().map(|reason| (*reason).to_owned()).collect(),
        };
        let of = SimComparison {
            schema: String::new(),
            version: String::new(),
            link: "rate=10mbit,rtt=20ms".to_owned(),
            flows: vec!["2xcubic".to_owned()],
            kernel: "6.18.5".to_owned(),
            seconds: 10.0,
            simulated: vec![run(1, &[]), run(2, &[])],
            lab: vec![run(1, &[]), run(2, &["late"])],
            figures: vec![SimAgreement {
                figure: "goodput".to_owned(),
                unit: "bit/s".to_owned(),
                simulated: 9e6,
                lab: 9.1e6,
                ratio: Some(0.989),
                interval: Some([0.95, 1.03]),
            }],
            tolerance: 0.1,
            verdict: SimVerdict::Agrees,
            sentence: "Agrees within 10 %.".to_owned(),
        };
        let text = sim_comparison(&of, &Style { colour: false, width: 90, unicode: true });
        for shown in ["1 valid in the lab", "9.1 Mbit/s", "0.989 (0.95-1.03)", "seed 2", "late"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }
}
