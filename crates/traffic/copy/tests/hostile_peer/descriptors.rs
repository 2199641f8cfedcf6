//! Files that are begun and never ended.

use crate::messages::{BLOCK, data, end, file};
use crate::{alone, scratch};
use copy::in_memory::{self, Limits, Peer};
use copy::protocol::message::Message;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Descriptors that a copy may have.
const MAX_DESCRIPTORS: usize = 64;

/// Descriptors of this process below a directory.
fn descriptors(root: &Path) -> usize {
    let all = fs::read_dir("/proc/self/fd").unwrap();
    all.filter(|entry| {
        let link = fs::read_link(entry.as_ref().unwrap().path());
        link.is_ok_and(|target| target.starts_with(root))
    })
    .count()
}

/// Begins files of two blocks, with the second one. The most descriptors that were seen.
fn begin(peer: &Peer<'_>, root: &Path, name: &str, files: u32) -> usize {
    let mut most = 0;
    for id in 0..files {
        assert!(peer.send(&file(id, &format!("{name}{id}"), BLOCK + 1)));
        assert!(peer.send(&data(id, 1, b"x")));
        if id % 50 == 0 {
            most = most.max(descriptors(root));
        }
    }
    // All are written once this is answered.
    assert!(peer.send(&file(files, &format!("{name} last"), 0)));
    assert!(peer.send(&file(files + 1, &format!("{name} very last"), 0)));
    assert!(peer.send(&end(files, b"")) && peer.send(&end(files + 1, b"")));
    let mut answered = 0;
    while answered < 2 {
        let message = peer.receive(Duration::from_secs(60)).unwrap();
        answered += usize::from(matches!(message, Message::Stored(_)));
        most = most.max(descriptors(root));
    }
    most
}

#[test]
fn thousands_of_files_are_begun() {
    let _alone = alone();
    let root = scratch();
    let files = 2_000;
    let block = vec![7; BLOCK as usize];
    let outcome = in_memory::receive(root.path(), &Limits::default(), |peer| {
        let most = begin(peer, root.path(), "f", files);
        assert!(most <= MAX_DESCRIPTORS, "{most} descriptors");
        // Those that were closed meanwhile are completed, and one is damaged.
        fs::write(root.path().join(".f9.longhaul-part"), "damaged").unwrap();
        let whole = [&block[..], b"x"].concat();
        for id in 0..20 {
            assert!(peer.send(&data(id, 0, &block)) && peer.send(&end(id, &whole)));
        }
        for id in 20..files {
            assert!(peer.send(&Message::Unreadable { id, reason: "gone".into() }));
        }
        assert!(peer.send(&Message::AllEntries(files + 2)));
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(outcome.figures.problems, u64::from(files) - 19);
    for id in (0..20).filter(|id| *id != 9) {
        let stored = fs::read(root.path().join(format!("f{id}"))).unwrap();
        assert!(stored == [&block[..], b"x"].concat());
    }
    assert!(!root.path().join("f9").exists());
}

#[test]
fn many_copies_share_the_descriptors_of_a_server() {
    let _alone = alone();
    let root = scratch();
    let limits = Limits::new(1 << 20, 30);
    std::thread::scope(|scope| {
        for copy in 0..4 {
            let (root, limits) = (root.path(), limits.beside());
            scope.spawn(move || {
                let name = char::from(b'a' + copy).to_string();
                let outcome = in_memory::receive(root, &limits, |peer| {
                    begin(peer, root, &name, 100);
                    peer.close();
                });
                assert!(outcome.unwrap().result.is_err());
            });
        }
    });
    assert!(limits.peak_open_files() <= 30, "{}", limits.peak_open_files());
}

#[test]
fn entries_without_data_have_no_descriptor() {
    let _alone = alone();
    let root = scratch();
    for id in 0..500 {
        fs::write(root.path().join(format!(".{id}.longhaul-part")), "incomplete").unwrap();
    }
    let outcome = in_memory::receive(root.path(), &Limits::default(), |peer| {
        for id in 0..500 {
            assert!(peer.send(&file(id, &id.to_string(), 2 * BLOCK)));
        }
        let mut open = 500;
        while open > 0 {
            let message = peer.receive(Duration::from_secs(60)).unwrap();
            open -= usize::from(matches!(message, Message::Have { is_last: true, .. }));
        }
        let most = descriptors(root.path());
        assert!(most <= 8, "{most} descriptors");
        peer.close();
    });
    assert!(outcome.unwrap().result.is_err());
}
