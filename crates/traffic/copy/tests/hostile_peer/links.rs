//! Symbolic links that lead out, alone or together.

use crate::messages::{directory, file, link};
use crate::{alone, scratch};
use copy::in_memory::{self, Limits, Outcome};
use copy::protocol::message::Message;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Sends all of these, unless the receiver refuses one before, and waits for the end.
fn copy(root: &Path, messages: &[Message]) -> Outcome {
    let end = Message::AllEntries(u32::try_from(messages.len()).unwrap());
    let mut all_sent = false;
    let outcome = in_memory::receive(root, &Limits::default(), |peer| {
        all_sent = messages.iter().chain([&end]).all(|message| peer.send(message));
    });
    let outcome = outcome.unwrap();
    assert!(all_sent || outcome.result.is_err());
    outcome
}

/// No link leads out, whether the kernel says so or whoever follows them by hand.
fn assert_contained(root: &Path, what: &dyn std::fmt::Debug) {
    let found = in_memory::links_that_lead_out(root).unwrap();
    assert!(found.is_empty(), "{found:?}: {what:?}");
    let real = fs::canonicalize(root).unwrap();
    let mut directories = vec![real.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else if let Ok(found) = fs::canonicalize(entry.path()) {
                assert!(found.starts_with(&real), "{:?} -> {found:?}: {what:?}", entry.path());
            }
        }
    }
}

#[test]
fn a_chain_of_links_makes_the_text_deeper_than_the_disk() {
    let _alone = alone();
    for back in ["s/s/s/s/s/s/s/s/../../../../../../../../etc/passwd", "s/../etc", "s/./.."] {
        let root = scratch();
        let outcome = copy(root.path(), &[link(0, "s", "."), link(1, "z", back)]);
        assert_eq!(outcome.result, Ok(()));
        assert_eq!(outcome.figures.problems, 1, "{:?}", outcome.problems);
        assert_contained(root.path(), &back);
        assert!(root.path().join("s").is_symlink() && !root.path().join("z").is_symlink());
    }
}

#[test]
fn links_that_lead_out_only_together_come_in_any_order() {
    let _alone = alone();
    let links =
        [("z", "s1/s1/../../etc"), ("s1", "s2"), ("s2", "."), ("d/up", ".."), ("y", "d/up/..")];
    for rotation in 0..links.len() {
        let root = scratch();
        let mut messages = Vec::new();
        for (name, target) in links.iter().cycle().skip(rotation).take(links.len()) {
            let id = |messages: &Vec<_>| messages.len() as u32;
            if name.starts_with("d/") {
                messages.push(directory(id(&messages), "d"));
            }
            messages.push(link(id(&messages), name, target));
        }
        let outcome = copy(root.path(), &messages);
        assert_eq!((outcome.result, outcome.figures.problems), (Ok(()), 2), "{rotation}");
        assert_contained(root.path(), &rotation);
    }
}

#[test]
fn a_directory_is_replaced_by_a_link_and_a_link_by_a_directory() {
    let _alone = alone();
    let root = scratch();
    let deep = |id| vec![directory(id, "a"), directory(id + 1, "a/b")];
    // From a/b/up two steps up are the copy's directory; from b, they would be above it.
    let mut first = deep(0);
    first.push(link(2, "a/b/up", "../.."));
    assert_eq!(copy(root.path(), &first).figures.problems, 0);
    let mut second = deep(0);
    second.extend([link(2, "a/b", "."), link(3, "a", "."), directory(4, "a/b/up")]);
    let outcome = copy(root.path(), &second);
    assert!(outcome.result.is_err(), "a/b/up follows a, which is no directory");
    let outcome = copy(root.path(), &[link(0, "a", "."), link(1, "l", "a"), directory(2, "l")]);
    assert_eq!((outcome.result, outcome.figures.problems), (Ok(()), 2));
    assert!(root.path().join("a/b").is_dir());
    assert_contained(root.path(), &());
}

