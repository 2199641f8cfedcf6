//! Messages that have no place where they come.

use crate::messages::{BLOCK, data, directory, end, file, link};
use crate::{alone, scratch};
use copy::CopyError;
use copy::in_memory::{self, Limits, Outcome};
use copy::protocol::message::{Entry, Message};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn received(root: &Path, messages: &[Message]) -> Outcome {
    let is_whole = messages.iter().any(|message| matches!(message, Message::AllEntries(_)));
    let outcome = in_memory::receive(root, &Limits::default(), |peer| {
        if !messages.iter().all(|message| peer.send(message)) || !is_whole {
            peer.close();
        }
    });
    outcome.unwrap()
}

#[test]
fn entries_return_to_directories_that_are_complete() {
    let _alone = alone();
    let lists = [
        vec![directory(0, "a"), directory(1, "b"), file(2, "a/x", 0)],
        vec![directory(0, "a"), directory(1, "a/b"), directory(2, "c"), link(3, "a/b/x", "y")],
        vec![directory(0, "a"), directory(1, "a/b"), file(2, "a/x", 0), directory(3, "a/b/c")],
        vec![file(0, "a/x", 0)],
        vec![file(0, "a", 0), file(1, "a/x", 0)],
        vec![directory(0, "a"), directory(1, "ab/c")],
    ];
    for messages in lists {
        let root = scratch();
        let outcome = received(root.path(), &messages);
        let is_refused =
            matches!(&outcome.result, Err(CopyError::Protocol(why)) if why.contains("follow"));
        assert!(is_refused, "{messages:?}: {:?}", outcome.result);
    }
}

fn with_mode(message: Message, mode: u32) -> Message {
    let Message::Entry(entry) = message else { return message };
    Message::Entry(Entry { mode, ..entry })
}

#[test]
fn directories_get_their_attributes_when_all_below_them_is_there() {
    let _alone = alone();
    let root = scratch();
    let messages = [
        with_mode(directory(0, "a"), 0o500),
        with_mode(directory(1, "a/b"), 0o500),
        file(2, "a/b/late", 1),
        directory(3, "c"),
        // The same name once more, while its file is still open.
        with_mode(directory(4, "a"), 0o700),
        file(5, "a/x", 0),
        end(5, b""),
        data(2, 0, b"1"),
        end(2, b"1"),
        Message::AllEntries(6),
    ];
    let outcome = received(root.path(), &messages);
    assert_eq!((outcome.result, outcome.figures.problems), (Ok(()), 0), "{:?}", outcome.problems);
    assert_eq!(outcome.figures.entries, 6);
    let metadata = |name: &str| fs::metadata(root.path().join(name)).unwrap();
    assert_eq!(metadata("a/b").permissions().mode() & 0o777, 0o500);
    for name in ["a", "a/b", "c", "a/b/late"] {
        let since = metadata(name).modified().unwrap().duration_since(std::time::UNIX_EPOCH);
        assert_eq!(since.unwrap().as_secs(), 1, "{name}");
    }
}

#[test]
fn what_follows_the_last_entry_is_refused() {
    let _alone = alone();
    let root = scratch();
    let open = || vec![file(0, "f", 1), Message::AllEntries(1)];
    for more in [
        file(1, "g", 1),
        Message::AllEntries(1),
        data(1, 0, b"x"),
        Message::Accepted,
        Message::Finished,
        Message::Stored(0),
        Message::Have { id: 0, first: 0, hashes: Vec::new(), is_last: true },
    ] {
        let mut messages = open();
        messages.push(more.clone());
        let outcome = received(root.path(), &messages);
        assert!(matches!(outcome.result, Err(CopyError::Protocol(_))), "{more:?}");
    }
}

#[test]
fn data_comes_behind_the_end_of_a_file_and_after_its_answer() {
    let _alone = alone();
    let root = scratch();
    let messages = [
        file(0, "a", 1),
        end(0, b"1"),
        data(0, 0, b"1"),
        data(0, 0, b"2"),
        data(0, 9, b"3"),
        file(1, "b", 2),
        data(1, 1 << 40, b"x"),
        data(1, 0, b"12"),
        end(1, b"12"),
        Message::AllEntries(2),
    ];
    let outcome = received(root.path(), &messages);
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(fs::read(root.path().join("a")).unwrap(), b"1");
    assert!(!root.path().join("b").exists());
    assert_eq!(outcome.figures.problems, 1);
}

#[test]
fn blocks_in_a_row_are_behind_the_end_of_the_file() {
    let _alone = alone();
    for (first, count) in [(3, 1), (2, 2), (4, 1 << 20), (1 << 25, 1)] {
        let root = scratch();
        let messages = [
            file(0, "a", 3 * BLOCK),
            Message::Hole { id: 0, first, count },
            file(1, "b", 3 * BLOCK),
            Message::Kept { id: 1, first, count },
            end(0, b""),
            end(1, b""),
            Message::AllEntries(2),
        ];
        let outcome = received(root.path(), &messages);
        assert_eq!((outcome.result, outcome.figures.problems), (Ok(()), 2), "{first} {count}");
    }
}
