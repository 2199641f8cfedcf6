//! One-line errors about the command line.

use crate::console::{self, Colour, Console};
use crate::failure::USAGE;
use crate::verbs::iperf3;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use std::ffi::OsString;

/// Prints the requested help or version, otherwise a one-line error, and exits.
pub(crate) fn exit(error: &Error, command: &Command, arguments: &[OsString]) -> ! {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => show_help(error),
        _ => {}
    }
    let message = negative_number(command, arguments).unwrap_or_else(|| message(error));
    if arguments.get(1).is_some_and(|verb| verb == "iperf3") {
        iperf3::refuse(iperf3::given(error, command).as_deref().unwrap_or(&message));
    }
    console::complain(&format!("{message}; see --help"));
    std::process::exit(USAGE)
}

/// clap's message without its usage line and the hint about `--`.
fn message(error: &Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .map(|line| line.strip_prefix("tip: ").map_or(line.to_owned(), |tip| format!("({tip})")))
        .collect();
    let message = lines.join(" ");
    message.strip_prefix("error: ").unwrap_or(&message).to_owned()
}

/// clap takes `-1ms` for a flag. Where it is the value of an argument that
/// rejects it, that is what is wrong.
fn negative_number(command: &Command, arguments: &[OsString]) -> Option<String> {
    let is_negative = |word: &str| {
        let number = word.strip_prefix(['-', '\u{2212}']);
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    };
    if !arguments.iter().any(|word| word.to_str().is_some_and(is_negative)) {
        return None;
    }
    let error = accept_hyphens(command.clone()).try_get_matches_from(arguments).err()?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let value = text(ContextKind::InvalidValue).filter(|value| is_negative(value))?;
    let argument = text(ContextKind::InvalidArg)?;
    Some(format!("{value} for {argument}: {} cannot be negative", quantity(argument)))
}

/// The command with every value allowed to begin with a hyphen.
fn accept_hyphens(command: Command) -> Command {
    let accept = |argument: Arg| {
        let takes_value = argument.get_action().takes_values();
        if takes_value { argument.allow_hyphen_values(true) } else { argument }
    };
    command.mut_args(accept).mut_subcommands(accept_hyphens)
}

/// What an argument such as `--rtt <RTT>` is, as the subject of a sentence.
fn quantity(argument: &str) -> &'static str {
    let name = argument.rsplit_once('<').map_or(argument, |(_, name)| name);
    match name.trim_end_matches(['>', '.']) {
        "RTT" => "a round-trip time",
        "RATE" => "a rate",
        "SIZE" | "WINDOW" | "BYTES" | "BYTE" => "a size",
        "LOSS" => "a loss ratio",
        "SECONDS" | "TIME" | "MS" | "US" => "a time",
        "PORT" | "[ADDRESS:]PORT" => "a port",
        "N" | "STREAMS" | "COUNT" | "SEGMENTS" => "a count",
        _ => "this value",
    }
}

/// As clap would, but through the same sink as everything else: the usage line
/// repeats the name that the program was called by.
fn show_help(error: &Error) -> ! {
    let console = Console::new(Colour::Auto);
    let to_error = error.use_stderr();
    let colour = if to_error { console.err.colour } else { console.out.colour };
    let text = error.render();
    let text = if colour { text.ansi().to_string() } else { text.to_string() };
    console::help(&text, colour, to_error);
    std::process::exit(error.exit_code())
}
