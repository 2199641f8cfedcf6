//! Copies of a file beside a model of both ends: interrupted after any message, the source changed
//! and the incomplete copy damaged in between. After each, the model says which blocks the network
//! carried and which files are there; nobody ever sees a mix of two versions under a file's name.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use copy::in_memory::{self, Limits, Outcome, Peer};
use copy::protocol::BLOCK_BYTES;
use copy::protocol::message::Message;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const MAX_BLOCKS: usize = 5;

const POLL: Duration = Duration::from_micros(300);
/// Polls without a message after which a copy has failed.
const MAX_IDLE: u32 = 30_000;

/// A version of the file: a number for the contents of each block, and the length of the last one.
#[derive(Debug, Clone, PartialEq)]
struct Version {
    blocks: Vec<u8>,
    last: usize,
}

impl Version {
    fn bytes(&self) -> Vec<u8> {
        let block = |number: u8| (0..BLOCK_BYTES).map(move |at| (number ^ at as u8) | 1);
        let mut bytes: Vec<u8> = self.blocks.iter().copied().flat_map(block).collect();
        bytes.truncate((self.blocks.len() - 1) * BLOCK_BYTES + self.last);
        bytes
    }
}

#[derive(Debug, Clone)]
enum Event {
    /// Copies; where there is a number, the connection fails after so many of the sender's
    /// messages.
    Copy(Option<usize>),
    ChangeBlock(usize, u8),
    Replace(Version),
    /// Flips a bit of the incomplete copy.
    Damage(usize),
    RemoveIncomplete,
}

/// The source, and the version that the last whole copy left at the destination.
#[derive(Debug, Clone)]
struct Files {
    source: Version,
    stored: Option<Version>,
}

struct Model;

fn version() -> impl Strategy<Value = Version> {
    let last = prop_oneof![Just(1), Just(BLOCK_BYTES / 2), Just(BLOCK_BYTES)];
    (prop::collection::vec(0..128u8, 1..=MAX_BLOCKS), last)
        .prop_map(|(blocks, last)| Version { blocks, last })
}

impl ReferenceStateMachine for Model {
    type State = Files;
    type Transition = Event;

    fn init_state() -> BoxedStrategy<Files> {
        version().prop_map(|source| Files { source, stored: None }).boxed()
    }

    fn transitions(_: &Files) -> BoxedStrategy<Event> {
        prop_oneof![
            2 => Just(Event::Copy(None)),
            // An entry, that it was all, blocks and the end: about so many messages.
            4 => (0..MAX_BLOCKS + 4).prop_map(|after| Event::Copy(Some(after))),
            2 => (0..MAX_BLOCKS, 0..128u8).prop_map(|(block, to)| Event::ChangeBlock(block, to)),
            1 => version().prop_map(Event::Replace),
            1 => (0..MAX_BLOCKS).prop_map(Event::Damage),
            1 => Just(Event::RemoveIncomplete),
        ]
        .boxed()
    }

    fn apply(mut files: Files, event: &Event) -> Files {
        match event {
            Event::Copy(None) => files.stored = Some(files.source.clone()),
            Event::ChangeBlock(block, to) => {
                let block = block % files.source.blocks.len();
                files.source.blocks[block] = *to;
            }
            Event::Replace(version) => files.source = version.clone(),
            Event::Copy(Some(_)) | Event::Damage(_) | Event::RemoveIncomplete => {}
        }
        files
    }
}

/// Both ends, in one directory.
struct Ends {
    directory: tempfile::TempDir,
    /// A cut copy may have been complete: the versions that may be stored.
    may_be_stored: Vec<Option<Vec<u8>>>,
}

impl Ends {
    fn near(&self) -> PathBuf {
        self.directory.path().join("near/file")
    }

    fn stored(&self) -> Option<Vec<u8>> {
        fs::read(self.directory.path().join("far/file")).ok()
    }

    fn incomplete(&self) -> PathBuf {
        self.directory.path().join("far/.file.longhaul-part")
    }

    /// Bytes of the source's blocks that the incomplete copy, or else the old file, does not have.
    fn missing(&self, source: &[u8]) -> usize {
        let basis = fs::read(self.incomplete()).ok().or_else(|| self.stored()).unwrap_or_default();
        let blocks = source.chunks(BLOCK_BYTES).enumerate();
        let is_missing = |(index, block): &(usize, &[u8])| {
            let at = index * BLOCK_BYTES;
            basis.get(at..at + block.len()) != Some(*block)
        };
        blocks.filter(is_missing).map(|(_, block)| block.len()).sum()
    }

