//! A plan: a question, a path, what varies, and what is sent.
//!
//! ```toml
//! question = "Does throughput follow window over round trip?"
//! [path]
//! rate = "100mbit"
//! rtt = "50ms"
//! [factors]
//! window = ["64KiB", "128KiB", "256KiB"]
//! streams = "1..4"
//! [traffic]
//! protocol = "tcp"
//! duration = "5s"
//! [repeats]
//! count = 3
//! ```
//!
//! A factor is a [`Setting`] with several values: a list, or a range such as
//! `"64KiB..1MiB x2"`, `"0ms..100ms +20ms"` and `"0.25..4 bdp log 5"`. `[path]` and
//! `[traffic]` fix the others. A plan is checked as a whole: every cell is one that can run.

mod error;
mod written;

pub use error::PlanError;
pub(crate) use written::Written;

use crate::cells::{Cell, Test};
use crate::factor::{Level, Setting};
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use written::{Entry, WrittenPlan, WrittenRepeats};

/// The most cells of a plan.
pub const MAX_CELLS: usize = 100_000;
/// The most tests of a plan, repeats included.
pub const MAX_TESTS: usize = 1_000_000;

/// What a test of a lab takes beside its duration: creating it, the handshake, and exchanging
/// the results.
const OVERHEAD: Duration = Duration::from_millis(300);

/// A study, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In one sentence, ending with a question mark.
    pub question: String,
    /// What is fixed: of the path and of the test.
    pub fixed: Vec<(Setting, Level)>,
    /// What varies, in the order of the file.
    pub factors: Vec<Factor>,
    /// How often, and in what order.
    pub repeats: Repeats,
}

/// What varies, with its values in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// What varies.
    pub setting: Setting,
    /// Its values, all different.
    pub levels: Vec<Level>,
}

/// How often each cell is measured, and in what order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeats {
    /// Tests of each cell.
    pub count: u32,
    /// Of the draws of paths and of the order.
    pub seed: u64,
    /// In what order.
    pub order: Order,
}

/// The order of the tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// All repeats of all cells at random: what drifts over time is in no factor.
    #[default]
    Random,
    /// One repeat of every cell at random, then the next.
    Blocked,
    /// As in the plan, the first factor outermost, its repeats together.
    Plan,
}

impl Order {
    const ALL: [Order; 3] = [Order::Random, Order::Blocked, Order::Plan];

    /// As in plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Order::Random => "random",
            Order::Blocked => "blocked",
            Order::Plan => "plan",
        }
    }
}

impl Plan {
    /// Checks a plan.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let written: WrittenPlan = toml::from_str(text).map_err(|error| {
            let problem = error.message().replace('`', "'").replace('\n', ", ");
            PlanError::at(text, &error.span().unwrap_or(0..0), problem)
        })?;
        Reader { text }.plan(&written)
    }

    /// The number of cells: the product of the factors' values.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.factors.iter().map(|factor| factor.levels.len()).product()
    }

    /// One cell; `number` is less than [`Plan::cells`].
    #[must_use]
    pub fn cell(&self, number: usize) -> Cell {
        let mut rest = number;
        let mut levels = Vec::with_capacity(self.factors.len());
        for factor in self.factors.iter().rev() {
            let count = factor.levels.len().max(1);
            levels.extend(factor.levels.get(rest % count).cloned());
            rest /= count;
        }
        levels.reverse();
        Cell { number, levels }
    }

    /// What runs in a cell.
    ///
    /// # Errors
    /// The values of the cell contradict each other, in words.
    pub fn test(&self, cell: &Cell) -> Result<Test, String> {
        let varied = self.factors.iter().map(|factor| &factor.setting).zip(&cell.levels);
        let fixed = self.fixed.iter().map(|(setting, level)| (setting, level));
        Test::of(fixed.chain(varied))
    }

    /// About how long all tests take.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let one = |number| {
            let test = self.test(&self.cell(number));
            test.map_or(Duration::ZERO, |test| test.planned() + OVERHEAD)
        };
        (0..self.cells()).map(one).sum::<Duration>() * self.repeats.count
    }
}

