//! A study's plan: the question, what varies, and how long it takes.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use crate::{study_sources, untrusted::clean, wording};
use record::{StudyPlanReport, StudyProgram};
use units::percent;

/// Column of the values.
const COLUMN: usize = 14;

/// The summary of a plan.
#[must_use]
pub fn study_plan(plan: &StudyPlanReport, style: &Style) -> String {
    let row = |label: &str, text: &str| {
        labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text))
    };
    let mut lines = row("question", &clean(&plan.question));
    for factor in &plan.factors {
        let together = if factor.paired { "with " } else { "" };
        lines.extend(row(&format!("{together}{}", clean(&factor.name)), &values(&factor.values)));
    }
    for (label, hosts) in [("clients", &plan.clients), ("servers", &plan.servers)] {
        if !hosts.is_empty() {
            lines.extend(row(label, &values(hosts)));
        }
    }
    let fixed = plan.fixed.iter().map(|fixed| format!("{}={}", fixed.name, fixed.values.join(",")));
    let fixed: Vec<String> = fixed.map(|fixed| clean(&fixed)).collect();
    lines.extend(row("fixed", &fixed.join(", ")));
    let optional = plan.optional.iter();
    let optional: Vec<String> =
        optional.map(|one| clean(&format!("{}={}", one.name, one.values.join(",")))).collect();
    if !optional.is_empty() {
        lines.extend(row("optional", &optional.join(", ")));
    }
    lines.extend(programs(&plan.programs, style));
    let tests = format!(
        "{} ({} cells x {} repeats), order {}, seed {}",
        plan.tests, plan.cells, plan.repeats, plan.order, plan.seed
    );
    lines.extend(row("tests", &tests));
    if let Some(until) = plan.until {
        let text = format!(
            "more per cell until its 95 % confidence interval is within {}, {} at most",
            percent(until.within),
            until.most
        );
        lines.extend(row("", &text));
    }
    let run = plan.run.clone().unwrap_or_default();
    if let Some(shard) = &run.shard {
        let count = shard.cells.len();
        let tests = count * plan.repeats as usize;
        let text = format!("{}: {count} of {} cells, {tests} tests", shard.name, plan.cells);
        lines.extend(row("shard", &text));
        lines.extend(shard.cells.iter().flat_map(|cell| row("", &clean(cell))));
    }
    match (run.is_simulated, &run.shard) {
        (true, _) => lines.extend(row("testbed", "simulator, in virtual time")),
        (false, None) => lines.extend(row("takes about", &wording::long_time(plan.estimated_s))),
        (false, Some(shard)) => {
            let share = shard.cells.len() as f64 / plan.cells.max(1) as f64;
            let time = wording::long_time(plan.estimated_s * share);
            lines.extend(row("takes about", &time));
        }
    }
    if let Some(source) = &plan.source {
        lines.extend(row("source", &clean(&source.citation())));
        for one in study_sources::of_plan(source) {
            lines.extend(row(one.kind(), &clean(&one.line())));
        }
    }
    block(lines)
}

/// The command lines of a program at each host.
fn command_lines(program: &StudyProgram) -> impl Iterator<Item = (&'static str, String)> {
    let user = if program.privileged { " (with your privileges)" } else { "" };
    let line = move |line: &String| clean(line) + user;
    let server = program.server.as_ref().map(|server| ("server", line(server)));
    server.into_iter().chain([("client", line(&program.client))])
}

/// The programs that a plan brings, for being confirmed before they run.
#[must_use]
pub fn study_programs(all: &[StudyProgram], style: &Style) -> String {
    block(programs(all, style))
}

fn programs(all: &[StudyProgram], style: &Style) -> Vec<Line> {
    let row = |margin: usize, label: &str, text: &str| {
        labelled(style, margin, (style::STRONG, label), COLUMN, (style::PLAIN, text))
    };
    let mut lines = Vec::new();
    for program in all {
        lines.extend(row(0, "program", &clean(&program.name)));
        for (host, line) in command_lines(program) {
            lines.extend(row(2, host, &line));
        }
        // The command may be in a file; those that come with longhaul are known.
        for file in program.files.iter().filter(|_| !program.built_in) {
            lines.extend(row(2, "file", &clean(&file.name)));
            for line in file.text.lines() {
                lines.push(Line::new(style).to(4).put(style::DIM, &clean(line)));
            }
        }
    }
    lines
}

