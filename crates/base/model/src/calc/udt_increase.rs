//! UDT's rate increase, and its recovery time.

use super::CalcError;
use super::result::{
    Answer, CalcResult, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Table, Value,
};
use crate::{
    MAX_MTU, UDT_DECREASE, UDT_SYN_S, figures, loss_budget_udt, udt_alpha, udt_recovery,
    udt_under_loss,
};
use problem::Field;
use units::{BitRate, LossRatio};

const PAPER: &str = "Gu, Grossman, Computer Networks 51(7), 2007";

/// A link and UDT's sending rate.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdtQuestion {
    /// The link rate, L.
    pub rate: BitRate,
    /// The sending rate, C.
    pub sending: BitRate,
    /// Packet size in bytes, S.
    pub packet: u32,
    /// The random loss whose rate is computed.
    pub loss: Option<LossRatio>,
}

/// Computes UDT's increase at a sending rate, a table over all rates, and the recovery
/// time to 90 % of the link.
///
/// # Errors
/// If the packet size is out of range, or the sending rate exceeds the link rate.
pub fn udt(question: &UdtQuestion) -> Result<CalcResult, CalcError> {
    let &UdtQuestion { rate, sending, packet, loss } = question;
    let least = 64;
    let refused = CalcError::Frame(
        format!("a packet of {packet} bytes"),
        Field::Packet,
        "from 64 to 65535, as in 1500",
    );
    if !(least..=MAX_MTU).contains(&packet) {
        return Err(refused);
    }
    if sending > rate {
        return Err(CalcError::Target(sending, rate));
    }
    let alpha = udt_alpha(rate, sending, packet).ok_or(refused)?;
    let mut answers = vec![alpha_answer(question, alpha)];
    answers.extend(recovery_answers(rate, packet));
    if let Some(loss) = loss.filter(|loss| *loss > LossRatio::NONE) {
        answers.push(loss_answer(rate, packet, loss));
    }
    answers.push(Answer {
        key: "loss_budget",
        label: "maximum loss".to_owned(),
        value: loss_budget_udt(rate, packet, rate.scaled(0.9)).map(Value::Loss),
        equation: "p for 90 % of the link = 9 alpha / (SYN x^2), x in packets/s".to_owned(),
        source: "equilibrium of increase and loss: each loss reduces the rate by 1/9",
    });
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "udt",
        asked: Entries(vec![
            ("rate_bps", Some(Value::Rate(rate))),
            ("sending_bps", Some(Value::Rate(sending))),
            ("packet_bytes", Some(Value::Count(u64::from(packet)))),
            ("loss", loss.map(Value::Loss)),
        ]),
        answers,
        holds: vec![
            "Valid for UDT's native congestion control after slow start, alone on the link, with L \
             known; UDT estimates L by packet pairs, and after a loss limits the gap to L/9. The \
             minimum increase is 0.01 packets per SYN, as in UDT 4.11. tau = 9, SYN = 10 ms. \
             Rates include packet headers."
                .to_owned(),
            "No equation contains the RTT: the increase is per SYN interval. Losses are assumed to \
             be rare; here a second loss before recovery reduces the rate again, which UDT may \
             avoid."
                .to_owned(),
        ],
        tables: vec![table(question)],
        curve: Some(curve(question)),
    })
}

fn alpha_answer(q: &UdtQuestion, alpha: f64) -> Answer {
    let gap = BitRate::from_bps(q.rate.bps().saturating_sub(q.sending.bps()));
    Answer {
        key: "alpha_packets_per_s",
        label: "alpha, packets/s".to_owned(),
        value: Some(Value::Number(alpha)),
        equation: format!(
            "alpha = 10^(ceil(log10(L - C)) - 9) x 1500/S x 1/SYN in packets/s per SYN; L - C = {}, \
             S = {} B, SYN = 10 ms: {} packets/SYN more per SYN, {} more per second",
            figures::rate(gap),
            q.packet,
            figures::digits(alpha * UDT_SYN_S),
            figures::rate(growth(alpha, q.packet))
        ),
        source: PAPER,
    }
}

/// The increase of the rate per second.
fn growth(alpha: f64, packet: u32) -> BitRate {
    BitRate::from_bps_f64(alpha / UDT_SYN_S * f64::from(packet) * 8.0)
}

fn recovery_answers(rate: BitRate, packet: u32) -> Vec<Answer> {
    let answer = |key, label: &str, from: f64, to: f64, equation: String| Answer {
        key,
        label: label.to_owned(),
        value: udt_recovery(rate, rate.scaled(from), rate.scaled(to), packet)
            .map(|time| Value::Seconds(time.as_secs_f64())),
        equation,
        source: PAPER,
    };
    vec![
        answer(
            "recovery_s",
            "from 0 to 90 %",
            0.0,
            0.9,
            "sum over the decades of the gap, each with its alpha: 7.5 s on any link of at least \
             10 Mbit/s with S of at most 1500"
                .to_owned(),
        ),
        answer(
            "after_loss_s",
            "after one loss",
            UDT_DECREASE,
            0.99,
            "from 8/9 of the link (the sending period times 1.125) to 99 %".to_owned(),
        ),
    ]
}

