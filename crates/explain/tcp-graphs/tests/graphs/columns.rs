//! What is encoded is what was recorded, and it fits.

use crate::exchange::{record, transfer};
use capture::dissect::PacketDirection;
use tcp_graphs::{Encoded, Limits, MARK_COUNT};

/// As `front/report/src/html/capture/decode.js` reads.
struct Columns<'a> {
    bytes: &'a [u8],
}

impl Columns<'_> {
    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.bytes.split_first().unwrap();
            self.bytes = rest;
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                return value;
            }
        }
    }

    fn column(&mut self) -> Vec<i64> {
        let count = self.number() as usize;
        let (mut values, mut last) = (Vec::new(), 0_i64);
        while values.len() < count {
            let zigzag = self.number();
            if zigzag == 0 {
                let zeros = self.number() + 1;
                values.extend((0..zeros).map(|_| last));
            } else {
                last += (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
                values.push(last);
            }
        }
        assert_eq!(values.len(), count);
        values
    }
}

fn encoded(most: usize) -> (Encoded, tcp_graphs::Graphs) {
    let segments = transfer(20_000, 50);
    let limits = Limits { bins: 10_000, packets: 5000 };
    let (_, mut graphs) = record(&segments, &[limits]);
    let graphs = graphs.remove(0);
    (graphs.clone().encode(most), graphs)
}

#[test]
fn columns_are_what_was_recorded() {
    let (encoded, graphs) = encoded(10_000_000);
    assert_eq!(encoded.width_ns, [1_000_000; 2]);
    let bins = graphs.bins(PacketDirection::AToB);
    let mut columns = Columns { bytes: &encoded.bins[0] };
    let data: Vec<_> = bins.iter().filter_map(|(index, bin)| Some((index, bin.data?))).collect();
    let expected: Vec<i64> = data.iter().map(|(index, _)| *index).collect();
    assert_eq!(columns.column(), expected);
    let (low, above) = (columns.column(), columns.column());
    for ((low, above), (_, data)) in low.iter().zip(&above).zip(&data) {
        assert_eq!((*low, low + above), (data.packets.low, data.packets.high));
    }
    let segments: Vec<i64> = data.iter().map(|(_, data)| data.segments as i64).collect();
    assert_eq!(columns.column(), segments);
    let bytes: Vec<i64> = data.iter().map(|(_, data)| data.bytes as i64).collect();
    assert_eq!(columns.column(), bytes);
    // Numbers, then marks, ACKs, SACK, RTT, in flight.
    for _ in 0..2 + 3 + MARK_COUNT + 11 + 3 * 3 {
        columns.column();
    }
    assert!(columns.bytes.is_empty());

    let mut columns = Columns { bytes: &encoded.packets[1] };
    let numbers: Vec<i64> =
        graphs.packets().filter(|packet| packet.side == 1).map(|it| it.number as i64).collect();
    assert_eq!(columns.column(), numbers);
    for _ in 0..12 + 2 {
        columns.column();
    }
    assert!(columns.bytes.is_empty());
    assert_eq!(encoded.kept, graphs.packets().count());
    assert_eq!(encoded.packet_count, graphs.packet_count());
}

#[test]
fn what_is_encoded_fits() {
    for most in [300_000, 60_000, 20_000] {
        let (encoded, _) = encoded(most);
        let bins: usize = encoded.bins.iter().map(Vec::len).sum();
        let packets: usize = encoded.packets.iter().map(Vec::len).sum();
        assert!(bins <= most / 2 && bins + packets <= most, "{most}: {bins} and {packets}");
        // And uses the room that there is.
        assert!(bins + packets > most / 5, "{most}: {bins} and {packets}");
    }
}
