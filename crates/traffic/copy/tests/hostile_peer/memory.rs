//! What a sender can make the receiver hold.

use crate::allocator::peak_of;
use crate::messages::{BLOCK, data, directory, file, link};
use crate::{alone, scratch};
use copy::CopyError;
use copy::in_memory::{self, Limits};
use copy::protocol::message::Message;
use std::fs;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// A path of that many bytes, as directories within each other.
fn deep(bytes: usize) -> Vec<String> {
    let names = (1..=bytes / 201).map(|depth| vec!["d".repeat(200); depth].join("/"));
    names.collect()
}

#[test]
fn directories_with_long_paths_come_without_end() {
    let _alone = alone();
    let root = scratch();
    let (limits, count) = (Limits::default(), 8_000);
    let (outcome, peak) = peak_of(|| {
        in_memory::receive(root.path(), &limits, |peer| {
            let parents = deep(3_800);
            let base = parents.last().unwrap();
            let mut id = 0;
            for path in &parents {
                assert!(peer.send(&directory(id, path)));
                id += 1;
            }
            for number in 0..count {
                assert!(peer.send(&directory(id, &format!("{base}/{number}"))));
                id += 1;
                peer.forget();
            }
            assert!(peer.send(&Message::AllEntries(id)));
        })
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.result, outcome.figures.problems), (Ok(()), 0));
    assert_eq!(outcome.figures.entries, count + 18);
    // 30 MB of paths were sent. What is held are those of the open directories, and a queue.
    assert!(limits.peak_bytes() < MIB, "{}", limits.peak_bytes());
    assert!(peak < 40 * MIB, "{peak}");
}

#[test]
fn entries_with_long_paths_are_never_ended() {
    let _alone = alone();
    let root = scratch();
    let limits = Limits::new(MIB, 100);
    let outcome = in_memory::receive(root.path(), &limits, |peer| {
        let parents = deep(3_800);
        let base = parents.last().unwrap();
        for (id, path) in parents.iter().enumerate() {
            assert!(peer.send(&directory(id as u32, path)));
        }
        for id in 18..2_000 {
            if !peer.send(&file(id, &format!("{base}/{id}"), 1)) {
                return;
            }
        }
        peer.close();
    });
    let result = outcome.unwrap().result;
    assert!(
        matches!(&result, Err(CopyError::Protocol(why)) if why.contains("memory")),
        "{result:?}"
    );
    assert!(limits.peak_bytes() <= MIB);
}

#[test]
fn many_files_have_early_hashes() {
    let _alone = alone();
    let root = scratch();
    let (limits, files) = (Limits::new(MIB, 100), 100);
    let outcome = in_memory::receive(root.path(), &limits, |peer| {
        for id in 0..files {
            assert!(peer.send(&file(id, &id.to_string(), 200 * BLOCK)));
            assert!(peer.send(&Message::Hole { id, first: 1, count: 150 }));
        }
        for id in 0..files {
            assert!(peer.send(&Message::Unreadable { id, reason: "gone".into() }));
        }
        assert!(peer.send(&Message::AllEntries(files)));
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.result, Ok(()));
    let early = outcome.problems.iter().filter(|why| why.contains("before earlier ones")).count();
    assert!((1..100).contains(&early), "{early}: {:?}", outcome.problems);
    assert!(limits.peak_bytes() <= MIB);
}

#[test]
fn empty_ranges_are_repeated() {
    let _alone = alone();
    let root = scratch();
    fs::write(root.path().join("0"), vec![1; 2 * BLOCK as usize]).unwrap();
    for empty in
        [Message::Kept { id: 0, first: 0, count: 0 }, Message::Hole { id: 0, first: 0, count: 0 }]
    {
        let (outcome, peak) = peak_of(|| {
            in_memory::receive(root.path(), &Limits::default(), |peer| {
                assert!(peer.send(&file(0, "0", 2 * BLOCK)));
                let said = peer.receive(Duration::from_secs(60));
                assert!(matches!(said, Some(Message::Have { is_last: false, .. })), "{said:?}");
                assert!((0..200_000).all(|_| peer.send(&empty)));
                assert!(peer.send(&Message::End { id: 0, hash: [0; 32] }));
                assert!(peer.send(&Message::AllEntries(1)));
            })
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.result, Ok(()));
        assert!(outcome.problems[0].contains("is empty"), "{:?}", outcome.problems);
        assert!(peak < 40 * MIB, "{peak}");
    }
}

#[test]
fn links_come_without_end() {
    let _alone = alone();
    let root = scratch();
    let (limits, target) = (Limits::default(), "t".repeat(200));
    let outcome = in_memory::receive(root.path(), &limits, |peer| {
        // One name, so that the disk is no limit.
        assert!((0..5_000).all(|id| peer.send(&link(id, "l", &target))));
        assert!(peer.send(&Message::AllEntries(5_000)));
    });
    assert_eq!(outcome.unwrap().result, Ok(()));
    assert!(limits.peak_bytes() < MIB / 10, "{}", limits.peak_bytes());
}

#[test]
fn small_blocks_cost_what_they_take() {
    let _alone = alone();
    let root = scratch();
    let ((), peak) = peak_of(|| {
        let outcome = in_memory::receive(root.path(), &Limits::default(), |peer| {
            assert!(peer.send(&file(0, "0", 1)));
            // Refused, one by one; the queues fill up.
            assert!((0..300_000).all(|block| peer.send(&data(0, block, b""))));
            peer.close();
        });
        assert!(outcome.unwrap().result.is_err());
    });
    assert!(peak < 80 * MIB, "{peak}");
}
