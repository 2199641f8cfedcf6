//! The examples in the help of each command: each command has some, and the program accepts them.

use crate::Cli;
use crate::documented::{check, simple_commands};
use clap::{Command, CommandFactory};

/// Commands without subcommands, with their full names.
fn leaves<'a>(command: &'a Command, path: &str, found: &mut Vec<(String, &'a Command)>) {
    let shown = |one: &&Command| !one.is_hide_set() && one.get_name() != "help";
    for below in command.get_subcommands().filter(shown) {
        let path = format!("{path} {}", below.get_name());
        // `pcap FILE` is a command itself.
        if below.get_subcommands().next().is_none() || below.get_positionals().next().is_some() {
            found.push((path.clone(), below));
        }
        leaves(below, &path, found);
    }
}

/// The command lines of an "Examples:" section: indented, until the next empty line, continued
/// after a backslash, with a description after two spaces.
fn examples(help: &str) -> Vec<String> {
    let Some((_, section)) = help.split_once("Examples:\n") else { return Vec::new() };
    let lines = section.lines().take_while(|line| !line.trim().is_empty());
    let mut text = String::new();
    for line in lines {
        match text.strip_suffix('\\') {
            Some(begun) => text = format!("{}{}", begun, line.trim_start()),
            None => text = format!("{text}\n{line}"),
        }
    }
    let command = |line: &str| {
        let mut parts = line.split("  ").map(str::trim);
        parts.find(|part| !part.is_empty()).unwrap_or_default().to_owned()
    };
    text.lines().filter(|line| line.starts_with(' ')).map(command).collect()
}

#[test]
fn every_command_has_examples_that_it_accepts() {
    let mut program = Cli::command();
    program.build();
    let mut found = Vec::new();
    leaves(&program, "longhaul", &mut found);
    assert!(found.len() > 40, "{}", found.len());
    let (mut lacking, mut wrong) = (Vec::new(), Vec::new());
    for (path, command) in found {
        let mut command = command.clone();
        let [short, long] = [command.render_help(), command.render_long_help()];
        for help in [short.to_string(), long.to_string()] {
            let mut own = 0;
            for line in examples(&help) {
                let said = simple_commands(&line);
                own += usize::from(said.iter().any(|words| is_of(words, &path)));
                said.iter().for_each(|words| {
                    check(words, &mut wrong);
                });
            }
            if own == 0 {
                lacking.push(path.clone());
            }
        }
    }
    lacking.dedup();
    assert!(lacking.is_empty(), "no example of its own: {lacking:#?}");
    // A file of the reader's own.
    wrong.retain(|error| !error.contains("cannot read 'my.toml'"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Returns true if a command line is one of this command, or of one below.
fn is_of(words: &[String], path: &str) -> bool {
    let words = words.iter().skip_while(|word| *word != "longhaul").map(String::as_str);
    let mut path = path.split(' ').peekable();
    for word in words {
        if path.peek() == Some(&word) {
            path.next();
        }
    }
    path.peek().is_none()
}
