//! Every seed through its target, whole and cut off at any byte: what fuzzing has
//! found stays found, without any tool.

use fuzz_targets::{TARGETS, seeds};
use std::panic::catch_unwind;

/// Longer seeds are cut at this many places only, evenly spread.
const CUTS: usize = 256;

#[test]
fn every_seed_and_its_beginnings() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let seeds = seeds::of(name).unwrap();
        assert!(seeds.len() >= 2, "{name} has {} seeds", seeds.len());
        for seed in seeds {
            let length = seed.input.len();
            let step = length.div_ceil(CUTS).max(1);
            for end in (0..length).step_by(step).chain([length]) {
                let input = &seed.input[..end];
                if catch_unwind(|| target(input)).is_err() {
                    failed.push(format!("{}, its first {end} bytes", seed.path.display()));
                    break;
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn seeds_and_fuzzing_tests_name_the_same_targets() {
    let mut names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let mut folders: Vec<String> = std::fs::read_dir(seeds::folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    assert_eq!(names, folders);
    let tests = std::fs::read_to_string(seeds::folder().join("../src/lib.rs")).unwrap();
    let listed = tests.split_once("targets! {").unwrap().1.split_once('}').unwrap().0;
    let mut listed: Vec<&str> =
        listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    listed.sort_unstable();
    assert_eq!(names, listed, "fuzz/src/lib.rs");
}