#[test]
fn a_link_leads_out_through_one_that_was_there() {
    let _alone = alone();
    let root = scratch();
    symlink("/etc", root.path().join("theirs")).unwrap();
    fs::create_dir(root.path().join("d")).unwrap();
    symlink("../..", root.path().join("d/up")).unwrap();
    let through = [("a", "theirs/passwd"), ("b", "theirs"), ("c", "d/up"), ("e", "d/up/none")];
    let entries = through.iter().enumerate().map(|(id, (name, to))| link(id as u32, name, to));
    let outcome = copy(root.path(), &entries.collect::<Vec<_>>());
    assert_eq!((outcome.result, outcome.figures.problems), (Ok(()), 4));
    let names = fs::read_dir(root.path()).unwrap().count();
    assert_eq!(names, 2, "nothing is left, not even under another name");
}

#[test]
fn dangling_and_circular_links_are_created() {
    let _alone = alone();
    let root = scratch();
    let links =
        [("d/a", "../none/at/all"), ("d/b", "b"), ("d/c", "c/x"), ("e", "f"), ("g", "file/x")];
    let mut messages = vec![directory(0, "d")];
    for (name, target) in links {
        messages.push(link(messages.len() as u32, name, target));
    }
    let outcome = copy(root.path(), &messages);
    assert_eq!((outcome.result, outcome.figures.problems), (Ok(()), 0), "{:?}", outcome.problems);
    assert!(links.iter().all(|(name, _)| root.path().join(name).is_symlink()));
}

/// A copy: paths of names, and a link's target there, or else a directory or a file.
type Tree = BTreeMap<Vec<&'static str>, Option<String>>;

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c")]
}

fn target() -> impl Strategy<Value = String> {
    let part = prop_oneof![3 => Just(".."), 1 => Just("."), 2 => Just("a"), 2 => Just("b"), 2 => Just("c")];
    let relative = proptest::collection::vec(part, 1..7).prop_map(|parts| parts.join("/"));
    prop_oneof![20 => relative, 1 => Just("/etc".to_owned())]
}

fn tree() -> impl Strategy<Value = Tree> {
    let path = proptest::collection::vec(name(), 1..4);
    proptest::collection::btree_map(path, proptest::option::weighted(0.7, target()), 1..12)
}

/// The entries of a tree in the order of a walk, with the directories that are missing.
fn entries(tree: &Tree) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for (path, kind) in tree {
        let (name, parents) = path.split_last().unwrap();
        let same = open.iter().zip(parents).take_while(|(open, parent)| open == parent).count();
        open.truncate(same);
        for parent in &parents[same..] {
            open.push(parent);
            messages.push(directory(messages.len() as u32, &open.join("/")));
        }
        let path = [&open[..], &[name]].concat().join("/");
        let id = messages.len() as u32;
        match kind {
            Some(target) => messages.push(link(id, &path, target)),
            None => {
                messages.push(directory(id, &path));
                open.push(name);
            }
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..<_>::default() })]
    #[test]
    fn any_trees_of_links_one_after_the_other_stay_in_their_directory(
        trees in proptest::collection::vec(tree(), 1..4),
    ) {
        let _alone = alone();
        let root = scratch();
        for tree in &trees {
            let outcome = copy(root.path(), &entries(tree));
            prop_assert_eq!(outcome.result, Ok(()), "{:?}", tree);
            assert_contained(root.path(), &trees);
        }
    }
}

#[test]
fn a_file_is_written_where_a_link_is() {
    let _alone = alone();
    let root = scratch();
    fs::write(root.path().join("victim"), "mine").unwrap();
    let messages = [link(0, "l", "victim"), file(1, "l", 0)];
    let count = messages.len() as u32;
    let outcome = in_memory::receive(root.path(), &Limits::default(), |peer| {
        let end = crate::messages::end(1, b"");
        assert!(messages.iter().chain([&end, &Message::AllEntries(count)]).all(|m| peer.send(m)));
    });
    assert_eq!(outcome.unwrap().result, Ok(()));
    assert_eq!(fs::read(root.path().join("victim")).unwrap(), b"mine");
    assert!(!root.path().join("l").is_symlink());
}