    /// Relays between a sender and a receiver until the copy is over, or the connection fails.
    fn copy(&self, fails_after: Option<usize>) -> (Outcome, Outcome) {
        let left = AtomicUsize::new(fails_after.unwrap_or(usize::MAX));
        let ((to_far, at_far), (to_near, at_near)) = (channel(), channel());
        let (at_far, at_near) = (Mutex::new(at_far), Mutex::new(at_near));
        let far = self.directory.path().join("far");
        std::thread::scope(|scope| {
            let received = scope.spawn(|| {
                in_memory::receive(&far, &Limits::default(), |peer| {
                    relay(peer, &to_near, &at_far.lock().unwrap(), &left, false);
                })
            });
            let sent = in_memory::send(&[self.near()], |peer| {
                relay(peer, &to_far, &at_near.lock().unwrap(), &left, true);
            });
            (sent.unwrap(), received.join().unwrap().unwrap())
        })
    }
}

/// Passes messages on, in both directions; those of the sender are counted. It ends the
/// connection of its end.
fn relay(
    peer: &Peer<'_>,
    to: &Sender<Message>,
    from: &Receiver<Message>,
    left: &AtomicUsize,
    is_sender: bool,
) {
    let (mut is_over, mut idle) = (false, 0);
    while !is_over && left.load(Ordering::SeqCst) > 0 && idle < MAX_IDLE {
        idle += 1;
        if let Some(message) = peer.receive(POLL) {
            is_over |= message == Message::Finished;
            idle = 0;
            if to.send(message).is_ok() && is_sender {
                let _ = left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            }
        }
        for message in from.try_iter() {
            is_over |= !peer.send(&message) || message == Message::Finished;
            idle = 0;
        }
    }
    // The end of one is the end of the other; what is on the way arrives.
    left.store(0, Ordering::SeqCst);
    std::thread::sleep(2 * POLL);
    from.try_iter().take_while(|message| peer.send(message)).for_each(drop);
    peer.close();
}

struct Copying;

impl StateMachineTest for Copying {
    type SystemUnderTest = Ends;
    type Reference = Model;

    fn init_test(files: &Files) -> Ends {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for end in ["near", "far"] {
            fs::create_dir(directory.path().join(end)).unwrap();
        }
        let ends = Ends { directory, may_be_stored: vec![None] };
        fs::write(ends.near(), files.source.bytes()).unwrap();
        ends
    }

    fn apply(mut ends: Ends, files: &Files, event: Event) -> Ends {
        let source = files.source.bytes();
        match event {
            Event::Copy(None) => {
                let missing = ends.missing(&source);
                let (sent, received) = ends.copy(None);
                assert_eq!((&sent.result, &received.result), (&Ok(()), &Ok(())));
                assert_eq!((sent.problems, received.problems), (vec![], vec![]));
                assert_eq!(received.figures.entries, 1);
                // What is there and right is not carried again, and nothing else is kept.
                assert_eq!(sent.figures.bytes, missing as u64);
                assert_eq!(ends.stored(), files.stored.as_ref().map(Version::bytes));
                assert!(!ends.incomplete().exists());
                ends.may_be_stored = vec![Some(source)];
            }
            Event::Copy(Some(after)) => {
                let (before, missing) = (ends.stored(), ends.missing(&source));
                let was_begun = ends.incomplete().exists();
                let (sent, _) = ends.copy(Some(after));
                assert!(sent.figures.bytes <= missing as u64, "{:?}", sent.figures);
                // A failed copy loses nothing of an incomplete one.
                if was_begun && ends.incomplete().exists() {
                    assert!(ends.missing(&source) <= missing);
                }
                ends.may_be_stored = vec![before, Some(source)];
            }
            Event::ChangeBlock(..) | Event::Replace(_) => fs::write(ends.near(), source).unwrap(),
            Event::Damage(block) => {
                if let Ok(mut bytes) = fs::read(ends.incomplete())
                    && let Some(byte) = bytes.get_mut(block * BLOCK_BYTES)
                {
                    *byte ^= 2;
                    fs::write(ends.incomplete(), bytes).unwrap();
                }
            }
            Event::RemoveIncomplete => drop(fs::remove_file(ends.incomplete())),
        }
        ends
    }

    fn check_invariants(ends: &Ends, _: &Files) {
        assert!(ends.may_be_stored.contains(&ends.stored()), "a mix of versions is stored");
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn interrupted_copies_continue_as_the_model_says(sequential 1..14 => Copying);
}
