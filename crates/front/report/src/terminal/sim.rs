//! A simulation: the flows, the bottleneck, the finding.

use super::sim_table::{Row, table};
use super::tune::row;
use super::{
    Style, finding,
    finding::next,
    line::{Line, block},
    style,
};
use crate::wording::spread;
use record::{Drops, SimBottleneck, SimFlow, SimReport};
use units::{BitRate, percent, significant};

/// Most flows with a row each; more are shown as groups.
const MOST_ROWS: usize = 16;

/// Columns of the flows.
const HEAD: [&str; 7] = ["flow", "goodput", "share", "retr", "RTT p50", "p95", "limited by"];

/// The result of a simulation.
#[must_use]
pub fn sim(report: &SimReport, style: &Style) -> String {
    let path = format!("{}, seed {}", report.link, report.seed);
    let mut lines = row(style, "Path", style::PLAIN, &path);
    let ran = format!("{} s simulated, {} packets", significant(report.seconds, 4), report.packets);
    lines.extend(row(style, "Run", style::PLAIN, &ran));
    lines.push(Line::new(style));
    lines.extend(flows(&report.flows, style));
    lines.push(Line::new(style));
    let jain = report
        .jain
        .map_or_else(String::new, |jain| format!(", Jain's index {}", significant(jain, 3)));
    let all = format!("{} of all flows{jain}", report.goodput_bps);
    lines.extend(row(style, "Goodput", style::STRONG, &all));
    lines.extend(row(style, "Queue", style::PLAIN, &queue(&report.bottleneck)));
    lines.extend(row(style, "Loss", style::PLAIN, &losses(&report.bottleneck)));
    for note in &report.notes {
        lines.extend(row(style, "Note", style::WARN, note));
    }
    lines.push(Line::new(style));
    let found = record::Finding { next: None, ..report.finding.clone() };
    let mut text = block(lines) + &finding::finding(&found, style);
    if let Some(command) = &report.next {
        let mut lines = vec![Line::new(style)];
        lines.extend(next(command, style));
        text += &block(lines);
    }
    text
}

fn flows(flows: &[SimFlow], style: &Style) -> Vec<Line> {
    let rows: Vec<Row> = if flows.len() <= MOST_ROWS {
        flows.iter().map(one).collect()
    } else {
        let mut groups: Vec<&str> = flows.iter().map(|flow| flow.spec.as_str()).collect();
        groups.dedup();
        let of = |spec: &str| flows.iter().filter(|flow| flow.spec == spec).collect::<Vec<_>>();
        groups.into_iter().map(|spec| group(spec, &of(spec))).collect()
    };
    table(&HEAD, &rows, style)
}

fn one(flow: &SimFlow) -> Row {
    let time = match (flow.start_s >= 0.001, flow.finished_s) {
        (false, None) => String::new(),
        (true, None) => format!(", from {} s", significant(flow.start_s, 3)),
        (_, Some(end)) => {
            format!(", {} to {} s", significant(flow.start_s, 3), significant(end, 3))
        }
    };
    Row {
        cells: vec![
            format!("{} {}{time}", flow.id, flow.control),
            flow.goodput_bps.to_string(),
            percent(flow.share),
            flow.retransmits.to_string(),
            ms(flow.rtt_median_ms),
            ms(flow.rtt_p95_ms),
            limit(flow),
        ],
        tone: style::STRONG,
    }
}

/// What its sender waited for, and the share of its time: `cwnd 98 %`.
fn limit(flow: &SimFlow) -> String {
    match flow.limited_by {
        Some(limit) => format!("{} {:.0} %", limit.name(), flow.limited_share * 100.0),
        None => "-".to_owned(),
    }
}

/// Flows that are alike: the median of each, with the range of the goodput.
fn group(spec: &str, flows: &[&SimFlow]) -> Row {
    let median = |of: &dyn Fn(&SimFlow) -> Option<f64>| {
        let values: Vec<f64> = flows.iter().filter_map(|flow| of(flow)).collect();
        model::statistics::median(&values)
    };
    let rates = flows.iter().map(|flow| flow.goodput_bps);
    let [low, high] = [rates.clone().min(), rates.max()].map(Option::unwrap_or_default);
    let middle = median(&|flow| Some(flow.goodput_bps.as_f64())).unwrap_or(0.0);
    let share: f64 = flows.iter().map(|flow| flow.share).sum();
    let first = flows.first().and_then(|flow| flow.limited_by);
    let same = flows.iter().all(|flow| flow.limited_by == first);
    Row {
        cells: vec![
            format!("{spec} (medians)"),
            spread([BitRate::from_bps_f64(middle), low, high].map(|rate| rate.to_string()), '-'),
            percent(share),
            flows.iter().map(|flow| flow.retransmits).sum::<u64>().to_string(),
            ms(median(&|flow| flow.rtt_median_ms)),
            ms(median(&|flow| flow.rtt_p95_ms)),
            match first.filter(|_| same) {
                Some(limit) => limit.name().to_owned(),
                None => "several".to_owned(),
            },
        ],
        tone: style::STRONG,
    }
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |ms| format!("{} ms", significant(ms, 3)))
}

