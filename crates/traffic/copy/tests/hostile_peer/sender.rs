//! A receiver that does not follow the protocol: what it can make the sender hold.

use crate::allocator::peak_of;
use crate::{alone, scratch};
use copy::CopyError;
use copy::in_memory::{self, Outcome, Peer};
use copy::protocol::message::{MAX_HASHES, Message};
use std::fs;
use std::path::Path;
use std::time::Duration;

const MIB: usize = 1 << 20;
/// A file of so many bytes has 32 million blocks.
const LARGE: u64 = 1 << 43;

fn sent(root: &Path, peer: impl FnOnce(&Peer<'_>) + Send) -> Outcome {
    in_memory::send(&[root.join("tree")], peer).unwrap()
}

/// A directory `tree` with files of that length, without data.
fn tree(files: u32, bytes: u64) -> tempfile::TempDir {
    let root = scratch();
    fs::create_dir(root.path().join("tree")).unwrap();
    for number in 0..files {
        let file = fs::File::create(root.path().join(format!("tree/{number}"))).unwrap();
        file.set_len(bytes).unwrap();
    }
    root
}

fn have(id: u32, first: u64, count: usize, is_last: bool) -> Message {
    Message::Have { id, first, hashes: vec![[7; 32]; count], is_last }
}

#[test]
fn it_claims_to_have_everything_without_end() {
    let _alone = alone();
    let root = tree(40, LARGE);
    let (outcome, peak) = peak_of(|| {
        sent(root.path(), |peer| {
            let mut entries = 0;
            while entries < 41 {
                let said = peer.receive(Duration::from_secs(60)).unwrap();
                entries += usize::from(matches!(said, Message::Entry(_)));
            }
            // 5 million hashes, of 160 MB.
            for id in 1..41 {
                for batch in 0..31 {
                    let first = batch * MAX_HASHES as u64;
                    assert!(peer.send(&have(id, first, MAX_HASHES, false)));
                }
            }
            peer.close();
        })
    });
    assert!(matches!(outcome.result, Err(CopyError::Connection(_))), "{:?}", outcome.result);
    // 64 MiB of hashes, and a queue of 16 MiB.
    assert!(peak < 90 * MIB, "{peak}");
}

#[test]
fn hashes_come_twice_or_out_of_order() {
    let _alone = alone();
    let root = tree(1, LARGE);
    let lists = [
        vec![have(1, 0, 1, false), have(1, 0, 1, false)],
        vec![have(1, 5, 2, false), have(1, 6, 1, false)],
        vec![have(1, 5, 2, false), have(1, 0, 1, false)],
        vec![have(1, u64::MAX, 1, false)],
        vec![have(1, 1 << 26, 1, false)],
        vec![have(0, 0, 1, true)],
        vec![have(2, 0, 1, true)],
        vec![have(1, 0, 0, true), have(1, 0, 0, true)],
        vec![Message::Stored(7)],
        vec![Message::Finished],
        vec![Message::Accepted, Message::AllEntries(2)],
    ];
    for messages in lists {
        let outcome = sent(root.path(), |peer| {
            for _ in 0..3 {
                assert!(peer.receive(Duration::from_secs(60)).is_some());
            }
            if messages.iter().all(|message| peer.send(message)) {
                peer.close();
            }
        });
        let is_refused = matches!(outcome.result, Err(CopyError::Protocol(_)));
        assert!(is_refused, "{messages:?}: {:?}", outcome.result);
    }
}

#[test]
fn it_answers_before_anything_is_sent() {
    let _alone = alone();
    let root = tree(10_000, LARGE);
    let outcome = sent(root.path(), |peer| {
        // Everything is wanted, and stored at once; no data is taken. What is yet to be read
        // counts as unanswered, so the list stops.
        let mut entries = 0;
        while let Some(message) = peer.receive(Duration::from_millis(500)) {
            let Message::Entry(entry) = message else { continue };
            entries += 1;
            let is_file = entry.id > 0;
            assert!(!is_file || peer.send(&have(entry.id, 0, 0, true)));
            assert!(peer.send(&Message::Stored(entry.id)));
        }
        assert!((8_000..8_200).contains(&entries), "{entries}");
        peer.close();
    });
    assert!(outcome.result.is_err());
}
