//! The duration of a transfer, with each congestion control.

use super::result::{
    Answer, CalcResult, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Table, Value,
};
use super::{CalcError, check_mss, check_rtt, check_window};
use crate::{BBR_STARTUP_GAIN, Congestion, RampUp, Transfer, bbr_loss_limit, figures, transfer};
use units::ByteCount;

/// Maximum initial window in segments.
const MAX_INITIAL: u32 = 10_000;

/// A transfer and its congestion control.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferQuestion {
    /// The transfer and its path.
    pub transfer: Transfer,
    /// The congestion control; all of them if `None`.
    pub congestion: Option<Congestion>,
}

/// Computes the duration of a transfer: handshake, slow start, and steady rate.
///
/// # Errors
/// If a value is out of range, or no model covers it.
pub fn transfer_time(question: &TransferQuestion) -> Result<CalcResult, CalcError> {
    let asked = &question.transfer;
    check(asked)?;
    let one = question.congestion.map(|one| vec![one]);
    let transfers: Vec<(Congestion, RampUp)> = one
        .unwrap_or_else(|| Congestion::ALL.to_vec())
        .into_iter()
        .filter_map(|congestion| Some((congestion, transfer(asked, congestion)?)))
        .collect();
    if transfers.is_empty() {
        return Err(CalcError::BbrLoss);
    }
    let alone = asked.size.as_f64() * 8.0 / asked.link.as_f64();
    let mut answers: Vec<Answer> =
        transfers.iter().map(|(congestion, ramp)| time_answer(*congestion, ramp, asked)).collect();
    answers.push(Answer {
        key: "link_s",
        label: "link alone".to_owned(),
        value: Some(Value::Seconds(alone)),
        equation: format!(
            "size / rate = {} x 8 bit / {}",
            figures::bytes(asked.size),
            figures::rate(asked.link)
        ),
        source: "without handshake, slow start or loss",
    });
    Ok(CalcResult {
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
        tables: vec![table(&transfers, asked)],
        curve: Some(curve(&transfers)),
    })
}

fn check(asked: &Transfer) -> Result<(), CalcError> {
    check_rtt(asked.rtt)?;
    check_mss(asked.mss)?;
    asked.window.map(check_window).transpose()?;
    if asked.size == ByteCount::ZERO {
        return Err(CalcError::ZeroSize);
    }
    if !(1..=MAX_INITIAL).contains(&asked.initial) {
        return Err(CalcError::Initial(asked.initial));
    }
    Ok(())
}

