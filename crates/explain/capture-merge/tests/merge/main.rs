//! Two captures of one transfer, where what happened in between is known.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod any;
mod path;
mod rewritten;

use capture_merge::ClockBasis;
use path::{Captures, MS, PATH, Path, assert_adds_up, found, run};

/// Merges captures of a path and compares with what happened.
#[track_caller]
fn exact(path: &Path, of: &Captures<'_>) -> capture_merge::Merge {
    let (merge, truth) = run(path, of);
    assert_adds_up(&merge);
    let found = found(&merge);
    let missing: Vec<_> = truth.pairs.difference(&found.pairs).take(5).collect();
    let wrong: Vec<_> = found.pairs.difference(&truth.pairs).take(5).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "missing {missing:?}, wrong {wrong:?}");
    assert_eq!(found, truth);
    assert_eq!(merge.clock.unsuitable, None);
    merge
}

#[test]
fn a_clean_path() {
    let merge = exact(&PATH, &Captures::default());
    let [there, back] = &merge.transits;
    assert_eq!((there.lost, there.reordering.packets, back.lost), (0, 0, 0));
    // The clock is only known to half of the difference of the directions.
    let delays = there.delays.unwrap();
    assert!((delays.median_ns - 25 * MS).abs() < MS / 100, "{delays:?}");
    let segment = merge.clock.segments[0];
    assert!((segment.uncertainty_ns.unwrap() - 25 * MS).abs() < MS / 100, "{segment:?}");
    assert!((segment.offset_ns + 5 * MS).abs() < MS / 100, "{segment:?}");
}

#[test]
fn a_clock_with_offset_and_drift() {
    let path = Path { delays: [25 * MS; 2], loss: 50, jitter: MS, segments: 20_000, ..PATH };
    let clock = |at: i64| at + 3200 * MS + (at - path::START) / 25_000;
    let merge = exact(&path, &Captures { clock: &clock, ..Captures::default() });
    let segment = merge.clock.segments[0];
    assert_eq!(merge.clock.basis, ClockBasis::BothDirections);
    assert!((segment.drift.unwrap() - 40e-6).abs() < 5e-6, "{segment:?}");
    assert!((segment.offset_ns - 3200 * MS).abs() < MS / 10, "{segment:?}");
    for delays in merge.transits.iter().map(|it| it.delays.unwrap()) {
        assert!((delays.min_ns - 25 * MS).abs() < MS / 10, "{delays:?}");
        assert!((delays.max_ns - 26 * MS).abs() < MS / 10, "{delays:?}");
        // The mean difference of two uniform draws is a third of their range.
        assert!((delays.jitter_ns - 333_333.0).abs() < 30_000.0, "{delays:?}");
    }
}

#[test]
fn a_clock_that_is_set() {
    let path = Path { delays: [25 * MS; 2], loss: 50, segments: 10_000, ..PATH };
    let clock = |at: i64| at + if at - path::START < 2_000 * MS { 0 } else { 300 * MS };
    let merge = exact(&path, &Captures { clock: &clock, ..Captures::default() });
    assert_eq!(merge.clock.segments.len(), 2, "{:?}", merge.clock);
    let delays = merge.transits[0].delays.unwrap();
    assert!((delays.min_ns - 25 * MS).abs() < MS && delays.max_ns < 27 * MS, "{delays:?}");
}

/// Losses, reordering and duplicates with less and less to tell copies apart by.
#[test]
fn impaired_paths() {
    for (timestamps, ip_ids) in [(true, true), (false, true), (true, false), (false, false)] {
        for seed in 1..4 {
            let path = Path { seed, loss: 20, timestamps, ip_ids, ..PATH };
            exact(&path, &Captures::default());
            // With jitter of less than the time between segments nothing overtakes.
            let path = Path { jitter: MS / 4, duplicates: 30, ..path };
            if timestamps || ip_ids {
                exact(&path, &Captures::default());
            }
        }
    }
}

#[test]
fn reordering_and_duplicates_are_counted() {
    let path = Path { loss: 100, jitter: 5 * MS, duplicates: 50, ..PATH };
    let flights = path.transfer();
    let merge = exact(&path, &Captures::default());
    // By the definition of RFC 4737: who arrives after one that was sent later.
    for (side, transit) in merge.transits.iter().enumerate() {
        let mut of: Vec<_> = flights
            .iter()
            .filter(|it| usize::from(!it.from_a) == side && it.came.is_some())
            .collect();
        of.sort_by_key(|it| it.sent);
        let late = |place: usize| of[place..].iter().any(|it| it.came < of[place].came);
        let count = (0..of.len()).filter(|place| late(*place)).count();
        assert!(count > 100, "{count}");
        assert_eq!(transit.reordering.packets, count as u64);
        assert_eq!(
            transit.duplicated,
            of.iter().filter(|it| it.came_again.is_some()).count() as u64
        );
    }
}

