use super::*;
use proptest::prelude::*;

/// A train of TCP over IPv4 with timestamps, as the kernel passes it.
fn tcp4(payload: usize, segment: u16, flags: u8) -> Vec<u8> {
    let mut buffer = vec![NEEDS_CHECKSUM, GSO_TCP4, 0, 0, 0, 0, 0, 0, 0, 0];
    buffer[2..4].copy_from_slice(&52u16.to_ne_bytes());
    buffer[4..6].copy_from_slice(&segment.to_ne_bytes());
    buffer[6..8].copy_from_slice(&20u16.to_ne_bytes());
    buffer[8..10].copy_from_slice(&16u16.to_ne_bytes());
    let mut ip = vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    ip[2..4].copy_from_slice(&be16(52 + payload));
    let mut tcp = vec![0; 32];
    tcp[4..8].copy_from_slice(&0xffff_f000u32.to_be_bytes());
    tcp[12] = 8 << 4;
    tcp[13] = flags;
    buffer.extend(ip);
    buffer.extend(tcp);
    buffer.extend((0..payload).map(|i| (i % 251) as u8));
    buffer
}

fn cut(buffer: &[u8], range: Range<u32>) -> Vec<u8> {
    let mut scratch = Vec::new();
    let piece = Layout::of(buffer).unwrap().cut(buffer, range, false, &mut scratch);
    [piece.headers, piece.payload].concat()
}

#[test]
fn a_train_is_counted_in_packets_with_their_headers() {
    let train = Layout::of(&tcp4(4000, 1448, 0x10)).unwrap().train();
    assert_eq!((train.packets(), train.size(0), train.size(2)), (3, 1500, 52 + 4000 - 2896));
}

/// What the kernel passes on of a train that it holds.
fn held(buffer: &[u8], bytes: usize) -> QueuedPacket<'_> {
    let ip = &buffer[VNET_HEADER..];
    QueuedPacket {
        id: 1,
        time: None,
        length: ip.len(),
        is_train: true,
        needs_checksum: true,
        bytes: &ip[..bytes],
    }
}

#[test]
fn a_train_that_is_held_has_the_header_of_one_that_is_read() {
    for flags in [0x10, TCP_CWR | 0x10] {
        let mut buffer = tcp4(4000, 1448, flags);
        buffer[1] |= if flags & TCP_CWR == 0 { 0 } else { GSO_ECN };
        let packet = held(&buffer, 60);
        let vnet =
            vnet_header(&packet, |start| (start[4..] == [0xff, 0xff, 0xf0, 0]).then_some(1448));
        let vnet = vnet.unwrap();
        assert_eq!(vnet, buffer[..VNET_HEADER]);
        let start = [&vnet[..], packet.bytes].concat();
        assert_eq!(Layout::of_start(&start, 4052), Layout::of(&buffer));
    }
}

#[test]
fn the_packets_of_some_trains_are_not_known() {
    let buffer = tcp4(4000, 1448, 0x10);
    let train = held(&buffer, 60);
    assert_eq!(vnet_header(&train, |_| None), None);
    assert_eq!(vnet_header(&QueuedPacket { needs_checksum: false, ..train }, |_| Some(1448)), None);
    // GRE (RFC 2784), a later fragment, and IPv6 destination options (RFC 8200, section 4.6).
    let [mut gre, mut fragment] = [&buffer, &buffer].map(|it| it[VNET_HEADER..].to_vec());
    gre[9] = 47;
    fragment[7] = 1;
    let options = [&[0x60, 0, 0, 0, 0, 80, 60, 64][..], &[0; 112]].concat();
    for bytes in [&gre[..60], &fragment[..60], &options] {
        assert_eq!(vnet_header(&QueuedPacket { bytes, ..train }, |_| Some(1448)), None);
        // A single packet is one, whatever it contains.
        let single = QueuedPacket { bytes, is_train: false, ..train };
        assert_eq!(vnet_header(&single, |_| None), Some([0; VNET_HEADER]));
    }
}

#[test]
fn of_a_train_whose_headers_alone_are_known_pieces_have_their_lengths() {
    let buffer = tcp4(4000, 1448, 0x10);
    let start = &buffer[..VNET_HEADER + 60];
    let mut scratch = Vec::new();
    let piece = Layout::of_start(start, 4052).unwrap().cut(start, 1..2, false, &mut scratch);
    assert_eq!(piece.headers, &cut(&buffer, 1..2)[..VNET_HEADER + 52]);
    assert!(piece.payload.is_empty());
}

#[test]
fn the_whole_train_passes_untouched() {
    let buffer = tcp4(4000, 1448, 0x18);
    assert_eq!(cut(&buffer, 0..3), buffer);
}

