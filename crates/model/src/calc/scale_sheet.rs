//! The window scales of TCP, and the least that a path takes.

use super::sheet::{Answer, Column, Entries, Row, SHEET_SCHEMA, Sheet, Table, Value};
use super::window_sheet::{SCALE_SOURCE, scale_answer, which};
use super::{CalcError, check_rtt};
use crate::{MAX_SHIFT, MAX_WINDOW, figures, window_for, window_rate, window_scale};
use units::{BitRate, ByteCount, Rtt};

/// A path, and a rate that the window should carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleQuestion {
    /// The target.
    pub rate: BitRate,
    /// The round trip.
    pub rtt: Rtt,
}

/// The window scales, and the least that carries a rate.
///
/// # Errors
/// Where the round trip is zero.
pub fn scale(question: &ScaleQuestion) -> Result<Sheet, CalcError> {
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
            "least N with 65535 x 2^N >= rate x RTT = {} x {} = {}",
            figures::rate(rate),
            figures::rtt(rtt),
            figures::bytes(needed)
        ),
        None => answer.equation,
    };
    let column = |key, title| Column { key, title };
    Ok(Sheet {
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
                    "the fewest whose windows of 65535 x 2^14 hold {}",
                    figures::bytes(needed)
                ),
                source: SCALE_SOURCE,
            },
        ],
        holds: vec![
            "Both ends choose their N once, in the SYN, and only where both send the option; a \
             middlebox that strips it leaves 65535 bytes. Linux chooses N from the largest \
             receive buffer it may take (tcp_rmem, rmem_max) when the connection begins."
                .to_owned(),
        ],
        tables: vec![Table {
            title: format!(
                "window scales at {}: {} carries {}",
                figures::rtt(rtt),
                which(least.is_some()),
                figures::rate(rate)
            ),
            columns: vec![
                column("window_scale", "N"),
                column("window_bytes", "largest window"),
                column("step_bytes", "in steps of"),
                column("rate_bps", "carries"),
                column("share", "of the target"),
            ],
            rows: rows.collect(),
        }],
        curve: None,
    })
}
