//! Capture files of every form: what is read is what was written, and whatever is
//! wrong with a file, what comes before it is read and nothing else happens.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod build;
mod formats;

use build::{Order, Packet};
use capture::batch::Batch;
use capture::conversations::Conversations;
use capture::dissect::{Layers, dissect};
use capture::file::{Broken, Compression, FileSummary, Format, Problem, Reader};
use capture::hierarchy::Hierarchy;
use capture::{LinkType, MemoryBudget, Seed};
use proptest::prelude::*;

const ORDERS: [Order; 2] = [Order(false), Order(true)];

/// The packets of a file, its summary, and where it broke off.
fn read(bytes: &[u8]) -> Result<(Vec<Packet>, FileSummary, Option<Broken>), Broken> {
    let mut reader = Reader::new(bytes)?;
    let mut packets = Vec::new();
    let broken = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                packets.push((packet.time_ns, packet.data.to_vec(), packet.original_len));
            }
            Ok(None) => break None,
            Err(broken) => break Some(broken),
        }
    };
    assert!(matches!(reader.next_packet(), Ok(None)), "nothing follows the end");
    Ok((packets, reader.summary().clone(), broken))
}

#[test]
fn both_formats_in_both_orders() {
    let packets = build::packets(50);
    for order in ORDERS {
        for nanos in [false, true] {
            let (read, summary, broken) = read(&build::pcap(order, nanos, &packets)).unwrap();
            assert_eq!(read, packets);
            assert!(broken.is_none());
            let format = if nanos { Format::PcapNanos } else { Format::PcapMicros };
            assert_eq!((summary.format, summary.big_endian), (format, order.0));
        }
        let (read, summary, broken) = read(&build::pcapng(order, &packets)).unwrap();
        assert_eq!(read, packets);
        assert!(broken.is_none());
        assert_eq!((summary.format, summary.dropped()), (Format::Pcapng, Some(17)));
        assert_eq!((summary.packet_comments, summary.interfaces[0].packets), (50, 50));
        assert_eq!(summary.interfaces[0].received, Some(1000));
        assert_eq!(summary.interfaces[0].name, "eth0");
        assert_eq!(summary.captured_by, ["Linux 6.1", "dumpcap"]);
    }
}

#[test]
fn sections_in_different_orders_have_interfaces_of_their_own() {
    let packets = build::packets(3);
    let file: Vec<u8> = ORDERS.iter().flat_map(|order| build::pcapng(*order, &packets)).collect();
    let (read, summary, broken) = read(&file).unwrap();
    assert!(broken.is_none());
    assert_eq!(read.len(), 6);
    assert_eq!((summary.sections, summary.interfaces.len()), (2, 2));
    assert_eq!(summary.backwards.map(|it| (it.count, it.first_packet)), Some((1, 4)));
}

#[test]
fn compressed_files_are_read_as_they_are() {
    let packets = build::packets(2000);
    let plain = build::pcap(Order(false), true, &packets);
    for (compressed, how) in [
        (build::gzip(&plain), Compression::Gzip),
        (build::zstd(&plain), Compression::Zstd),
        // Members and frames one after the other are one file.
        ([build::gzip(&plain[..5000]), build::gzip(&plain[5000..])].concat(), Compression::Gzip),
        ([build::zstd(&plain[..5000]), build::zstd(&plain[5000..])].concat(), Compression::Zstd),
        (
            [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &build::zstd(&plain)].concat(),
            Compression::Zstd,
        ),
    ] {
        let (read, summary, broken) = read(&compressed).unwrap();
        assert!(broken.is_none(), "{broken:?}");
        assert_eq!((read.len(), summary.compression), (packets.len(), how));
        let half = compressed.len() / 2;
        match self::read(&compressed[..half]) {
            Ok((some, _, broken)) => {
                assert!(some.len() < packets.len() && packets.starts_with(&some));
                let problem = broken.map(|broken| broken.problem);
                assert!(problem.is_some(), "{how:?}");
            }
            Err(broken) => assert!(matches!(broken.problem, Problem::Read(_)), "{broken}"),
        }
    }
}

#[test]
fn the_other_kinds_of_packet_blocks() {
    for order in ORDERS {
        let packet = build::packets(3).remove(2);
        let (time, bytes, length) = &packet;
        let mut obsolete = order.u16(0).to_vec();
        obsolete.extend(order.u16(3));
        obsolete.extend(order.u32((time >> 32) as u32));
        obsolete.extend(order.u32(*time as u32));
        obsolete.extend(order.u32(bytes.len() as u32));
        obsolete.extend(order.u32(*length));
        obsolete.extend(bytes);
        let simple = [&order.u32(*length)[..], bytes].concat();
        let mut names = order.u16(1).to_vec();
        names.extend(order.u16(9));
        names.extend([10, 0, 0, 1]);
        names.extend(b"host\0\0\0\0");
        let file = [
            build::section(order),
            build::interface(order, 9),
            build::block(order, 4, &names),
            build::block(order, 2, &obsolete),
            build::block(order, 3, &simple),
            build::block(order, 0x8000_0001, &[1, 2, 3]),
        ]
        .concat();
        let (read, summary, broken) = read(&file).unwrap();
        assert!(broken.is_none(), "{broken:?}");
        assert_eq!(read, [packet.clone(), packet]);
        assert_eq!(summary.other_blocks, 1);
        assert_eq!(summary.names[0].name, "host");
        assert_eq!(summary.names[0].address.to_string(), "10.0.0.1");
    }
}