fn queue(at: &SimBottleneck) -> String {
    let peak = at.queue_peak_bytes.decimal();
    let busy = percent(at.utilization);
    match (at.queue_median_ms, at.queue_p95_ms) {
        (Some(_), Some(_)) => format!(
            "median {}, p95 {}, longest {peak}; the bottleneck sent {busy} of the time",
            ms(at.queue_median_ms),
            ms(at.queue_p95_ms)
        ),
        _ => "none: the rate is unlimited".to_owned(),
    }
}

fn losses(at: &SimBottleneck) -> String {
    let Drops { queue, aqm, policer, too_long, bursts, blackhole, .. } = at.drops;
    let causes = [
        (queue, "dropped by the full queue"),
        (aqm, "dropped by the AQM"),
        (policer, "dropped by the policer"),
        (too_long, "too long"),
        (at.lost, "lost at random"),
        (bursts, "lost in bursts"),
        (blackhole, "lost in blackholes"),
        (at.marked, "marked (CE)"),
    ];
    let said: Vec<String> = causes
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{CommandHost, Finding, NextCommand, SimEnd};
    use units::ByteCount;

    fn finding() -> Finding {
        Finding {
            throughput_bps: BitRate::from_bps(3_000_000),
            average_bps: BitRate::from_bps(3_000_000),
            steady: record::Steady { from_s: 0.0, to_s: 10.0 },
            predicted_bps: None,
            equation: None,
            limit: None,
            confidence: None,
            shares: None,
            min_rtt: None,
            loaded_rtt: None,
            sentence: "The limit is unknown.".to_owned(),
            remedies: Vec::new(),
            posterior: Vec::new(),
            segments: Vec::new(),
            bottleneck: None,
            caveats: Vec::new(),
            next: None,
        }
    }

    fn report(count: u32) -> SimReport {
        let flow = |id| SimFlow {
            id,
            connections: 1,
            spec: "cubic,start=5s".to_owned(),
            control: "cubic".to_owned(),
            base_rtt_ms: Some(40.0),
            start_s: 5.0,
            finished_s: (id == 1).then_some(9.0),
            received_bytes: ByteCount::from_bytes(1_000_000),
            goodput_bps: BitRate::from_bps(u64::from(id) * 1_000_000),
            share: 1.0 / f64::from(count),
            retransmits: 7,
            rtt_median_ms: Some(41.3),
            rtt_p95_ms: None,
            limited_by: Some(record::SenderLimit::Cwnd),
            limited_share: 0.98,
        };
        SimReport {
            schema: String::new(),
            version: String::new(),
            link: "rate=1mbit,rtt=40ms".to_owned(),
            seed: 3,
            requested_s: 10.0,
            seconds: 10.0,
            ended: SimEnd::Complete,
            packets: 1234,
            flows: (1..=count).map(flow).collect(),
            goodput_bps: BitRate::from_bps(3_000_000),
            jain: Some(0.9),
            bottleneck: SimBottleneck { marked: 4, ..SimBottleneck::default() },
            finding: finding(),
            notes: vec!["a note \u{1b}[2J".to_owned()],
            next: Some(NextCommand {
                command: "longhaul sim advise --link x".to_owned(),
                on: CommandHost::Here,
                why: "compares".to_owned(),
            }),
        }
    }

    #[test]
    fn few_flows_have_a_row_each_and_many_are_groups() {
        let style = Style { colour: false, width: 90, unicode: true };
        let text = sim(&report(2), &style);
        for shown in [
            "1 cubic, 5 to 9 s",
            "2 cubic, from 5 s",
            "41.3 ms",
            "cwnd 98 %",
            "Jain's index 0.9",
            "4 marked (CE)",
            "longhaul sim advise",
            "seed 3",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let narrow = sim(&report(2), &Style { width: 50, ..style });
        assert!(narrow.contains("cwnd 98 %") && !narrow.contains('…'), "{narrow}");
        let many = sim(&report(20), &style);
        assert!(many.contains("(medians)") && many.contains("(1-20)"), "{many}");
        assert!(many.lines().all(|line| line.chars().count() <= 90), "{many}");
    }
}
