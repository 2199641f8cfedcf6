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
    console::complain(&format!("{message}; {}", next_command(error, command, arguments)));
    std::process::exit(USAGE)
}

/// The command to run next: this one as it was meant, else its help.
fn next_command(error: &Error, command: &Command, arguments: &[OsString]) -> String {
    if let Some(words) = corrected(error, command, arguments) {
        return format!("try: {}", words.join(" "));
    }
    let (mut verb, mut words) = (command, vec![command.get_name()]);
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        let Some(found) = verb.find_subcommand(argument) else { continue };
        words.push(found.get_name());
        verb = found;
    }
    format!("see: {} --help", words.join(" "))
}

/// The words with the one that clap would replace, if the result is accepted.
fn corrected(error: &Error, command: &Command, arguments: &[OsString]) -> Option<Vec<String>> {
    let single = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(all) => all.first().cloned(),
        _ => None,
    };
    let pairs = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ];
    let (wrong, meant) =
        pairs.into_iter().find_map(|(wrong, meant)| Some((single(wrong)?, single(meant)?)))?;
    let meant = meant.split_whitespace().next()?.to_owned();
    let mut is_replaced = false;
    let mut words = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let word = argument.to_str()?;
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let replaced = match value {
            _ if is_replaced => None,
            _ if word == wrong => Some(meant.clone()),
            Some(value) if name == wrong => Some(format!("{meant}={value}")),
            Some(value) if value == wrong => Some(format!("{name}={meant}")),
            _ => None,
        };
        is_replaced |= replaced.is_some();
        words.push(replaced.unwrap_or_else(|| word.to_owned()));
    }
    let accepted = command.clone().try_get_matches_from(&words).is_ok();
    if let Some(program) = words.first_mut() {
        command.get_name().clone_into(program);
    }
    let is_plain = |word: &String| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c))
    };
    (is_replaced && accepted && words.iter().all(is_plain)).then_some(words)
}

/// clap's message without its usage line and the hint about `--`.
fn message(error: &Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
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