/// Values of a factor that are printed; more are counted.
const SHOWN: usize = 12;

fn values(all: &[String]) -> String {
    let shown: Vec<String> = all.iter().take(SHOWN).map(|value| clean(value)).collect();
    let more =
        if all.len() > SHOWN { format!(", ... ({} values)", all.len()) } else { String::new() };
    shown.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{PlannedRun, PlannedShard};
    use record::{STUDY_PLAN_SCHEMA, StudyFactor};

    fn factor(name: &str, values: impl IntoIterator<Item = String>) -> StudyFactor {
        StudyFactor {
            name: name.to_owned(),
            values: values.into_iter().collect(),
            numbers: Vec::new(),
            unit: String::new(),
            paired: false,
        }
    }

    fn plan() -> StudyPlanReport {
        StudyPlanReport {
            schema: STUDY_PLAN_SCHEMA.to_owned(),
            version: "0".to_owned(),
            question: "Does it \u{1b}[31mfollow?".to_owned(),
            factors: vec![factor("streams", (1..=20).map(|n| n.to_string()))],
            fixed: vec![factor("rate", ["100mbit".to_owned()])],
            cells: 20,
            repeats: 3,
            tests: 60,
            order: "random".to_owned(),
            seed: 1,
            until: Some(record::StudyUntil { within: 0.05, most: 20 }),
            estimated_s: 318.0,
            optional: vec![factor("net.ipv4.tcp_sack", ["1".to_owned()])],
            plots: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            source: Some(record::StudySource {
                title: Some("A \u{1b}[2Jtitle".to_owned()),
                published: vec![record::PublishedSetting {
                    setting: "rate".to_owned(),
                    values: vec![record::PublishedValue {
                        number: "100".to_owned(),
                        unit: "Mbps".to_owned(),
                        line: 219,
                        section: "IV. Results".to_owned(),
                    }],
                }],
                assumed: vec![record::AssumedSettings {
                    settings: vec!["rtt".to_owned(), "queue".to_owned()],
                    reason: "not stated there".to_owned(),
                }],
                ..record::StudySource::default()
            }),
            run: None,
            programs: vec![StudyProgram {
                name: "fetch".to_owned(),
                server: None,
                client: "curl \u{1b}[2J http://{server}/".to_owned(),
                output: "curl".to_owned(),
                files: vec![record::StudyProgramFile {
                    name: "script".to_owned(),
                    text: "first line\nsecond \u{1b}[31mline\n".to_owned(),
                }],
                privileged: true,
                built_in: false,
            }],
        }
    }

    #[test]
    fn it_says_what_runs_and_for_how_long() {
        let style = Style { colour: false, width: 80, unicode: true };
        let text = study_plan(&plan(), &style);
        for part in [
            "60 (20 cells x 3 repeats)",
            "5 min",
            "rate=100mbit",
            "(20 values)",
            "tcp_sack=1",
            "curl",
            "script",
            "    second",
            "your privileges",
            "source        title: A [2Jtitle; author: not stated",
            "published     rate: 100 Mbps (IV. Results, line 219)",
            "assumed       rtt, queue: not stated there",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_simulated_shard_has_its_cells_and_no_time() {
        let style = Style { colour: false, width: 80, unicode: true };
        let cells = vec!["streams=2".to_owned(), "streams=10".to_owned()];
        let shard = Some(PlannedShard { name: "2/8".to_owned(), cells });
        let run = Some(PlannedRun { is_simulated: true, shard });
        let text = study_plan(&StudyPlanReport { run, ..plan() }, &style);
        for part in ["2/8: 2 of 20 cells, 6 tests", "streams=10\n", "virtual time"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("takes about"), "{text}");
    }
}
