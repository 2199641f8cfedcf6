//! Packets that a driver reads some time after they arrived.

use crate::arrange::{MILLISECOND, at_ms, config, watched};
use link::{Fate, FateKind, Link, LinkConfig, Loss, Rate, Train};
use proptest::prelude::*;
use units::Nanos;

/// The due time of each delivered packet, by its number.
fn due_times(link: &mut Link<u32>) -> Vec<(u64, Nanos)> {
    // Nothing may be due when a lost packet leaves the bottleneck.
    while let Some(due) = link.next_due() {
        while link.release(due).is_some() {}
    }
    let due = |fate: Fate<u32>| match fate.kind {
        FateKind::Delivered { due, .. } => Some((fate.number, due)),
        FateKind::Dropped(_) => None,
    };
    link.fates().filter_map(due).collect()
}

#[test]
fn a_busy_period_that_was_read_late_is_not_shifted() {
    // 1500 bytes at 12 Mbit/s take 1 ms.
    let mut link = watched(config(12_000_000, 50));
    link.release(at_ms(30));
    for packet in 0..3 {
        link.arrive(at_ms(10 + packet), Train::single(1500), 0);
    }
    let due = due_times(&mut link);
    assert_eq!(due, [(1, at_ms(61)), (2, at_ms(62)), (3, at_ms(63))]);
}

#[test]
fn a_packet_from_before_the_bottleneck_was_idle_follows_the_others() {
    let mut link = watched(config(12_000_000, 0));
    link.arrive(at_ms(10), Train::single(1500), 0);
    assert!(link.release(at_ms(30)).is_some());
    // It arrived while the first was being sent.
    link.arrive(Nanos(10 * MILLISECOND + 1), Train::single(1500), 0);
    assert_eq!(due_times(&mut link).last(), Some(&(2, at_ms(12))));
}

fn links() -> impl Strategy<Value = LinkConfig> {
    (1u64..1_000, 0u64..20, 0u32..2).prop_map(|(mbit, delay, lossy)| {
        let loss = if lossy == 1 { Loss::Bernoulli("10%".parse().unwrap()) } else { Loss::None };
        let mut config = LinkConfig { loss, seed: 7, ..config(mbit * 1_000_000, delay) };
        if mbit < 20 {
            config.rate = Rate::Unlimited;
        }
        config
    })
}

proptest! {
    #[test]
    fn what_is_read_late_leaves_as_if_it_had_been_read_in_time(
        config in links(),
        gaps in prop::collection::vec(0..3 * MILLISECOND, 1..60),
        stalls in prop::collection::vec(0..20 * MILLISECOND, 1..60),
    ) {
        let arrivals: Vec<u64> =
            gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let (mut in_time, mut late) = (watched(config.clone()), watched(config));
        let (mut read_at, mut stalls) = (0, stalls.into_iter().cycle());
        for at in arrivals {
            in_time.arrive(Nanos(at), Train::segmented(52, 4 * 1448, 1448), 0);
            if at > read_at {
                read_at = at + stalls.next().unwrap_or(0);
                // Nothing more is read until then, but the link goes on.
                late.idle_since(Nanos(read_at));
            }
            late.arrive(Nanos(at), Train::segmented(52, 4 * 1448, 1448), 0);
        }
        prop_assert_eq!(due_times(&mut in_time), due_times(&mut late));
    }
}
