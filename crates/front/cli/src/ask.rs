//! Questions to the user, on a terminal only.

use crate::console;
use crate::failure::Failure;
use std::io::{self, IsTerminal};

/// Asks a yes/no question; `option` is what to give where there is no terminal.
pub(crate) fn yes(question: &str, option: &str) -> Result<bool, Failure> {
    Ok(letter(&format!("{question} [y/N] "), option)?.eq_ignore_ascii_case("y"))
}

/// The first letter of the answer.
pub(crate) fn letter(question: &str, option: &str) -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        let problem = format!("no terminal to ask for confirmation; use {option}");
        return Err(Failure::usage(problem));
    }
    console::ask(question);
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(Failure::work)?;
    Ok(line.trim_start().chars().take(1).collect())
}
