//! Command lines of the README and the book that no test can run, since they
//! need a host, privileges or time: each is at least parsed.

use crate::Cli;
use clap::CommandFactory;
use std::path::{Path, PathBuf};

#[path = "../tests/book/markdown.rs"]
mod markdown;

/// Verbs after which another command line follows.
const RUNNERS: [&str; 3] = ["run", "exec", "shell"];

fn pages(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| pages(&entry)).collect()
}

/// The simple commands of a line, as sh(1) would split it; redirections and
/// comments are omitted, and `$(…)` counts as a word.
pub(crate) fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut rest = line.chars().peekable();
    let mut redirected = false;
    let end = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>, skip: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(skip)
        {
            commands.last_mut().unwrap().push(word);
        }
    };
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                word.extend(rest.by_ref().take_while(|next| *next != c));
            }
            '$' if rest.peek() == Some(&'(') => {
                rest.by_ref().find(|next| *next == ')');
                word.get_or_insert_default().push('1');
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            '#' if word.is_none() => break,
            '|' | '&' | ';' => {
                end(&mut word, &mut commands, &mut redirected);
                commands.push(Vec::new());
            }
            '>' | '<' => {
                end(&mut word, &mut commands, &mut redirected);
                redirected = true;
            }
            c if c.is_whitespace() => end(&mut word, &mut commands, &mut redirected),
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut commands, &mut redirected);
    commands.retain(|command| !command.is_empty());
    commands
}

/// Parses a command of ours, and those inside it.
pub(crate) fn check(words: &[String], wrong: &mut Vec<String>) -> usize {
    let words = match words.first().map(String::as_str) {
        Some("sudo") => &words[1..],
        _ => words,
    };
    let program = words.first().map(|word| word.rsplit('/').next().unwrap_or(word));
    if program != Some("longhaul") {
        return 0;
    }
    let mut count = 1;
    if let Err(error) = Cli::command().try_get_matches_from(words)
        && error.use_stderr()
    {
        wrong.push(format!("{}\n{error}", words.join(" ")));
    }
    if let Some(server) = words.iter().position(|word| word == "--server") {
        for inner in words.get(server + 1).iter().flat_map(|line| simple_commands(line)) {
            count += check(&inner, wrong);
        }
    }
    let nested = words.get(2).is_some_and(|verb| RUNNERS.contains(&verb.as_str()));
    let inner = words.iter().skip(3).position(|word| word == "longhaul");
    if let Some(at) = inner.filter(|_| nested) {
        count += check(&words[at + 3..], wrong);
    }
    count
}

#[test]
fn every_command_line_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in ["README.md", "docs"].iter().flat_map(|path| pages(&root.join(path))) {
        let design = page.starts_with(root.join("docs/design"));
        if design || page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        for block in markdown::blocks(&text) {
            // Those of `console` blocks are run.
            if block.language != "sh" {
                continue;
            }
            for (line, _) in markdown::commands(&block) {
                for command in simple_commands(&line) {
                    count += check(&command, &mut wrong);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count > 60, "only {count} command lines seen");
}

#[test]
fn lines_are_cut_as_a_shell_does() {
    let commands = |line| -> Vec<String> {
        simple_commands(line).iter().map(|words| words.join("·")).collect()
    };
    assert_eq!(commands("a 'b c' \"d\" # e"), ["a·b c·d"]);
    assert_eq!(commands("a > f; b --pid $(pidof c) | d"), ["a", "b·--pid·1", "d"]);
    assert_eq!(commands("a {b}'c d'"), ["a·{b}c d"]);
}
