//! The runs of a study as a table: one row for each, with the factors, the repeat, the
//! goodput, then every other figure.

use crate::numeric_twin;
use record::{FlowFigures, StartSkew, StudyRun};
use serde_json::Value;
use study::{Part, Study};

/// A column, and what stands in it.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
    pub(crate) value: Box<Cell>,
}

/// The type of a column's values; each may be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Text,
    /// Whole and not negative.
    Whole,
    Real,
}
use ColumnKind::{Real, Text, Whole};

/// The value of a run in a column.
pub(crate) type Cell = dyn Fn(&Part, &StudyRun) -> Value;

/// A figure of a flow.
type Figure = fn(&FlowFigures) -> Value;

/// Figures of each flow. Where there are several flows, or a factor has the figure's name, the
/// flow's name precedes the column's: `udp.loss`.
const OF_FLOW: [(&str, ColumnKind, Figure); 22] = [
    ("throughput_bps", Real, |flow| flow.throughput_bps.into()),
    ("steady_bps", Real, |flow| flow.steady_bps.into()),
    ("sent_bps", Real, |flow| flow.sent_bps.into()),
    ("began_s", Real, |flow| flow.began_s.into()),
    ("seconds", Real, |flow| flow.seconds.into()),
    ("retransmits", Whole, |flow| flow.retransmits.into()),
    ("min_rtt_ms", Real, |flow| flow.min_rtt_ms.into()),
    ("mean_rtt_ms", Real, |flow| flow.mean_rtt_ms.into()),
    ("window_bytes", Whole, |flow| flow.window_bytes.into()),
    ("loss", Real, |flow| flow.loss.into()),
    ("out_of_order", Whole, |flow| flow.out_of_order.into()),
    ("jitter_ms", Real, |flow| flow.jitter_ms.into()),
    ("limit", Text, |flow| flow.limit.map(record::Limit::name).into()),
    ("probability", Real, |flow| flow.probability.into()),
    ("decrease_factor", Real, |flow| flow.decrease_factor.into()),
    ("acks_per_packet", Real, |flow| flow.acks_per_packet.into()),
    ("light_acks_per_packet", Real, |flow| flow.light_acks_per_packet.into()),
    ("naks", Whole, |flow| flow.naks.into()),
    ("increases", Whole, |flow| flow.increases.into()),
    ("increases_by_alpha", Whole, |flow| flow.increases_by_alpha.into()),
    ("growth_over_alpha", Real, |flow| flow.growth_over_alpha.into()),
    ("disk_bps", Real, |flow| flow.disk_bps.into()),
];

/// Comma-separated values (RFC 4180) with a header line. Text that a spreadsheet would take
/// for a formula begins with an apostrophe.
#[must_use]
pub fn csv(study: &Study, runs: &[Vec<StudyRun>]) -> String {
    let columns = columns(study);
    let mut text = csv_line(columns.iter().map(|column| Value::from(column.name.as_str())));
    for_each_run(study, runs, |part, run| {
        text.push_str(&csv_line(columns.iter().map(|column| (column.value)(part, run))));
    });
    text
}

/// One JSON object for each run, a line each.
#[must_use]
pub fn json_lines(study: &Study, runs: &[Vec<StudyRun>]) -> String {
    let columns = columns(study);
    let mut text = String::new();
    for_each_run(study, runs, |part, run| {
        let pairs = columns.iter().map(|column| (column.name.clone(), (column.value)(part, run)));
        text.push_str(&Value::Object(pairs.collect()).to_string());
        text.push('\n');
    });
    text
}

fn for_each_run(study: &Study, runs: &[Vec<StudyRun>], mut row: impl FnMut(&Part, &StudyRun)) {
    for (part, runs) in study.parts.iter().zip(runs) {
        runs.iter().for_each(|run| row(part, run));
    }
}

