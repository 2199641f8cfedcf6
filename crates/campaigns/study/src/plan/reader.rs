//! From a plan as written to one that is checked.

use super::{Factor, MAX_CELLS, MAX_TESTS, Order, Plan, PlanError, Repeats, Until};
use crate::level::Level;
use crate::program::Program;
use crate::setting::Setting;
use crate::test::Sysctl;
use crate::value::LONGHAUL;
use crate::written::{WrittenPlan, WrittenRepeats};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use topology::toml_text::{Entries, Entry, Spanned, TomlText, Written};

/// The most flows of a test, and programs of a plan.
const MAX_FLOWS: usize = 16;
const MAX_PROGRAMS: usize = 16;

/// The most settings that a plan fixes.
const MAX_SETTINGS: usize = 300;

/// Names that flows cannot have: those of parts of a setting's name.
const PREFIXES: [&str; 5] = ["up", "down", "net", "client", "server"];

impl Plan {
    /// Checks a plan.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        Plan::read(text, false)
    }

    /// Checks a plan in its short form: one repeat of each cell, and the settings of
    /// `[quick]` instead of those elsewhere.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn parse_quick(text: &str) -> Result<Self, PlanError> {
        Plan::read(text, true)
    }

    fn read(text: &str, quick: bool) -> Result<Self, PlanError> {
        let text = TomlText::new(text);
        let written: WrittenPlan = text.read()?;
        let (flows, on_hosts) = (written.flow_names(), written.hosts.is_some());
        let server_runs = written
            .hosts
            .as_ref()
            .is_some_and(|hosts| hosts.get_ref().0.iter().any(|entry| entry.key == "server"));
        let programs = Vec::new();
        Reader { text, flows, programs, quick, on_hosts, server_runs }.plan(&written)
    }
}

/// Reads the written form of one file.
pub(super) struct Reader<'a> {
    pub(super) text: TomlText<'a>,
    /// The names of the flows.
    pub(super) flows: Vec<String>,
    /// The programs that the plan brings.
    pub(super) programs: Vec<Arc<Program>>,
    /// True if the short form is asked for.
    pub(super) quick: bool,
    /// True if it runs between real hosts.
    pub(super) on_hosts: bool,
    /// True if its server runs already, so that nothing can be set there.
    pub(super) server_runs: bool,
}

