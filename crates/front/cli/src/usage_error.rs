//! One-line errors about the command line.

mod corrections;
#[cfg(test)]
mod parsers;

use crate::console::{self, Colour, Console};
use crate::failure::{Failure, USAGE};
use crate::verbs::iperf3;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use std::ffi::OsString;

pub(crate) use corrections::nearest;

/// Prints the requested help or version, otherwise a one-line error, and exits.
pub(crate) fn exit(error: &Error, command: &Command, arguments: &[OsString]) -> ! {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => show_help(error),
        _ => {}
    }
    let negative = negative_number(command, arguments);
    let (value, message) = match &negative {
        Some((value, text)) => (Some(value.as_str()), text.clone()),
        None => (None, message(error)),
    };
    if arguments.get(1).is_some_and(|verb| verb == "iperf3") {
        iperf3::refuse(iperf3::given(error, command).as_deref().unwrap_or(&message));
    }
    let next = next_command(error, value, command, arguments);
    console::complain(&format!("{message}; {next}"));
    std::process::exit(USAGE)
}

/// The line of a failure, with the command to run next where the command line was refused.
pub(crate) fn refused(failure: &Failure, command: &Command, arguments: &[OsString]) -> String {
    let line = failure.to_string();
    let is_said = ["; try: longhaul ", "; see: longhaul "].iter().any(|one| line.contains(one));
    if failure.code != USAGE || is_said {
        return line;
    }
    let meant = match failure.meant() {
        Some((wrong, meant)) => corrections::replaced(command, arguments, wrong, meant),
        None if line.contains("run as root") => {
            let given = arguments.iter().map(|word| word.to_str().map(str::to_owned));
            let own = given.collect::<Option<Vec<String>>>();
            let own = own.map(|words| corrections::named(command, words));
            own.map(|words| std::iter::once("sudo".to_owned()).chain(words).collect())
        }
        None => None,
    };
    format!("{line}; {}", meant.map_or_else(|| see(command, arguments), try_it))
}

/// The command to run next: this one as it was meant, else its help.
fn next_command(
    error: &Error,
    negative: Option<&str>,
    command: &Command,
    arguments: &[OsString],
) -> String {
    let meant = corrections::of_error(error, negative, command, arguments);
    meant.map_or_else(|| see(command, arguments), try_it)
}

fn try_it(words: Vec<String>) -> String {
    format!("try: {}", record::command_line(words))
}

/// The command that arguments name, and its name.
pub(crate) fn verb<'a>(command: &'a Command, arguments: &[OsString]) -> (&'a Command, String) {
    let (mut verb, mut words) = (command, vec![command.get_name()]);
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        let Some(found) = verb.find_subcommand(argument) else { continue };
        words.push(found.get_name());
        verb = found;
    }
    (verb, words.join(" "))
}

/// The help of the command.
fn see(command: &Command, arguments: &[OsString]) -> String {
    format!("see: {} --help", verb(command, arguments).1)
}

/// clap's message without its usage line and the hint about `--`.
fn message(error: &Error) -> String {
    let text = error.render().to_string();
    let name = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => name.as_str(),
        _ => "",
    };
    let (wrong, meant) = (name(ContextKind::InvalidArg), name(ContextKind::SuggestedArg));
    let is_near = corrections::are_alike(wrong, meant);
    let lines: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
        .filter(|line| !line.starts_with("tip: a similar argument") || is_near)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .map(in_words)
        .map(|line| match line.strip_prefix("tip: ") {
            Some(tip) => format!("({tip})"),
            None => line,
        })
        .collect();
    let message = lines.join(" ");
    message.strip_prefix("error: ").unwrap_or(&message).to_owned()
}

/// A line without the phrases of Rust's parsers.
fn in_words(line: &str) -> String {
    const PHRASES: [(&str, &str); 5] = [
        ("invalid digit found in string", "give a whole number"),
        ("cannot parse integer from empty string", "give a whole number"),
        ("number too large to fit in target type", "it is too large"),
        ("number too small to fit in target type", "it is too small"),
        ("invalid float literal", "give a number"),
    ];
    PHRASES.iter().fold(line.to_owned(), |text, (phrase, words)| text.replace(phrase, words))
}

/// clap takes `-1ms` for a flag. Where it is the value of an argument that
/// rejects it, the error is about the value, with its message.
fn negative_number(command: &Command, arguments: &[OsString]) -> Option<(String, String)> {
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
    let text = format!("{value} for {argument}: {} cannot be negative", quantity(argument));
    Some((value.to_owned(), text))
}

/// The command with every value allowed to begin with a hyphen.
fn accept_hyphens(command: Command) -> Command {
    let accept = |argument: Arg| {
        let takes_value = argument.get_action().takes_values();
        if takes_value { argument.allow_hyphen_values(true) } else { argument }
    };
    command.mut_args(accept).mut_subcommands(accept_hyphens)
}

/// The quantity of an argument such as `--rtt <RTT>`, as the subject of a sentence.
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
