//! The book in docs/ and the README, held against the program: commands are run, or say why
//! not, their output is compared with the one printed there, and tables of
//! keys, flags, schemas and metrics are compared with the program's own lists.
//!
//! A page whose labs this machine cannot carry is counted as ignored, unless
//! `LONGHAUL_REQUIRE_PEERS=1`. `LONGHAUL_BLESS=1` rewrites outputs that differ.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod compare;
mod examples;
mod links;
mod markdown;
mod page;
#[path = "../cli/private.rs"]
mod private;
mod sources;
mod tables;

use libtest_mimic::{Arguments, Completion, Trial};
use page::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pages that run at the same time: small labs mostly wait.
const PARALLEL: usize = 8;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// The README and every page of the book.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    let docs = root().join("docs");
    let mut folders = vec![docs.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            // Design notes are about the code: their examples are not for users.
            if path == docs.join("design") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A page's path below the root.
pub(crate) fn name(page: &Path) -> String {
    page.strip_prefix(root()).unwrap().display().to_string()
}

/// What is compared without a lab.
const CHECKS: [(&str, fn()); 16] = [
    ("rules_of_comparison", compare::rules),
    ("readme_is_short", tables::readme_is_short),
    ("links_lead_somewhere", links::lead_somewhere),
    ("every_page_is_in_the_summary", links::every_page_is_in_the_summary),
    ("links_stay_in_the_book", links::stay_in_the_book),
    ("rules_of_examples", examples::rules),
    ("each_example_is_run_or_says_why_not", examples::each_is_run_or_says_why_not),
    ("keys_of_a_path", tables::keys_of_a_path),
    ("flags_of_the_server", tables::flags_of_the_server),
    ("limits_of_a_finding", tables::limits_of_a_finding),
    ("fields_of_filters", tables::fields_of_filters),
    ("schemas_and_their_keys", tables::schemas_and_their_keys),
    ("metrics", tables::metrics),
    ("environment", tables::environment),
    ("rules_of_source_documents", sources::rules),
    ("source_documents", sources::statements),
];

/// Whether this machine makes labs, valid or not.
fn has_lab() -> bool {
    let probe = ["lab", "run", "--link", "rate=10mbit,rtt=1ms", "--", "true"];
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul")).args(probe).output().unwrap();
    let made = matches!(output.status.code(), Some(0 | 3));
    if !made {
        let why = String::from_utf8_lossy(&output.stderr);
        eprintln!("no lab can be made here ({}): pages with labs are skipped", why.trim());
    }
    made
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Without a network namespace for each page, their labs would find each other.
    let parallel = if page::network().is_some() { PARALLEL } else { 1 };
    arguments.test_threads.get_or_insert(parallel);
    // In a script's background the tests ignore Ctrl-C; what they start must not.
    host::signals::restore_interrupts();
    host::signals::restore_hangup();
    let lab = arguments.list || has_lab();
    let required = std::env::var("LONGHAUL_REQUIRE_PEERS").as_deref() == Ok("1");
    assert!(!required || lab, "LONGHAUL_REQUIRE_PEERS=1 asks for a lab");
    let bless = std::env::var_os("LONGHAUL_BLESS").is_some();
    let mut trials: Vec<Trial> = CHECKS
        .iter()
        .map(|(name, check)| {
            Trial::test(*name, move || {
                check();
                Ok(())
            })
        })
        .collect();
    trials.push(Trial::ignorable_test(
        "links_of_the_built_book",
        || match links::of_the_built_book() {
            Ok(()) => Ok(Completion::Completed),
            Err(missing) => Ok(Completion::ignored_with(missing)),
        },
    ));
    for path in pages() {
        let text = std::fs::read_to_string(&path).unwrap();
        if !page::has_commands(&text) {
            continue;
        }
        let missing = page::needs_lab(&text) && !lab;
        let label = name(&path);
        let run = move || match page::run(&path, &root(), bless) {
            Outcome::Matched => Ok(Completion::Completed),
            Outcome::Undecided(reason) if !required => Ok(Completion::ignored_with(reason)),
            Outcome::Undecided(reason) | Outcome::Differs(reason) => Err(reason.into()),
        };
        trials.push(Trial::ignorable_test(label, run).with_ignored_flag(missing));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
