//! The command line of a benchmark: options, and names of what to run.

use crate::Fallible;
use std::str::FromStr;

/// What is left of a command line. Options are taken out in any order; the rest are names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    left: Vec<String>,
    is_bench: bool,
}

impl Arguments {
    /// Those of this process; `None` if there is nothing to run: libtest's `--test` only asks
    /// whether it builds, and for `--help` the help is printed.
    #[must_use]
    pub fn of_process(help: &str) -> Option<Self> {
        let arguments = Arguments::of(std::env::args().skip(1));
        if arguments.left.iter().any(|it| it == "--help" || it == "-h") {
            println!("{}", help.trim());
            return None;
        }
        (!arguments.left.iter().any(|it| it == "--test")).then_some(arguments)
    }

    /// Those of a list, without the `--bench` that cargo adds.
    #[must_use]
    pub fn of(arguments: impl IntoIterator<Item = String>) -> Self {
        let all: Vec<String> = arguments.into_iter().collect();
        let is_bench = all.iter().any(|it| it == "--bench");
        Arguments { left: all.into_iter().filter(|it| it != "--bench").collect(), is_bench }
    }

    /// True under `cargo bench`; `cargo test` runs some benchmarks once and shortly.
    #[must_use]
    pub const fn is_bench(&self) -> bool {
        self.is_bench
    }

    /// True if nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Takes a flag out: true if it was given.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.left.len();
        self.left.retain(|it| it != name);
        self.left.len() < before
    }

    /// Takes an option out, and its value.
    ///
    /// # Errors
    /// The value is missing or not valid.
    pub fn value<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> Fallible<Option<T>> {
        let Some(at) = self.left.iter().position(|it| it == name) else { return Ok(None) };
        self.left.remove(at);
        if at == self.left.len() {
            return Err(format!("{name} needs a value").into());
        }
        let value = self.left.remove(at);
        let parsed = value.parse().map_err(|error| format!("{name} {value}: {error}"))?;
        if self.left.iter().any(|it| it == name) {
            return Err(format!("{name} is given twice").into());
        }
        Ok(Some(parsed))
    }

    /// Takes an option out whose value is one of a list of names.
    ///
    /// # Errors
    /// The value is missing or none of the names.
    pub fn one_of<T: Copy>(&mut self, name: &str, known: &[(&str, T)]) -> Fallible<Option<T>> {
        let Some(value) = self.value::<String>(name)? else { return Ok(None) };
        let found = known.iter().find(|(other, _)| *other == value);
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let found = found.ok_or_else(|| format!("{name} is {}, not {value}", names.join(", ")))?;
        Ok(Some(found.1))
    }

    /// Takes an option out whose value is a number of at least 1.
    ///
    /// # Errors
    /// The number is missing or not valid.
    pub fn count(&mut self, name: &str) -> Fallible<Option<usize>> {
        match self.value(name)? {
            Some(0) => Err(format!("{name} is at least 1").into()),
            count => Ok(count),
        }
    }

    /// The words that are left, none of which may be an option.
    ///
    /// # Errors
    /// One is an option that the benchmark does not have.
    pub fn names(self) -> Fallible<Vec<String>> {
        match self.left.iter().find(|it| it.starts_with('-')) {
            Some(option) => Err(format!("no option {option}").into()),
            None => Ok(self.left),
        }
    }

    /// Ends a command line without names.
    ///
    /// # Errors
    /// Something is left.
    pub fn end(self) -> Fallible<()> {
        match self.left.first() {
            Some(left) => Err(format!("no option {left}").into()),
            None => Ok(()),
        }
    }

    /// The named ones of a benchmark's parts, in the order of the table; all if none is named.
    ///
    /// # Errors
    /// An option or a name is unknown.
    pub fn parts<P: Copy>(self, known: &[(&str, P)]) -> Fallible<Vec<P>> {
        let named = self.names()?;
        let is_known = |name: &&String| known.iter().any(|(known, _)| known == name);
        if let Some(unknown) = named.iter().find(|name| !is_known(name)) {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(format!("{unknown}: the parts are {}", names.join(", ")).into());
        }
        let is_asked = |name: &str| named.is_empty() || named.iter().any(|it| it == name);
        Ok(known.iter().filter(|(name, _)| is_asked(name)).map(|(_, part)| *part).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Arguments {
        Arguments::of(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_taken_in_any_order_and_names_are_left() {
        let mut arguments = of("loss --seed 7 --bench --all --rounds 3 ramp");
        assert!(arguments.is_bench());
        assert_eq!(arguments.count("--rounds").unwrap(), Some(3));
        assert!(arguments.flag("--all") && !arguments.flag("--all"));
        assert_eq!(arguments.value::<u64>("--seed").unwrap(), Some(7));
        assert_eq!(arguments.value::<u64>("--seed").unwrap(), None);
        let known = [("ramp", 1), ("fast", 2), ("loss", 3)];
        assert_eq!(arguments.parts(&known).unwrap(), [1, 3]);
        assert_eq!(of("--bench").parts(&known).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn what_is_not_known_is_refused_and_says_what_is() {
        let error = |done: Fallible<()>| done.unwrap_err().to_string();
        let known = [("ramp", ()), ("loss", ())];
        assert_eq!(error(of("--slow").end()), "no option --slow");
        assert_eq!(error(of("los").parts(&known).map(drop)), "los: the parts are ramp, loss");
        assert_eq!(error(of("ramp -x").parts(&known).map(drop)), "no option -x");
        assert_eq!(error(of("--seed").value::<u64>("--seed").map(drop)), "--seed needs a value");
        assert_eq!(error(of("--rounds 0").count("--rounds").map(drop)), "--rounds is at least 1");
        let twice = of("--seed 1 --seed 2").value::<u64>("--seed").map(drop);
        assert_eq!(error(twice), "--seed is given twice");
        let set = of("--set odd").one_of("--set", &known).map(drop);
        assert_eq!(error(set), "--set is ramp, loss, not odd");
        assert!(error(of("--seed x").value::<u64>("--seed").map(drop)).starts_with("--seed x: "));
    }
}
