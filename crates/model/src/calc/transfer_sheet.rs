//! How long a transfer takes, with each congestion control.

use super::sheet::{
    Answer, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Sheet, Table, Value,
};
use super::{CalcError, check_mss, check_rtt, check_window};
use crate::{BBR_STARTUP_GAIN, Congestion, Course, Transfer, bbr_loss_limit, figures, transfer};
use units::ByteCount;

/// Most segments of an initial window taken.
const MOST_INITIAL: u32 = 10_000;

/// A transfer, and whose rules it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferQuestion {
    /// The transfer and its path.
    pub transfer: Transfer,
    /// One congestion control; all where there is none.
    pub congestion: Option<Congestion>,
}

/// The time of a transfer: handshake, slow start, and the steady rate.
///
/// # Errors
/// Where a figure is out of bounds or no model is known.
pub fn transfer_sheet(question: &TransferQuestion) -> Result<Sheet, CalcError> {
    let asked = &question.transfer;
    check(asked)?;
    let one = question.congestion.map(|one| vec![one]);
    let courses: Vec<(Congestion, Course)> = one
        .unwrap_or_else(|| Congestion::ALL.to_vec())
        .into_iter()
        .filter_map(|congestion| Some((congestion, transfer(asked, congestion)?)))
        .collect();
    if courses.is_empty() {
        return Err(CalcError::BbrLoss);
    }
    let alone = asked.size.as_f64() * 8.0 / asked.link.as_f64();
    let mut answers: Vec<Answer> = courses
        .iter()
        .map(|(congestion, course)| time_answer(*congestion, course, asked))
        .collect();
    answers.push(Answer {
        key: "link_s",
        label: "the link alone".to_owned(),
        value: Some(Value::Seconds(alone)),
        equation: format!(
            "size / rate = {} x 8 bit / {}",
            figures::bytes(asked.size),
            figures::rate(asked.link)
        ),
        source: "no handshake, no slow start, no loss",
    });
    Ok(Sheet {
        schema: SHEET_SCHEMA,
        calculator: "transfer",
        asked: Entries(vec![
            ("size_bytes", Some(Value::Size(asked.size))),
            ("rate_bps", Some(Value::Rate(asked.link))),
            ("rtt_ms", Some(Value::Rtt(asked.rtt))),
            ("loss", Some(Value::Loss(asked.loss))),
            ("window_bytes", asked.window.map(Value::Size)),
            ("mss_bytes", Some(Value::Size(asked.mss))),
            ("initial_window_segments", Some(Value::Count(u64::from(asked.initial)))),
        ]),
        answers,
        holds: holds(),
        tables: vec![table(&courses, asked)],
        curve: Some(curve(&courses)),
    })
}

fn check(asked: &Transfer) -> Result<(), CalcError> {
    check_rtt(asked.rtt)?;
    check_mss(asked.mss)?;
    asked.window.map(check_window).transpose()?;
    if asked.size == ByteCount::ZERO {
        return Err(CalcError::ZeroSize);
    }
    if !(1..=MOST_INITIAL).contains(&asked.initial) {
        return Err(CalcError::Initial(asked.initial));
    }
    Ok(())
}

fn time_answer(congestion: Congestion, course: &Course, asked: &Transfer) -> Answer {
    let rtt = figures::rtt(asked.rtt);
    let steady = asked.size.as_f64() - course.slow_start.as_f64();
    let mut equation = format!("handshake {rtt} + slow start {} x {rtt}", course.rounds);
    if steady > 0.0 {
        let rest = figures::bytes(ByteCount::from_f64(steady));
        equation += &format!(
            " + {rest} at {} + last acknowledgement {rtt}",
            figures::rate(if ends_in_slow_start(course, asked) {
                asked.link
            } else {
                course.steady
            })
        );
    }
    let (key, source) = match congestion {
        Congestion::Reno => ("reno_s", "RFC 5681, section 3.1; RFC 6928; then Mathis et al. 1997"),
        Congestion::Cubic => ("cubic_s", "RFC 5681, section 3.1; RFC 6928; then RFC 9438"),
        Congestion::Bbr => {
            ("bbr_s", "Cardwell et al., ACM Queue 14(5), 2016: start-up, then 1 - p")
        }
    };
    Answer {
        key,
        label: congestion.name().to_owned(),
        value: Some(Value::Seconds(course.seconds)),
        equation,
        source,
    }
}

/// Whether the last window of slow start holds what is left.
fn ends_in_slow_start(course: &Course, asked: &Transfer) -> bool {
    let window =
        f64::from(asked.initial) * asked.mss.as_f64() * 2f64.powf(f64::from(course.rounds));
    let left = asked.size.as_f64() - course.slow_start.as_f64();
    let takes = course.seconds - f64::from(course.rounds + 2) * asked.rtt.secs_f64();
    left <= window && takes <= left * 8.0 / asked.link.as_f64() * 1.001
}

fn holds() -> Vec<String> {
    vec![
        "From the first SYN to the last acknowledgement. The window doubles each round trip \
         until path or receiver's window is full, or (Reno, CUBIC) until the packet that is \
         expected to be the first one lost (Cardwell, Savage, Anderson, INFOCOM 2000); then the \
         rate is the model's average at once."
            .to_owned(),
        format!(
            "Not counted: HyStart (on in Linux' CUBIC; HyStart++ is RFC 9406), which may leave slow start \
             early and then takes longer; the overshoot of slow start into a short queue; idle \
             restarts; other flows. BBR starts at a gain of 2/ln 2 = {}, which doubles the rate \
             each round trip as well. Doubling takes an acknowledgement for each packet, or a \
             sender that counts what was acknowledged, as Linux does.",
            figures::digits(BBR_STARTUP_GAIN)
        ),
        format!(
            "BBR is left out above {} loss, where no model of it is known.",
            figures::percent(bbr_loss_limit())
        ),
    ]
}