fn loss_answer(rate: BitRate, packet: u32, loss: LossRatio) -> Answer {
    Answer {
        key: "rate_under_loss_bps",
        label: "rate under loss".to_owned(),
        value: udt_under_loss(rate, packet, loss).map(Value::Rate),
        equation: format!(
            "x = sqrt(9 alpha / (SYN p)) packets/s, p = {}, at any RTT",
            figures::loss(loss)
        ),
        source: "equilibrium of increase and loss: each loss reduces the rate by 1/9",
    }
}

fn table(q: &UdtQuestion) -> Table {
    let shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];
    let mut rates: Vec<(BitRate, bool)> =
        shares.iter().map(|share| (q.rate.scaled(*share), false)).collect();
    rates.retain(|(rate, _)| *rate != q.sending);
    rates.push((q.sending, true));
    rates.sort();
    let rows = rates.into_iter().filter_map(|(sending, marked)| {
        let alpha = udt_alpha(q.rate, sending, q.packet)?;
        let gap = BitRate::from_bps(q.rate.bps().saturating_sub(sending.bps()));
        let time = udt_recovery(q.rate, BitRate::ZERO, sending, q.packet)?;
        Some(Row {
            cells: vec![
                Some(Value::Rate(sending)),
                Some(Value::Rate(gap)),
                Some(Value::Number(alpha)),
                Some(Value::Number(alpha * UDT_SYN_S)),
                Some(Value::Rate(growth(alpha, q.packet))),
                Some(Value::Seconds(time.as_secs_f64())),
            ],
            marked,
        })
    });
    let column = |key, title| Column { key, title };
    Table {
        title: format!("by sending rate C on {}", figures::rate(q.rate)),
        columns: vec![
            column("sending_bps", "C"),
            column("gap_bps", "L - C"),
            column("alpha_packets_per_s", "alpha"),
            column("packets_per_syn", "per SYN"),
            column("growth_bps_per_s", "per second"),
            column("time_s", "reached after"),
        ],
        rows: rows.collect(),
    }
}

fn curve(q: &UdtQuestion) -> Curve {
    let packet = q.packet;
    let points = (0..=198u32).filter_map(|step| {
        let reached = q.rate.scaled(f64::from(step) / 200.0);
        let time = udt_recovery(q.rate, BitRate::ZERO, reached, packet)?;
        Some((time.as_secs_f64(), reached.as_f64()))
    });
    Curve {
        title: "rate over time, from zero and without loss".to_owned(),
        x: Scale::Seconds,
        y: Scale::Rate,
        series: vec![Series { name: "udt", points: points.collect() }],
        rule: Some(("link", q.rate.as_f64())),
        asked: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(rate: &str, sending: u64) -> UdtQuestion {
        let rate = rate.parse().unwrap();
        UdtQuestion { rate, sending: BitRate::from_bps(sending), packet: 1500, loss: None }
    }

    #[test]
    fn alpha_and_recovery_of_a_gigabit() {
        let result = udt(&asked("1gbit", 0)).unwrap();
        assert_eq!(result.figure("alpha_packets_per_s"), Some(&Value::Number(100.0)));
        let Some(Value::Seconds(time)) = result.figure("recovery_s") else { panic!() };
        assert!((time - 7.5).abs() < 0.01, "{time}");
        let near = udt(&asked("1gbit", 950_000_000)).unwrap();
        let Some(Value::Number(alpha)) = near.figure("alpha_packets_per_s") else { panic!() };
        assert!((alpha - 10.0).abs() < 1e-9, "{alpha}");
        assert_eq!(near.tables[0].rows.iter().filter(|row| row.marked).count(), 1);
        assert_eq!(near.tables[0].rows.len(), 14);
    }

    #[test]
    fn rare_loss_keeps_it_below_the_link() {
        let result =
            udt(&UdtQuestion { loss: Some("0.1%".parse().unwrap()), ..asked("1gbit", 0) }).unwrap();
        let Some(Value::Rate(rate)) = result.figure("rate_under_loss_bps") else { panic!() };
        assert!((rate.as_f64() / 114e6 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn errors_name_the_value() {
        for (question, says) in [
            (UdtQuestion { packet: 0, ..asked("1gbit", 0) }, "‹packet›"),
            (UdtQuestion { packet: 65_536, ..asked("1gbit", 0) }, "‹packet›"),
            (asked("1gbit", 1_000_000_001), "exceeds the link"),
        ] {
            let error = udt(&question).unwrap_err().to_string();
            assert!(error.contains(says) && error.lines().count() == 1, "{error}");
        }
    }
}