/// The problem of a file whose first `good` packets are read.
fn problem(bytes: &[u8], good: usize) -> Problem {
    let (packets, _, broken) = read(bytes).unwrap();
    assert_eq!(packets.len(), good);
    let broken = broken.unwrap();
    assert_eq!(broken.after_packet, good as u64);
    broken.problem
}

#[test]
fn what_is_wrong_is_named() {
    let order = Order(false);
    let packets = build::packets(2);
    assert!(matches!(read(b"").unwrap_err().problem, Problem::Empty));
    assert!(matches!(read(b"GIF89a..").unwrap_err().problem, Problem::UnknownFormat));
    assert!(matches!(read(&[0xa1]).unwrap_err().problem, Problem::UnknownFormat));
    let whole = build::pcap(order, false, &packets);
    assert!(matches!(read(&whole[..20]).unwrap_err().problem, Problem::TruncatedHeader));
    assert!(matches!(problem(&whole[..30], 0), Problem::TruncatedRecordHeader));
    assert!(matches!(problem(&whole[..whole.len() - 1], 1), Problem::TruncatedRecord { .. }));
    let mut absurd = whole.clone();
    absurd[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(problem(&absurd, 0), Problem::AbsurdPacket(u32::MAX)));
    let mut old = whole;
    old[4] = 1;
    assert!(matches!(read(&old).unwrap_err().problem, Problem::Version(1, 4)));

    let start = [build::section(order), build::interface(order, 6)].concat();
    let with = |more: &[u8]| [&start[..], more].concat();
    let mut unequal = build::enhanced(order, 0, 1, &packets[0]);
    let last = unequal.len() - 4;
    unequal[last] ^= 4;
    assert!(matches!(problem(&with(&unequal), 0), Problem::TwoLengths(..)));
    let other = build::enhanced(order, 1, 1, &packets[0]);
    assert!(matches!(problem(&with(&other), 0), Problem::UnknownInterface(1)));
    let longest = [order.u32(6), order.u32(u32::MAX)].concat();
    let longest = [&longest[..], &[0; 16]].concat();
    assert!(matches!(problem(&with(&longest), 0), Problem::AbsurdBlock(u32::MAX)));
    let none = [order.u32(6), order.u32(0), order.u32(0)].concat();
    assert!(matches!(problem(&with(&none), 0), Problem::AbsurdBlock(0)));
    let interfaces: Vec<u8> = (0..5000).flat_map(|_| build::interface(order, 6)).collect();
    assert!(matches!(problem(&with(&interfaces), 0), Problem::TooManyInterfaces));
}

/// Times and lengths of the packets, read several at a time.
fn read_in_batches(bytes: &[u8]) -> Vec<(u64, u64, usize)> {
    let Ok(mut reader) = Reader::new(bytes) else { return Vec::new() };
    let mut all = Vec::new();
    while let Ok(Some(packets)) = reader.next_packets() {
        all.extend(packets.iter().map(|it| (it.number, it.time_ns, it.data.len())));
    }
    all
}

#[test]
fn several_at_a_time_are_the_same_as_one_by_one() {
    let packets = build::packets(3000);
    for file in [
        build::pcap(Order(false), true, &packets),
        [build::pcapng(Order(false), &packets), build::pcapng(Order(true), &packets)].concat(),
    ] {
        for end in [file.len(), file.len() - 700, file.len() / 2] {
            let (one_by_one, ..) = read(&file[..end]).unwrap();
            let one_by_one: Vec<_> = one_by_one
                .iter()
                .zip(1..)
                .map(|((time, data, _), number)| (number, *time, data.len()))
                .collect();
            assert_eq!(read_in_batches(&file[..end]), one_by_one);
        }
    }
}

/// Everything that is done with a file; nothing is asserted but that it ends.
fn analyse(bytes: &[u8]) -> u64 {
    let seed = Seed([1, 2]);
    let Ok(mut reader) = Reader::new(bytes) else { return 0 };
    let (mut layers, mut hierarchy) = (Layers::new(), Hierarchy::new(seed));
    let mut conversations = Conversations::within(seed, &MemoryBudget::new(1 << 20));
    while let Ok(Some(packet)) = reader.next_packet() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        hierarchy.add(&layers, packet.original_len);
        let segment = layers.tcp(packet.data);
        conversations.add(&packet, &layers, segment.as_ref());
        let _ = packet.options.comments().count();
    }
    assert_eq!(read_in_batches(bytes).len() as u64, reader.summary().packets);
    let rows = hierarchy.rows();
    assert_eq!(rows[0].frames, reader.summary().packets);
    reader.summary().packets
}

