//! Middleboxes between the captures: translated addresses, rewritten numbers and options.

use crate::exact;
use crate::path::{Captures, PATH, Path, Segment};
use capture_merge::{Merge, Transit};

const INSIDE: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const OUTSIDE: ([u8; 4], u16) = ([192, 0, 2, 7], 1025);

/// Translates the address and port of the client.
fn nat(segment: &mut Segment, from_a: bool) {
    let end = if from_a { &mut segment.source } else { &mut segment.destination };
    // B sends to the outside address, which its own capture has.
    *end = if from_a { OUTSIDE } else { INSIDE };
    segment.ttl -= 1;
}

fn field<'a>(merge: &'a Merge, transit: Transit, name: &str) -> &'a capture_merge::Change {
    let mut fields = merge.changes.fields.iter();
    let found = fields.find(|change| change.transit == transit && change.field == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", merge.changes.fields))
}

/// As [`exact`], with B's own packets going to the outside address.
fn through_nat(path: &Path, snaplens: [usize; 2], more: &dyn Fn(&mut Segment, bool)) -> Merge {
    let mut flights = path.transfer();
    for flight in flights.iter_mut().filter(|flight| !flight.from_a) {
        flight.segment.destination = OUTSIDE;
    }
    let middle = |segment: &mut Segment, from_a: bool| {
        nat(segment, from_a);
        more(segment, from_a);
    };
    let of = Captures { middle: &middle, snaplens, ..Captures::default() };
    let both = crate::path::captures(path, &flights, &of);
    let [a, b] =
        [0, 1].map(|side| crate::path::read(&crate::path::file(&both[side], snaplens[side])));
    let merge = capture_merge::merge(a, b, false, &|| false).unwrap();
    crate::assert_adds_up(&merge);
    assert_eq!(crate::found(&merge), crate::path::truth(&flights, &both));
    merge
}

#[test]
fn translated_addresses() {
    let path = Path { loss: 30, ..PATH };
    for snaplens in [[100_000; 2], [64, 70]] {
        let merge = through_nat(&path, snaplens, &|_, _| {});
        assert!(merge.streams[0].is_translated);
        let source = field(&merge, Transit::AToB, "source");
        assert_eq!(source.values, ["10.0.0.1:40000", "192.0.2.7:1025"]);
        assert_eq!(source.first, (1, 1));
        let destination = field(&merge, Transit::BToA, "destination");
        assert_eq!(destination.values, ["192.0.2.7:1025", "10.0.0.1:40000"]);
        let ttl = field(&merge, Transit::AToB, "TTL");
        assert!(ttl.is_routing && ttl.values == ["64", "63"]);
    }
}

/// Initial sequence numbers of its own, as some firewalls choose.
fn renumber(segment: &mut Segment, from_a: bool) {
    const OFFSET: u32 = 0xdead_beef;
    if from_a {
        segment.seq = segment.seq.wrapping_add(OFFSET);
    } else if segment.ack != 0 {
        segment.ack = segment.ack.wrapping_sub(OFFSET);
    }
}

#[test]
fn renumbered_segments() {
    // B acknowledges the numbers it gets, so its own packets have them shifted.
    for (timestamps, ip_ids, burst) in [(true, true, 1), (false, true, 1), (true, false, 4)] {
        let path = Path { loss: 30, timestamps, ip_ids, burst, ..PATH };
        let merge = exact(&path, &Captures { middle: &renumber, ..Captures::default() });
        let seq = field(&merge, Transit::AToB, "sequence number");
        let [before, after] = seq.values.each_ref().map(|text| text.parse::<u32>().unwrap());
        assert_eq!(after.wrapping_sub(before), 0xdead_beef);
        assert!(merge.changes.fields.iter().all(|it| it.field != "window"));
    }
}

#[test]
fn renumbered_behind_nat() {
    let path = Path { loss: 30, ..PATH };
    through_nat(&path, [100_000; 2], &renumber);
    through_nat(&path, [72, 72], &renumber);
}