fn time_answer(congestion: Congestion, ramp: &RampUp, asked: &Transfer) -> Answer {
    let rtt = figures::rtt(asked.rtt);
    let steady = asked.size.as_f64() - ramp.slow_start.as_f64();
    let mut equation = format!("handshake {rtt} + slow start {} x {rtt}", ramp.rounds);
    if steady > 0.0 {
        let rest = figures::bytes(ByteCount::from_f64(steady));
        equation += &format!(
            " + {rest} at {} + last ACK {rtt}",
            figures::rate(if ends_in_slow_start(ramp, asked) { asked.link } else { ramp.steady })
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
        value: Some(Value::Seconds(ramp.seconds)),
        equation,
        source,
    }
}

/// Returns true if the rest fits into the last window of slow start.
fn ends_in_slow_start(ramp: &RampUp, asked: &Transfer) -> bool {
    let window = f64::from(asked.initial) * asked.mss.as_f64() * 2f64.powf(f64::from(ramp.rounds));
    let left = asked.size.as_f64() - ramp.slow_start.as_f64();
    let takes = ramp.seconds - f64::from(ramp.rounds + 2) * asked.rtt.secs_f64();
    left <= window && takes <= left * 8.0 / asked.link.as_f64() * 1.001
}

fn holds() -> Vec<String> {
    vec![
        "Time from the first SYN to the last ACK. The window doubles each RTT until it fills the \
         path or the receive window, or (Reno, CUBIC) until the expected first loss (Cardwell, \
         Savage, Anderson, INFOCOM 2000); then the rate is the model's average."
            .to_owned(),
        format!(
            "Not included: HyStart (enabled in Linux CUBIC; HyStart++ is RFC 9406), which can end \
             slow start early and prolong the transfer; slow start's overshoot into a short \
             queue; restarts after idle; competing flows. BBR's startup gain of 2/ln 2 = {} also \
             doubles the rate each RTT. Doubling requires an ACK per packet, or appropriate byte \
             counting as in Linux.",
            figures::digits(BBR_STARTUP_GAIN)
        ),
        format!(
            "BBR is omitted above {} loss, where no model is known.",
            figures::percent(bbr_loss_limit())
        ),
    ]
}

fn table(transfers: &[(Congestion, RampUp)], asked: &Transfer) -> Table {
    let rows = transfers.iter().map(|(congestion, ramp)| Row {
        cells: vec![
            Some(Value::Text(congestion.name().to_owned())),
            Some(Value::Count(u64::from(ramp.rounds))),
            Some(Value::Size(ramp.slow_start)),
            Some(Value::Rate(ramp.steady)),
            Some(Value::Seconds(ramp.seconds)),
            Some(Value::Rate(ramp.mean)),
            Some(Value::Share((ramp.mean.as_f64() / asked.link.as_f64()).min(1.0))),
        ],
        marked: false,
    });
    let column = |key, title| Column { key, title };
    Table {
        title: format!("{} over this path", figures::bytes(asked.size)),
        columns: vec![
            column("congestion", "sender"),
            column("slow_start_rounds", "rounds"),
            column("slow_start_bytes", "slow start"),
            column("steady_bps", "steady rate"),
            column("time_s", "time"),
            column("mean_bps", "mean rate"),
            column("link_share", "of link"),
        ],
        rows: rows.collect(),
    }
}

fn curve(transfers: &[(Congestion, RampUp)]) -> Curve {
    // The slowest may take hours longer: end the axis at eight times the fastest.
    let times = || transfers.iter().map(|(_, ramp)| ramp.seconds);
    let end = times().fold(0.0, f64::max).min(times().fold(f64::INFINITY, f64::min) * 8.0);
    let series = transfers.iter().map(|(congestion, ramp)| Series {
        name: congestion.name(),
        points: until(&ramp.points, end),
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

/// The points up to `end`, interpolated there.
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
    fn all_congestion_controls_or_the_given_one() {
        assert_eq!(transfer_time(&asked("1GB", "0")).unwrap().tables[0].rows.len(), 3);
        assert_eq!(transfer_time(&asked("1GB", "30%")).unwrap().tables[0].rows.len(), 2);
        let one = TransferQuestion { congestion: Some(Congestion::Bbr), ..asked("1GB", "1%") };
        let result = transfer_time(&one).unwrap();
        assert_eq!((result.answers.len(), result.answers[0].key), (2, "bbr_s"));
        let none = TransferQuestion { congestion: Some(Congestion::Bbr), ..asked("1GB", "30%") };
        assert_eq!(transfer_time(&none), Err(CalcError::BbrLoss));
    }

    #[test]
    fn the_equation_names_the_rate_that_is_used() {
        // 20 kB: one round, then 5520 B within one window.
        let small = transfer_time(&asked("20KB", "0")).unwrap();
        assert!(small.answers[0].equation.contains("5.52 kB at 100 Mbit/s"), "{small:?}");
        let lossy = transfer_time(&asked("1GB", "1%")).unwrap();
        assert!(!lossy.answers[0].equation.contains("at 100 Mbit/s"), "{lossy:?}");
    }

    #[test]
    fn curves_end_together() {
        let curve = transfer_time(&asked("1GB", "1%")).unwrap().curve.unwrap();
        let ends: Vec<f64> = curve.series.iter().map(|s| s.points.last().unwrap().0).collect();
        assert!(ends[2] < ends[0] && ends[0] <= ends[2] * 8.0 + 1e-6, "{ends:?}");
    }

    #[test]
    fn errors_name_the_value() {
        let good = asked("1GB", "0");
        let with = |transfer| TransferQuestion { transfer, ..good };
        for (question, says) in [
            (with(Transfer { size: ByteCount::ZERO, ..good.transfer }), "zero bytes"),
            (with(Transfer { rtt: Rtt::ZERO, ..good.transfer }), "round trip"),
            (with(Transfer { initial: 0, ..good.transfer }), "‹initial_window›"),
            (with(Transfer { window: Some(ByteCount::ZERO), ..good.transfer }), "window of zero"),
            (with(Transfer { mss: ByteCount::ZERO, ..good.transfer }), "‹mss›"),
        ] {
            let error = transfer_time(&question).unwrap_err().to_string();
            assert!(error.contains(says) && error.lines().count() == 1, "{error}");
        }
    }
}
