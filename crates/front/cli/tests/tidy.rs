//! Reads the tree: what must never be in it, how long a file may be, which
//! floor may use which, and under which licences the dependencies come.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "tidy/arithmetic.rs"]
mod arithmetic;
#[path = "tidy/front_only.rs"]
mod front_only;
#[path = "tidy/security.rs"]
mod security;
#[path = "tidy/verbs.rs"]
mod verbs;
#[path = "tidy/wording.rs"]
mod wording;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a file, above which it is two ideas.
const LONGEST: usize = 500;

/// The layers of ARCHITECTURE.md, lowest first. A crate may use crates of lower
/// layers only.
const LAYERS: [&[&str]; 9] = [
    &["problem", "units", "stall-retry", "runs", "pinned-tls", "parquet-file", "places", "lane"],
    &[
        "bpf",
        "capture",
        "model",
        "record",
        "iperf3-proto",
        "iperf2-proto",
        "link",
        "control",
        "socks",
        "websocket",
        "webtransport",
        "mux",
    ],
    &["topology", "diagnose", "host", "tcp", "tcp-analysis", "capture-merge", "udt"],
    &[
        "bench-harness",
        "connection-limits",
        "udt-socket",
        "program-control",
        "remote",
        "tcp-graphs",
        "packet-fields",
        "tool-results",
        "tune",
    ],
    &[
        "doctor",
        "lab",
        "live-capture",
        "probe",
        "perf",
        "copy",
        "boost",
        "edge",
        "iperf2",
        "watch",
        "twin",
        "study",
    ],
    &["store", "report", "verify", "campaign", "agent", "baseline", "simulator"],
    &["longhaul", "fuzz-targets"],
    &["web"],
    &["cli"],
];

/// Crates that have no clock, no I/O, no thread.
const PURE: [&str; 34] = [
    "problem",
    "units",
    "runs",
    "parquet-file",
    "places",
    "lane",
    "mux",
    "pinned-tls",
    "bpf",
    "capture",
    "tcp-analysis",
    "tcp-graphs",
    "packet-fields",
    "tool-results",
    "capture-merge",
    "model",
    "record",
    "iperf3-proto",
    "iperf2-proto",
    "socks",
    "websocket",
    "webtransport",
    "link",
    "control",
    "topology",
    "diagnose",
    "tcp",
    "udt",
    "twin",
    "doctor",
    "simulator",
    "study",
    "baseline",
    "report",
];

/// Modules of other crates that are pure as well.
const PURE_MODULES: [&str; 2] = ["traffic/copy/src/protocol", "traffic/remote/src/protocol"];

/// Licences a dependency may come under; deny.toml has the same list.
const LICENCES: [&str; 8] =
    ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "MPL-2.0"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// The folders of `crates/`, in the order of ARCHITECTURE.md.
const FOLDERS: [&str; 9] =
    ["base", "wire", "path", "linux", "traffic", "explain", "machine", "campaigns", "front"];

