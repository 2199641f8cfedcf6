//! The values of factors as numbers, for programs that compute with them: `1%` as 0.01.

use serde_json::Value;
use std::str::FromStr;
use study::{Level, Part, Setting, Study, ValueKind};
use units::{BitRate, ByteCount, LossRatio, Probability, Rtt};

/// A factor that has values with a number.
pub(crate) struct NumericTwin {
    /// Its name.
    pub(crate) factor: String,
    /// That of the column: the factor's with the unit, `loss_ratio`.
    pub(crate) column: String,
    kind: ValueKind,
}

/// The factors of a study that have one, each once.
pub(crate) fn of(study: &Study) -> Vec<NumericTwin> {
    let mut all: Vec<NumericTwin> = Vec::new();
    for factor in study.parts.iter().flat_map(|part| &part.plan.factors) {
        let name = factor.setting.to_string();
        let kind = kind(&factor.setting);
        let has_number =
            factor.levels.iter().any(|level| level.per_bdp() || parsed(kind, level).is_some());
        if has_number && all.iter().all(|twin| twin.factor != name) {
            let column = format!("{name}{}", suffix(kind));
            all.push(NumericTwin { factor: name, column, kind });
        }
    }
    all
}

impl NumericTwin {
    /// The number of a cell; null where its value is a word.
    pub(crate) fn value(&self, part: &Part, cell: usize) -> Value {
        let cell = part.plan.cell(cell);
        let named = |setting: &Setting| setting.to_string() == self.factor;
        let at = part.plan.factors.iter().position(|factor| named(&factor.setting));
        let Some(level) = at.and_then(|at| cell.levels.get(at)) else { return Value::Null };
        if level.per_bdp() {
            // Of the cell's own path.
            let bytes = part.plan.test(&cell).ok().and_then(|test| match self.factor.as_str() {
                "total_window" => test.memory().hosts,
                _ => test.window,
            });
            return bytes.map(ByteCount::as_f64).into();
        }
        parsed(self.kind, level).into()
    }
}

/// The unit of a setting's numbers; `Word`: plain numbers.
fn kind(setting: &Setting) -> ValueKind {
    match setting {
        Setting::OfFlow(_, setting) => kind(setting),
        Setting::Path(key) => match key.rsplit('.').next() {
            Some("jitter" | "target" | "interval" | "update" | "max-burst" | "step") => {
                ValueKind::Time
            }
            Some("duplicate" | "corrupt" | "probability" | "classic-share") => ValueKind::Share,
            Some("burst" | "mtu" | "quantum") => ValueKind::Bytes,
            _ => setting.kind(),
        },
        other => other.kind(),
    }
}

const fn suffix(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Bytes => "_bytes",
        ValueKind::Rate => "_bps",
        ValueKind::Time => "_s",
        ValueKind::Share => "_ratio",
        ValueKind::Count | ValueKind::Word => "_number",
    }
}

fn parsed(kind: ValueKind, level: &Level) -> Option<f64> {
    let text = level.text.as_str();
    match kind {
        ValueKind::Bytes => quantity(text).map(ByteCount::as_f64),
        ValueKind::Rate => quantity(text).map(BitRate::as_f64),
        ValueKind::Time => quantity(text).map(Rtt::secs_f64),
        ValueKind::Share => quantity(text)
            .map(LossRatio::fraction)
            .or_else(|| quantity(text).map(Probability::fraction)),
        // A word that is a number: of a sysctl, `4` of ip.
        ValueKind::Count | ValueKind::Word => {
            text.parse().ok().filter(|number: &f64| number.is_finite())
        }
    }
}

fn quantity<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(factors: &str) -> Vec<(String, Vec<Value>)> {
        let plan = format!(
            "question = \"?\"\n[path]\nrtt = \"80ms\"\nrate = \"100mbit\"\n[factors]\n{factors}\n\
             [traffic]\nduration = \"1s\"\n"
        );
        let study = Study::of_plan("s", &plan, false).unwrap();
        let part = &study.parts[0];
        let values = |twin: &NumericTwin| {
            (0..part.plan.cells()).map(|cell| twin.value(part, cell)).collect::<Vec<_>>()
        };
        of(&study).iter().map(|twin| (twin.column.clone(), values(twin))).collect()
    }

    #[test]
    fn values_with_a_unit_are_numbers_in_the_units_of_the_export() {
        for (factor, column, expected) in [
            ("loss = [\"0.1%\", \"1%\"]", "loss_ratio", [0.001, 0.01]),
            ("rate = [\"500kbit\", \"2.5gbit\"]", "rate_bps", [5e5, 2.5e9]),
            ("up.rate = [\"1mbit\", \"2mbit\"]", "up.rate_bps", [1e6, 2e6]),
            ("rtt = [\"250us\", \"1.5s\"]", "rtt_s", [0.000_25, 1.5]),
            ("jitter = [\"5ms\", \"10ms\"]", "jitter_s", [0.005, 0.01]),
            ("duplicate = [\"0.1%\", \"2%\"]", "duplicate_ratio", [0.001, 0.02]),
            ("window = [\"64KiB\", \"0.5 bdp\"]", "window_bytes", [65_536.0, 500_000.0]),
            (
                "total_window = [\"64KiB\", \"0.5 bdp\"]",
                "total_window_bytes",
                [65_536.0, 500_000.0],
            ),
            ("streams = [1, 4]", "streams_number", [1.0, 4.0]),
            ("total_streams = [1, 4]", "total_streams_number", [1.0, 4.0]),
            ("duration = [\"2s\", \"500ms\"]", "duration_s", [2.0, 0.5]),
            ("mtu = [1400, 1500]", "mtu_bytes", [1_400.0, 1_500.0]),
            ("\"net.ipv4.tcp_sack\" = [0, 1]", "net.ipv4.tcp_sack_number", [0.0, 1.0]),
        ] {
            let found = numbers(factor);
            assert_eq!(found.len(), 1, "{factor}: {found:?}");
            assert_eq!(found[0].0, column);
            let values: Vec<f64> = found[0].1.iter().map(|value| value.as_f64().unwrap()).collect();
            assert_eq!(values, expected, "{factor}");
        }
    }

    #[test]
    fn words_have_no_number() {
        assert!(numbers("congestion = [\"cubic\", \"bbr\"]").is_empty());
        assert!(numbers("queue = [\"100p\", \"fq_codel\"]").is_empty());
        let found = numbers("loss = [\"1%\", \"ge:1%:10%\"]");
        assert_eq!(found[0].1, [Value::from(0.01), Value::Null]);
    }
}
