//! Bins at any width.

use crate::exchange::{ACK, START_NS, Sent, record, transfer};
use capture::dissect::PacketDirection;
use proptest::prelude::*;
use tcp_graphs::{Bin, Bins, Graphs, Limits, Mark, Span};

const ALL: Limits = Limits { bins: 1 << 20, packets: 1 << 20 };
const DIRECTIONS: [PacketDirection; 2] = [PacketDirection::AToB, PacketDirection::BToA];

fn segment() -> impl Strategy<Value = (Sent, i64)> {
    let number = prop_oneof![8 => 1000u32..20_000, 1 => any::<u32>()];
    let fields = (any::<bool>(), number, 1000u32..20_000, 0u16..5, any::<u16>(), 0u16..1500);
    let sack = prop::collection::vec((1000u32..30_000, 1u32..3000), 0..4);
    // Mostly forwards, by up to 5 ms; sometimes far, in either direction.
    let step = prop_oneof![
        20 => 0i64..5_000_000,
        2 => -3_000_000i64..0,
        1 => any::<i32>().prop_map(|far| i64::from(far) << 20),
    ];
    (fields, sack, step).prop_map(|((from_b, seq, ack, window, flags, len), sack, step)| {
        let flags = if flags % 4 == 0 { flags & 0x1ff } else { ACK };
        let sack = sack.into_iter().map(|(left, length)| (left, left + length)).collect();
        (Sent { at_ns: 0, from_b, seq, ack, window, flags, len, sack }, step)
    })
}

fn segments() -> impl Strategy<Value = Vec<Sent>> {
    prop::collection::vec(segment(), 1..150).prop_map(|each| {
        let mut now = START_NS;
        each.into_iter()
            .map(|(sent, step)| {
                now = now.saturating_add_signed(step);
                Sent { at_ns: now, ..sent }
            })
            .collect()
    })
}

fn sum(bins: &Bins, of: impl Fn(&Bin) -> u64) -> u64 {
    bins.iter().map(|(_, bin)| of(bin)).sum()
}

/// Whether `wide` covers `narrow`, where there is any.
fn covers(wide: Option<Span>, narrow: Option<Span>) -> bool {
    match (wide, narrow) {
        (Some(wide), Some(narrow)) => wide.low <= narrow.low && narrow.high <= wide.high,
        (_, None) => true,
        (None, Some(_)) => false,
    }
}

fn most(bins: &Bins, of: impl Fn(&Bin) -> Option<Span>) -> Option<(i64, i64)> {
    let all = bins.iter().filter_map(|(_, bin)| of(bin)).reduce(Span::cover)?;
    Some((all.low, all.high))
}

/// Every series that has extremes.
const SERIES: [fn(&Bin) -> Option<Span>; 9] = [
    |bin| bin.data.map(|data| data.seq),
    |bin| bin.data.map(|data| data.packets),
    |bin| bin.acks.map(|acks| acks.ack),
    |bin| bin.acks.map(|acks| acks.edge),
    |bin| bin.acks.map(|acks| acks.window),
    |bin| bin.marked,
    |bin| bin.sacked,
    |bin| bin.rtt,
    |bin| bin.in_flight,
];

/// Every bin of `fine` is in the bin of `coarse` at its time, and nothing else is.
fn same(fine: &Graphs, coarse: &Graphs) {
    for direction in DIRECTIONS {
        let (fine, coarse) = (fine.bins(direction), coarse.bins(direction));
        for (index, bin) in fine.iter() {
            let time = i128::from(index) * i128::from(fine.width_ns());
            let at = time.div_euclid(i128::from(coarse.width_ns()));
            let (_, wide) = coarse.iter().find(|(index, _)| i128::from(*index) == at).unwrap();
            for of in SERIES {
                assert!(covers(of(wide), of(bin)), "{wide:?} {bin:?}");
            }
        }
        for of in SERIES {
            assert_eq!(most(fine, of), most(coarse, of));
        }
        let sums: [fn(&Bin) -> u64; 5] = [
            |bin| bin.data.map_or(0, |data| data.bytes),
            |bin| bin.data.map_or(0, |data| data.segments),
            |bin| bin.acks.map_or(0, |acks| acks.delivered),
            |bin| bin.acks.map_or(0, |acks| acks.segments),
            |bin| bin.marks.iter().map(|count| u64::from(*count)).sum(),
        ];
        for of in sums {
            assert_eq!(sum(fine, of), sum(coarse, of));
        }
    }
}

