//! No input panics, or makes a lane keep more than one message.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use lane::{Lane, Role};
use proptest::prelude::*;

fn receive_all(role: Role, pieces: &[Vec<u8>]) {
    let mut lane = Lane::new(role);
    for piece in pieces {
        let mut input = &piece[..];
        while !input.is_empty() {
            let payload = usize::try_from(lane.payload()).unwrap().min(input.len());
            lane.taken(u32::try_from(payload).unwrap());
            input = &input[payload..];
            let Ok(received) = lane.receive(input) else { return };
            assert!(payload > 0 || received.used > 0, "no progress");
            input = &input[received.used..];
            assert!(lane.lacking() <= 8 + 257);
        }
    }
}

/// Bytes that are often a header.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let header = (1..10u8, 0..8u8, 0..20u8)
        .prop_map(|(kind, code, length)| vec![kind, code, 0, 0, 0, 0, 0, length]);
    prop_oneof![header, prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(pieces in prop::collection::vec(bytes(), 0..20)) {
        receive_all(Role::Near, &pieces);
        receive_all(Role::Far, &pieces);
    }
}