pub(crate) fn columns(study: &Study) -> Vec<Column> {
    let mut all = Vec::new();
    let mut add = |name: &str, kind: ColumnKind, value: Box<Cell>| {
        all.push(Column { name: name.to_owned(), kind, value });
    };
    if study.parts.len() > 1 {
        add("part", Text, Box::new(|part, _| part.name.as_str().into()));
    }
    let factors = distinct(study, |part| {
        part.plan.factors.iter().map(|factor| factor.setting.to_string()).collect()
    });
    for setting in &factors {
        let name = setting.clone();
        add(setting, Text, Box::new(move |part, run| factor(part, run, &name)));
    }
    let of_run =
        |value: fn(&StudyRun) -> Value| -> Box<Cell> { Box::new(move |_, run| value(run)) };
    add("repeat", Whole, of_run(|run| run.repeat.into()));
    add("throughput_bps", Real, of_run(|run| measured(run, run.throughput_bps())));
    add("status", Text, of_run(|run| run.status.name().into()));
    add("reason", Text, of_run(|run| run.reason.as_str().into()));
    add("attempts", Whole, of_run(|run| run.attempts.into()));
    add("cell", Whole, of_run(|run| run.cell.into()));
    add("started_unix_s", Whole, of_run(|run| run.started_unix_s.into()));
    add("took_s", Real, of_run(|run| run.took_s.into()));
    add("test_s", Real, of_run(|run| run.test_s.into()));
    add("per_stream_bps", Real, Box::new(per_stream));
    add("host_memory_bytes", Whole, Box::new(|part, run| memory(part, run).0));
    add("router_memory_bytes", Whole, Box::new(|part, run| memory(part, run).1));
    if study.real_hosts().is_some() {
        let skew = |of: fn(StartSkew) -> f64| -> Box<Cell> {
            Box::new(move |_, run| run.start_skew.map(of).into())
        };
        add("start_skew_ms", Real, skew(|skew| skew.ms));
        add("start_skew_uncertainty_ms", Real, skew(|skew| skew.uncertainty_ms));
    }
    let flows = distinct(study, |part| part.plan.flows_of_tests());
    let several = flows.len() > 1;
    // One of the only flow follows, and a factor `loss` is the path's.
    if several && factors.iter().all(|factor| factor != "loss") {
        add("loss", Real, of_run(|run| run.loss().into()));
    }
    for flow in flows {
        // A single flow's goodput is the run's.
        for (figure, kind, value) in OF_FLOW.into_iter().skip(usize::from(!several)) {
            let flow = flow.clone();
            // A factor may have a figure's name: `loss` is the path's.
            let name = match several || factors.iter().any(|factor| factor == figure) {
                true => format!("{flow}.{figure}"),
                false => figure.to_owned(),
            };
            add(&name, kind, Box::new(move |_, run| run.flow(&flow).map_or(Value::Null, value)));
        }
    }
    for twin in numeric_twin::of(study) {
        // `window_bytes` is a figure: what was advertised.
        let is_taken = all.iter().any(|column| column.name == twin.column);
        let name =
            if is_taken { format!("requested_{}", twin.column) } else { twin.column.clone() };
        let value: Box<Cell> = Box::new(move |part, run| twin.value(part, run.cell));
        all.push(Column { name, kind: Real, value });
    }
    all
}