impl Reader<'_> {
    pub(super) fn error(&self, span: &Range<usize>, problem: impl fmt::Display) -> PlanError {
        self.text.error(span, problem)
    }

    pub(super) fn plan(mut self, written: &WrittenPlan) -> Result<Plan, PlanError> {
        let question = written.question.get_ref().trim();
        if question.is_empty() || question.contains('\n') || question.len() > 500 {
            let problem = "the question is one sentence of at most 500 characters";
            return Err(self.error(&written.question.span(), problem));
        }
        let real_hosts = self.real_hosts(written)?;
        self.programs = self.programs(written)?;
        let no_path = Entries::none();
        let path = written.path.as_ref().unwrap_or(&no_path);
        let mut fixed = Vec::new();
        for entry in &path.get_ref().0 {
            fixed.push(self.fixed(entry, true)?);
        }
        for entry in &written.traffic.get_ref().0 {
            fixed.push(self.fixed(entry, false)?);
        }
        for (name, settings) in written.flows_in_order() {
            self.check_flow_name(name)?;
            for entry in &settings.0 {
                fixed.push(self.of_flow(name.get_ref(), entry)?);
            }
        }
        if fixed.len() > MAX_SETTINGS {
            let problem = format!("{} settings; at most {MAX_SETTINGS}", fixed.len());
            return Err(self.error(&path.span(), problem));
        }
        let mut factors: Vec<Factor> = Vec::new();
        for entry in &written.factors.get_ref().0 {
            factors.push(self.factor(entry)?);
            self.check_distinct(&factors, entry)?;
        }
        for entry in &written.paired.get_ref().0 {
            let factor = Factor { paired: true, ..self.factor(entry)? };
            if factors.iter().any(|other| other.setting == factor.setting) {
                let problem = format!("'{}' is in [factors] as well; leave it in one", entry.key);
                return Err(self.error(&entry.key_span, problem));
            }
            let first = !factors.iter().any(|other| other.paired);
            factors.push(factor);
            // The values of the first one name the pairs.
            if first {
                self.check_distinct(&factors, entry)?;
            }
        }
        let factors_span = written.factors.span();
        if factors.is_empty() {
            let problem = "no [factors]; write what varies, such as window = [\"64KiB\", \"1MiB\"]";
            return Err(self.error(&factors_span, problem));
        }
        let mut plan = Plan {
            question: question.to_owned(),
            flows: self.flows.clone(),
            programs: self.programs.clone(),
            optional: self.optional(written.optional.as_ref())?,
            real_hosts,
            fixed,
            factors,
            repeats: self.repeats(written.repeats.as_ref())?,
            plots: Vec::new(),
            source: None,
        };
        if let Some(source) = &written.source {
            plan.source = Some(self.source(&plan, source)?);
        }

        self.check_pairs(&plan, &written.paired.span())?;
        self.shorten(&mut plan, written.quick.as_ref())?;
        self.check_pairs(&plan, &written.paired.span())?;
        // Of the form that is asked for: its values are on the axes.
        plan.plots = self.plots(&plan, &written.plots)?;
        self.check_size(&plan, &factors_span)?;
        for (setting, levels) in plan.levels() {
            let mut checked = levels.iter().map(|level| setting.check_level(level));
            checked.try_for_each(|one| one.map_err(|wrong| self.error(&factors_span, wrong)))?;
        }
        for number in 0..plan.cells() {
            let cell = plan.cell(number);
            if let Err(problem) = plan.test(&cell) {
                let problem = format!("cell {} ({}): {problem}", number + 1, plan.label(&cell));
                return Err(self.error(&factors_span, problem));
            }
        }
        Ok(plan)
    }

    /// Puts the settings of `[quick]` in the place of those that it names. They are checked
    /// also where the plan is read in full.
    fn shorten(&self, plan: &mut Plan, quick: Option<&Entries>) -> Result<(), PlanError> {
        let mut short = plan.clone();
        (short.repeats.count, short.repeats.until) = (1, None);
        for entry in quick.iter().flat_map(|quick| &quick.0) {
            let factor = self.factor(entry)?;
            let fixed = short.fixed.iter().position(|(setting, _)| *setting == factor.setting);
            let varied = short.factors.iter_mut().find(|other| other.setting == factor.setting);
            match (varied, fixed, factor.levels.as_slice()) {
                (Some(varied), _, _) => {
                    varied.levels = factor.levels;
                    if !varied.paired {
                        self.check_distinct(std::slice::from_ref(varied), entry)?;
                    }
                }
                (None, Some(at), [level]) => short.fixed[at].1 = level.clone(),
                (None, Some(_), _) => {
                    let problem = format!("{} is not a factor; it has one value", factor.setting);
                    return Err(self.error(&entry.value_span, problem));
                }
                (None, None, _) => {
                    let problem = format!(
                        "the plan does not set {}; [quick] only overrides settings made elsewhere",
                        factor.setting
                    );
                    return Err(self.error(&entry.key_span, problem));
                }
            }
        }
        if self.quick {
            *plan = short;
        }
        Ok(())
    }

    /// Those that are paired have as many values each.
    fn check_pairs(&self, plan: &Plan, span: &Range<usize>) -> Result<(), PlanError> {
        let mut paired = plan.factors.iter().filter(|factor| factor.paired);
        let Some(first) = paired.next() else { return Ok(()) };
        let count = first.levels.len();
        match paired.find(|factor| factor.levels.len() != count) {
            None => Ok(()),
            Some(other) => {
                let problem = format!(
                    "{} has {count} values and {} has {}; all factors in [paired] need the same \
                     number",
                    first.setting,
                    other.setting,
                    other.levels.len()
                );
                Err(self.error(span, problem))
            }
        }
    }

    fn check_size(&self, plan: &Plan, span: &Range<usize>) -> Result<(), PlanError> {
        let sizes = || plan.dimensions().map(|factor| factor.levels.len());
        let cells = sizes().try_fold(1usize, usize::checked_mul);
        let repeats = plan.repeats.until.map_or(plan.repeats.count, |until| until.most);
        let tests = cells.and_then(|cells| cells.checked_mul(repeats as usize));
        if cells.is_none_or(|cells| cells > MAX_CELLS) || tests.is_none_or(|all| all > MAX_TESTS) {
            let product: Vec<String> = sizes().map(|size| size.to_string()).collect();
            let problem = format!(
                "{} cells x {} repeats; at most {MAX_CELLS} cells and {MAX_TESTS} tests: use \
                 fewer values, or a plan for each part of the question",
                product.join(" x "),
                repeats
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
        let level = self.one(&setting, entry)?;
        self.check_for_hosts(entry, &setting, std::slice::from_ref(&level), false)?;
        Ok((setting, level))
    }

    /// A name is the beginning of a factor's, a column of exports and a label of plots.
    fn check_flow_name(&self, name: &Spanned<String>) -> Result<(), PlanError> {
        let text = name.get_ref();
        let problem = if let Some(problem) = name_problem("flow", text) {
            problem
        } else if Setting::parse(text).is_ok() || PREFIXES.contains(&text.as_str()) {
            format!("'{text}' is the name of a setting; give the flow another one")
        } else if self.flows.len() > MAX_FLOWS {
            format!("{} flows; at most {MAX_FLOWS}", self.flows.len())
        } else {
            return Ok(());
        };
        Err(self.error(&name.span(), problem))
    }

    fn programs(&self, written: &WrittenPlan) -> Result<Vec<Arc<Program>>, PlanError> {
        let mut programs = Vec::new();
        for (name, program) in written.programs_in_order() {
            let text = name.get_ref();
            let known = || Program::built_in().iter().any(|known| known.name == *text);
            let problem = if let Some(problem) = name_problem("program", text) {
                problem
            } else if text == LONGHAUL || known() {
                format!("'{text}' comes with longhaul; give the program another name")
            } else if programs.len() >= MAX_PROGRAMS {
                format!("at most {MAX_PROGRAMS} programs")
            } else {
                let checked = program.program(text);
                programs
                    .push(Arc::new(checked.map_err(|(span, problem)| self.error(&span, problem))?));
                continue;
            };
            return Err(self.error(&name.span(), problem));
        }
        Ok(programs)
    }

    fn optional(&self, written: Option<&Entries>) -> Result<Vec<Sysctl>, PlanError> {
        let mut sysctls = Vec::new();
        for entry in written.iter().flat_map(|entries| &entries.0) {
            let Setting::Sysctl(side, name) = self.setting(entry)? else {
                let problem = "[optional] has net.* sysctls, which a lab may lack";
                return Err(self.error(&entry.key_span, problem));
            };
            let setting = Setting::Sysctl(side, name.clone());
            let level = self.one(&setting, entry)?;
            self.check_for_hosts(entry, &setting, std::slice::from_ref(&level), false)?;
            let value = level.text;
            sysctls.push(Sysctl { side, name, value, optional: true });
        }
        Ok(sysctls)
    }

    /// A setting of one flow.
    fn of_flow(&self, flow: &str, entry: &Entry) -> Result<(Setting, Level), PlanError> {
        let setting = Setting::parse_among(&format!("{flow}.{}", entry.key), &self.flows)
            .map_err(|wrong| self.error(&entry.key_span, wrong))?;
        let level = self.one(&setting, entry)?;
        self.check_for_hosts(entry, &setting, std::slice::from_ref(&level), false)?;
        Ok((setting, level))
    }

    fn one(&self, setting: &Setting, entry: &Entry) -> Result<Level, PlanError> {
        let Written::One(text) = &entry.value else {
            let problem = format!("{setting} has several values; write it in [factors]");
            return Err(self.error(&entry.value_span, problem));
        };
        setting.level(text, &self.programs).map_err(|wrong| self.error(&entry.value_span, wrong))
    }

    fn factor(&self, entry: &Entry) -> Result<Factor, PlanError> {
        let setting = self.setting(entry)?;
        let levels = setting.levels(&entry.value, &self.programs).map_err(|wrong| {
            // In a list, the first value that is wrong.
            let span = match &entry.value {
                Written::List(items) => {
                    items.iter().find(|(text, _)| setting.level(text, &self.programs).is_err())
                }
                Written::One(_) => None,
            };
            self.error(span.map_or(&entry.value_span, |(_, span)| span), wrong)
        })?;
        self.check_for_hosts(entry, &setting, &levels, true)?;
        Ok(Factor { setting, levels, paired: false })
    }

    /// The values of the last factor are all different.
    fn check_distinct(&self, factors: &[Factor], entry: &Entry) -> Result<(), PlanError> {
        let Some(Factor { setting, levels, .. }) = factors.last() else { return Ok(()) };
        for (index, level) in levels.iter().enumerate() {
            if levels.iter().take(index).any(|other| other.text == level.text) {
                let problem = format!("{setting} has the value {} twice", level.text);
                return Err(self.error(&entry.value_span, problem));
            }
        }
        Ok(())
    }

    fn setting(&self, entry: &Entry) -> Result<Setting, PlanError> {
        Setting::parse_among(&entry.key, &self.flows)
            .map_err(|wrong| self.error(&entry.key_span, wrong))
    }

    fn repeats(&self, written: Option<&WrittenRepeats>) -> Result<Repeats, PlanError> {
        let mut repeats = Repeats::ONCE;
        let Some(written) = written else { return Ok(repeats) };
        let within = |number: &Spanned<i64>, range: Range<i64>, what: &str| {
            let value = *number.get_ref();
            let (first, last) = (range.start, range.end - 1);
            let problem = || format!("{what} = {value}; it must be {first} to {last}");
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
        repeats.until = match (&written.until, &written.most) {
            (None, None) => None,
            (Some(until), Some(most)) => {
                let share = until.get_ref().strip_suffix('%').map(str::trim);
                let share = share.and_then(|text| text.parse::<f64>().ok());
                let share =
                    share.filter(|share| (0.1..=100.0).contains(share)).ok_or_else(|| {
                        let problem =
                            "until is half the confidence interval divided by the mean: 0.1% to \
                             100%";
                        self.error(&until.span(), format!("'{}': {problem}", until.get_ref()))
                    })?;
                let first = i64::from(repeats.count.max(2));
                let most = within(most, first..1_001, "most")?.try_into().unwrap_or(2);
                Some(Until { within: share / 100.0, most })
            }
            (Some(one), None) => {
                let problem = "until also needs the maximum runs per cell, such as most = 20";
                return Err(self.error(&one.span(), problem));
            }
            (None, Some(one)) => {
                let problem = "most needs until, such as until = \"5%\"";
                return Err(self.error(&one.span(), problem));
            }
        };
        Ok(repeats)
    }
}

/// The error in a name that a plan gives to something.
fn name_problem(what: &str, text: &str) -> Option<String> {
    let named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let wrong = text.is_empty() || text.len() > 32 || !text.chars().all(named);
    wrong.then(|| format!("a {what}'s name is 1 to 32 letters, digits, '-' and '_'"))
}