/// Where a crate is: it is in one folder.
fn folder_of(krate: &str) -> PathBuf {
    let places = FOLDERS.map(|folder| root().join("crates").join(folder).join(krate));
    let found: Vec<_> = places.into_iter().filter(|path| path.is_dir()).collect();
    assert_eq!(found.len(), 1, "{krate}: {found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn crates_are_in_the_folders_of_the_architecture() {
    let mut folders: Vec<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut expected = FOLDERS.map(str::to_owned);
    expected.sort();
    assert_eq!(folders, expected);
    for krate in LAYERS.iter().flat_map(|layer| layer.iter()) {
        folder_of(krate);
    }
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

fn layer_of(krate: &str) -> usize {
    let short = match krate {
        "longhaul" => "longhaul",
        other => other.strip_prefix("longhaul-").unwrap(),
    };
    LAYERS
        .iter()
        .position(|layer| layer.contains(&short))
        .unwrap_or_else(|| panic!("{krate} is in no layer"))
}

#[test]
fn crates_use_lower_layers_only() {
    let metadata = metadata();
    let ours = metadata["packages"].as_array().unwrap().iter().filter(|p| p["source"].is_null());
    let mut count = 0;
    for package in ours {
        count += 1;
        let user = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            if dependency["path"].is_null() || dependency["kind"] == "dev" {
                continue;
            }
            assert!(layer_of(used) < layer_of(user), "{user} may not use {used}");
            let short = user.trim_start_matches("longhaul-");
            assert!(!PURE.contains(&short) || used != "longhaul-host", "{user} is pure");
        }
    }
    assert_eq!(count, LAYERS.iter().map(|layer| layer.len()).sum::<usize>());
}

/// Source files that ARCHITECTURE.md and docs/design name are where they say.
#[test]
fn documents_name_files_that_exist() {
    let mut documents = vec![root().join("ARCHITECTURE.md")];
    let design = root().join("docs/design");
    documents.extend(files().into_iter().filter(|path| path.starts_with(&design)));
    let (mut wrong, mut named) = (Vec::new(), 0);
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        for quoted in text.split('`').skip(1).step_by(2) {
            if quoted.contains("/src/")
                || quoted.contains("/tests/")
                || quoted.contains("/benches/")
            {
                named += 1;
                if !root().join("crates").join(quoted).exists() {
                    wrong.push(format!("{}: {quoted}", name(&document)));
                }
            }
        }
    }
    assert!(named > 20, "{named} files are named");
    assert!(wrong.is_empty(), "no such file:\n{}", wrong.join("\n"));
}

#[test]
fn pure_crates_reach_for_nothing() {
    let mut wrong = Vec::new();
    let modules = PURE_MODULES.map(|module| root().join("crates").join(module));
    for folder in PURE.map(|krate| folder_of(krate).join("src")).into_iter().chain(modules) {
        assert!(folder.is_dir(), "{}", folder.display());
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

/// A promise is kept in release builds, too: by a type, an error or `assert!`.
#[test]
fn no_promise_is_checked_in_debug_builds_only() {
    let mark = ["debug_", "assert"].concat();
    let sources = files().into_iter().filter(|path| name(path).contains("/src/"));
    let found: Vec<String> = sources
        .filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(&mark)))
        .map(|path| name(&path))
        .collect();
    assert!(found.is_empty(), "return an error: {found:?}");
}

/// A link-local address is of no use without its zone, which an address that is put together from
/// another one's parts does not have.
#[test]
fn one_place_makes_addresses_of_others() {
    for file in files() {
        let name = name(&file);
        let is_source = name.contains("/src/") && name.ends_with(".rs");
        if !is_source || name.ends_with("linux/host/src/address.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let takes =
                [".ip(), ", ".ip().to_canonical(), "].iter().any(|part| line.contains(part));
            let makes = ["SocketAddr::new(", "SocketAddr::from((", ").into()"];
            assert!(
                !takes || !makes.iter().any(|part| line.contains(part)),
                "{name}:{}: host::address keeps the zone: {line}",
                number + 1
            );
        }
    }
}

/// What a terminal is sent passes one function (`report::untrusted`), which
/// `console.rs` calls. Others write bytes that are no text of ours: the drop-in's
/// lines pass the same function, `screen.rs` moves the cursor, `attach.rs`
/// and `capture/output.rs` write captures.
#[test]
fn one_place_writes_to_the_terminal() {
    const WRITERS: [&str; 5] = [
        "console.rs",
        "verbs/iperf3/output.rs",
        "verbs/watch/screen.rs",
        "verbs/lab/attach.rs",
        "verbs/capture/output.rs",
    ];
    let folder = root().join("crates/front/cli/src");
    let mut wrong = Vec::new();
    for path in files().into_iter().filter(|path| path.starts_with(&folder)) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let is_writer = WRITERS.iter().any(|writer| path == folder.join(writer));
        for (number, line) in text.lines().enumerate() {
            let prints = ["println!", "print!(", "error.exit()"].iter().any(|m| line.contains(m));
            let writes =
                ["io::stdout()", "io::stderr()"].iter().any(|stream| line.contains(stream));
            let asks = line.contains("is_terminal()");
            if prints || (writes && !asks && !is_writer) {
                wrong.push(format!("{}:{}: {line}", name(&path), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "write through console.rs:\n{}", wrong.join("\n"));
}
