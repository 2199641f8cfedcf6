//! Help, manual pages and completions.

use crate::program::{command, printed};

const VERBS: [&str; 9] =
    ["demo", "test", "server", "explain", "doctor", "bdp", "lab", "completions", "man"];

#[test]
fn every_verb_has_help_with_examples() {
    let all = printed(&["--help"]);
    let long = all.lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None, "is wider than a terminal");
    for verb in VERBS {
        assert!(all.contains(&format!("\n  {verb} ")), "{verb}: {all}");
        let help = match verb {
            "lab" => printed(&["lab", "run", "--help"]),
            _ => printed(&[verb, "--help"]),
        };
        assert!(help.contains("Examples:") && help.contains("longhaul "), "{verb}: {help}");
    }
}

/// A description that continues on a second line begins in the column of the
/// first; a flag whose description is on the next line is followed by it alone.
fn wrapped(help: &str) -> Option<&str> {
    let lines: Vec<&str> = help.lines().collect();
    let is_flag = |line: &str| line.trim_start().starts_with(['-', '<']);
    let has_text = |line: &str| line.trim_start().contains("  ");
    let indent = |line: &str| line.len() - line.trim_start().len();
    let starts = |pair: &[&str]| {
        indent(pair[1]) >= 10 && !is_flag(pair[1]) && (!is_flag(pair[0]) || has_text(pair[0]))
    };
    lines.windows(2).find(|pair| starts(pair)).map(|pair| pair[0])
}

#[test]
fn every_flag_is_explained_in_one_line_of_80_columns() {
    assert_eq!(wrapped("  -a, --all  Two\n             lines"), Some("  -a, --all  Two"));
    assert_eq!(wrapped("  -a, --all\n          One line\n  -b  Another"), None);
    for verb in [
        "test",
        "server",
        "iperf3",
        "demo",
        "bdp",
        "man",
        "calc",
        "calc window",
        "calc scale",
        "calc mathis",
        "calc pftk",
        "calc cubic",
        "calc bbr",
        "calc wan",
        "calc overhead",
        "calc line",
        "calc transfer",
        "calc udt",
    ] {
        let words: Vec<&str> = verb.split(' ').chain(["-h"]).collect();
        let output = command(&words).env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:"), "{verb}: {help}");
        assert_eq!(wrapped(&help), None, "{verb}: {help}");
    }
}

#[test]
fn manual_pages_and_completions_are_made() {
    let folder = tempfile::tempdir().unwrap();
    printed(&["man", "--dir", folder.path().to_str().unwrap()]);
    for page in ["longhaul.1", "longhaul-demo.1", "longhaul-lab-run.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(".SH"), "{page}");
    }
    assert!(printed(&["man"]).contains(".TH longhaul"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(printed(&["completions", shell]).contains("one-off"), "{shell}");
    }
}
