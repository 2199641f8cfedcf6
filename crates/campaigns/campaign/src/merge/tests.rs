//! Shards that are joined.

use super::*;
use crate::runner::{self, Options};
use crate::{HostAccess, simulated_cell};
use perf::StopFlag;
use record::StudyTestbed;
use rusqlite::Connection;
use std::fs;
use tempfile::TempDir;

const PLAN: &str = r#"question = "?"
[path]
rate = "4mbit"
rtt = "20ms"
[factors]
congestion = ["cubic", "reno"]
loss = ["0%", "1%"]
[traffic]
duration = "1s"
[repeats]
count = 2
order = "random"
until = "5%"
most = 4
"#;

fn study() -> Study {
    Study::of_plan("s", PLAN, false).unwrap()
}

/// Runs a study in the simulator, or a shard of it.
fn run(folder: &Path, study: &Study, shard: Option<&str>, threads: u32) {
    let access = HostAccess {
        ssh: Vec::new(),
        far_program: String::new(),
        own_program: PathBuf::new(),
        token: None,
    };
    let shard = shard.map(|shard| shard.parse().unwrap());
    let options = Options { parallel: threads, shard, ..Options::default() };
    let mut store = Store::open(folder, study, StudyTestbed::Simulator).unwrap();
    let stop = StopFlag::new();
    runner::run(study, &mut store, &options, &access, &mut |_| (), &stop).unwrap();
}

fn bytes(folder: &Path) -> Vec<u8> {
    // A reader leaves an empty one.
    let log = fs::metadata(folder.join("study.db-wal")).map_or(0, |log| log.len());
    assert_eq!(log, 0, "everything is in the file");
    fs::read(folder.join("study.db")).unwrap()
}

/// Three shards of the study.
fn shards(parent: &TempDir) -> Vec<PathBuf> {
    let folder = |number: usize| {
        let folder = parent.path().join(format!("shard-{number}"));
        run(&folder, &study(), Some(&format!("{number}/3")), 2);
        folder
    };
    (1..=3).map(folder).collect()
}

#[test]
fn shards_that_are_merged_are_the_store_of_one_process_byte_for_byte() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    run(&at("one"), &study(), None, 1);
    run(&at("threads"), &study(), None, 4);
    assert!(bytes(&at("one")) == bytes(&at("threads")), "the number of threads changes nothing");
    let shards = shards(&parent);
    let runs = |folder: &Path| Store::read(folder).unwrap().count().unwrap();
    let all = runs(&at("one"));
    assert!(shards.iter().all(|shard| (1..all).contains(&runs(shard))));
    assert!(all > study().runs(), "runs were added to cells, {all}");
    let merged = merge(&shards, &at("merged")).unwrap();
    assert_eq!(merged, Merged { stores: 3, runs: all, shared: 0, missing: 0 });
    assert!(bytes(&at("one")) == bytes(&at("merged")));
    // Runs that are the same in two stores are no contradiction.
    let merged = merge(&[shards.as_slice(), &[at("one")]].concat(), &at("again")).unwrap();
    assert_eq!((merged.runs, merged.shared), (all, all));
    assert!(bytes(&at("one")) == bytes(&at("again")));
    let some = merge(&shards[..2], &at("some")).unwrap();
    assert!(some.runs < all && some.missing > 0, "{some:?}");
}

#[test]
fn what_is_not_of_one_study_is_not_merged() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    let shards = shards(&parent);
    let exists = merge(&shards, parent.path());
    assert!(matches!(exists, Err(CampaignError::Exists { .. })), "{exists:?}");
    let alone = merge(&shards[..1], &at("merged"));
    assert!(matches!(alone, Err(CampaignError::MergeCount { count: 1 })), "{alone:?}");
    let none = merge(&[shards[0].clone(), at("none")], &at("merged"));
    assert!(matches!(none, Err(CampaignError::NoStudy { .. })), "{none:?}");
    for (name, from, to) in
        [("seed", "count = 2", "count = 2\nseed = 9"), ("plan", "4mbit", "5mbit")]
    {
        let other = Study::of_plan("s", &PLAN.replace(from, to), false).unwrap();
        run(&at(name), &other, Some("1/8"), 1);
        let refused = merge(&[shards[0].clone(), at(name)], &at("merged"));
        assert!(matches!(refused, Err(CampaignError::MergeDiffers { .. })), "{name}: {refused:?}");
    }
    // The same run with another figure.
    run(&at("other"), &study(), Some("1/3"), 1);
    let file = Connection::open(at("other").join("study.db")).unwrap();
    file.execute_batch("UPDATE flow SET retransmits = retransmits + 1").unwrap();
    drop(file);
    let refused = merge(&[shards[0].clone(), at("other")], &at("merged")).unwrap_err();
    let message = refused.to_string();
    assert!(message.contains("congestion=cubic loss=0%, repeat 1"), "{message}");
    assert!(!at("merged").exists(), "nothing is written before all is compared");
}

#[test]
fn a_store_of_labs_is_not_continued_in_the_simulator() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("lab");
    drop(Store::open(&folder, &study(), StudyTestbed::Lab).unwrap());
    let refused = Store::open(&folder, &study(), StudyTestbed::Simulator);
    assert!(matches!(refused, Err(CampaignError::OtherTestbed { .. })), "{refused:?}");
    assert_eq!(simulated_cell::unsupported(&study()), None);
}
