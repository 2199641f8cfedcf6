//! A sender that does not follow the protocol.

use super::{Destination, receive};
use crate::CopyError;
use crate::budget::Budget;
use crate::directory::Directory;
use crate::progress::Progress;
use crate::protocol::hash::Hash;
use crate::protocol::message::{Entry, EntryKind, Message};
use crate::protocol::path::RelativePath;
use crate::transport::Session;
use crate::transport::in_memory::Peer;
use host::stop::StopFlag;
use std::fs;

fn entry(id: u32, path: &str, kind: EntryKind) -> Message {
    let path = RelativePath::new(path.as_bytes().to_vec()).unwrap();
    Message::Entry(Entry { id, path, kind, mode: 0o644, modified: (0, 0) })
}

fn data(id: u32, block: u64, bytes: &[u8]) -> Message {
    Message::Data { id, block, bytes: bytes.to_vec() }
}

fn end(id: u32, hash: Hash) -> Message {
    Message::End { id, hash }
}

fn hash(bytes: &[u8]) -> Hash {
    *blake3::hash(bytes).as_bytes()
}

/// What a receiver makes of these messages, before the connection ends.
fn received(
    directory: &std::path::Path,
    expected: Option<&str>,
    messages: &[Message],
) -> (Result<(), CopyError>, Progress) {
    let session = Session::new(StopFlag::new());
    let progress = Progress::default();
    let destination = Destination {
        expected: expected.map(|pattern| vec![pattern.as_bytes().to_vec()]),
        ..Destination::new(Directory::open(directory).unwrap(), Budget::new(100))
    };
    let done = StopFlag::new();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let peer = Peer::new(&session);
            let _ = messages.iter().all(|message| peer.send(message));
            if !matches!(messages.last(), Some(Message::AllEntries(_))) {
                peer.close();
            }
            peer.linger(|| done.is_raised());
        });
        let result = receive(&session, &progress, &destination);
        done.raise();
        result
    });
    (result, progress)
}

#[test]
fn only_names_that_were_asked_for_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    for (pattern, name, is_accepted) in [
        ("*.txt", "a.txt", true),
        ("*.txt", ".bashrc", false),
        ("a", "b", false),
        ("a", "a/b", true),
    ] {
        let messages = vec![entry(0, name, EntryKind::File(0))];
        let (result, _) = received(directory.path(), Some(pattern), &messages);
        let refused =
            matches!(&result, Err(CopyError::Protocol(why)) if why.contains("not requested"));
        assert_eq!(!refused, is_accepted, "{pattern} {name}: {result:?}");
        assert!(result.is_err(), "the connection ended early");
    }
}

#[test]
fn links_are_not_written_through() {
    let (directory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = outside.path().as_os_str().as_encoded_bytes().to_vec();
    let inside = b"elsewhere".to_vec();
    fs::create_dir(directory.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("planted")).unwrap();
    let messages = vec![
        entry(0, "link", EntryKind::Symlink(target)),
        entry(1, "near", EntryKind::Symlink(inside)),
        entry(2, "near", EntryKind::Directory),
        entry(3, "near/file", EntryKind::File(1)),
        entry(4, "planted", EntryKind::Directory),
        entry(5, "planted/file", EntryKind::File(1)),
        // On its way when the receiver refused the files.
        data(3, 0, b"x"),
        data(5, 0, b"x"),
        Message::AllEntries(6),
    ];
    let (result, progress) = received(directory.path(), None, &messages);
    assert_eq!(result, Ok(()));
    assert_eq!(progress.figures().problems, 5, "{:?}", progress.problems());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(directory.path().join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_wrong_hash_leaves_the_old_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "old").unwrap();
    let messages = vec![
        entry(0, "file", EntryKind::File(3)),
        data(0, 0, b"new"),
        end(0, hash(b"other")),
        Message::AllEntries(1),
    ];
    let (result, progress) = received(directory.path(), None, &messages);
    assert_eq!(result, Ok(()));
    assert!(progress.problems()[0].contains("hash"), "{:?}", progress.problems());
    assert_eq!(fs::read(directory.path().join("file")).unwrap(), b"old");
}

#[test]
fn messages_out_of_order_are_errors() {
    let kept = |first, count| Message::Kept { id: 0, first, count };
    let file = || entry(0, "file", EntryKind::File(3));
    let wrong = [
        vec![data(0, 0, b"x")],
        vec![end(0, [0; 32])],
        vec![entry(1, "file", EntryKind::File(3))],
        vec![file(), file()],
        vec![file(), Message::AllEntries(5)],
        vec![Message::AllEntries(1)],
        vec![Message::Stored(0)],
        vec![Message::Finished],
        vec![file(), end(0, hash(b"x"))],
    ];
    for messages in wrong {
        let directory = tempfile::tempdir().unwrap();
        let (result, _) = received(directory.path(), None, &messages);
        assert!(result.is_err(), "{messages:?}");
        let names: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        assert!(names.is_empty(), "{messages:?}: {names:?}");
    }
    // These cost the file, not the copy.
    let wrong = [
        vec![data(0, 0, b"four")],
        vec![data(0, 7, b"x")],
        vec![data(0, 0, b"one"), data(0, 0, b"two")],
        vec![kept(0, 1)],
        vec![kept(0, 1 << 25)],
        vec![Message::Hole { id: 0, first: 5, count: 1 }],
        vec![Message::Unreadable { id: 0, reason: "it is gone".into() }],
    ];
    for messages in wrong {
        let directory = tempfile::tempdir().unwrap();
        let mut all = vec![file()];
        all.extend(messages);
        if !matches!(all[1], Message::Unreadable { .. }) {
            all.push(end(0, hash(b"one")));
        }
        all.push(Message::AllEntries(1));
        let (result, progress) = received(directory.path(), None, &all);
        assert_eq!(result, Ok(()), "{all:?}");
        assert_eq!(progress.figures().problems, 1, "{all:?}");
        assert!(!directory.path().join("file").exists(), "{all:?}");
    }
}

#[test]
fn a_sender_that_lists_without_end_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let all: Vec<_> =
        (0..40_000).map(|id| entry(id, &format!("f{id}"), EntryKind::File(1))).collect();
    let (result, _) = received(directory.path(), None, &all);
    assert!(matches!(result, Err(CopyError::Protocol(_))), "{result:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
