//! The worked examples of ARCHITECTURE.md, "How to add": each patch of
//! docs/design/examples applies to this tree and touches the source files that its
//! row of the table names, at most four.
//!
//! With `LONGHAUL_LONG=1` each patch is also applied to a copy of the tree, whose
//! tests and program are built and run.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use diffy::patch_set::{FileOperation, FilePatch, ParseOptions, PatchSet};
use libtest_mimic::{Arguments, Trial};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Source files that one addition may touch, at most.
const MAX_SOURCES: usize = 4;

struct Example {
    /// First cell of the row in ARCHITECTURE.md.
    addition: &'static str,
    /// The file in docs/design/examples.
    patch: &'static str,
    /// Arguments of `cargo test` in the patched tree, besides the tree's own rules.
    tests: &'static [&'static str],
    /// A command line of the patched program, and a part of what it prints.
    command: &'static [&'static str],
    prints: &'static str,
}

const EXAMPLES: [Example; 2] = [
    Example {
        addition: "queue discipline",
        patch: "queue-discipline.patch",
        tests: &["-p", "longhaul-link", "-p", "longhaul-topology"],
        command: &["lab", "run", "--help"],
        prints: "red, pie, blue: mark ECN-capable packets",
    },
    Example {
        addition: "verb",
        patch: "verb.patch",
        tests: &["-p", "longhaul-cli", "--lib"],
        command: &["mss", "1500"],
        prints: "1448 bytes",
    },
];

fn main() {
    let arguments = Arguments::from_args();
    let long = std::env::var("LONGHAUL_LONG").as_deref() == Ok("1");
    let mut trials = vec![test("every_addition_has_few_sources", every_addition_has_few_sources)];
    for example in &EXAMPLES {
        let name = format!("{}_applies", example.patch);
        trials.push(test(&name, || touches_what_the_table_names(example)));
        let name = format!("{}_builds", example.patch);
        trials.push(test(&name, || passes_its_tests(example)).with_ignored_flag(!long));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn test(name: &str, check: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, || {
        check();
        Ok(())
    })
}

fn every_addition_has_few_sources() {
    let table = table();
    assert!(table.len() >= EXAMPLES.len(), "{table:?}");
    for (addition, named) in table {
        assert!((1..=MAX_SOURCES).contains(&named.len()), "{addition}: {named:?}");
    }
}

fn touches_what_the_table_names(example: &Example) {
    let changes = patched(example);
    // A new file stands in the table as the folder that it is in.
    let touched: BTreeSet<String> = changes
        .iter()
        .filter_map(|(path, change)| {
            let source = path.strip_prefix("crates/").filter(|path| path.contains("/src/"))?;
            let (folder, _) = source.rsplit_once('/')?;
            Some(if change.is_new { format!("{folder}/") } else { source.to_owned() })
        })
        .collect();
    let sources = changes.keys().filter(|path| path.contains("/src/")).count();
    assert!(sources <= MAX_SOURCES, "{}: {sources} source files", example.patch);
    let table = table();
    let named = table.get(example.addition);
    assert_eq!(named, Some(&touched), "ARCHITECTURE.md's row and {}", example.patch);
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(page.contains(&format!("docs/design/examples/{}", example.patch)), "{}", example.patch);
}

/// Applies the patch to a copy of the tree, builds it and runs its tests.
fn passes_its_tests(example: &Example) {
    // Kept from run to run, so that dependencies are built once.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("how_to_add");
    let tree = folder.join(example.patch.trim_end_matches(".patch"));
    if tree.exists() {
        std::fs::remove_dir_all(&tree).unwrap();
    }
    copy(&root(), &tree);
    for (path, change) in patched(example) {
        std::fs::write(tree.join(path), change.text).unwrap();
    }
    let target = folder.join("target");
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        // The copy lies in a folder that git ignores: without a repository, its tests
        // list its files themselves.
        command.current_dir(&tree).env("GIT_DIR", tree.join("none"));
        command.env("CARGO_TARGET_DIR", &target).args(arguments);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "cargo {arguments:?}:\n{out}\n{error}");
    };
    let locked = ["test", "--locked", "--offline"];
    cargo(&["fmt", "--all", "--check"]);
    cargo(&[&locked, example.tests].concat());
    // Names, terms, lengths and layers; it builds the program as well.
    cargo(&[&locked[..], &["-p", "longhaul-cli", "--test", "tidy"]].concat());
    let program = target.join("debug/longhaul");
    let output = Command::new(program).args(example.command).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // Help is wrapped to the terminal's width.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.success() && text.contains(example.prints), "{text}");
    std::fs::remove_dir_all(&tree).unwrap();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// What "How to add" names for each addition, below `crates/`; a folder, which ends
/// with a slash, gets a new file.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = page.split_once("\n## How to add\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").collect::<Vec<_>>())
        // The heading has no file.
        .filter(|cells| cells[1].contains('`'))
        .map(|cells| {
            let quoted = cells[1].split('`').skip(1).step_by(2);
            let named = quoted.filter(|word| word.contains("/src/")).map(str::to_owned);
            (cells[0].to_owned(), named.collect())
        })
        .collect()
}

/// A file as the patch leaves it.
struct Change {
    text: String,
    is_new: bool,
}

/// The files of an example's patch, by their paths below the root.
fn patched(example: &Example) -> BTreeMap<String, Change> {
    let path = root().join("docs/design/examples").join(example.patch);
    let patch = std::fs::read_to_string(&path).unwrap();
    let files: Result<Vec<FilePatch<str>>, _> =
        PatchSet::parse(&patch, ParseOptions::gitdiff()).collect();
    files.unwrap().iter().map(|file| apply(example, file)).collect()
}

fn apply(example: &Example, file: &FilePatch<str>) -> (String, Change) {
    let (path, base) = match file.operation().strip_prefix(1) {
        FileOperation::Create(path) => {
            assert!(!root().join(&*path).exists(), "{path} exists");
            (path.into_owned(), String::new())
        }
        FileOperation::Modify { original, modified } if original == modified => {
            let base = std::fs::read_to_string(root().join(&*original));
            let base = base.unwrap_or_else(|error| panic!("{original}: {error}"));
            (original.into_owned(), base)
        }
        other => panic!("{}: {other:?}", example.patch),
    };
    let text = diffy::apply(&base, file.patch().as_text().unwrap()).unwrap_or_else(|error| {
        panic!(
            "{} does not apply to {path}: {error}; docs/design/examples/README.md says how to \
             make it anew",
            example.patch
        )
    });
    (path, Change { is_new: base.is_empty(), text })
}

/// Copies a tree without what is built and without its history.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        let (from, to) = (entry.path(), to.join(&name));
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}
