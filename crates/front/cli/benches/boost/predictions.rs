//! Drawn paths and options: what `boost plan` predicts, written before anything is measured, beside
//! the measured gain.

mod draw;
mod gain;

use crate::planned;
use bench_harness::{Fallible, row};
use draw::{Drawn, Draws};
use record::{BOOST_WORTH, BoostKind, BoostOption};
use std::path::PathBuf;

/// Rows, and those among them without a predicted gain.
const ROWS: usize = 24;
const WITHOUT_GAIN: usize = 6;

/// The promised distance between measured and predicted gain, and the rows that keep it.
const WITHIN: f64 = 0.15;
const PROMISED: usize = 22;

/// A drawn path and option, with its prediction.
struct Row {
    drawn: Drawn,
    now_bps: f64,
    option: BoostOption,
}

impl Row {
    /// `None` if the plan predicts nothing for the draw.
    fn of(drawn: Drawn) -> Fallible<Option<Self>> {
        let transfer = planned::transfer(&drawn.words())?;
        let option = planned::option(&transfer, drawn.kind)?.clone();
        let now = planned::option(&transfer, BoostKind::Nothing)?.goodput_bps;
        let Some(now) = now.filter(|_| option.factor.is_some()) else { return Ok(None) };
        Ok(Some(Row { drawn, now_bps: now.expected.as_f64(), option }))
    }

    fn factor(&self) -> f64 {
        self.option.factor.map_or(f64::NAN, |factor| factor.expected)
    }
}

/// Measures the rows of a seed, or the one of a number from 1.
pub(crate) fn measure(
    seed: u64,
    number: Option<usize>,
    file: Option<PathBuf>,
    is_short: bool,
) -> Fallible<()> {
    let rows = rows(seed)?;
    let file = file.unwrap_or_else(|| {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("boost-predictions-{seed}.txt"))
    });
    let text: String = rows.iter().enumerate().map(|(at, row)| predicted(at, row)).collect();
    std::fs::write(&file, &text)?;
    print!("seed {seed}; predictions, in {}:\n{text}", file.display());
    let (mut within, mut measured) = (0, 0);
    for (at, one) in rows.iter().enumerate() {
        if number.is_some_and(|number| number != at + 1) {
            continue;
        }
        measured += 1;
        let found = match gain::measure(&one.drawn, one.now_bps, &one.option, is_short) {
            Ok(found) => found,
            Err(error) => {
                println!("{:>2} not measured, counts as missed: {error}", at + 1);
                continue;
            }
        };
        let off = found.gain() / one.factor() - 1.0;
        let is_within = off.abs() <= WITHIN;
        within += usize::from(is_within);
        println!(
            "{:>2} {}: {:.2}, then {:.2} Mbit/s: x {:.2}, predicted x {:.2} ({:+.0} %), {:.2} Mbit/s \
             ({:+.0} %){}  {}",
            at + 1,
            one.drawn,
            found.direct / 1e6,
            found.option / 1e6,
            found.gain(),
            one.factor(),
            off * 100.0,
            expected(one) / 1e6,
            (found.option / expected(one) - 1.0) * 100.0,
            if found.is_valid { "" } else { ", lab not valid" },
            if is_within { "yes" } else { "NO" },
        );
    }
    if number.is_none() {
        let promised = format!("{PROMISED} of {ROWS}");
        let figure = format!("{within} of {measured}");
        row("boost: predictions within 15 %", &promised, &figure, within >= PROMISED);
    }
    Ok(())
}

fn expected(row: &Row) -> f64 {
    row.option.goodput_bps.map_or(f64::NAN, |rate| rate.expected.as_f64())
}

fn predicted(at: usize, row: &Row) -> String {
    let rate = row.option.goodput_bps.map_or(f64::NAN, |rate| rate.expected.as_f64());
    let reason = row.option.reason.map_or("", |reason| reason.sentence());
    format!(
        "{:>2} {}: {:.2}, then {:.2} Mbit/s: x {:.2} {reason}\n",
        at + 1,
        row.drawn,
        row.now_bps / 1e6,
        rate / 1e6,
        row.factor()
    )
}

/// The first draws of the seed that are predicted, of which enough have no gain.
fn rows(seed: u64) -> Fallible<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for drawn in Draws::new(seed).take(100 * ROWS) {
        let Some(row) = Row::of(drawn)? else { continue };
        let gains = |row: &Row| row.factor() >= BOOST_WORTH;
        let with_gain = rows.iter().filter(|row| gains(row)).count();
        if !gains(&row) || with_gain < ROWS - WITHOUT_GAIN {
            rows.push(row);
        }
        if rows.len() == ROWS {
            return Ok(rows);
        }
    }
    Err("too few paths have a prediction".into())
}
