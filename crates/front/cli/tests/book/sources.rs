//! The table of the source documents' statements: each command is run and prints its row's result,
//! and each study and trend exists.

use crate::markdown::blocks;
use crate::page::option;
use crate::tables::{code, page, rows};
use crate::{private, root};
use std::path::Path;
use std::process::{Command, Stdio};
use study::BuiltIn;

const PAGE: &str = "reference/source-documents.md";

/// Fewest rows.
const MIN_ROWS: usize = 110;

pub(crate) fn statements() {
    let text = page(PAGE);
    let folder = private::directory();
    for block in blocks(&text) {
        if let Some(name) = option(&block, "file") {
            std::fs::write(folder.path().join(name), block.lines.join("\n") + "\n").unwrap();
        }
    }
    std::os::unix::fs::symlink(root().join("crates"), folder.path().join("crates")).unwrap();
    let numbered = |cells: &Vec<String>| cells.first().is_some_and(|n| n.parse::<usize>().is_ok());
    let rows: Vec<Vec<String>> = rows(&text).into_iter().filter(numbered).collect();
    assert!(rows.len() >= MIN_ROWS, "{} rows", rows.len());
    let numbers: Vec<usize> = rows.iter().map(|cells| cells[0].parse().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=rows.len()), "rows are numbered from 1: {numbers:?}");
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|cells| check(cells, folder.path()).err().map(|why| (&cells[0], why)))
        .map(|(number, why)| format!("{PAGE}, row {number}: {why}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One row: number, place, statement, what shows it, result.
fn check(cells: &[String], folder: &Path) -> Result<(), String> {
    let [_, place, statement, shown_by, result] = cells else {
        return Err(format!("{} columns", cells.len()));
    };
    if place.is_empty() || statement.is_empty() || result.is_empty() {
        return Err("an empty cell".to_owned());
    }
    let names = code(shown_by);
    match names.as_slice() {
        [] if shown_by == "not shown" => Ok(()),
        [command] if command.starts_with("longhaul ") => run(command, &code(result), folder),
        [name, trends @ ..] if shown_by.starts_with("study") && !trends.is_empty() => {
            let study = BuiltIn::named(name).ok_or_else(|| format!("no study {name}"))?;
            let is_known = |trend: &&String| study.trends().any(|known| known == trend.as_str());
            match trends.iter().find(|trend| !is_known(trend)) {
                Some(trend) => Err(format!("{name} has no trend {trend}")),
                None => Ok(()),
            }
        }
        _ => Err(format!("neither a command, nor a study, nor \"not shown\": {shown_by}")),
    }
}

/// The command succeeds and prints each of `expected`, wherever its lines are broken.
fn run(command: &str, expected: &[String], folder: &Path) -> Result<(), String> {
    let program = Path::new(env!("CARGO_BIN_EXE_longhaul")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("timeout")
        .args(["60", "sh", "-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.display()))
        .env("HOME", folder)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !output.status.success() {
        return Err(format!("{command}: {}: {words}", output.status));
    }
    match expected.iter().find(|part| !words.contains(part.as_str())) {
        _ if expected.is_empty() => Err("no result to compare".to_owned()),
        Some(part) => Err(format!("{command} does not print {part}: {words}")),
        None => Ok(()),
    }
}

/// The rules above, by example.
pub(crate) fn rules() {
    let row = |shown_by: &str, result: &str| {
        let cells = ["1", "line 1", "a statement", shown_by, result].map(str::to_owned);
        check(&cells, Path::new("/"))
    };
    assert_eq!(row("not shown", "why"), Ok(()));
    assert_eq!(row("study `edge-cloud`, trend `udp-overload`", "holds"), Ok(()));
    assert_eq!(row("`longhaul bdp 100mbit 173ms`", "`2.1625 MB`"), Ok(()));
    for wrong in [
        row("study `edge-cloud`, trend `no-such`", "holds"),
        row("study `edge-cloud`", "holds"),
        row("study `no-such`, trend `udp-overload`", "holds"),
        row("`longhaul bdp 100mbit 173ms`", "`2.1626 MB`"),
        row("`longhaul bdp 100mbit 173ms`", "2.1625 MB"),
        row("`longhaul bdp 100mbit`", "`usage`"),
        row("somewhere", "holds"),
        row("not shown", ""),
    ] {
        assert!(wrong.is_err());
    }
}
