//! Windows: rate, RTT or window from the other two.

use super::result::{Answer, CalcResult, Column, Entries, Row, SHEET_SCHEMA, Table, Value};
use super::{CalcError, check_rtt, check_streams, check_window, window_limits};
use crate::{MAX_SHIFT, figures, per_stream, window_for, window_rate, window_scale};
use units::{BitRate, ByteCount, Rtt};

const BDP_SOURCE: &str = "RFC 7323, section 1.1";
pub(super) const SCALE_SOURCE: &str = "RFC 7323, section 2.3";

const UNIT_SOURCE: &str = "a unit convention; bit rates use powers of 1000 (IEC 80000-13)";

/// 2^20 bits: the "Mbit" of some calculators.
const BINARY_MEGA: f64 = 1_048_576.0;

/// 1024 x 1000 bits: the "Mbit" of calculators that mix both.
const MIXED_MEGA: f64 = 1_024_000.0;

/// Two of rate, RTT and window, and the number of streams.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowQuestion {
    /// The rate of all streams together.
    pub rate: Option<BitRate>,
    /// The RTT.
    pub rtt: Option<Rtt>,
    /// The window of each stream.
    pub window: Option<ByteCount>,
    /// Parallel connections.
    pub streams: u32,
}

/// Computes the third of rate, RTT and window.
///
/// # Errors
/// If not exactly two are given, or one is out of range.
pub fn window(question: &WindowQuestion) -> Result<CalcResult, CalcError> {
    let &WindowQuestion { rate, rtt, window, streams } = question;
    check_streams(streams)?;
    let mut answers = Vec::new();
    let (rate, rtt, each) = match (rate, rtt, window) {
        (Some(rate), Some(rtt), None) => {
            check_rtt(rtt)?;
            answers.extend(window_answers(rate, rtt, streams));
            (rate, rtt, per_stream(window_for(rate, rtt), streams))
        }
        (None, Some(rtt), Some(each)) => {
            let each = check_window(each)?;
            let rate = window_rate(each.times(u64::from(streams)), check_rtt(rtt)?)
                .ok_or(CalcError::ZeroRtt)?;
            answers.extend(rate_answers(rate, rtt, each, streams));
            (rate, rtt, each)
        }
        (Some(rate), None, Some(each)) => {
            let each = check_window(each)?;
            let seconds = each.as_f64() * f64::from(streams) * 8.0 / rate.as_f64();
            // The longest RTT in nanoseconds fits 53 bits.
            let nanos = ByteCount::from_f64((seconds * 1e9).min(Rtt::MAX.nanos() as f64));
            let rtt = check_rtt(Rtt::from_nanos(nanos.bytes()))?;
            answers.push(rtt_answer(rate, rtt, each, streams));
            (rate, rtt, each)
        }
        _ => return Err(CalcError::TwoOfThree),
    };
    answers.push(scale_answer(each));
    let mut holds = vec![
        "A window counts payload, so the rate is a payload rate. It is an upper bound of one \
         window per RTT; loss, a smaller send buffer or the link rate can reduce it. The RTT is \
         the one under load, including queueing delay."
            .to_owned(),
        "k, M and G are powers of 1000; Ki, Mi and Gi are powers of 1024. A window of 64 KiB x \
         2^N is advertised as 65535 x 2^N."
            .to_owned(),
    ];
    holds.extend(window_limits::sentences());
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "window",
        asked: Entries(vec![
            ("rate_bps", question.rate.map(Value::Rate)),
            ("rtt_ms", question.rtt.map(Value::Rtt)),
            ("window_bytes", question.window.map(Value::Size)),
            ("streams", Some(Value::Count(u64::from(streams)))),
        ]),
        answers,
        holds,
        tables: vec![
            window_table(rate, rtt, streams),
            window_limits::doubling(rtt),
            window_limits::adding_streams(each, rtt, streams),
        ],
        curve: None,
    })
}

fn window_answers(rate: BitRate, rtt: Rtt, streams: u32) -> Vec<Answer> {
    let needed = window_for(rate, rtt);
    let product = format!("rate x RTT = {} x {}", figures::rate(rate), figures::rtt(rtt));
    let bits = rate.as_f64() * rtt.secs_f64();
    let binary = bits / 1e6 * BINARY_MEGA;
    let mut answers = vec![Answer {
        key: "window_bytes",
        label: "window".to_owned(),
        value: Some(Value::Size(needed)),
        equation: format!("{product} = {}", figures::bits(bits)),
        source: BDP_SOURCE,
    }];
    if streams > 1 {
        answers.push(Answer {
            key: "window_per_stream_bytes",
            label: "per stream".to_owned(),
            value: Some(Value::Size(per_stream(needed, streams))),
            equation: format!("window / streams = {} / {streams}", figures::bytes(needed)),
            source: "equal shares",
        });
    }
    answers.push(Answer {
        key: "window_binary_bytes",
        label: "binary units".to_owned(),
        value: Some(Value::Size(ByteCount::from_f64(binary / 8.0))),
        equation: format!(
            "with 1 Mbit = 1024 x 1024 bit: {binary:.0} bit = {} MiB",
            figures::digits(binary / 8.0 / BINARY_MEGA)
        ),
        source: UNIT_SOURCE,
    });
    answers
}

