//! Which single packets are kept.

use crate::exchange::{record, transfer};
use tcp_graphs::{KeptPacket, Limits};

fn kept(segments: &[crate::exchange::Sent], packets: usize) -> Vec<KeptPacket> {
    let (_, graphs) = record(segments, &[Limits { bins: 100, packets }]);
    graphs[0].packets().copied().collect()
}

#[test]
fn all_are_kept_while_they_fit() {
    let segments = transfer(1000, 0);
    let all = kept(&segments, segments.len());
    let numbers: Vec<u64> = all.iter().map(|packet| packet.number).collect();
    assert_eq!(numbers, (1..=segments.len() as u64).collect::<Vec<_>>());
    assert!(kept(&segments, segments.len() / 2).len() <= segments.len() / 2 + 32);
}

#[test]
fn events_and_their_neighbours_are_kept() {
    let segments = transfer(20_000, 4000);
    let (found, graphs) = record(&segments, &[Limits { bins: 100, packets: 1000 }]);
    let numbers: Vec<u64> = graphs[0].packets().map(|packet| packet.number).collect();
    assert!(numbers.len() <= 1032 && numbers.windows(2).all(|pair| pair[0] < pair[1]));
    let events: Vec<u64> = (1..)
        .zip(&found)
        .filter(|(_, found)| tcp_graphs::Mark::of_data(found).is_some())
        .map(|(number, _)| number)
        .collect();
    assert!(events.len() >= 5, "{events:?}");
    for event in events {
        for number in event - 8..=event + 8 {
            assert!(numbers.contains(&number), "{event}: {number}");
        }
    }
    // Both ends, and something in between.
    let count = segments.len() as u64;
    assert!((1..=32).chain(count - 31..=count).all(|number| numbers.contains(&number)));
    let longest = numbers.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest < count / 8, "{longest} packets in a row are not kept");
}

#[test]
fn more_events_than_fit_are_thinned_evenly() {
    let segments = transfer(20_000, 2);
    let all = kept(&segments, 500);
    assert!(all.len() <= 532, "{}", all.len());
    let events: Vec<u64> = all
        .iter()
        .filter(|packet| packet.marks[0].is_some())
        .map(|packet| packet.ordinal)
        .collect();
    assert!(events.len() > 100, "{}", events.len());
    let gaps = events.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.max().unwrap() < segments.len() as u64 / 20, "{events:?}");
}
