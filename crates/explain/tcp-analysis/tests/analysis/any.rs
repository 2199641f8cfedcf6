//! Arbitrary segments: no panic, bounded memory, and numbers that wrap.

use crate::exchange::{Exchange, Sent, sack, timestamps};
use proptest::prelude::*;
use tcp_analysis::{PacketAnalysis, Rules};

fn segment() -> impl Strategy<Value = (Sent, u32)> {
    let number = prop_oneof![8 => 1000u32..20_000, 1 => any::<u32>()];
    let fields = (any::<bool>(), number, 1000u32..20_000, 0u16..3, prop::num::u16::ANY, 0u16..1500);
    let options = prop_oneof![
        3 => Just(Vec::new()),
        1 => (1000u32..20_000, 1u32..3000).prop_map(|(left, len)| sack(&[(left, left + len)])),
        1 => (any::<u32>(), any::<u32>()).prop_map(|(value, echo)| timestamps(value, echo)),
        1 => prop::collection::vec(any::<u8>(), 0..=10).prop_map(|mut bytes| {
            bytes.resize(bytes.len().div_ceil(4) * 4, 0);
            bytes
        }),
    ];
    (fields, options, 0u32..60_000).prop_map(
        |((from_b, seq, ack, window, flags, len), options, gap_us)| {
            // Mostly data and ACKs.
            let flags = if flags % 4 == 0 { flags & 0x1ff } else { 0x10 };
            (Sent { from_b, seq, ack, window, flags, len, options }, gap_us)
        },
    )
}

fn run(rules: Rules, segments: &[(Sent, u32)], shift: u32) -> (Vec<PacketAnalysis>, usize) {
    let mut x = Exchange::new(rules);
    x.shift = shift;
    let found = segments.iter().map(|(sent, gap_us)| {
        x.at_us += u64::from(*gap_us);
        x.send(sent.clone())
    });
    let found = found.collect();
    (found, x.connection().outstanding())
}

proptest! {
    #[test]
    fn any_segments_are_analysed(segments in prop::collection::vec(segment(), 1..200)) {
        for rules in [Rules::Wireshark40, Rules::Wireshark44] {
            let (_, outstanding) = run(rules, &segments, 0);
            prop_assert!(outstanding <= segments.len());
        }
    }

    /// Whatever a transfer does, a wrap changes nothing: a number that becomes 0 counts as
    /// not seen, and one comparison of Wireshark's does not wrap, so none of those here.
    #[test]
    fn numbers_may_wrap(
        steps in prop::collection::vec((1u16..1400, 0u8..10, 0u32..50_000), 1..100),
        before in 1u32..40_000,
    ) {
        let plain = transfer(&steps, 0);
        let wrapped = transfer(&steps, u32::MAX - 1000 - before);
        prop_assume!(wrapped.numbers.iter().all(|number| *number != 0));
        prop_assert_eq!(plain.found, wrapped.found);
    }
}

struct Transfer {
    numbers: Vec<u32>,
    found: Vec<PacketAnalysis>,
}

fn transfer(steps: &[(u16, u8, u32)], shift: u32) -> Transfer {
    let mut x = Exchange::new(Rules::default());
    x.shift = shift;
    x.handshake(2);
    let (mut seq, mut acked) = (1001u32, 1001u32);
    let mut all = Transfer { numbers: Vec::new(), found: Vec::new() };
    for (len, what, gap_us) in steps {
        x.at_us += u64::from(*gap_us);
        let found = match what {
            0 => {
                // Overtaken by the next one.
                all.found.push(x.data(seq + u32::from(*len), 100));
                seq += u32::from(*len) + 100;
                x.data(seq - 100 - u32::from(*len), *len)
            }
            1 if seq != acked => x.data(acked, (seq - acked).min(u32::from(*len)) as u16),
            2 | 3 => {
                acked = seq;
                x.ack(acked, 1000)
            }
            4 => x.ack(acked, 1000),
            _ => {
                seq += u32::from(*len);
                x.data(seq - u32::from(*len), *len)
            }
        };
        all.found.push(found);
        all.numbers.extend([seq, acked, seq + 100].map(|number| number.wrapping_add(shift)));
    }
    all
}

#[test]
fn a_wrap_within_a_transfer_changes_nothing() {
    let transfer = |shift: u32| {
        let mut x = Exchange::new(Rules::default());
        x.shift = shift;
        x.handshake(2);
        let mut all = Vec::new();
        for step in 0..40u32 {
            let seq = 1001 + step * 1000;
            if step % 9 != 4 {
                all.push(x.data(seq, 1000));
            }
            if step % 9 == 8 {
                x.ack_with(seq - 3999, 1000, sack(&[(seq - 2999, seq + 1001)]));
                x.at_us += 50_000;
                all.push(x.data(seq - 3999, 1000));
                all.push(x.ack(seq + 1000, 1000));
            }
        }
        (all, x.connection().retransmissions(x.sent_by_a()))
    };
    let plain = transfer(0);
    // No number of it becomes 0: the steps of 1000 never meet 2^32 exactly.
    for at in [1u32, 7_777, 20_500, 39_999] {
        assert_eq!(transfer(u32::MAX - at), plain, "{at} before the wrap");
    }
}

#[test]
fn outstanding_segments_are_capped() {
    let mut x = Exchange::open(Rules::default());
    for step in 0..11_000u32 {
        x.data(1001 + step * 10, 10);
    }
    assert_eq!(x.connection().outstanding(), 10_000);
    // What is beyond the cap still advances the numbers.
    assert!(x.data(1001 + 110_000, 10).flags.is_empty());
    x.ack(1001 + 110_010, 1000);
    assert_eq!(x.connection().outstanding(), 0);
}
