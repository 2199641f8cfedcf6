//! The rate under random loss, and the maximum loss for a rate.

mod laws;

use super::result::{
    Answer, CalcResult, Column, Curve, Entries, Row, SHEET_SCHEMA, Scale, Series, Table, Value,
    by_decades,
};
use super::{CalcError, check_mss, check_rtt, check_window};
use crate::{bbr_loss_limit, linux_rto, loss_from_fraction};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Losses in the table.
const TABLE: [f64; 8] = [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2, 1e-1];

/// Points per curve.
const POINTS: u32 = 121;

/// The equation.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// [`crate::mathis`].
    Mathis,
    /// [`crate::pftk()`].
    Pftk,
    /// [`crate::cubic`].
    Cubic,
    /// [`crate::bbr()`].
    Bbr,
}

/// A path with loss.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossQuestion {
    /// The equation of the answers; table and plot show all of them.
    pub law: Law,
    /// The RTT.
    pub rtt: Rtt,
    /// The loss whose rate is computed.
    pub loss: Option<LossRatio>,
    /// The link rate, which caps every equation.
    pub link: Option<BitRate>,
    /// The rate whose maximum loss is computed; by default the link rate.
    pub target: Option<BitRate>,
    /// Payload of a full segment.
    pub mss: ByteCount,
    /// The receive window.
    pub window: Option<ByteCount>,
    /// The initial retransmission timeout; by default [`linux_rto`].
    pub rto: Option<Rtt>,
    /// Packets per ACK.
    pub packets_per_ack: u32,
}

impl LossQuestion {
    fn rto(&self) -> Rtt {
        self.rto.unwrap_or_else(|| linux_rto(self.rtt))
    }

    fn target(&self) -> Option<BitRate> {
        self.target.or(self.link)
    }

    fn check(&self) -> Result<(), CalcError> {
        check_rtt(self.rtt)?;
        check_mss(self.mss)?;
        self.window.map(check_window).transpose()?;
        if self.rto == Some(Rtt::ZERO) {
            return Err(CalcError::ZeroRto);
        }
        if self.law == Law::Bbr && self.link.is_none() {
            return Err(CalcError::NoLink);
        }
        match (self.target, self.link) {
            (Some(target), Some(link)) if target > link => {
                return Err(CalcError::Target(target, link));
            }
            _ => {}
        }
        match self.loss {
            Some(LossRatio::NONE) if self.law != Law::Bbr => {
                Err(CalcError::NoLoss(self.law.title()))
            }
            None if self.target().is_none() => Err(CalcError::LossOrRate),
            _ => Ok(()),
        }
    }
}

/// Computes the rate under a loss, and the maximum loss for a rate.
///
/// # Errors
/// If a value is out of range, or neither a loss nor a rate is given.
pub fn loss(question: &LossQuestion) -> Result<CalcResult, CalcError> {
    question.check()?;
    let &LossQuestion { law, rtt, loss, link, mss, window, .. } = question;
    let mut answers = Vec::new();
    if let Some(p) = loss {
        answers.extend(law.rate_answers(question, p));
    }
    if let Some(target) = question.target() {
        answers.push(law.budget_answer(question, target));
    }
    answers.extend(law.interval_answer(question));
    answers.extend(law.recovery_answer(question));
    if let Some(link) = link {
        answers.extend(law.inflight_answer(rtt, link));
    }
    let mut holds = law.holds();
    holds.push(
        "All models assume random loss on a long-lived flow, not the queue drops that the flow \
         itself causes. The link rate counts as a payload rate; 'calc overhead' converts a line \
         rate."
            .to_owned(),
    );
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: law.name(),
        asked: Entries(vec![
            ("rtt_ms", Some(Value::Rtt(rtt))),
            ("loss", loss.map(Value::Loss)),
            ("rate_bps", link.map(Value::Rate)),
            ("target_bps", question.target().map(Value::Rate)),
            ("mss_bytes", Some(Value::Size(mss))),
            ("window_bytes", window.map(Value::Size)),
            ("rto_ms", Some(Value::Rtt(question.rto()))),
            ("packets_per_ack", Some(Value::Count(u64::from(question.packets_per_ack)))),
        ]),
        answers,
        holds,
        tables: vec![table(question)],
        curve: Some(curve(question)),
    })
}

/// The laws to show: the requested one first, BBR only with a link rate.
fn shown(question: &LossQuestion) -> Vec<Law> {
    let mut laws = vec![question.law];
    laws.extend(Law::ALL.into_iter().filter(|law| *law != question.law));
    laws.retain(|law| *law != Law::Bbr || question.link.is_some());
    laws
}

fn table(question: &LossQuestion) -> Table {
    let laws = shown(question);
    let mut losses: Vec<(f64, bool)> = TABLE.iter().map(|p| (*p, false)).collect();
    if let Some(p) = question.loss.map(LossRatio::fraction).filter(|p| *p > 0.0) {
        losses.retain(|(other, _)| (other / p - 1.0).abs() > 1e-9);
        losses.push((p, true));
        losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let rows = losses.into_iter().filter_map(|(p, marked)| {
        let p = loss_from_fraction(p)?;
        let rates = laws.iter().map(|law| law.bounded(question, p).map(Value::Rate));
        Some(Row { cells: [Some(Value::Loss(p))].into_iter().chain(rates).collect(), marked })
    });
    let columns = laws.iter().map(|law| Column { key: law.key(), title: law.name() });
    Table {
        title: format!("rate against loss at {}", crate::figures::rtt(question.rtt)),
        columns: [Column { key: "loss", title: "loss" }].into_iter().chain(columns).collect(),
        rows: rows.collect(),
    }
}

fn curve(question: &LossQuestion) -> Curve {
    // From a decade below the given loss or maximum loss.
    let budget = question.target().and_then(|rate| question.law.budget(question, rate));
    let asked = [question.loss, budget].into_iter().flatten().map(LossRatio::fraction);
    let least = asked.filter(|p| *p > 0.0).fold(1e-5, f64::min) / 10.0;
    let from = 10f64.powf(least.log10().floor()).max(1e-11);
    let series = shown(question).into_iter().map(|law| {
        let to: f64 = if law == Law::Bbr { bbr_loss_limit() } else { 0.5 };
        let points = by_decades(from, to, POINTS).filter_map(|p| {
            let rate = law.bounded(question, loss_from_fraction(p)?)?;
            Some((p, rate.as_f64()))
        });
        Series { name: law.name(), points: points.collect() }
    });
    let rate = question.loss.and_then(|p| question.law.bounded(question, p));
    Curve {
        title: "rate against loss (log-log)".to_owned(),
        x: Scale::LogLoss,
        y: Scale::LogRate,
        series: series.collect(),
        rule: question.link.map(|link| ("link", link.as_f64())),
        asked: question
            .loss
            .filter(|p| *p > LossRatio::NONE)
            .zip(rate)
            .map(|(p, rate)| (p.fraction(), rate.as_f64())),
    }
}

#[cfg(test)]
mod tests;
