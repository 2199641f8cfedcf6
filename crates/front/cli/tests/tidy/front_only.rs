//! What crates below the folder `front` leave to it: the names of flags, and the terminal.

use super::{FOLDERS, files, name, root};
use std::path::PathBuf;

/// Where a string has flags that are no names of ours for a setting: the file or the folder, its
/// flags (all where there are none), and why.
const EXEMPT: [(&str, &[&str], &str); 7] = [
    ("path/topology/src/emulator.rs", &[], "clumsy's command line"),
    ("machine/tune/src/tuner.rs", &["sysctl"], "docker's options"),
    ("explain/tool-results/src", &["json-stream", "reverse"], "iperf3's options"),
    ("traffic/remote/src/process.rs", &["stdio", "version"], "what ssh starts there"),
    ("base/record/src/next_command.rs", &[], "the form of a typed command in a stored document"),
    (
        "base/record/src/remedy.rs",
        &["fq-rate", "link", "window", "congestion"],
        "the form of a typed remedy in a stored document",
    ),
    ("base/record/src/check.rs", &[], "the form of a typed command in a stored document"),
];

/// Who has a standard stream that is no terminal: the file, and why.
const STREAMS: [(&str, &str); 4] = [
    ("base/bench-harness", "the harness of benchmarks"),
    ("base/stall-retry", "the harness of tests"),
    ("linux/host/src/background.rs", "its standard error is the pipe of whoever started it"),
    ("linux/host/src/program.rs", "gives its standard error to a program that it starts"),
];

/// Sources of the crates below `front`, without their tests: the path below `crates`, and the text.
fn sources() -> Vec<(String, String)> {
    let below: Vec<PathBuf> = FOLDERS
        .iter()
        .filter(|folder| **folder != "front")
        .map(|folder| root().join("crates").join(folder))
        .collect();
    let is_source = |shown: &str| {
        let is_test =
            ["/tests/", "/benches/", "/examples/"].iter().any(|part| shown.contains(part))
                || shown.ends_with("tests.rs");
        shown.ends_with(".rs") && !is_test
    };
    files()
        .into_iter()
        .filter(|path| below.iter().any(|folder| path.starts_with(folder)))
        .map(|path| (name(&path).trim_start_matches("crates/").to_owned(), path))
        .filter(|(shown, _)| is_source(shown))
        .map(|(shown, path)| {
            let text = std::fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
            (shown, code)
        })
        .collect()
}

/// The string literals of a source, each with its line; comments have none.
fn literals(source: &str) -> Vec<(usize, String)> {
    let (mut found, mut line) = (Vec::new(), 1);
    let mut rest = source;
    let mut skip = |rest: &mut &str, bytes: usize| {
        line += rest[..bytes].matches('\n').count();
        *rest = &rest[bytes..];
        line
    };
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let before = &rest[..at];
        let hashes = before.len() - before.trim_end_matches('#').len();
        let is_raw = before.trim_end_matches('#').ends_with('r');
        let begins = skip(&mut rest, at);
        let end_of = |text: &str, end: &str| text.find(end).map_or(text.len(), |at| at + end.len());
        if rest.starts_with("//") {
            let bytes = end_of(rest, "\n");
            skip(&mut rest, bytes);
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let bytes = if is_raw {
                end_of(quoted, &format!("\"{}", "#".repeat(hashes)))
            } else {
                let mut escaped = false;
                let end = quoted.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map_or(quoted.len(), |end| end + 1)
            };
            found.push((begins, quoted[..bytes].to_owned()));
            skip(&mut rest, 1 + bytes);
        } else {
            // A quotation mark as a character is the beginning of no string.
            let is_quote = ["'\"'", "'\\\"'"].iter().find(|mark| rest.starts_with(**mark));
            skip(&mut rest, is_quote.map_or(1, |mark| mark.len()));
        }
    }
    found
}

/// The words of a text that begin with two hyphens, without these.
fn flags(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with(is_part))
        .map(|(at, _)| text[at + 2..].chars().take_while(|c| is_part(*c)).collect())
        .collect()
}

#[test]
fn only_front_ends_name_flags() {
    let ours = longhaul_cli::long_flags();
    for flag in ["rate", "rtt", "token-file", "stdio"] {
        assert!(ours.contains(flag), "{flag}");
    }
    let (mut wrong, mut used) = (Vec::new(), [false; EXEMPT.len()]);
    for (path, source) in sources() {
        for (line, text) in literals(&source) {
            for flag in flags(&text).into_iter().filter(|flag| ours.contains(flag)) {
                let exempt = EXEMPT.iter().position(|(place, flags, _)| {
                    path.starts_with(place) && (flags.is_empty() || flags.contains(&flag.as_str()))
                });
                match exempt {
                    Some(index) => used[index] = true,
                    None => wrong.push(format!("{path}:{line}: --{flag} in \"{text}\"")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "name a problem::Field:\n{}", wrong.join("\n"));
    let unused: Vec<_> = EXEMPT.iter().zip(used).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty(), "exempt, and names no flag: {unused:?}");
}

#[test]
fn only_front_ends_write_to_the_terminal() {
    let (mut wrong, mut used) = (Vec::new(), [false; STREAMS.len()]);
    for (path, source) in sources() {
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let writes = ["print!(", "println!(", "dbg!(", "stdout()", "stderr()"];
            if !writes.iter().any(|what| code.contains(what)) {
                continue;
            }
            match STREAMS.iter().position(|(place, _)| path.starts_with(place)) {
                Some(index) => used[index] = true,
                None => wrong.push(format!("{path}:{}: {line}", number + 1)),
            }
        }
    }
    assert!(wrong.is_empty(), "return it, or report an event:\n{}", wrong.join("\n"));
    assert!(used.iter().all(|used| *used), "exempt, and writes nothing: {used:?}");
}

#[test]
fn strings_and_their_flags_are_found() {
    let source = "let a = \"x --rate\"; // \"--no\"\nlet b = '\"'; let c = r#\"--raw \"q\" --two\"#;\n\
                  let d = \"\\\"--esc\\\n  --next\"; /// \"--doc\"\n";
    let found = literals(source);
    let all: Vec<_> = found.iter().flat_map(|(_, text)| flags(text)).collect();
    assert_eq!(all, ["rate", "raw", "two", "esc", "next"]);
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(flags("a--b ---c -- d --e=1 (--f-g)"), ["-c", "", "e", "f-g"]);
}
