//! Controllers in C and Python, good and bad, in the twin. Without cc or python3 the tests of
//! each count as ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod arrange;
mod examples;
mod failures;

use libtest_mimic::Arguments;
use std::process::{Command, ExitCode};

type Test = (&'static str, fn());

/// Tests of programs in C.
const IN_C: [Test; 8] = [
    ("an_example_in_c_fills_a_path_as_the_same_in_rust", examples::c),
    ("the_header_has_the_layout_of_the_records", examples::layout),
    ("a_program_that_fails_is_named_with_what_it_did", failures::modes),
    ("a_program_that_does_not_answer_costs_its_deadline", failures::late),
    ("a_program_of_another_version_is_refused", failures::version),
    ("what_a_program_does_to_itself_harms_nothing", failures::harmless),
    ("nothing_of_a_program_is_left", failures::left),
    ("a_failure_ends_no_other_program", failures::others),
];

/// Tests that need no compiler.
const OTHER: [Test; 1] = [("what_is_no_controller_is_refused", failures::no_controller)];

/// Tests of programs in Python.
const IN_PYTHON: [Test; 1] = [("an_example_in_python_is_the_same_as_in_c", examples::python)];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let has = |program: &str| {
        let answers = Command::new(program).arg("--version").output().is_ok();
        if !answers {
            eprintln!("{program} is not installed: its tests are skipped");
        }
        answers
    };
    let (compiler, python) = (has("cc"), has("python3"));
    let trials = IN_C
        .map(|test| (test, compiler))
        .into_iter()
        .chain(OTHER.map(|test| (test, true)))
        .chain(IN_PYTHON.map(|test| (test, compiler && python)))
        .map(|((name, test), met)| stall_retry::trial(name, test).with_ignored_flag(!met));
    stall_retry::run(&arguments, trials.collect())
}
