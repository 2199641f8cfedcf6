//! `--fail-if-worse`: an exit code for scripts where a comparison shows a regression.

use crate::failure::{Code, DONE, WORSE};
use clap::Args;
use record::{BaselineComparison, Comparison};

/// The option of the commands that compare with an earlier result.
#[derive(Debug, Clone, Args)]
pub(crate) struct RegressionArgs {
    /// Exit with 4 if the goodput is significantly lower
    ///
    /// With PERCENT, only if it is lower by at least that much. Differences that are not
    /// significant at the 95 % level are ignored.
    #[arg(long, value_name = "PERCENT", requires = "compare", num_args = 0..=1)]
    #[arg(default_missing_value = "0", value_parser = percent, help_heading = "Output")]
    fail_if_worse: Option<f64>,
}

impl RegressionArgs {
    /// Returns the exit code of a test that would otherwise end with `code`.
    pub(crate) fn code_of(&self, code: Code, comparison: Option<&Comparison>) -> Code {
        let is_worse = comparison.is_some_and(|one| self.is_worse(one, one.real));
        if code == DONE && is_worse { WORSE } else { code }
    }

    /// Returns the exit code of a baseline: one worse condition suffices.
    pub(crate) fn code_of_baseline(
        &self,
        code: Code,
        comparison: Option<&BaselineComparison>,
    ) -> Code {
        let conditions = comparison.into_iter().flat_map(|all| &all.conditions);
        let is_worse =
            |one: &record::ComparedCondition| self.is_worse(&one.comparison, one.significant);
        if code == DONE && conditions.into_iter().any(is_worse) { WORSE } else { code }
    }

    fn is_worse(&self, comparison: &Comparison, significant: Option<bool>) -> bool {
        let Some(percent) = self.fail_if_worse else { return false };
        let share = comparison.difference_share.unwrap_or(0.0);
        significant == Some(true) && share < 0.0 && share <= -percent / 100.0
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    number
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "give a percentage from 0 to 100, such as 5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FAILED;

    fn comparison(share: f64, real: Option<bool>) -> Comparison {
        Comparison {
            method: "runs".to_owned(),
            baseline_count: 5,
            baseline_bps: 1e8,
            count: 5,
            now_bps: 1e8 * (1.0 + share),
            difference_bps: 1e8 * share,
            difference_share: Some(share),
            low_bps: None,
            high_bps: None,
            confidence: 0.95,
            p: None,
            real,
            sentence: String::new(),
        }
    }

    #[test]
    fn only_a_significant_loss_of_enough_is_worse() {
        let code = |limit: Option<f64>, share, real| {
            let args = RegressionArgs { fail_if_worse: limit };
            args.code_of(DONE, Some(&comparison(share, real)))
        };
        assert_eq!(code(Some(0.0), -0.01, Some(true)), WORSE);
        assert_eq!(code(Some(5.0), -0.05, Some(true)), WORSE);
        assert_eq!(code(Some(5.0), -0.04, Some(true)), DONE);
        assert_eq!(code(Some(0.0), -0.5, Some(false)), DONE);
        assert_eq!(code(Some(0.0), -0.5, None), DONE);
        assert_eq!(code(Some(0.0), 0.5, Some(true)), DONE);
        assert_eq!(code(None, -0.5, Some(true)), DONE);
        let args = RegressionArgs { fail_if_worse: Some(0.0) };
        assert_eq!(args.code_of(FAILED, Some(&comparison(-0.5, Some(true)))), FAILED);
        assert_eq!(args.code_of(DONE, None), DONE);
    }

    #[test]
    fn percentages() {
        assert_eq!((percent("5"), percent("5%"), percent("2.5 %")), (Ok(5.0), Ok(5.0), Ok(2.5)));
        for wrong in ["", "-1", "101", "nan", "x"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
