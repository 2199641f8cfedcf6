//! Tables of the book against the program's own lists.

use crate::root;
use record::Limit;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Most bytes of the README.
const README_BYTES: usize = 8192;

/// Output of another tool, for `doctor --read`.
const PASTED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../machine/doctor/tests/pasted/ss-tin.txt");

pub(crate) fn page(path: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(path)).unwrap()
}

fn longhaul(arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Cells of every table row of a page.
pub(crate) fn rows(page: &str) -> Vec<Vec<String>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    // A bar inside code is written `\|`.
    rows.map(|row| {
        let row = row.replace("\\|", "\u{0}");
        row.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
    })
    .collect()
}

/// What stands between backquotes.
pub(crate) fn code(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

pub(crate) fn readme_is_short() {
    let bytes = std::fs::read(root().join("README.md")).unwrap().len();
    assert!(bytes <= README_BYTES, "README.md has {bytes} bytes, more than {README_BYTES}");
}

/// The program's list is in what it says of an unknown key. Rows that name
/// queues and loss models are in tables of their own headings.
pub(crate) fn keys_of_a_path() {
    let (_, complaint) = longhaul(&["lab", "check", "--link", "unknown-key=1"]);
    let (_, known) = complaint.trim().split_once("the keys are ").unwrap();
    let known = known.split(';').next().unwrap_or_default();
    let known: BTreeSet<String> = known.split(", ").map(str::to_owned).collect();
    let page = page("guides/lab-paths.md");
    let mut heading = String::new();
    let mut tables = String::new();
    for line in page.lines() {
        let row = line.starts_with('|');
        if row && heading.is_empty() {
            line.clone_into(&mut heading);
        } else if !row {
            heading.clear();
        }
        if row && (heading.starts_with("| key |") || heading.starts_with("| option |")) {
            tables += line;
            tables.push('\n');
        }
    }
    let listed: BTreeSet<String> = rows(&tables)
        .iter()
        .flat_map(|cells| code(&cells[0]))
        .map(|cell| cell.trim_start_matches("up.").trim_start_matches("down.").to_owned())
        .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '.')))
        .collect();
    let missing: Vec<_> = known.difference(&listed).collect();
    assert!(missing.is_empty(), "keys without a row in lab-paths.md: {missing:?}");
    let unknown: Vec<_> = listed.difference(&known).collect();
    assert!(unknown.is_empty(), "rows in lab-paths.md without a key: {unknown:?}");
}

/// Long flags of a help text, each with its default where it says one.
fn flags(help: &str) -> BTreeMap<String, Option<String>> {
    let mut flags = BTreeMap::new();
    let mut last = None;
    for line in help.lines().map(str::trim_start) {
        let flag = match line.starts_with('-') {
            true => line.split([' ', ',']).find(|word| word.starts_with("--")),
            false => None,
        };
        if let Some(flag) = flag {
            let flag = flag.split(['=', '[']).next().unwrap().to_owned();
            flags.insert(flag.clone(), None);
            last = Some(flag);
        }
        let default = line.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
        if let (Some(flag), Some((default, _))) = (&last, default) {
            flags.insert(flag.clone(), Some(default.to_owned()));
        }
    }
    flags
}

pub(crate) fn flags_of_the_server() {
    let (help, _) = longhaul(&["server", "--help"]);
    let known = flags(&help);
    assert!(known.len() > 20, "{known:?}");
    let page = page("guides/server.md");
    let listed: BTreeMap<String, String> = rows(&page)
        .iter()
        .filter_map(|cells| {
            let flag = code(&cells[0]).into_iter().find(|word| word.contains("--"))?;
            let flag = flag.split([' ', ',']).find(|word| word.starts_with("--"))?.to_owned();
            Some((flag, cells[1].clone()))
        })
        .collect();
    let everywhere = ["--help", "--version", "--color"];
    for (flag, default) in &known {
        if everywhere.contains(&flag.as_str()) {
            continue;
        }
        let Some(cell) = listed.get(flag) else {
            panic!("guides/server.md has no row for {flag} (default {default:?})")
        };
        if let Some(default) = default {
            let digits = |text: &str| text.replace([' ', '`'], "");
            assert!(
                digits(cell).starts_with(&digits(default)),
                "guides/server.md: the default of {flag} is {default}, not {cell}"
            );
        }
    }
    for flag in listed.keys() {
        assert!(known.contains_key(flag), "guides/server.md: there is no {flag}");
    }
}

