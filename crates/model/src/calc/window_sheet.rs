//! Windows: two of rate, round trip and window give the third; and the window
//! scale that a window takes.

use super::sheet::{Answer, Column, Entries, Row, SHEET_SCHEMA, Sheet, Table, Value};
use super::{CalcError, check_rtt, check_streams, check_window};
use crate::{MAX_SHIFT, MAX_WINDOW, figures, per_stream, window_for, window_rate, window_scale};
use units::{BitRate, ByteCount, Rtt};

const BDP_SOURCE: &str = "RFC 7323, section 1.1";
const SCALE_SOURCE: &str = "RFC 7323, section 2.3";

/// 1024 x 1024: a "Mbit" of some calculators.
const BINARY_MEGA: f64 = 1_048_576.0;

/// Two of three, and how many share the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowQuestion {
    /// The rate of all streams together.
    pub rate: Option<BitRate>,
    /// The round trip.
    pub rtt: Option<Rtt>,
    /// The window of each stream.
    pub window: Option<ByteCount>,
    /// Parallel connections.
    pub streams: u32,
}

/// The third of rate, round trip and window.
///
/// # Errors
/// Where not exactly two are given, or one is out of bounds.
pub fn window(question: &WindowQuestion) -> Result<Sheet, CalcError> {
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
            // Nanoseconds of the longest round trip there is fit 53 bits.
            let nanos = ByteCount::from_f64((seconds * 1e9).min(Rtt::MAX.nanos() as f64));
            let rtt = check_rtt(Rtt::from_nanos(nanos.bytes()))?;
            answers.push(rtt_answer(rate, rtt, each, streams));
            (rate, rtt, each)
        }
        _ => return Err(CalcError::TwoOfThree),
    };
    answers.push(scale_answer(each));
    Ok(Sheet {
        schema: SHEET_SCHEMA,
        calculator: "window",
        asked: Entries(vec![
            ("rate_bps", question.rate.map(Value::Rate)),
            ("rtt_ms", question.rtt.map(Value::Rtt)),
            ("window_bytes", question.window.map(Value::Size)),
            ("streams", Some(Value::Count(u64::from(streams)))),
        ]),
        answers,
        holds: vec![
            "A window counts payload, so the rate is payload's. It is the most that one window \
             each round trip gives; loss, a smaller send buffer and the rate of the link may \
             give less. The round trip is the one under load, queues included."
                .to_owned(),
            "k, M and G are powers of 1000; Ki, Mi and Gi powers of 1024. A window of 64 KiB x \
             2^N is announced as 65535 x 2^N."
                .to_owned(),
        ],
        tables: vec![window_table(rate, rtt, streams)],
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
            label: "each stream".to_owned(),
            value: Some(Value::Size(per_stream(needed, streams))),
            equation: format!("window / streams = {} / {streams}", figures::bytes(needed)),
            source: "an even share",
        });
    }
    answers.push(Answer {
        key: "window_binary_bytes",
        label: "counted by 1024".to_owned(),
        value: Some(Value::Size(ByteCount::from_f64(binary / 8.0))),
        equation: format!(
            "were 1 Mbit 1024 x 1024 bit: {binary:.0} bit = {} MiB",
            figures::digits(binary / 8.0 / BINARY_MEGA)
        ),
        source: "a way of counting, not of TCP; rates are powers of 1000 (IEC 80000-13)",
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
            label: "counted by 1024".to_owned(),
            value: Some(Value::Number(all.as_f64() / BINARY_MEGA)),
            equation: format!("Mbit/s of 1024 x 1024 bit: {} / 1048576", all.bps()),
            source: "a way of counting, not of TCP; rates are powers of 1000 (IEC 80000-13)",
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

fn scale_answer(window: ByteCount) -> Answer {
    let size = figures::bytes(window);
    let (value, equation) = match shift_of(window) {
        Ok(shift) => (
            Some(Value::Count(u64::from(shift))),
            format!("least N with 65535 x 2^N >= {size} (64 KiB x 2^N taken as that)"),
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

/// The shift of a window, where 64 KiB x 2^N counts as 65535 x 2^N.
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
            "windows at {}: the marked one carries {} with {} {}",
            figures::rtt(rtt),
            figures::rate(rate),
            streams,
            if streams == 1 { "stream" } else { "streams" }
        ),
        columns: vec![
            Column { key: "window_bytes", title: "window" },
            Column { key: "window_scale", title: "N" },
            Column { key: "rate_per_stream_bps", title: "one stream" },
            Column { key: "rate_bps", title: "all streams" },
            Column { key: "streams_needed", title: "streams to fill it" },
        ],
        rows: rows.collect(),
    }
}

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
                "window scales at {}: the marked one carries {}",
                figures::rtt(rtt),
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

#[cfg(test)]
mod tests;