fn table(courses: &[(Congestion, Course)], asked: &Transfer) -> Table {
    let rows = courses.iter().map(|(congestion, course)| Row {
        cells: vec![
            Some(Value::Text(congestion.name().to_owned())),
            Some(Value::Count(u64::from(course.rounds))),
            Some(Value::Size(course.slow_start)),
            Some(Value::Rate(course.steady)),
            Some(Value::Seconds(course.seconds)),
            Some(Value::Rate(course.mean)),
            Some(Value::Share((course.mean.as_f64() / asked.link.as_f64()).min(1.0))),
        ],
        marked: false,
    });
    let column = |key, title| Column { key, title };
    Table {
        title: format!("{} over this path", figures::bytes(asked.size)),
        columns: vec![
            column("congestion", "sender"),
            column("slow_start_rounds", "rounds"),
            column("slow_start_bytes", "in them"),
            column("steady_bps", "then at"),
            column("time_s", "time"),
            column("mean_bps", "mean rate"),
            column("link_share", "of link"),
        ],
        rows: rows.collect(),
    }
}

fn curve(courses: &[(Congestion, Course)]) -> Curve {
    // The slowest may take hours longer: the axis ends where it says most.
    let times = || courses.iter().map(|(_, course)| course.seconds);
    let end = times().fold(0.0, f64::max).min(times().fold(f64::INFINITY, f64::min) * 8.0);
    let series = courses.iter().map(|(congestion, course)| Series {
        name: congestion.name(),
        points: until(&course.points, end),
    });
    Curve {
        title: "bytes acknowledged over time".to_owned(),
        x: Scale::Seconds,
        y: Scale::Bytes,
        series: series.collect(),
        rule: None,
        asked: None,
    }
}

/// The points up to a moment, the line cut there.
fn until(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = points.iter().copied().filter(|p| p.0 <= end).collect();
    if let (Some(&before), Some(&after)) = (kept.last(), points.get(kept.len())) {
        let along = (end - before.0) / (after.0 - before.0);
        kept.push((end, before.1 + (after.1 - before.1) * along));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rtt;

    fn asked(size: &str, loss: &str) -> TransferQuestion {
        let transfer = Transfer {
            size: size.parse().unwrap(),
            link: "100mbit".parse().unwrap(),
            rtt: "173ms".parse().unwrap(),
            loss: loss.parse().unwrap(),
            mss: ByteCount::from_bytes(1448),
            window: None,
            initial: 10,
        };
        TransferQuestion { transfer, congestion: None }
    }

    #[test]
    fn all_senders_or_the_one_asked_for() {
        assert_eq!(transfer_sheet(&asked("1GB", "0")).unwrap().tables[0].rows.len(), 3);
        assert_eq!(transfer_sheet(&asked("1GB", "30%")).unwrap().tables[0].rows.len(), 2);
        let one = TransferQuestion { congestion: Some(Congestion::Bbr), ..asked("1GB", "1%") };
        let sheet = transfer_sheet(&one).unwrap();
        assert_eq!((sheet.answers.len(), sheet.answers[0].key), (2, "bbr_s"));
        let none = TransferQuestion { congestion: Some(Congestion::Bbr), ..asked("1GB", "30%") };
        assert_eq!(transfer_sheet(&none), Err(CalcError::BbrLoss));
    }

    #[test]
    fn the_equation_names_the_rate_that_is_used() {
        // 20 kB: a round, then 5520 B in a window that holds them.
        let small = transfer_sheet(&asked("20KB", "0")).unwrap();
        assert!(small.answers[0].equation.contains("5.52 kB at 100 Mbit/s"), "{small:?}");
        let lossy = transfer_sheet(&asked("1GB", "1%")).unwrap();
        assert!(!lossy.answers[0].equation.contains("at 100 Mbit/s"), "{lossy:?}");
    }

    #[test]
    fn curves_end_together() {
        let curve = transfer_sheet(&asked("1GB", "1%")).unwrap().curve.unwrap();
        let ends: Vec<f64> = curve.series.iter().map(|s| s.points.last().unwrap().0).collect();
        assert!(ends[2] < ends[0] && ends[0] <= ends[2] * 8.0 + 1e-6, "{ends:?}");
    }

    #[test]
    fn bounds_are_named() {
        let good = asked("1GB", "0");
        let with = |transfer| TransferQuestion { transfer, ..good };
        for (question, says) in [
            (with(Transfer { size: ByteCount::ZERO, ..good.transfer }), "zero bytes"),
            (with(Transfer { rtt: Rtt::ZERO, ..good.transfer }), "round trip"),
            (with(Transfer { initial: 0, ..good.transfer }), "--iw"),
            (with(Transfer { window: Some(ByteCount::ZERO), ..good.transfer }), "window of zero"),
            (with(Transfer { mss: ByteCount::ZERO, ..good.transfer }), "--mss"),
        ] {
            let error = transfer_sheet(&question).unwrap_err().to_string();
            assert!(error.contains(says) && error.lines().count() == 1, "{error}");
        }
    }
}