/// The same file transferred once more is another flow.
#[test]
fn equal_transfers_are_not_one() {
    let flights = PATH.transfer();
    let [a, _] = crate::path::captures(&PATH, &flights, &Captures::default());
    let mut later = PATH.transfer();
    for flight in &mut later {
        let segment = &mut flight.segment;
        segment.id ^= 0x5555;
        segment.timestamps = segment.timestamps.map(|(value, _)| (value + 99_999, 3));
        let (end, numbers) = match flight.from_a {
            true => (&mut segment.source, [&mut segment.seq, &mut segment.ack]),
            false => (&mut segment.destination, [&mut segment.ack, &mut segment.seq]),
        };
        *end = OUTSIDE;
        *numbers[0] = numbers[0].wrapping_add(77_777);
    }
    let [_, b] = crate::path::captures(&PATH, &later, &Captures::default());
    let [a, b] = [a, b].map(|capture| crate::path::read(&crate::path::file(&capture, 100_000)));
    let merge = capture_merge::merge(a, b, false, &|| false).unwrap();
    assert_eq!(merge.flows, [0, 1, 1]);
    assert_eq!(merge.counts[0].without_partner, merge.counts[0].packets);
}

#[test]
fn timestamps_shifted_or_removed() {
    let path = Path { loss: 30, ..PATH };
    let shift = |segment: &mut Segment, from_a: bool| {
        if let Some((value, _)) = segment.timestamps.as_mut().filter(|_| from_a) {
            *value = value.wrapping_add(1000);
        }
    };
    let merge = exact(&path, &Captures { middle: &shift, ..Captures::default() });
    let change = field(&merge, Transit::AToB, "timestamp value");
    let [before, after] = change.values.each_ref().map(|text| text.parse::<u32>().unwrap());
    assert_eq!(after - before, 1000);
    for ip_ids in [true, false] {
        let path = Path { ip_ids, ..path };
        let remove = |segment: &mut Segment, _: bool| segment.timestamps = None;
        let merge = exact(&path, &Captures { middle: &remove, ..Captures::default() });
        assert_eq!(field(&merge, Transit::BToA, "timestamp value").values[1], "none");
        let options: Vec<&str> =
            merge.changes.handshakes.iter().map(|change| change.option).collect();
        assert_eq!(options, ["timestamps", "timestamps"]);
    }
}

/// What the handshake says before and after, with certainty.
#[test]
fn options_of_the_handshake() {
    let path = Path { segments: 100, ..PATH };
    let rewrite = |segment: &mut Segment, from_a: bool| {
        if segment.flags & 2 != 0 && from_a {
            // MSS 1360, no SACK, window scale 2 instead of 7.
            segment.options = vec![2, 4, 5, 80, 1, 1, 3, 3, 2, 1, 1, 1];
        }
    };
    let merge = exact(&path, &Captures { middle: &rewrite, ..Captures::default() });
    let changes: Vec<_> = merge
        .changes
        .handshakes
        .iter()
        .map(|it| (it.option, it.values.each_ref().map(|value| value.as_deref()), it.is_syn_ack))
        .collect();
    assert_eq!(
        changes,
        [
            ("MSS", [Some("1460"), Some("1360")], false),
            ("window scale", [Some("7"), Some("2")], false),
            ("SACK permitted", [Some("yes"), None], false),
        ]
    );
    assert_eq!(merge.changes.handshakes_compared, [2, 1]);
    let unchanged = exact(&path, &Captures::default());
    assert_eq!(unchanged.changes.handshakes_compared, [2, 0]);
    assert!(unchanged.changes.fields.is_empty(), "{:?}", unchanged.changes.fields);
}

#[test]
fn marks_and_classes() {
    let mark = |segment: &mut Segment, from_a: bool| {
        segment.tos = if !from_a {
            0
        } else if segment.seq.is_multiple_of(5) {
            3
        } else {
            2
        };
    };
    let merge = exact(&PATH, &Captures { middle: &mark, ..Captures::default() });
    let ce = field(&merge, Transit::AToB, "ECN");
    assert_eq!(ce.values, ["ECT(0)", "CE"]);
    let cleared = field(&merge, Transit::BToA, "ECN");
    assert_eq!((cleared.count, &cleared.values[1][..]), (2002, "Not-ECT"));
}

/// Bit errors: the packet is the same, and what differs is named.
#[test]
fn damaged_packets() {
    let damage = |segment: &mut Segment, _: bool| match segment.id % 97 {
        5 => segment.ack ^= 0x100,
        6 => segment.seq ^= 1,
        7 => segment.content ^= 1,
        8 => segment.id ^= 0x8000,
        9 => segment.window ^= 2,
        _ => {}
    };
    let path = Path { loss: 50, ..PATH };
    let merge = exact(&path, &Captures { middle: &damage, ..Captures::default() });
    for name in ["acknowledgement number", "sequence number", "payload", "IP ID", "window"] {
        let count = field(&merge, Transit::AToB, name).count;
        assert!((15..30).contains(&count), "{name}: {count}");
    }
}