/// Every field and protocol of display filters, with kind and meaning.
pub(crate) fn fields_of_filters() {
    let (known, _) = longhaul(&["pcap", "packets", "--fields"]);
    let page = page("reference/display-filters.md");
    let tables: Vec<Vec<String>> = rows(&page);
    let mut fields = BTreeSet::new();
    for line in known.lines() {
        let words: Vec<&str> =
            line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        let [name, kind, meaning] = words[..] else { panic!("{line}") };
        if kind == "protocol" {
            assert!(page.contains(&format!("`{name}`")), "no protocol {name}");
            continue;
        }
        fields.insert(format!("`{name}`"));
        let row = [format!("`{name}`"), kind.to_owned(), meaning.to_owned()];
        assert!(tables.iter().any(|cells| **cells == row), "display-filters.md has no {row:?}");
    }
    assert!(fields.len() > 100, "{fields:?}");
    let is_field = |cells: &&Vec<String>| {
        cells[0].starts_with('`') && cells[0].contains('.') && !cells[0].contains(' ')
    };
    let listed = tables.iter().filter(is_field).filter(|cells| cells.len() == 3);
    for cells in listed {
        assert!(fields.contains(&cells[0]), "display-filters.md: there is no {}", cells[0]);
    }
}

pub(crate) fn limits_of_a_finding() {
    let page = page("explanations/limits.md");
    for limit in Limit::ALL {
        let heading = format!("(`{}`)", limit.name());
        let found = page.lines().any(|line| line.starts_with("## ") && line.ends_with(&heading));
        assert!(found, "explanations/limits.md has no heading that ends with {heading}");
    }
}

/// Rust sources of the program, without its tests.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            match path.is_dir() {
                true if !["tests", "benches", "target"].contains(&stem) => folders.push(path),
                false if path.extension().is_some_and(|end| end == "rs") && stem != "tests" => {
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    found
}

/// Words that begin with `prefix` and go on with characters of `more`.
fn words(text: &str, prefix: &str, more: impl Fn(char) -> bool) -> Vec<String> {
    let starts = text.match_indices(prefix).map(|(at, _)| &text[at..]);
    starts
        .map(|rest| {
            let body = &rest[prefix.len()..];
            let end = body.find(|c| !more(c)).unwrap_or(body.len());
            rest[..prefix.len() + end].to_owned()
        })
        .collect()
}

fn in_sources(prefix: &str, more: impl Fn(char) -> bool) -> BTreeSet<String> {
    let text = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()
    };
    sources().iter().flat_map(|path| words(&text(path), prefix, &more)).collect()
}