/// Names over all parts, each once, in their order.
fn distinct(study: &Study, names: impl Fn(&Part) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in study.parts.iter().flat_map(names) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn factor(part: &Part, run: &StudyRun, name: &str) -> Value {
    let at = part.plan.factors.iter().position(|factor| factor.setting.to_string() == name);
    let cell = part.plan.cell(run.cell);
    at.and_then(|at| cell.levels.get(at)).map(|level| level.text.as_str()).into()
}

/// Goodput of all flows over their streams.
fn per_stream(part: &Part, run: &StudyRun) -> Value {
    let Ok(test) = part.plan.test(&part.plan.cell(run.cell)) else { return Value::Null };
    measured(run, run.throughput_bps() / f64::from(test.streams()).max(1.0))
}

/// Bytes of buffer at the hosts and at the router.
fn memory(part: &Part, run: &StudyRun) -> (Value, Value) {
    let Ok(test) = part.plan.test(&part.plan.cell(run.cell)) else {
        return (Value::Null, Value::Null);
    };
    let memory = test.memory();
    let is_emulated = part.plan.real_hosts.is_none();
    let router = is_emulated.then_some(memory.router.bytes());
    (memory.hosts.map(units::ByteCount::bytes).into(), router.into())
}

fn measured(run: &StudyRun, figure: f64) -> Value {
    if run.flows.is_empty() { Value::Null } else { figure.into() }
}

fn csv_line(values: impl Iterator<Item = Value>) -> String {
    let fields = values.map(|value| match value {
        Value::Null => String::new(),
        Value::String(text) => csv_text(&text),
        other => other.to_string(),
    });
    fields.collect::<Vec<_>>().join(",") + "\r\n"
}

/// A field of text.
fn csv_text(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::RunStatus;

    const PLAN: &str = r#"question = "?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
window = ["64KiB", "1MiB"]
net.ipv4.tcp_congestion_control = ["=1+1", "a,\"b"]
[traffic]
duration = "1s"
"#;

    fn run(cell: usize, flow: &str) -> StudyRun {
        StudyRun {
            cell,
            repeat: 1,
            status: RunStatus::Valid,
            attempts: 1,
            started_unix_s: 0,
            took_s: 1.5,
            test_s: 1.5,
            reason: String::new(),
            start_skew: None,
            flows: vec![FlowFigures {
                name: flow.to_owned(),
                throughput_bps: 5e6,
                ..FlowFigures::default()
            }],
        }
    }

    #[test]
    fn a_row_has_the_factors_the_repeat_and_the_goodput_first() {
        let study = Study::of_plan("s", PLAN, false).unwrap();
        let text = csv(&study, &[vec![run(0, "traffic"), run(3, "traffic")]]);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert!(
            lines[0]
                .starts_with("window,net.ipv4.tcp_congestion_control,repeat,throughput_bps,status"),
            "{text}"
        );
        // A spreadsheet does not compute it, and quotes and commas are kept.
        assert!(lines[1].starts_with("64KiB,'=1+1,1,5000000.0,valid"), "{text}");
        assert!(lines[2].starts_with("1MiB,\"a,\"\"b\",1,5000000.0,valid"), "{text}");
        let columns = lines[0].split(',').count();
        assert_eq!(lines[1].split(',').count(), columns);
    }

    #[test]
    fn factors_are_numbers_as_well() {
        let plan = PLAN.replace("window = [", "loss = [\"1%\", \"ge:1%:10%\"]\nwindow = [");
        let study = Study::of_plan("s", &plan, false).unwrap();
        let text = json_lines(&study, &[vec![run(2, "traffic"), run(4, "traffic")]]);
        let rows: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&rows[0]["loss"], &rows[0]["loss_ratio"]), (&"1%".into(), &0.01.into()));
        assert_eq!(rows[1]["loss_ratio"], Value::Null);
        // What was asked for is not what was advertised.
        assert_eq!(rows[0]["requested_window_bytes"], 1_048_576.0);
        assert_eq!(rows[0]["window_bytes"], Value::Null);
        let parquet = columns(&study).into_iter().find(|column| column.name == "loss_ratio");
        assert_eq!(parquet.unwrap().kind, Real);
    }

    #[test]
    fn flows_have_columns_of_their_own() {
        let plan = PLAN.replace("[factors]", "[flows.a]\n[flows.b]\n[factors]");
        let study = Study::of_plan("s", &plan, false).unwrap();
        let text = json_lines(&study, &[vec![run(0, "b")]]);
        let row: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(row["b.throughput_bps"], 5e6);
        assert_eq!(row["a.throughput_bps"], Value::Null);
        assert_eq!(row["throughput_bps"], 5e6);
    }

    #[test]
    fn memory_and_the_loss_of_all_flows_are_columns() {
        let plan = PLAN.replace("[traffic]", "[traffic]\nhosts = \"2x1\"\nstreams = 3");
        let study = Study::of_plan("s", &plan, false).unwrap();
        let of = |sent_bps: f64, loss: f64| FlowFigures {
            seconds: 2.0,
            sent_bps,
            loss: Some(loss),
            ..FlowFigures::default()
        };
        let mut both = run(0, "traffic-1");
        both.flows = vec![of(3e6, 0.1), of(1e6, 0.5)];
        let mut one_counts = both.clone();
        one_counts.flows[1].loss = None;
        let text = json_lines(&study, &[vec![both, one_counts]]);
        let rows: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // Six windows of 64 KiB, and a BDP.
        assert_eq!(rows[0]["host_memory_bytes"], 6 * 65_536);
        assert_eq!(rows[0]["router_memory_bytes"], 625_000);
        assert!((rows[0]["loss"].as_f64().unwrap() - 0.2).abs() < 1e-9, "{}", rows[0]);
        assert_eq!(rows[1]["loss"], Value::Null);
    }

    #[test]
    fn a_factor_keeps_its_column_beside_a_figure_of_its_name() {
        let plan = PLAN.replace("window = [\"64KiB\", \"1MiB\"]", "loss = [\"0%\", \"1%\"]");
        let study = Study::of_plan("s", &plan, false).unwrap();
        let text = json_lines(&study, &[vec![run(2, "traffic")]]);
        let row: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&row["loss"], &row["traffic.loss"]), (&"1%".into(), &Value::Null));
        let names: Vec<String> = columns(&study).into_iter().map(|column| column.name).collect();
        assert_eq!(names.iter().filter(|name| *name == "loss").count(), 1);
        assert!(names.iter().any(|name| name == "steady_bps"), "{names:?}");
    }
}
