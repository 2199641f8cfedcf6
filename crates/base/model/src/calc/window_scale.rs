//! The window scales of TCP, and the smallest that a path needs.

use super::result::{Answer, CalcResult, Column, Entries, Row, SHEET_SCHEMA, Table, Value};
use super::window::{SCALE_SOURCE, scale_answer, which};
use super::{CalcError, check_rtt};
use crate::{MAX_SHIFT, MAX_WINDOW, figures, window_for, window_rate, window_scale};
use units::{BitRate, ByteCount, Rtt};

/// A path and its target rate, as far as they are given.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleQuestion {
    /// The target rate, which needs an RTT.
    pub rate: Option<BitRate>,
    /// The RTT.
    pub rtt: Option<Rtt>,
}

/// The window scales, their rates at an RTT, and the smallest that reaches a rate.
///
/// # Errors
/// If the RTT is zero, or a rate is given without one.
pub fn scale(question: &ScaleQuestion) -> Result<CalcResult, CalcError> {
    let ScaleQuestion { rate, rtt } = *question;
    let rtt = rtt.map(check_rtt).transpose()?;
    let target = match (rate, rtt) {
        (Some(rate), Some(rtt)) => Some((rate, rtt)),
        (Some(_), None) => return Err(CalcError::RateWithoutRtt),
        (None, _) => None,
    };
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "scale",
        asked: Entries(vec![("rate_bps", rate.map(Value::Rate)), ("rtt_ms", rtt.map(Value::Rtt))]),
        answers: target.map_or_else(Vec::new, |(rate, rtt)| answers(rate, rtt).into()),
        holds: vec![
            "Each host announces its N once, in its SYN, and scaling applies only if both send \
             the option; a middlebox that strips it limits the window to 65535 bytes. Linux \
             derives N from the maximum receive buffer (tcp_rmem, rmem_max) at connection setup."
                .to_owned(),
        ],
        tables: vec![table(rate, rtt)],
        curve: None,
    })
}

/// The smallest scale, and the number of largest windows.
fn answers(rate: BitRate, rtt: Rtt) -> [Answer; 2] {
    let needed = window_for(rate, rtt);
    let mut smallest = scale_answer(needed);
    if window_scale(needed).is_ok() {
        smallest.equation = format!(
            "smallest N with 65535 x 2^N >= rate x RTT = {} x {} = {}",
            figures::rate(rate),
            figures::rtt(rtt),
            figures::bytes(needed)
        );
    }
    let streams = Answer {
        key: "streams",
        label: "streams".to_owned(),
        value: Some(Value::Count(needed.bytes().div_ceil(MAX_WINDOW.bytes()).max(1))),
        equation: format!(
            "minimum number of windows of 65535 x 2^14 for {}",
            figures::bytes(needed)
        ),
        source: SCALE_SOURCE,
    };
    [smallest, streams]
}

/// Every scale with its window; with an RTT its rate, with a target rate the share of that.
fn table(rate: Option<BitRate>, rtt: Option<Rtt>) -> Table {
    let target = rate.zip(rtt);
    let least = target.and_then(|(rate, rtt)| window_scale(window_for(rate, rtt)).ok());
    let column = |key, title| Column { key, title };
    let mut columns = vec![
        column("window_scale", "N"),
        column("window_bytes", "maximum window"),
        column("step_bytes", "granularity"),
    ];
    columns.extend(rtt.map(|_| column("rate_bps", "rate")));
    columns.extend(target.map(|_| column("share", "of target")));
    let rows = (0..=MAX_SHIFT).map(|shift| {
        let most = ByteCount::from_bytes(65_535 << shift);
        let mut cells = vec![
            Some(Value::Count(u64::from(shift))),
            Some(Value::Size(most)),
            Some(Value::Size(ByteCount::from_bytes(1 << shift))),
        ];
        if let Some(rtt) = rtt {
            let carried = window_rate(most, rtt).unwrap_or(BitRate::ZERO);
            cells.push(Some(Value::Rate(carried)));
            cells.extend(
                rate.map(|rate| Some(Value::Share((carried.as_f64() / rate.as_f64()).min(1.0)))),
            );
        }
        Row { cells, marked: least == Some(shift) }
    });
    let title = match (rate, rtt) {
        (Some(rate), Some(rtt)) => format!(
            "window scales at {}: {} reaches {}",
            figures::rtt(rtt),
            which(least.is_some()),
            figures::rate(rate)
        ),
        (None, Some(rtt)) => format!("window scales at {}", figures::rtt(rtt)),
        (_, None) => "window scales".to_owned(),
    };
    Table { title, columns, rows: rows.collect() }
}
