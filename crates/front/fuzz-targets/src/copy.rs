//! Messages of a peer of `longhaul copy`.

use copy::protocol::frame::{Decoder, encode};
use copy::protocol::hash::TreeHash;
use copy::protocol::message::{EntryKind, Message};

/// Blocks of one run that are tried.
const MAX: u64 = 100;

/// A stream in pieces of 7 bytes. What is read is written and read once more, and paths stay
/// below their directory.
pub(crate) fn messages(input: &[u8]) {
    let (mut decoder, mut tree) = (Decoder::default(), TreeHash::new(1 << 24));
    for piece in input.chunks(7) {
        decoder.push(piece);
        loop {
            let message = match decoder.next_message() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) => return,
            };
            let mut again = Decoder::default();
            again.push(&encode(&message));
            assert_eq!(again.next_message(), Ok(Some(message.clone())));
            consume(&message, &mut tree);
        }
    }
}

fn consume(message: &Message, tree: &mut TreeHash) {
    match message {
        Message::Entry(entry) => {
            let names = || entry.path.bytes().split(|byte| *byte == b'/');
            assert!(!names().any(|name| matches!(name, b"" | b"." | b"..")));
            if let EntryKind::Symlink(target) = &entry.kind {
                let _ = entry.path.contains_target(target);
            }
            let _ = entry.path.with_first(b"name");
        }
        Message::Hole { first, count, .. } | Message::Kept { first, count, .. } => {
            for block in *first..first.saturating_add((*count).min(MAX)) {
                let _ = tree.insert(block, [7; 32]);
            }
        }
        Message::Have { first, hashes, .. } => {
            for (block, hash) in (*first..).zip(hashes) {
                let _ = tree.insert(block, *hash);
            }
            let _ = tree.root();
        }
        _ => {}
    }
}
