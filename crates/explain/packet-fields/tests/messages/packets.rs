//! Frames, what is shown of them, and which pass a filter.

use capture::conversations::Conversations;
use capture::dissect::{Layers, Protocol, dissect};
use capture::file::Reader;
use capture::{LinkType, MemoryBudget, TABLE_BYTES};
use packet_fields::iperf3_control::ControlConnections;
use packet_fields::{Field, Filter, PacketView, Summary, Tracker, detail};

/// Shows each packet of a pcap file of these frames to `see`.
pub(crate) fn each(frames: &[Vec<u8>], mut see: impl FnMut(&PacketView<'_>)) {
    let link = u32::from(LinkType::ETHERNET.0);
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, link];
    let mut file: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (number, frame) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        for word in [1_700_000_000, number as u32 * 1000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    let seed = capture::Seed([1, 2]);
    let (mut reader, mut conversations) =
        (Reader::new(&file[..]).unwrap(), Conversations::new(seed));
    let mut tracker = Tracker::new(tcp_analysis::Rules::default());
    let mut control = ControlConnections::within(&MemoryBudget::new(TABLE_BYTES));
    let mut layers = Layers::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        let segment = layers.tcp(packet.data);
        let segment = segment.as_ref();
        let stream = conversations.add(&packet, &layers, segment);
        let named = control.name(&layers, segment, stream);
        let layers = named.as_ref().unwrap_or(&layers);
        see(&tracker.add(&packet, layers, segment, stream, &conversations));
    }
}

/// Values of a field in a packet, as they are shown.
pub(crate) fn values(view: &PacketView<'_>, name: &str) -> Vec<String> {
    let (field, mut found) = (Field::from_name(name).unwrap(), Vec::new());
    view.each_value(field, |value| {
        let mut text = String::new();
        value.write(field.description().kind, &mut text).unwrap();
        found.push(text);
    });
    found
}

/// The protocol and the last column of each packet.
pub(crate) fn columns(frames: &[Vec<u8>]) -> Vec<(&'static str, String)> {
    let (mut summary, mut found) = (Summary::default(), Vec::new());
    each(frames, |view| {
        summary.fill(view);
        found.push((summary.protocol, summary.info.clone()));
    });
    found
}

/// Numbers of the packets that pass.
pub(crate) fn passing(frames: &[Vec<u8>], filter: &str) -> Vec<u64> {
    let filter = Filter::new(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let mut numbers = Vec::new();
    each(frames, |view| {
        if filter.matches(view) {
            numbers.push(view.packet.number);
        }
    });
    numbers
}

/// The values of the only packet.
#[track_caller]
pub(crate) fn assert_values(frame: &[u8], expected: &[(&str, &[&str])]) {
    each(&[frame.to_vec()], |view| {
        for (name, values_of_it) in expected {
            assert_eq!(values(view, name), *values_of_it, "{name}");
        }
    });
}

pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), payload].concat()
}

pub(crate) fn ipv4(protocol: u8, from: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let rest = [0, 7, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from];
    ethernet(0x0800, &[&[0x45, 0][..], &total, &rest, payload].concat())
}

pub(crate) fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let header = [ports[0], ports[1], length, 0].map(u16::to_be_bytes);
    ipv4(17, 1, &[&header.concat()[..], payload].concat())
}

/// Everything that is shown of each packet.
pub(crate) fn show_all(frames: &[Vec<u8>]) {
    let mut summary = Summary::default();
    each(frames, |view| {
        summary.fill(view);
        assert!(summary.info.chars().all(|c| !c.is_control()), "{:?}", summary.info);
        let found = detail::layers(view);
        assert!(found.len() > 1 && found[0].protocol == Protocol::None);
    });
}
