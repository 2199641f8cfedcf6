//! Reads the tree: what must never be in it, how long a file may be, which
//! floor may use which, and under which licences the dependencies come.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a file, above which it is two ideas.
const LONGEST: usize = 500;

/// The floors of ARCHITECTURE.md. A crate may use lower floors, and what
/// stands before it on its own.
const FLOORS: [&[&str]; 6] = [
    &["units", "patience"],
    &["model", "record", "iperf3", "iperf2", "link"],
    &["topology", "diagnose", "host"],
    &["tune", "lab", "probe", "reach", "doctor", "watch"],
    &["store", "report", "verify"],
    &["cli"],
];

/// Crates that have no clock, no I/O, no thread.
const PURE: [&str; 9] =
    ["units", "model", "record", "iperf3", "iperf2", "link", "topology", "diagnose", "report"];

/// Licences that ask for no more than their text and names beside a copy.
const LICENCES: [&str; 4] = ["MIT", "Apache-2.0", "ISC", "Unicode-3.0"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The files under version control, or all but what is built where there is none.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git").current_dir(root()).args(["ls-files", "-z"]).output();
    if let Some(output) = listed.ok().filter(|output| output.status.success()) {
        let text = String::from_utf8(output.stdout).unwrap();
        return text
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(|name| root().join(name))
            .filter(|path| path.is_file())
            .collect();
    }
    let (mut found, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match (path.is_dir(), path.file_name().and_then(|name| name.to_str())) {
                (true, Some("target" | ".git")) => {}
                (true, _) => folders.push(path),
                (false, _) => found.push(path),
            }
        }
    }
    found
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn nothing_is_left_unfinished() {
    // In pieces, or this file would be the first that it finds.
    let marks = [["FIX", "ME"], ["XX", "X"], ["todo", "!("], ["unimplemented", "!("]];
    let marks: Vec<String> = marks.iter().map(|pieces| pieces.concat()).collect();
    let mut left = Vec::new();
    for path in files() {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark.as_str())) {
                left.push(format!("{}:{}: {line}", name(&path), number + 1));
            }
        }
    }
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn files_hold_one_idea_and_have_a_name() {
    let mut wrong = Vec::new();
    for path in files() {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if ["util", "utils", "helper", "helpers", "common", "misc"].contains(&stem) {
            wrong.push(format!("{}: say what it is about", name(&path)));
        }
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().count();
            if lines > LONGEST {
                wrong.push(format!("{}: {lines} lines; split it by idea", name(&path)));
            }
            let module = text.starts_with("//!") || text.starts_with("use ");
            if !module {
                wrong.push(format!("{}: begin with what it is about (`//!`)", name(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What cargo knows of the workspace and its dependencies, for this platform.
fn metadata() -> Value {
    let version = Command::new(env!("CARGO")).arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", host])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn floor_of(krate: &str) -> (usize, usize) {
    let short = match krate {
        "longhaul" => "cli",
        other => other.strip_prefix("longhaul-").unwrap(),
    };
    FLOORS
        .iter()
        .enumerate()
        .find_map(|(floor, rooms)| Some((floor, rooms.iter().position(|room| *room == short)?)))
        .unwrap_or_else(|| panic!("{krate} is on no floor"))
}

#[test]
fn floors_use_lower_floors_only() {
    let metadata = metadata();
    let ours = metadata["packages"].as_array().unwrap().iter().filter(|p| p["source"].is_null());
    let mut seen = 0;
    for package in ours {
        seen += 1;
        let user = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            if dependency["path"].is_null() || dependency["kind"] == "dev" {
                continue;
            }
            assert!(floor_of(used) < floor_of(user), "{user} may not use {used}");
            let short = user.trim_start_matches("longhaul-");
            assert!(!PURE.contains(&short) || used != "longhaul-host", "{user} is pure");
        }
    }
    assert_eq!(seen, FLOORS.iter().map(|rooms| rooms.len()).sum::<usize>());
}

#[test]
fn pure_crates_reach_for_nothing() {
    let mut wrong = Vec::new();
    for krate in PURE {
        let folder = root().join("crates").join(krate).join("src");
        for path in files().into_iter().filter(|path| path.starts_with(&folder)) {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for reach in
                ["std::fs", "std::net", "std::thread", "std::process", "std::env", "libc::"]
            {
                if text.contains(reach) {
                    wrong.push(format!("{}: {reach}", name(&path)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn dependencies_come_under_licences_that_fit() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let text = package["license"].as_str().unwrap_or("none named");
        // `A OR B` and the older `A/B` let us choose; `A AND B` asks for both.
        let fits = text.replace('/', " OR ").split(" AND ").all(|all| {
            let choices = all
                .trim_matches(['(', ')'])
                .split(" OR ")
                .map(|one| one.trim_matches(['(', ')', ' ']));
            choices.into_iter().any(|one| LICENCES.contains(&one))
        });
        if !fits {
            wrong.push(format!("{} {}: {text}", package["name"], package["version"]));
        }
    }
    assert!(wrong.is_empty(), "not among the licences we take:\n{}", wrong.join("\n"));
}
