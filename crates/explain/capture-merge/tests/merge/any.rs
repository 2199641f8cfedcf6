//! Any two captures: no panic, every packet counted once, time and memory linear.

use crate::path::{assert_adds_up, raw_file, read};
use capture_merge::merge;
use proptest::prelude::*;

/// A packet of few possible values, so that many are alike.
fn packet() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let numbers = (0..4_u32, 0..3_u32, 0..3_u16, 0..4_u16, 0..2_u16);
    let times = prop_oneof![20 => 0..50_u64, 1 => Just(429_496_729_000)];
    (times, numbers, 0..64_u8, any::<bool>(), 0..4_u8).prop_map(
        |(time, (seq, ack, id, length, port), flags, reverse, kind)| {
            let payload = [0, 100, 200, 20_000][usize::from(length)];
            let protocol = [6, 6, 17, 1][usize::from(kind)];
            let (from, to) = if reverse { (2, 1) } else { (1, 2) };
            let mut bytes = vec![0x45, 0];
            bytes.extend((40_u16 + payload).to_be_bytes());
            bytes.extend(id.to_be_bytes());
            bytes.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
            let ports = if reverse { [80 + port, 5000] } else { [5000, 80 + port] };
            ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
            bytes.extend((seq.wrapping_mul(100).wrapping_sub(150)).to_be_bytes());
            bytes.extend((ack * 100).to_be_bytes());
            bytes.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
            bytes.resize(usize::from(40 + payload), seq as u8);
            (time * 10_000_000, bytes)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_captures(
        a in prop::collection::vec(packet(), 0..60),
        b in prop::collection::vec(packet(), 0..60),
        snaplen in prop::sample::select(vec![20_usize, 44, 60, 30_000]),
        same_clock in any::<bool>(),
    ) {
        let files = [a, b].map(|packets| raw_file(packets.into_iter(), snaplen));
        let merge = merge(read(&files[0]), read(&files[1]), same_clock, &|| false).unwrap();
        assert_adds_up(&merge);
        let lost: u64 = merge.transits.iter().map(|it| it.lost - it.partly_lost).sum();
        prop_assert_eq!(lost, merge.counts[0].lost + merge.counts[1].lost);
        for transit in &merge.transits {
            prop_assert!(transit.lost <= transit.sent && transit.bursts.longest <= transit.lost);
        }
    }

    /// A capture against itself: everything is matched, at once.
    #[test]
    fn a_capture_and_itself(a in prop::collection::vec(packet(), 0..60)) {
        let file = raw_file(a.into_iter(), 30_000);
        let merge = merge(read(&file), read(&file), true, &|| false).unwrap();
        assert_adds_up(&merge);
        for counts in merge.counts {
            prop_assert_eq!(counts.matched + counts.not_compared, counts.packets);
        }
        for delays in merge.transits.iter().filter_map(|it| it.delays) {
            prop_assert_eq!((delays.min_ns, delays.max_ns), (0, 0));
        }
    }
}

/// Packets that are all the same, and packets that match nothing: as fast as others.
#[test]
fn hostile_captures() {
    let same = |count: u64, step: u64| {
        let (_, bytes) = one(7);
        raw_file((0..count).map(|at| (at * step, bytes.clone())), 64)
    };
    let merged = merge(read(&same(60_000, 1000)), read(&same(50_000, 1100)), false, &|| false);
    let merged = merged.unwrap();
    assert_adds_up(&merged);
    assert!(merged.counts[1].matched > 40_000, "{:?}", merged.counts);
    let nothing =
        |salt: u32| raw_file((0..60_000).map(|at| (u64::from(at), one(at * 2 + salt).1)), 64);
    let merged = merge(read(&nothing(0)), read(&nothing(1)), false, &|| false).unwrap();
    assert_adds_up(&merged);
    assert_eq!(merged.counts[0].matched, 0, "{:?}", merged.counts);
}

/// A segment with a sequence number of its own.
fn one(seq: u32) -> (u64, Vec<u8>) {
    let mut bytes = vec![0x45, 0, 0, 140, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes.extend([0x13, 0x88, 0, 80]);
    bytes.extend(seq.wrapping_mul(7919).to_be_bytes());
    bytes.extend([0, 0, 0, 9, 0x50, 16, 1, 0, 0, 0, 0, 0]);
    bytes.resize(140, 0);
    (0, bytes)
}