#[test]
fn super_segments_at_the_sender() {
    let path = Path { burst: 8, loss: 40, ..PATH };
    let merge = exact(&path, &Captures::default());
    let [there, _] = &merge.transits;
    let lost = path.transfer().iter().filter(|it| it.from_a && it.came.is_none()).count() as u64;
    assert_eq!((there.lost_segments, there.lost_bytes), (lost, lost * 1448));
    assert!(there.partly_lost > 20 && there.lost < lost, "{there:?}");
}

#[test]
fn super_segments_at_both_ends() {
    for loss in [0, 40] {
        let path = Path { burst: 6, loss, ..PATH };
        exact(&path, &Captures { gro: true, ..Captures::default() });
    }
}

#[test]
fn different_snaplens() {
    let path = Path { loss: 30, ..PATH };
    exact(&path, &Captures { snaplens: [68, 100_000], ..Captures::default() });
    exact(&path, &Captures { snaplens: [64, 80], ..Captures::default() });
    // Inside of the options of some segments.
    let sack = |segment: &mut path::Segment, from_a: bool| {
        if !from_a && segment.ack.is_multiple_of(3) {
            segment.options = [&[1, 1, 5, 18][..], &[7; 16]].concat();
        }
    };
    exact(&path, &Captures { middle: &sack, snaplens: [64, 80], ..Captures::default() });
}

/// A capture that begins later and ends earlier: what is missing there was not lost.
#[test]
fn captures_of_different_times() {
    let path = Path { loss: 25, ..PATH };
    let flights = path.transfer();
    let mut both = path::captures(&path, &flights, &Captures::default());
    let (first, last) = (path::START + 300 * MS, path::START + 800 * MS);
    let all = both[1].len();
    both[1].retain(|(time, ..)| (first..last).contains(time));
    let [a, b] = [0, 1].map(|side| path::read(&path::file(&both[side], 100_000)));
    let merge = capture_merge::merge(a, b, false, &|| false).unwrap();
    assert_adds_up(&merge);
    let lost = |from_a: bool| {
        let within = |it: &&path::Flight| {
            let delay = path.delays[usize::from(!from_a)];
            let there = if from_a { it.sent + delay } else { it.sent };
            it.from_a == from_a && it.came.is_none() && (first..last).contains(&there)
        };
        flights.iter().filter(within).count() as u64
    };
    // At the borders the delays decide, which are known to half of their difference.
    let [there, back] = &merge.transits;
    assert!(there.lost.abs_diff(lost(true)) <= 1 && back.lost.abs_diff(lost(false)) <= 1);
    let outside = merge.counts[0].outside;
    assert!((outside as usize) > (all - both[1].len()) * 8 / 10, "{outside}");
    assert_eq!(merge.counts[1].only_here, 0);
}

#[test]
fn datagrams_in_one_direction() {
    let path = Path { loss: 20, ..PATH };
    let flights: Vec<_> = path.transfer().into_iter().filter(|it| it.from_a).collect();
    let flights: Vec<path::Flight> = flights
        .into_iter()
        .map(|mut it| {
            it.segment.udp = true;
            it.segment.content ^= u32::from(it.segment.id) << 16;
            it
        })
        .collect();
    let both = path::captures(&path, &flights, &Captures::default());
    let [a, b] = [0, 1].map(|side| path::read(&path::file(&both[side], 60)));
    let merge = capture_merge::merge(a, b, false, &|| false).unwrap();
    assert_adds_up(&merge);
    assert_eq!(found(&merge), path::truth(&flights, &both));
    assert_eq!(merge.clock.basis, ClockBasis::OneDirection);
    assert!(merge.is_direction_assumed);
}

#[test]
fn nothing_in_common() {
    let a = path::read(&path::file(&vec![], 100));
    let b = path::read(&path::file(&vec![], 100));
    let merge = capture_merge::merge(a, b, false, &|| false).unwrap();
    assert_eq!(merge.clock.basis, ClockBasis::Nothing);
    let flights = PATH.transfer();
    let [a, _] = path::captures(&PATH, &flights, &Captures::default());
    let [a, b] = [&a, &vec![]].map(|capture| path::read(&path::file(capture, 100)));
    let merge = capture_merge::merge(a, b, false, &|| false).unwrap();
    assert_adds_up(&merge);
    assert_eq!(merge.counts[0].without_partner, merge.counts[0].packets);
    let stopped =
        path::read(&path::file(&path::captures(&PATH, &flights, &Captures::default())[0], 100));
    let other =
        path::read(&path::file(&path::captures(&PATH, &flights, &Captures::default())[1], 100));
    assert!(capture_merge::merge(stopped, other, false, &|| true).is_none());
}
