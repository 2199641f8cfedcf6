//! The window scales of TCP, and the smallest that a path needs.

use super::result::{Answer, CalcResult, Column, Entries, Row, SHEET_SCHEMA, Table, Value};
use super::window::{SCALE_SOURCE, scale_answer, which};
use super::{CalcError, check_rtt};
use crate::{MAX_SHIFT, MAX_WINDOW, figures, window_for, window_rate, window_scale};
use units::{BitRate, ByteCount, Rtt};

/// A path and its target rate.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleQuestion {
    /// The target rate.
    pub rate: BitRate,
    /// The RTT.
    pub rtt: Rtt,
}

/// The window scales, and the smallest that reaches a rate.
///
/// # Errors
/// If the RTT is zero.
pub fn scale(question: &ScaleQuestion) -> Result<CalcResult, CalcError> {
    let ScaleQuestion { rate, rtt } = *question;
    let needed = window_for(rate, check_rtt(rtt)?);
    let least = window_scale(needed).ok();
    let rows = (0..=MAX_SHIFT).map(|shift| {
        let most = ByteCount::from_bytes(65_535 << shift);
        let carried = window_rate(most, rtt).unwrap_or(BitRate::ZERO);
        Row {
            cells: vec![
                Some(Value::Count(u64::from(shift))),
                Some(Value::Size(most)),
                Some(Value::Size(ByteCount::from_bytes(1 << shift))),
                Some(Value::Rate(carried)),
                Some(Value::Share((carried.as_f64() / rate.as_f64()).min(1.0))),
            ],
            marked: least == Some(shift),
        }
    });
    let mut answer = scale_answer(needed);
    answer.equation = match least {
        Some(_) => format!(
            "smallest N with 65535 x 2^N >= rate x RTT = {} x {} = {}",
            figures::rate(rate),
            figures::rtt(rtt),
            figures::bytes(needed)
        ),
        None => answer.equation,
    };
    let column = |key, title| Column { key, title };
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "scale",
        asked: Entries(vec![
            ("rate_bps", Some(Value::Rate(rate))),
            ("rtt_ms", Some(Value::Rtt(rtt))),
        ]),
        answers: vec![
            answer,
            Answer {
                key: "streams",
                label: "streams".to_owned(),
                value: Some(Value::Count(needed.bytes().div_ceil(MAX_WINDOW.bytes()).max(1))),
                equation: format!(
                    "minimum number of windows of 65535 x 2^14 for {}",
                    figures::bytes(needed)
                ),
                source: SCALE_SOURCE,
            },
        ],
        holds: vec![
            "Each host announces its N once, in its SYN, and scaling applies only if both send \
             the option; a middlebox that strips it limits the window to 65535 bytes. Linux \
             derives N from the maximum receive buffer (tcp_rmem, rmem_max) at connection setup."
                .to_owned(),
        ],
        tables: vec![Table {
            title: format!(
                "window scales at {}: {} reaches {}",
                figures::rtt(rtt),
                which(least.is_some()),
                figures::rate(rate)
            ),
            columns: vec![
                column("window_scale", "N"),
                column("window_bytes", "maximum window"),
                column("step_bytes", "granularity"),
                column("rate_bps", "rate"),
                column("share", "of target"),
            ],
            rows: rows.collect(),
        }],
        curve: None,
    })
}