/// Reads the written form of one file.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn error(&self, span: &Range<usize>, problem: impl Into<String>) -> PlanError {
        PlanError::at(self.text, span, problem)
    }

    fn plan(&self, written: &WrittenPlan) -> Result<Plan, PlanError> {
        let question = written.question.get_ref().trim();
        if question.is_empty() || question.contains('\n') || question.len() > 500 {
            let problem = "the question is one sentence of at most 500 characters";
            return Err(self.error(&written.question.span(), problem));
        }
        let mut fixed = Vec::new();
        for entry in &written.path.get_ref().0 {
            fixed.push(self.fixed(entry, true)?);
        }
        for entry in &written.traffic.get_ref().0 {
            fixed.push(self.fixed(entry, false)?);
        }
        let mut factors: Vec<Factor> = Vec::new();
        for entry in &written.factors.get_ref().0 {
            factors.push(self.factor(entry)?);
        }
        let factors_span = written.factors.span();
        if factors.is_empty() {
            let problem = "no factors; write what varies, such as window = [\"64KiB\", \"1MiB\"]";
            return Err(self.error(&factors_span, problem));
        }
        let plan = Plan {
            question: question.to_owned(),
            fixed,
            factors,
            repeats: self.repeats(written.repeats.as_ref())?,
        };
        self.check_size(&plan, &factors_span)?;
        for number in 0..plan.cells() {
            let cell = plan.cell(number);
            if let Err(problem) = plan.test(&cell) {
                let problem = format!("cell {} ({}): {problem}", number + 1, plan.label(&cell));
                return Err(self.error(&factors_span, problem));
            }
        }
        Ok(plan)
    }

    fn check_size(&self, plan: &Plan, span: &Range<usize>) -> Result<(), PlanError> {
        let sizes = || plan.factors.iter().map(|factor| factor.levels.len());
        let cells = sizes().try_fold(1usize, usize::checked_mul);
        let tests = cells.and_then(|cells| cells.checked_mul(plan.repeats.count as usize));
        if cells.is_none_or(|cells| cells > MAX_CELLS) || tests.is_none_or(|all| all > MAX_TESTS) {
            let product: Vec<String> = sizes().map(|size| size.to_string()).collect();
            let problem = format!(
                "{} cells x {} repeats; at most {MAX_CELLS} cells and {MAX_TESTS} tests: use \
                 fewer values, or a plan for each part of the question",
                product.join(" x "),
                plan.repeats.count
            );
            return Err(self.error(span, problem));
        }
        Ok(())
    }

    /// A setting with one value.
    fn fixed(&self, entry: &Entry, of_path: bool) -> Result<(Setting, Level), PlanError> {
        let setting = self.setting(entry)?;
        if of_path != matches!(setting, Setting::Path(_)) {
            let problem = if of_path {
                format!("'{setting}' is not a key of a path; write it in [traffic]")
            } else {
                format!("'{setting}' is a key of the path; write it in [path]")
            };
            // Settings of the hosts belong to neither; [traffic] has them.
            return Err(self.error(&entry.key_span, problem));
        }
        let Written::One(text) = &entry.value else {
            let problem = format!("{setting} has several values; write it in [factors]");
            return Err(self.error(&entry.value_span, problem));
        };
        let level = setting.level(text).map_err(|wrong| self.error(&entry.value_span, wrong))?;
        Ok((setting, level))
    }

    fn factor(&self, entry: &Entry) -> Result<Factor, PlanError> {
        let setting = self.setting(entry)?;
        let levels = setting.levels(&entry.value).map_err(|wrong| {
            // In a list, the first value that is wrong.
            let span = match &entry.value {
                Written::List(items) => items.iter().find(|(text, _)| setting.level(text).is_err()),
                Written::One(_) => None,
            };
            self.error(span.map_or(&entry.value_span, |(_, span)| span), wrong)
        })?;
        for (index, level) in levels.iter().enumerate() {
            if levels.iter().take(index).any(|other| other.text == level.text) {
                let problem = format!("{setting} has the value {} twice", level.text);
                return Err(self.error(&entry.value_span, problem));
            }
        }
        Ok(Factor { setting, levels })
    }

    fn setting(&self, entry: &Entry) -> Result<Setting, PlanError> {
        Setting::parse(&entry.key).map_err(|wrong| self.error(&entry.key_span, wrong))
    }

    fn repeats(&self, written: Option<&WrittenRepeats>) -> Result<Repeats, PlanError> {
        let mut repeats = Repeats { count: 1, seed: 1, order: Order::default() };
        let Some(written) = written else { return Ok(repeats) };
        let within = |number: &Spanned<i64>, range: Range<i64>, what: &str| {
            let value = *number.get_ref();
            let (first, last) = (range.start, range.end - 1);
            let problem = || format!("{what} = {value}; it is {first} to {last}");
            if range.contains(&value) {
                Ok(value)
            } else {
                Err(self.error(&number.span(), problem()))
            }
        };
        if let Some(count) = &written.count {
            repeats.count = within(count, 1..1_001, "count")?.try_into().unwrap_or(1);
        }
        if let Some(seed) = &written.seed {
            repeats.seed = within(seed, 0..1 << 53, "seed")?.unsigned_abs();
        }
        if let Some(order) = &written.order {
            let named = |known: &Order| known.name() == order.get_ref();
            repeats.order = Order::ALL.into_iter().find(named).ok_or_else(|| {
                let problem = "orders are random, blocked and plan";
                self.error(&order.span(), format!("no order '{}'; {problem}", order.get_ref()))
            })?;
        }
        Ok(repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::ByteCount;

    const MINIMAL: &str = r#"question = "Does throughput follow window over round trip?"
[path]
rate = "100mbit"
rtt = "50ms"
[factors]
window = ["64KiB", "128KiB", "256KiB"]
streams = [1, 2, 4]
[traffic]
protocol = "tcp"
duration = "5s"
[repeats]
count = 3
"#;

    fn refused(from: &str, to: &str) -> PlanError {
        let text = MINIMAL.replace(from, to);
        assert_ne!(text, MINIMAL, "nothing was replaced");
        Plan::parse(&text).unwrap_err()
    }

    #[test]
    fn a_minimal_plan_is_a_cross_product() {
        let plan = Plan::parse(MINIMAL).unwrap();
        assert_eq!((plan.cells(), plan.repeats.count), (9, 3));
        let test = plan.test(&plan.cell(5)).unwrap();
        assert_eq!((test.window, test.streams), (Some(ByteCount::from_bytes(131_072)), 4));
        assert_eq!(plan.label(&plan.cell(5)), "window=128KiB streams=4");
        // 27 tests of 5 s, and what each takes beside it.
        let seconds = plan.estimate().as_secs_f64();
        assert!((135.0..160.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_line_and_column() {
        let error = refused("window = [", "widnow = [");
        assert_eq!(error.at, Some((6, 1)), "{error}");
        let error = refused("\"128KiB\"", "\"128 apples\"");
        assert_eq!(error.at, Some((6, 20)), "{error}");
        assert_eq!(refused("streams = [1, 2, 4]", "streams = []").at, Some((7, 11)));
        assert_eq!(refused("count = 3", "count = 0").at, Some((12, 9)));
        assert_eq!(refused("[repeats]", "[repeat]").at, Some((11, 2)));
        assert_eq!(refused("duration = \"5s\"", "duration = \"5 apples\"").at, Some((10, 12)));
        assert!(refused("rate = ", "window = ").problem.contains("[traffic]"));
        assert!(refused("protocol = ", "queue = ").problem.contains("[path]"));
        assert!(refused("[1, 2, 4]", "[1, 2, 1]").problem.contains("twice"));
    }

    #[test]
    fn an_impossible_product_is_refused_before_any_cell_is_looked_at() {
        let many: Vec<String> = (1..=1_000).map(|n| n.to_string()).collect();
        let three = format!("streams = [{0}]\nblock = [{0}]\nmtu = [{0}]", many.join(","));
        let error = refused("streams = [1, 2, 4]", &three);
        assert!(error.problem.contains("3 x 1000 x 1000 x 1000 cells"), "{error}");
    }

    #[test]
    fn a_list_has_a_thousand_values_at_most() {
        let many: Vec<String> = (1..=500_000).map(|n| n.to_string()).collect();
        let error = refused("[1, 2, 4]", &format!("[{}]", many.join(",")));
        assert!(error.problem.contains("500000 values; at most 1000"), "{error}");
    }

    #[test]
    fn a_cell_that_cannot_run_is_named() {
        let error = refused(
            "window = [\"64KiB\", \"128KiB\", \"256KiB\"]",
            "protocol = [\"tcp\", \"sctp\"]",
        );
        assert!(error.problem.contains("protocol=sctp"), "{error}");
    }

    #[test]
    fn windows_in_bdp_follow_the_path_of_their_cell() {
        let text = MINIMAL.replace("streams = [1, 2, 4]", "rtt = [\"50ms\", \"100ms\"]");
        let text = text.replace("[\"64KiB\", \"128KiB\", \"256KiB\"]", "\"0.5..1 bdp\"");
        let plan = Plan::parse(&text).unwrap();
        let window = |cell| plan.test(&plan.cell(cell)).unwrap().window.unwrap().bytes();
        assert_eq!([0, 1, 2, 3].map(window), [312_500, 625_000, 625_000, 1_250_000]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}", key in "[a-z.]{1,10}", value in "[-0-9a-zA-Z%. ]{0,12}") {
            let _ = Plan::parse(&text);
            let _ = Plan::parse(&MINIMAL.replace("streams = [1, 2, 4]", &format!("{key} = \"{value}\"")));
        }
    }
}