#[test]
fn cut_at_every_byte() {
    let packets = build::packets(4);
    for whole in [
        build::pcap(Order(false), false, &packets),
        build::pcap(Order(true), true, &packets),
        build::pcapng(Order(false), &packets),
        build::pcapng(Order(true), &packets),
        build::gzip(&build::pcapng(Order(false), &packets)),
        build::zstd(&build::pcapng(Order(false), &packets)),
        formats::modified(Order(true), 28, &packets),
        build::hex(formats::XZ),
        build::hex(formats::BZIP2),
        build::hex(formats::LZ4),
    ] {
        let mut before = 0;
        for end in 0..=whole.len() {
            let count = analyse(&whole[..end]);
            assert!(count >= before, "what was read stays");
            before = count;
        }
        assert_eq!(before, 4);
    }
}

const LINKS: [u16; 22] = [
    0, 1, 9, 10, 12, 50, 51, 101, 104, 105, 108, 113, 119, 127, 147, 163, 166, 192, 204, 228, 229,
    276,
];

proptest! {
    #[test]
    fn bits_that_are_flipped(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..8),
        form in 0..8,
    ) {
        let packets = build::packets(4);
        let mut file = match form {
            4 => build::hex(formats::XZ),
            5 => build::hex(formats::BZIP2),
            6 => build::hex(formats::LZ4),
            7 => formats::modified(Order(false), 24, &packets),
            0 => build::pcap(Order(false), false, &packets),
            1 => build::pcapng(Order(true), &packets),
            2 => build::gzip(&build::pcap(Order(true), true, &packets)),
            _ => build::zstd(&build::pcapng(Order(false), &packets)),
        };
        for (place, bit) in flips {
            let place = place.index(file.len());
            file[place] ^= 1 << bit;
        }
        analyse(&file);
    }

    #[test]
    fn arbitrary_bytes_after_a_header(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        form in 0..7,
    ) {
        let mut file = match form {
            4 => build::hex(formats::XZ)[..12].to_vec(),
            5 => b"BZh11AY&SY".to_vec(),
            6 => build::hex(formats::LZ4)[..7].to_vec(),
            0 => build::pcap(Order(false), false, &[]),
            1 => build::pcapng(Order(true), &[]),
            2 => vec![0x28, 0xb5, 0x2f, 0xfd],
            _ => vec![0x1f, 0x8b, 8, 0],
        };
        file.extend(bytes);
        analyse(&file);
    }

    /// Layers are inside of the packet and of each other.
    #[test]
    fn arbitrary_packets(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        start in prop::sample::select(vec![&[][..], &[0x45], &[0x60], &[2, 0, 0, 0], &[8, 0, 0x45]]),
        link in prop::sample::select(LINKS.to_vec()),
        more in 0_u32..2000,
    ) {
        let bytes = [start, &bytes].concat();
        let original = bytes.len() as u32 + more;
        let mut layers = Layers::new();
        dissect(LinkType(link), &bytes, original, &mut layers);
        let mut end = 0;
        for (protocol, layer) in layers.iter() {
            prop_assert_eq!(layer.start, end, "{:?}", protocol);
            end += layer.header_len;
            prop_assert!(end + layer.payload_len <= original, "{:?}", protocol);
        }
        prop_assert!(end <= original);
        if let Some(segment) = layers.tcp(&bytes) {
            prop_assert!(segment.payload_len <= original);
            prop_assert!(segment.payload.len() <= segment.payload_len as usize);
            let _ = (segment.options(), segment.each_option().count(), segment.next_seq());
        }
    }
}

/// A flow that begins anew within a batch: what follows it there is of the new stream.
#[test]
fn a_stream_that_begins_anew_within_a_batch() {
    let segment = |seq: u32, flags: u8| {
        let mut bytes = build::packets(1)[0].1.clone();
        bytes.truncate(54);
        bytes[16..18].copy_from_slice(&40_u16.to_be_bytes());
        bytes[38..42].copy_from_slice(&seq.to_be_bytes());
        bytes[47] = flags;
        (1_700_000_000_000_000_000, bytes, 54)
    };
    let mut packets = vec![segment(100, 2); 40];
    packets.extend([segment(101, 16), segment(500, 2), segment(501, 16), segment(500, 2)]);
    let file = build::pcap(Order(false), true, &packets);
    let (mut reader, seed) = (Reader::new(&file[..]).unwrap(), Seed([1, 2]));
    let (mut batch, mut conversations) = (Batch::new(seed), Conversations::new(seed));
    let mut numbers = Vec::new();
    while let Some(packets) = reader.next_packets().unwrap() {
        batch.prepare(&packets, &conversations);
        for (packet, layers, stream) in batch.each(&packets) {
            let segment = layers.tcp(packet.data);
            let found = conversations.add_expected(&packet, layers, segment.as_ref(), stream);
            numbers.push(found.unwrap().number);
        }
    }
    assert_eq!(numbers[40..], [0, 1, 1, 1]);
}