proptest! {
    /// Whatever segments come, at whatever times: bins are bounded, and no extreme, no byte
    /// and no event disappears at any width.
    #[test]
    fn a_peak_never_disappears(segments in segments(), bins in 2usize..20) {
        let (found, graphs) = record(&segments, &[ALL, Limits { bins, packets: 30 }]);
        same(&graphs[0], &graphs[1]);
        for (side, direction) in DIRECTIONS.into_iter().enumerate() {
            prop_assert!(graphs[1].bins(direction).len() <= bins);
            // Against the packets themselves.
            let is_own = |sent: &Sent| usize::from(sent.from_b) == side;
            let bytes: u64 = segments.iter().filter(|sent| is_own(sent)).map(|sent| u64::from(sent.len)).sum();
            prop_assert_eq!(sum(graphs[1].bins(direction), |bin| bin.data.map_or(0, |data| data.bytes)), bytes);
            let rtts = segments.iter().zip(&found).filter(|(sent, _)| {
                !is_own(sent) && sent.flags & ACK != 0 && sent.flags & 4 == 0
            });
            let rtt = rtts.filter_map(|(_, found)| Some(found.acknowledges?.1)).max();
            let highest = most(graphs[1].bins(direction), |bin| bin.rtt).map(|(_, high)| high as u64);
            prop_assert_eq!(highest, rtt);
            for mark in Mark::ALL {
                let expected = segments.iter().zip(&found).filter(|(sent, found)| {
                    if mark.is_of_ack() {
                        !is_own(sent)
                            && sent.flags & ACK != 0
                            && sent.flags & 4 == 0
                            && Mark::of_ack(found) == Some(mark)
                    } else {
                        let takes_space = sent.len > 0 || sent.flags & 3 != 0;
                        is_own(sent) && takes_space && Mark::of_data(found) == Some(mark)
                    }
                });
                let counted = sum(graphs[1].bins(direction), |bin| u64::from(bin.marks[mark as usize]));
                prop_assert_eq!(counted, expected.count() as u64, "{:?}", mark);
            }
        }
    }
}

#[test]
fn a_bin_is_a_millisecond_while_bins_suffice() {
    let segments = transfer(2000, 0);
    let spanned = 201;
    let (_, graphs) = record(
        &segments,
        &[
            Limits { bins: spanned, packets: 10 },
            Limits { bins: spanned - 1, packets: 10 },
            Limits { bins: 2, packets: 10 },
        ],
    );
    let widths: Vec<i64> =
        graphs.iter().map(|graphs| graphs.bins(PacketDirection::AToB).width_ns()).collect();
    assert_eq!(widths, [1_000_000, 2_000_000, 128_000_000]);
    // 100 segments are in flight, and the one just sent.
    for graphs in &graphs {
        let highest = most(graphs.bins(PacketDirection::AToB), |bin| bin.in_flight).unwrap().1;
        assert_eq!(highest, 101_000);
    }
}

/// A byte counts as delivered once: by SACK, or by the ACK, or not at all.
#[test]
fn goodput_counts_each_byte_once() {
    let data = |at: u64, seq| Sent {
        at_ns: START_NS + at * 1_000_000,
        seq,
        ack: 1,
        flags: ACK,
        window: 500,
        len: 1000,
        ..Sent::default()
    };
    let ack = |at: u64, ack, sack: &[(u32, u32)]| Sent {
        at_ns: START_NS + at * 1_000_000,
        from_b: true,
        seq: 1,
        ack,
        flags: ACK,
        window: 500,
        sack: sack.to_vec(),
        ..Sent::default()
    };
    let segments = [
        data(0, 1),
        data(1, 1001),
        data(2, 2001),
        ack(10, 1, &[(1001, 2001)]),
        ack(11, 1, &[(1001, 3001)]),
        data(12, 1),
        ack(20, 3001, &[]),
        // A DSACK is nothing new.
        ack(21, 3001, &[(1, 1001)]),
    ];
    let (_, graphs) = record(&segments, &[ALL]);
    let delivered: Vec<(i64, u64)> = graphs[0]
        .bins(PacketDirection::AToB)
        .iter()
        .filter_map(|(index, bin)| Some((index, bin.acks?.delivered)))
        .collect();
    assert_eq!(delivered, [(10, 1000), (11, 1000), (20, 1000), (21, 0)]);
}

#[test]
fn relative_numbers_pass_four_gib() {
    // Five million segments of 1000 bytes, of which every tenth is captured.
    let segments: Vec<Sent> = (0..500_000_u64)
        .map(|index| Sent {
            at_ns: START_NS + index * 10_000,
            seq: (index * 10_000 + 4_000_000_000) as u32,
            ack: 1,
            flags: ACK,
            len: 1000,
            ..Sent::default()
        })
        .collect();
    let (_, graphs) = record(&segments, &[Limits { bins: 100, packets: 100 }]);
    let seq =
        most(graphs[0].bins(PacketDirection::AToB), |bin| bin.data.map(|data| data.seq)).unwrap();
    assert_eq!(seq, (1, 1 + 499_999 * 10_000 + 1000));
    let last = graphs[0].packets().last().unwrap();
    assert_eq!(last.seq, 1 + 499_999 * 10_000);
}
