//! Text of iperf3 and iperf 2 as people paste it: several runs one after the other, prompts between
//! them, quoted, indented, with time stamps before each line, or the lines of intervals alone.

use crate::not_a_result::NotAResult;
use crate::text_row::{RowId, TextRow};
use crate::{iperf2_text, iperf3, transfer};
use record::Measurement;

/// Lines in which a first interval is looked for, lines that are read, and runs of a text.
const MAX_HEAD: usize = 2000;
const MAX_LINES: usize = 500_000;
const MAX_RUNS: usize = 64;
/// Characters of an error.
const MAX_WHY: usize = 200;

/// The first lines of iperf 2's ends.
const CLIENT: &str = "Client connecting to ";
const SERVER: &str = "Server listening on ";

/// What is said of each run.
const FROM_TEXT: &str = "read from text: figures have three digits, and a congestion window says little without the RTT";

/// Which program printed a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Iperf2,
    Iperf3,
}

/// A run's lines.
#[derive(Debug, Default)]
struct Run<'a> {
    lines: Vec<&'a str>,
    tool: Option<Tool>,
    /// By the digits of its first interval, where no line says more.
    likely: Option<Tool>,
    has_rows: bool,
    /// Whether any of them is of one flow, and not the sum of all.
    has_flows: bool,
    /// Whether the line of a total was there, after which another run may begin.
    has_total: bool,
    /// Whether it has the first line of iperf 2's client, and of its server with a connection after
    /// it.
    has_client: bool,
    has_server: bool,
    has_connection: bool,
}

impl Run<'_> {
    /// Whether a line says that iperf 2's server connects to its client, as `-r` and `-d` ask.
    fn is_answered_by(&self, line: &str) -> bool {
        self.has_connection && !self.has_client && line.contains(CLIENT)
    }
}

/// Whether a text has the line of an interval.
pub(crate) fn is_text(text: &str) -> bool {
    text.lines().take(MAX_HEAD).any(|line| TextRow::parse(line).is_some())
}

/// Why a test without an interval failed, by iperf3's own line.
pub(crate) fn failure(text: &str) -> Option<String> {
    let mut lines = text.lines().take(MAX_HEAD);
    let why = lines.find_map(|line| line.split_once("iperf3: error - "))?.1;
    let why: String = why.trim().chars().take(MAX_WHY).collect();
    Some(format!("the test failed before its first interval: {why}"))
}

/// The runs of a text, in order.
pub(crate) fn results(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    let runs = runs(text);
    let (mut all, mut error) = (Vec::new(), None);
    for run in &runs {
        let mut lines = run.lines.join("\n");
        if !run.has_flows {
            lines = lines.replace("[SUM]", "[0]");
        }
        let read = match run.tool.or(run.likely) {
            Some(Tool::Iperf2) => iperf2_text::lines(&lines),
            Some(Tool::Iperf3) | None => iperf3::text::lines(&lines).map(|one| vec![one]),
        };
        match read {
            Ok(tests) => all.extend(tests.into_iter().map(|mut one| {
                one.notes.push(FROM_TEXT.to_owned());
                if !run.has_flows {
                    one.notes.push("the text has the sum of the streams alone".to_owned());
                }
                one
            })),
            Err(why) => error = Some(why),
        }
    }
    transfer::number(&mut all);
    match error {
        Some(error) if all.is_empty() => Err(error),
        _ => Ok(all),
    }
}

/// The runs that have intervals.
fn runs(text: &str) -> Vec<Run<'_>> {
    let mut runs = vec![Run::default()];
    for line in text.lines().take(MAX_LINES) {
        let row = TextRow::parse(line);
        let is_first = |row: &TextRow<'_>| row.from_s == 0.0 && !is_total(row);
        let Some(current) = runs.last_mut() else { break };
        let begins_anew = begins_run(line) && current.has_rows && !current.is_answered_by(line)
            || current.has_total && row.as_ref().is_some_and(is_first);
        if begins_anew && runs.len() < MAX_RUNS {
            runs.push(Run::default());
        }
        let Some(current) = runs.last_mut() else { break };
        current.has_client |= line.contains(CLIENT) && !current.is_answered_by(line);
        current.has_server |= line.contains(SERVER);
        current.has_connection |= current.has_server && line.contains("connected with");
        current.tool = current.tool.or_else(|| tool_of(line));
        if let Some(row) = &row {
            let likely = if row.has_two_decimals { Tool::Iperf3 } else { Tool::Iperf2 };
            current.likely.get_or_insert(likely);
            current.has_rows = true;
            current.has_flows |= row.id != RowId::Sum;
            current.has_total |= is_total(row);
        }
        current.lines.push(line);
    }
    runs.retain(|run| run.has_rows);
    runs
}

/// Whether a line is the total of one end, as iperf3 names it.
fn is_total(row: &TextRow<'_>) -> bool {
    matches!(row.rest.last(), Some(&("sender" | "receiver")))
}

/// Whether a line is the first of a run, at either end, or the command.
fn begins_run(line: &str) -> bool {
    const FIRST: [&str; 6] = [
        "Connecting to host ",
        "Accepted connection from ",
        CLIENT,
        "iperf3 -",
        "iperf -",
        "iperf2 -",
    ];
    FIRST.iter().any(|first| line.contains(first))
}

fn tool_of(line: &str) -> Option<Tool> {
    const IPERF2: [&str; 5] =
        [CLIENT, "Server listening on TCP", "Server listening on UDP", "iperf -", "iperf2 -"];
    const IPERF3: [&str; 7] = [
        "Connecting to host ",
        "Accepted connection from ",
        "iperf3 -",
        "iperf3: ",
        "- - - - -",
        " Retr",
        "Bitrate  ",
    ];
    let has = |marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
    let is_total = || TextRow::parse(line).is_some_and(|row| is_total(&row));
    if has(&IPERF3) || is_total() {
        Some(Tool::Iperf3)
    } else {
        has(&IPERF2).then_some(Tool::Iperf2)
    }
}