fn rate_answers(all: BitRate, rtt: Rtt, each: ByteCount, streams: u32) -> Vec<Answer> {
    let one = format!("{} x 8 bit / {}", figures::bytes(each), figures::rtt(rtt));
    let equation = match streams {
        1 => format!("window / RTT = {one}"),
        _ => format!("streams x window / RTT = {streams} x {one}"),
    };
    vec![
        Answer {
            key: "rate_bps",
            label: "rate".to_owned(),
            value: Some(Value::Rate(all)),
            equation,
            source: BDP_SOURCE,
        },
        Answer {
            key: "rate_binary_mbit_s",
            label: "binary units".to_owned(),
            value: Some(Value::Number(all.as_f64() / BINARY_MEGA)),
            equation: format!("in Mbit/s of 1024 x 1024 bit: {} / 1048576", all.bps()),
            source: UNIT_SOURCE,
        },
        Answer {
            key: "rate_mixed_mbit_s",
            label: "mixed units".to_owned(),
            value: Some(Value::Number(all.as_f64() / MIXED_MEGA)),
            equation: format!("in Mbit/s of 1024 x 1000 bit: {one} / (1024 x 1000)"),
            source: UNIT_SOURCE,
        },
    ]
}

fn rtt_answer(rate: BitRate, rtt: Rtt, each: ByteCount, streams: u32) -> Answer {
    let of = if streams == 1 { String::new() } else { format!("{streams} x ") };
    Answer {
        key: "rtt_ms",
        label: "longest RTT".to_owned(),
        value: Some(Value::Rtt(rtt)),
        equation: format!(
            "window / rate = {of}{} x 8 bit / {}",
            figures::bytes(each),
            figures::rate(rate)
        ),
        source: BDP_SOURCE,
    }
}

pub(super) fn scale_answer(window: ByteCount) -> Answer {
    let size = figures::bytes(window);
    let (value, equation) = match shift_of(window) {
        Ok(shift) => (
            Some(Value::Count(u64::from(shift))),
            format!("smallest N with 65535 x 2^N >= {size} (64 KiB x 2^N counts as 65535 x 2^N)"),
        ),
        Err(error) => (None, error.to_string()),
    };
    Answer {
        key: "window_scale",
        label: "window scale".to_owned(),
        value,
        equation,
        source: SCALE_SOURCE,
    }
}

/// The window scale of a window; 64 KiB x 2^N counts as 65535 x 2^N.
fn shift_of(window: ByteCount) -> Result<u8, crate::WindowTooLarge> {
    let bytes = window.bytes();
    let said = bytes >= 1 << 16 && bytes.is_power_of_two() && bytes <= 1 << 30;
    window_scale(if said { ByteCount::from_bytes(bytes - (bytes >> 16)) } else { window })
}

fn window_table(rate: BitRate, rtt: Rtt, streams: u32) -> Table {
    let needed = per_stream(window_for(rate, rtt), streams);
    let sizes: Vec<ByteCount> =
        (0..=MAX_SHIFT).map(|shift| ByteCount::from_bytes(65_536 << shift)).collect();
    let enough = sizes.iter().position(|size| *size >= needed);
    let rows = sizes.iter().enumerate().map(|(index, size)| {
        let one = window_rate(*size, rtt);
        let all = window_rate(size.times(u64::from(streams)), rtt);
        let count = window_for(rate, rtt).bytes().div_ceil(size.bytes()).max(1);
        Row {
            cells: vec![
                Some(Value::Size(*size)),
                Some(Value::Count(index as u64)),
                one.map(Value::Rate),
                all.map(Value::Rate),
                Some(Value::Count(count)),
            ],
            marked: enough == Some(index),
        }
    });
    Table {
        title: format!(
            "windows at {}: {} reaches {} with {} {}",
            figures::rtt(rtt),
            which(enough.is_some()),
            figures::rate(rate),
            streams,
            if streams == 1 { "stream" } else { "streams" }
        ),
        columns: vec![
            Column { key: "window_bytes", title: "window" },
            Column { key: "window_scale", title: "N" },
            Column { key: "rate_per_stream_bps", title: "per stream" },
            Column { key: "rate_bps", title: "all streams" },
            Column { key: "streams_needed", title: "streams needed" },
        ],
        rows: rows.collect(),
    }
}

/// The subject of a table's title: its marked row, if any.
pub(super) const fn which(marked: bool) -> &'static str {
    if marked { "the marked row" } else { "no row" }
}

#[cfg(test)]
mod tests;
