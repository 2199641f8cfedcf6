//! Display filters, and TCP segments of any numbers.

use capture::conversations::Conversations;
use capture::dissect::{Layers, dissect};
use capture::file::Reader;
use capture::reassembly::Reassembler;
use capture::{LinkType, Seed};
use packet_fields::{Filter, Summary, Tracker, detail};
use tcp_analysis::Rules;

/// A filter: printed it means the same, and a packet gets the same verdict from both.
pub(crate) fn display_filter(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let filter = match Filter::new(text) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(error.at.end <= text.len() || text.is_empty(), "{error:?}");
            return;
        }
    };
    let printed = filter.to_string();
    // What is printed has more bytes than what was read, and may be too long.
    let again = match Filter::new(&printed) {
        Ok(again) => again,
        Err(error) => {
            assert!(printed.len() > packet_fields::filter::MAX_LENGTH, "{printed}: {error}");
            return;
        }
    };
    assert!(again == filter, "{printed}");
    // SYN, SYN-ACK and data.
    let mut input = Vec::new();
    for (flags, from_server) in [(2, 0), (18, 1), (24, 0)] {
        input.extend([from_server, flags, 0, 0, 0, 0, 3, 1, 0, 1, 2, 2]);
    }
    each_segment(&input, |view| {
        assert_eq!(filter.matches(view), again.matches(view));
    });
}

/// Segments of one connection, and everything that is shown of each.
pub(crate) fn tcp_segments(input: &[u8]) {
    let filter = Filter::new("tcp.analysis.flags || tcp.options.sack_le > 5");
    let mut summary = Summary::default();
    each_segment(input, |view| {
        summary.fill(view);
        let found = detail::layers(view);
        assert!(found.len() > 1);
        if let Ok(filter) = &filter {
            let _ = filter.matches(view);
        }
    });
}

/// Options by number, with room for values: none, timestamps, SACK, those of a SYN.
const OPTIONS: [&[u8]; 4] = [
    &[],
    &[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0],
    &[1, 1, 5, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7],
];

/// A segment for each 12 bytes: direction and options, flags, differences of the sequence and
/// the acknowledgment number, length, window, time, values of the options.
fn each_segment(input: &[u8], mut see: impl FnMut(&packet_fields::PacketView<'_>)) {
    let mut file = Vec::new();
    let link = u32::from(LinkType::RAW.0);
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, link] {
        file.extend(word.to_le_bytes());
    }
    let (mut numbers, mut now) = ([1000_u32, 2000], 1_000_000_u32);
    for chunk in input.as_chunks::<12>().0.iter().take(4096) {
        let [kind, flags, s0, s1, a0, a1, len, w0, w1, time, v0, v1] = *chunk;
        let from = usize::from(kind & 1);
        let delta = |high, low| i32::from(i16::from_be_bytes([high, low])).cast_unsigned();
        let seq = numbers[from].wrapping_add(delta(s0, s1));
        let ack = numbers[1 - from].wrapping_add(delta(a0, a1));
        let length = u32::from(len) * 17;
        numbers[from] = seq.wrapping_add(length);
        now = now.wrapping_add(u32::from(time) * 10_000) % 1_000_000_000;
        let mut options = OPTIONS[usize::from(kind >> 1 & 3)].to_vec();
        options.iter_mut().skip(8).zip([v0, v1]).for_each(|(byte, value)| *byte = value);
        let header = 20 + options.len();
        let ends = if from == 0 { [1, 2] } else { [2, 1] };
        let mut packet = vec![0x45, kind >> 3 & 3];
        packet.extend(((20 + header) as u16 + length as u16).to_be_bytes());
        packet.extend([0, kind, 0, 0, 64, 6, 0, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1]]);
        packet.extend([0x9c, 0x39 + ends[0], 0x9c, 0x39 + ends[1]]);
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([(header / 4) as u8 * 16, flags, w0, w1, 0, 0, 0, 0]);
        packet.extend(options);
        let (captured, original) = (packet.len() as u32, packet.len() as u32 + length);
        for word in [1_700_000_000, now, captured, original] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    let Ok(mut reader) = Reader::new(&file[..]) else { return };
    let seed = Seed([1, 2]);
    let (mut conversations, mut layers) = (Conversations::new(seed), Layers::new());
    let mut tracker = Tracker::new(Rules::default());
    while let Ok(Some(packet)) = reader.next_packet() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        let segment = layers.tcp(packet.data);
        let segment = segment.as_ref();
        let stream = conversations.add(&packet, &layers, segment);
        let packet = &packet;
        see(&tracker.add(packet, &layers, segment, stream, &conversations));
    }
}

/// Fragments: two bytes of length, then a packet, and so on.
pub(crate) fn fragments(input: &[u8]) {
    let mut reassembler = Reassembler::new(Seed([1, 2]));
    let mut rest = input;
    while let [high, low, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (packet, after) = more.split_at(length);
        rest = after;
        let mut layers = Layers::new();
        dissect(LinkType::RAW, packet, length as u32, &mut layers);
        if layers.is_fragment()
            && let Some(whole) = reassembler.add(packet, &mut layers)
        {
            for (_, layer) in layers.iter() {
                assert!((layer.start + layer.header_len) as usize <= whole.len());
            }
            let _ = layers.tcp(&whole).map(|segment| segment.options());
        }
    }
}