pub(crate) fn schemas_and_their_keys() {
    let page = page("reference/json.md");
    let schema = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/".contains(c);
    let known = in_sources("longhaul.", schema);
    let known: Vec<_> = known
        .iter()
        .filter(|name| name.rsplit_once('/').is_some_and(|(_, n)| n.parse::<u32>().is_ok()))
        .collect();
    assert!(known.len() > 15, "{known:?}");
    for schema in known {
        assert!(page.contains(&format!("`{schema}`")), "reference/json.md has no {schema}");
    }
    let documented: BTreeSet<String> = code(&page).into_iter().collect();
    let documents: [&[&str]; 8] = [
        &["bdp", "100mbit", "173ms", "--window", "64KiB", "--json"],
        &["ping", "127.0.0.1", "--tcp=1", "-c", "2", "-i", "1ms", "--json"],
        &["trace", "127.0.0.1", "-c", "1", "-n", "--json"],
        &["doctor", "--rate", "1gbit", "--rtt", "100ms", "--json"],
        &["doctor", "--rate", "1gbit", "--rtt", "100ms", "--for", "macos", "--json"],
        &["doctor", "--read", PASTED, "--json"],
        &["tune", "plan", "--rate", "10gbit", "--rtt", "200ms", "--json"],
        &["watch", "--once", "-i", "100ms", "--json"],
    ];
    let mut missing = BTreeSet::new();
    for arguments in documents {
        let (text, complaint) = longhaul(arguments);
        let document: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {complaint}"));
        let schema = document["schema"].as_str().unwrap();
        assert!(documented.contains(schema), "{schema}");
        let mut keys = BTreeSet::new();
        collect(&document, &mut keys);
        missing.extend(keys.difference(&documented).map(|key| format!("{schema}: {key}")));
    }
    // A baseline takes a minute: one that was kept.
    let kept = std::fs::read(root().join("fuzz/seeds/baseline/lab")).unwrap();
    let mut keys = BTreeSet::new();
    collect(&serde_json::from_slice(&kept).unwrap(), &mut keys);
    missing.extend(keys.difference(&documented).map(|key| format!("baseline: {key}")));
    assert!(missing.is_empty(), "keys that reference/json.md does not name:\n{missing:#?}");
}

fn collect(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                keys.insert(key.clone());
                // What doctor read of the host varies with the host.
                if key != "facts" {
                    collect(value, keys);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}

/// Every series of a server's page and every label value.
pub(crate) fn metrics() {
    let server = "server -B 127.0.0.1 -p 0 --metrics 127.0.0.1:0 --web 127.0.0.1:0 --json";
    let server = metrics_of(server, |event| event["metrics"].as_str().map(str::to_owned));
    let of_box = |event: &Value| {
        let address = event["addresses"].as_array()?.last()?.as_str();
        address.map(str::to_owned)
    };
    let far = metrics_of("boost far -l 0 --insecure --metrics 127.0.0.1:0 --json", of_box);
    let near = "boost near --far 127.0.0.1:9 -L 0:127.0.0.1:9 --insecure --direct-rate 3mbit \
        --metrics 127.0.0.1:0 --json";
    let scraped = server + &far + &metrics_of(near, of_box);
    let documented = page("reference/metrics.md");
    let mut families = 0;
    for line in scraped.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap();
            let row = format!("| `{name}` | {kind} |");
            assert!(documented.contains(&row), "reference/metrics.md lacks {row}");
            families += 1;
        }
        if line.starts_with("longhaul_build_info") {
            continue;
        }
        for (_, value) in line.match_indices("=\"").map(|(at, _)| line.split_at(at + 2)) {
            let value = value.split('"').next().unwrap();
            assert!(
                documented.contains(&format!("`{value}`")),
                "reference/metrics.md lacks the label value {value}"
            );
        }
    }
    assert!(families > 5, "{scraped}");
    for name in code(&documented).iter().filter(|word| word.starts_with("longhaul_")) {
        let name = name.split('{').next().unwrap();
        assert!(scraped.contains(name), "reference/metrics.md: there is no {name}");
    }
}

/// The metrics of a server, whose URL an event has.
fn metrics_of(arguments: &str, url: impl Fn(&Value) -> Option<String>) -> String {
    let mut server = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(arguments.split(' '))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let url = events.into_iter().find_map(|event| url(&event)).unwrap();
    let scraped = scrape(&url);
    server.kill().unwrap();
    server.wait().unwrap();
    scraped
}

fn scrape(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn environment() {
    let page = page("reference/files.md");
    let names = in_sources("LONGHAUL_", |c| c.is_ascii_uppercase() || c == '_');
    assert!(names.contains("LONGHAUL_TOKEN"), "{names:?}");
    // Read by tests alone.
    for name in names.iter().filter(|name| *name != "LONGHAUL_REQUIRE_PEERS") {
        assert!(page.contains(&format!("`{name}`")), "reference/files.md has no {name}");
    }
    assert!(Path::new(env!("CARGO_BIN_EXE_longhaul")).exists());
}