#[test]
fn a_piece_has_its_own_lengths_sequence_and_flags() {
    let buffer = tcp4(4000, 1448, TCP_PSH | TCP_CWR | TCP_FIN | 0x10);
    let first = cut(&buffer, 0..1);
    let rest = cut(&buffer, 1..3);
    let ip = |piece: &[u8]| piece[VNET_HEADER..].to_vec();
    assert_eq!(u16::from_be_bytes([ip(&first)[2], ip(&first)[3]]), 1500);
    assert_eq!(u16::from_be_bytes([ip(&rest)[2], ip(&rest)[3]]), 52 + 2552);
    // The sequence number wraps.
    assert_eq!(&ip(&rest)[24..28], 0xffff_f000u32.wrapping_add(1448).to_be_bytes());
    assert_eq!(ip(&first)[33], TCP_CWR | 0x10);
    assert_eq!(ip(&rest)[33], TCP_PSH | TCP_FIN | 0x10);
    // A single packet is no longer a train; two are.
    assert_eq!((first[1], rest[1]), (GSO_NONE, GSO_TCP4));
    assert_eq!(u16::from_ne_bytes([rest[4], rest[5]]), 1448);
    // IPv4 headers add up to all ones.
    for piece in [&first, &rest] {
        assert_eq!(fold(sum(&ip(piece)[..20])), 0xffff);
    }
    // The identification continues as if each packet had been sent on its own.
    assert_eq!(&ip(&rest)[4..6], [0x12, 0x35]);
}

/// The kernel gives the linear part of its buffer, and takes no header longer than its packet.
#[test]
fn the_header_of_a_piece_is_no_longer_than_the_piece() {
    let mut buffer = tcp4(4000, 1448, 0x10);
    buffer[2..4].copy_from_slice(&3500u16.to_ne_bytes());
    for range in [0..2, 1..3] {
        let piece = cut(&buffer, range);
        assert_eq!(u16::from_ne_bytes([piece[2], piece[3]]), 52);
    }
}

#[test]
fn the_pseudo_header_sum_follows_the_length() {
    let piece = cut(&tcp4(4000, 1448, 0x10), 2..3);
    let ip = &piece[VNET_HEADER..];
    let expected = fold(sum(&ip[12..20]) + 6 + (32 + 4000 - 2896));
    assert_eq!(u16::from_be_bytes([ip[36], ip[37]]), expected);
}

#[test]
fn inconsistent_headers_are_refused() {
    let good = tcp4(4000, 1448, 0x10);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut buffer = good.clone();
        change(&mut buffer);
        Layout::of(&buffer)
    };
    assert!(with(&|_| ()).is_some());
    assert_eq!(with(&|b| b.truncate(5)), None);
    assert_eq!(with(&|b| b.truncate(10)), None);
    assert_eq!(with(&|b| b[10] = 0x55), None, "IP version 5");
    assert_eq!(with(&|b| b[1] = 77), None, "unknown segmentation");
    assert_eq!(with(&|b| b[4..6].fill(0)), None, "segments of nothing");
    assert_eq!(with(&|b| b[6] = 250), None, "TCP header inside the payload");
    assert_eq!(with(&|b| b[0] = 0), None, "a train with its checksum filled in");
    assert_eq!(with(&|b| b.truncate(40)), None, "headers cut off");
}

proptest! {
    /// Any bytes: no panic, and every piece of what parses is in bounds.
    #[test]
    fn any_bytes_are_accepted_without_a_panic(mut buffer in prop::collection::vec(any::<u8>(), 0..3000), kind in 0u8..8, version in 0u8..16) {
        if buffer.len() > 10 {
            buffer[0] |= NEEDS_CHECKSUM;
            buffer[1] = kind;
            buffer[7] = 0;
            buffer[10] = version << 4 | 5;
        }
        if let Some(layout) = Layout::of(&buffer) {
            let packets = layout.train().packets();
            let mut scratch = Vec::new();
            let mut payload = 0;
            for index in 0..packets {
                payload += layout.cut(&buffer, index..index + 1, false, &mut scratch).payload.len();
            }
            let all = buffer.len() - VNET_HEADER;
            prop_assert_eq!(payload, if packets == 1 { all } else { all - layout.headers });
        }
    }

    /// All pieces together are the train.
    #[test]
    fn pieces_form_the_whole_train(payload in 1usize..20_000, segment in 1u16..3000, at in any::<prop::sample::Index>()) {
        let buffer = tcp4(payload, segment, 0x18);
        let packets = Layout::of(&buffer).unwrap().train().packets();
        if packets < 2 {
            return Ok(());
        }
        let split = 1 + at.index(packets as usize - 1) as u32;
        let (left, right) = (cut(&buffer, 0..split), cut(&buffer, split..packets));
        let start = VNET_HEADER + 52;
        prop_assert_eq!([&left[start..], &right[start..]].concat(), &buffer[start..]);
    }
}
