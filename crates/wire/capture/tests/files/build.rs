//! Builds capture files in memory.

use std::io::Write;

/// Bytes of an order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order(pub(crate) bool);

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

/// A packet of a file: time in nanoseconds, bytes, original length.
pub(crate) type Packet = (u64, Vec<u8>, u32);

/// Packets of growing length, each a TCP segment over IPv4 over Ethernet.
pub(crate) fn packets(count: u32) -> Vec<Packet> {
    let packet = |number: u32| {
        let payload = (number * 37 % 600) as usize;
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
        bytes.extend(((40 + payload) as u16).to_be_bytes());
        bytes.extend([0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0x9c, 0x40, 0x14, 0x51]);
        bytes.extend((number * 1000).to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0x50, 16, 1, 0, 0, 0, 0, 0]);
        bytes.resize(54 + payload, 7);
        let length = bytes.len() as u32;
        (1_700_000_000_000_000_000 + u64::from(number) * 1_000_000, bytes, length)
    };
    (0..count).map(packet).collect()
}

pub(crate) fn pcap(order: Order, nanos: bool, packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(order.u32(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    for word in [0, 0, 262_144, 1] {
        file.extend(order.u32(word));
    }
    for (time, bytes, length) in packets {
        let fraction = (time % 1_000_000_000) as u32;
        file.extend(order.u32((time / 1_000_000_000) as u32));
        file.extend(order.u32(if nanos { fraction } else { fraction / 1000 }));
        file.extend(order.u32(bytes.len() as u32));
        file.extend(order.u32(*length));
        file.extend(bytes);
    }
    file
}

/// A block of pcapng.
pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = (4 - body.len() % 4) % 4;
    let length = order.u32((12 + body.len() + padding) as u32);
    [&order.u32(kind)[..], &length, body, &[0; 3][..padding], &length].concat()
}

/// An option.
pub(crate) fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let padding = (4 - value.len() % 4) % 4;
    let length = order.u16(value.len() as u16);
    [&order.u16(code)[..], &length, value, &[0; 3][..padding]].concat()
}

pub(crate) fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend([0xff; 8]);
    body.extend(option(order, 3, b"Linux 6.1"));
    body.extend(option(order, 4, b"dumpcap"));
    body.extend(option(order, 0, b""));
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface of Ethernet whose times are in units of 10^-`resolution` s.
pub(crate) fn interface(order: Order, resolution: u8) -> Vec<u8> {
    let mut body = order.u16(1).to_vec();
    body.extend([0, 0]);
    body.extend(order.u32(0));
    body.extend(option(order, 2, b"eth0"));
    body.extend(option(order, 9, &[resolution]));
    block(order, 1, &body)
}

pub(crate) fn enhanced(order: Order, interface: u32, ticks: u64, packet: &Packet) -> Vec<u8> {
    let (_, bytes, length) = packet;
    let mut body = order.u32(interface).to_vec();
    body.extend(order.u32((ticks >> 32) as u32));
    body.extend(order.u32(ticks as u32));
    body.extend(order.u32(bytes.len() as u32));
    body.extend(order.u32(*length));
    body.extend(bytes);
    body.resize(body.len().div_ceil(4) * 4, 0);
    body.extend(option(order, 1, b"a comment"));
    block(order, 6, &body)
}

/// A section with an interface in nanoseconds, its packets and its statistics.
pub(crate) fn pcapng(order: Order, packets: &[Packet]) -> Vec<u8> {
    let mut file = section(order);
    file.extend(interface(order, 9));
    for packet in packets {
        file.extend(enhanced(order, 0, packet.0, packet));
    }
    let mut body = order.u32(0).to_vec();
    body.extend([0; 8]);
    let count = |value: u32| {
        let (high, low) = (order.u32(0), order.u32(value));
        if order.0 { [high, low].concat() } else { [low, high].concat() }
    };
    body.extend(option(order, 4, &count(1000)));
    body.extend(option(order, 5, &count(17)));
    file.extend(block(order, 5, &body));
    file
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The bytes of hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|it| it.to_digit(16)).collect();
    digits.as_chunks::<2>().0.iter().map(|[high, low]| (high << 4 | low) as u8).collect()
}
