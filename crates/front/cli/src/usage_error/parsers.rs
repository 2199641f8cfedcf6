//! Every value of the command line with values that it rejects: the error is one line, without
//! the phrases of Rust's own parsers.

use super::message;
use crate::Cli;
use clap::{Arg, Command, CommandFactory};

/// Words of Rust's parsers and of its debug output.
const RAW: [&str; 16] = [
    "invalid digit",
    "invalid float",
    "number too",
    "target type",
    "cannot parse",
    "provided string",
    "empty string",
    "ParseInt",
    "ParseFloat",
    "Utf8Error",
    "invalid IP address syntax",
    "invalid IPv",
    "invalid socket address",
    "Error {",
    "Some(",
    "Err(",
];

/// Values that must not confuse any parser.
const GARBAGE: [&str; 14] = [
    "",
    " ",
    "x",
    "-1",
    "1.5x",
    "99999999999999999999999",
    "1e999",
    "nan",
    "0x10",
    "1_000",
    "é",
    "1,5",
    "a=b=c",
    "\u{1b}[31m",
];

/// A command with a value of this argument's type alone, and the name of its value.
fn alone(arg: &Arg) -> Command {
    let mut value = Arg::new("value").long("value").allow_hyphen_values(true);
    value = value.value_parser(arg.get_value_parser().clone());
    if let Some([name, ..]) = arg.get_value_names() {
        value = value.value_name(name.to_string());
    }
    Command::new("longhaul").arg(value)
}

fn visit(command: &Command, path: &str, count: &mut usize) {
    for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
        let name = format!("{path} {}", arg.get_id());
        for garbage in GARBAGE {
            let given = ["longhaul".to_owned(), format!("--value={garbage}")];
            let Err(error) = alone(arg).try_get_matches_from(given) else { continue };
            let text = message(&error);
            *count += 1;
            assert!(!text.is_empty() && text.lines().count() == 1, "{name} {garbage:?}: {text}");
            let raw = RAW.iter().find(|phrase| text.contains(**phrase));
            assert!(raw.is_none(), "{name} {garbage:?}: {text}");
        }
    }
    for below in command.get_subcommands() {
        visit(below, &format!("{path} {}", below.get_name()), count);
    }
}

#[test]
fn no_value_is_refused_in_the_words_of_a_parser() {
    let mut count = 0;
    visit(&Cli::command(), "longhaul", &mut count);
    assert!(count > 1000, "only {count} refusals");
}
