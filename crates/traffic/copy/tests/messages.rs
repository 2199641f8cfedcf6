//! Every message survives its frame, cut anywhere; no bytes make the parser panic.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use copy::protocol::frame::{Decoder, MAX_MESSAGE, encode};
use copy::protocol::message::{Entry, EntryKind, MAX_FILE_BYTES, Message, Request, WrongMessage};
use copy::protocol::path::RelativePath;
use copy::protocol::{BLOCK_BYTES, block_count};
use proptest::collection::vec;
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

fn path() -> impl Strategy<Value = RelativePath> {
    "[a-z\n \u{e9}]{1,20}(/[a-z-]{1,20}){0,5}"
        .prop_map(|text| RelativePath::new(text.into_bytes()).unwrap())
}

fn kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        (0..=MAX_FILE_BYTES).prop_map(EntryKind::File),
        Just(EntryKind::Directory),
        bytes().prop_map(EntryKind::Symlink),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    (any::<u32>(), path(), kind(), any::<u32>(), any::<i64>(), 0..1_000_000_000u32).prop_map(
        |(id, path, kind, mode, seconds, nanos)| Entry {
            id,
            path,
            kind,
            mode,
            modified: (seconds, nanos),
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let blocks = || (any::<u32>(), 0..1u64 << 25, 0..1u64 << 25);
    let reason = || ".{0,200}";
    prop_oneof![
        (bytes(), any::<u32>()).prop_map(|(destination, sources)| Message::Request(
            Request::Receive { destination, sources }
        )),
        (any::<u64>(), vec(bytes(), 0..5)).prop_map(|(limit_bps, sources)| Message::Request(
            Request::Send { limit_bps, sources }
        )),
        Just(Message::Accepted),
        reason().prop_map(Message::Refused),
        entry().prop_map(Message::Entry),
        any::<u32>().prop_map(Message::AllEntries),
        (any::<u32>(), any::<u64>(), vec(any::<[u8; 32]>(), 0..20), any::<bool>())
            .prop_map(|(id, first, hashes, is_last)| Message::Have { id, first, hashes, is_last }),
        (any::<u32>(), any::<u64>(), bytes()).prop_map(|(id, block, bytes)| Message::Data {
            id,
            block,
            bytes
        }),
        blocks().prop_map(|(id, first, count)| Message::Hole { id, first, count }),
        blocks().prop_map(|(id, first, count)| Message::Kept { id, first, count }),
        (any::<u32>(), any::<[u8; 32]>()).prop_map(|(id, hash)| Message::End { id, hash }),
        (any::<u32>(), reason()).prop_map(|(id, reason)| Message::Unreadable { id, reason }),
        reason().prop_map(Message::Skipped),
        any::<u32>().prop_map(Message::Stored),
        (any::<u32>(), reason()).prop_map(|(id, reason)| Message::NotStored { id, reason }),
        (any::<u64>(), any::<u64>())
            .prop_map(|(written, waited)| Message::Progress { written, waited }),
        Just(Message::Finished),
    ]
}

fn decode(stream: &[u8], step: usize) -> Result<Vec<Message>, WrongMessage> {
    let (mut decoder, mut found) = (Decoder::default(), Vec::new());
    for part in stream.chunks(step.max(1)) {
        decoder.push(part);
        while let Some(message) = decoder.next_message()? {
            found.push(message);
        }
    }
    Ok(found)
}

proptest! {
    #[test]
    fn messages_survive_their_frames(all in vec(message(), 0..10), step in 1..500usize) {
        let stream: Vec<u8> = all.iter().flat_map(encode).collect();
        prop_assert_eq!(decode(&stream, step), Ok(all));
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(stream in vec(any::<u8>(), 0..2_000), step in 1..500usize) {
        let _ = decode(&stream, step);
    }

    #[test]
    fn a_changed_message_is_a_message_or_an_error(
        message in message(), at in any::<usize>(), to in any::<u8>(), cut in 0..100usize,
    ) {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        let at = at % bytes.len();
        bytes[at] = to;
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Ok(Message::Entry(entry)) = Message::parse(&bytes) {
            let names: Vec<_> = entry.path.bytes().split(|byte| *byte == b'/').collect();
            prop_assert!(!names.iter().any(|name| matches!(*name, b"" | b"." | b"..")));
        }
    }
}

#[test]
fn limits_are_enforced() {
    let whole = Message::Data { id: 1, block: 2, bytes: vec![7; BLOCK_BYTES] };
    assert_eq!(decode(&encode(&whole), 1 << 20).unwrap(), [whole]);
    let longer = Message::Data { id: 1, block: 2, bytes: vec![7; BLOCK_BYTES + 1] };
    assert_eq!(decode(&encode(&longer), 1 << 20), Err(WrongMessage::Range));
    let length = (MAX_MESSAGE as u32 + 1).to_le_bytes();
    assert_eq!(decode(&length, 4), Err(WrongMessage::TooLong));
    for count in [block_count(MAX_FILE_BYTES), u64::MAX] {
        let hole = Message::Hole { id: 1, first: 1, count };
        assert_eq!(decode(&encode(&hole), 100), Err(WrongMessage::Range));
    }
    let path = RelativePath::new(b"a".to_vec()).unwrap();
    let kind = EntryKind::File(MAX_FILE_BYTES + 1);
    let large = Message::Entry(Entry { id: 0, path, kind, mode: 0, modified: (0, 0) });
    assert_eq!(decode(&encode(&large), 100), Err(WrongMessage::Range));
    assert_eq!(Message::parse(&[]), Err(WrongMessage::Length));
    assert_eq!(Message::parse(&[3, 0]), Err(WrongMessage::Length));
    assert_eq!(Message::parse(&[200]), Err(WrongMessage::Kind(200)));
}
