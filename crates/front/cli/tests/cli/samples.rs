//! Measurements stored by every version so far: each can still be explained.

use crate::program::printed;
use record::{Limit, MEASUREMENT_SCHEMA};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Stored measurements, with their contents.
fn samples() -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        (file, serde_json::from_str(&text).unwrap())
    };
    files.map(read).collect()
}

#[test]
fn every_version_has_a_sample() {
    let (name, newest) = MEASUREMENT_SCHEMA.split_once('/').unwrap();
    let newest: u32 = newest.parse().unwrap();
    let expected: BTreeSet<String> =
        (1..=newest).map(|number| format!("{name}/{number}")).collect();
    let samples = samples();
    let found = samples.iter().map(|(_, sample)| sample["schema"].as_str().unwrap().to_owned());
    assert_eq!(found.collect::<BTreeSet<_>>(), expected);
}

#[test]
fn samples_of_every_version_are_explained() {
    let names: Vec<&str> = Limit::ALL.iter().map(|limit| limit.name()).collect();
    for (file, sample) in samples() {
        let file = file.to_str().unwrap();
        let finding: Value = serde_json::from_str(&printed(&["explain", file, "--json"])).unwrap();
        assert_eq!(finding["schema"], "longhaul.test/2", "{file}");
        assert!(finding["throughput_bps"].as_f64().unwrap() > 0.0, "{file}: {finding}");
        assert!(!finding["sentence"].as_str().unwrap().is_empty(), "{file}: {finding}");
        let limit = &finding["limit"];
        assert!(limit.as_str().is_none_or(|limit| names.contains(&limit)), "{file}: {limit}");
        for key in ["posterior", "segments"] {
            assert!(finding[key].is_array(), "{file}: {key}: {finding}");
        }
        assert!(finding.as_object().unwrap().contains_key("bottleneck"), "{file}: {finding}");
        // Whatever the version, what was measured is not changed.
        assert_eq!(finding["started_unix_s"], sample["started_unix_s"], "{file}");
        assert_eq!(finding["streams"][0]["received_bytes"], sample["streams"][0]["received_bytes"]);
        assert!(printed(&["explain", file]).contains("Limit  "), "{file}");
    }
}
