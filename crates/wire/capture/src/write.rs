//! Writes captures: pcapng (draft-ietf-opsawg-pcapng), or pcap; little-endian, with times in
//! nanoseconds. Records are appended to a buffer, each of them whole.

use crate::LinkType;
use crate::file::Packet;

/// Format of a capture that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFormat {
    /// pcapng: with names and statistics of interfaces, directions and comments of packets.
    Pcapng,
    /// pcap: for programs that read nothing else. It has one interface.
    Pcap,
}

/// An interface on which packets are captured.
#[derive(Debug, Clone, Copy)]
pub struct CapturedInterface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Link type of its packets.
    pub link: LinkType,
    /// Longest part of a packet that is captured, in bytes; 0 for no limit.
    pub snaplen: u32,
    /// The capture filter; empty if there is none.
    pub filter: &'a str,
}

/// A packet that was captured.
#[derive(Debug, Clone, Copy)]
pub struct CapturedPacket<'a> {
    /// Which of the interfaces it was captured on.
    pub interface: u32,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Length on the wire.
    pub original_len: u32,
    /// What was captured of it, in pieces.
    pub data: &'a [&'a [u8]],
    /// Whether the interface received it; `None` if that is unknown.
    pub inbound: Option<bool>,
    /// Empty if there is none.
    pub comment: &'a str,
}

/// Counters of an interface for the time of a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureCounters {
    /// Start and end of the capture, nanoseconds since 1970.
    pub started_ns: u64,
    /// Its end.
    pub ended_ns: u64,
    /// Packets that the filter accepted.
    pub received: u64,
    /// Those of them that were dropped for want of buffers.
    pub dropped: u64,
    /// Those of them that are in the file.
    pub delivered: u64,
}

/// Block types.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// 10^-9 s (if_tsresol).
const NANOSECONDS: u8 = 9;

/// Longest text of an option, bytes.
const MAX_TEXT: usize = 4096;

/// Length of the block that [`statistics`] appends.
pub const STATISTICS_LEN: usize = 12 + 12 + 5 * 12 + 4;

/// Begins a file: `application` is what captures. pcap has the first interface only.
pub fn begin(
    out: &mut Vec<u8>,
    format: WriteFormat,
    application: &str,
    interfaces: &[CapturedInterface<'_>],
) {
    match format {
        WriteFormat::Pcap => {
            out.extend(0xa1b2_3c4d_u32.to_le_bytes());
            // Version 2.4; no time zone, no accuracy.
            out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let (snaplen, link) =
                interfaces.first().map_or((0, LinkType::RAW), |it| (it.snaplen, it.link));
            // Readers take 0 for no packet at all.
            let snaplen = if snaplen == 0 { 262_144 } else { snaplen };
            out.extend(snaplen.to_le_bytes());
            out.extend(u32::from(link.0).to_le_bytes());
        }
        WriteFormat::Pcapng => {
            block(out, SECTION_HEADER, |out| {
                out.extend(0x1a2b_3c4d_u32.to_le_bytes());
                // Version 1.0; the section's length is not given.
                out.extend([1, 0, 0, 0]);
                out.extend(u64::MAX.to_le_bytes());
                text(out, 4, application);
                end_of_options(out);
            });
            interfaces.iter().for_each(|it| interface(out, it));
        }
    }
}

/// Appends the description of an interface to a pcapng file: the packets behind it may be of it.
pub fn interface(out: &mut Vec<u8>, interface: &CapturedInterface<'_>) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend(interface.link.0.to_le_bytes());
        out.extend([0, 0]);
        out.extend(interface.snaplen.to_le_bytes());
        text(out, 2, interface.name);
        option(out, 9, &[&[NANOSECONDS]]);
        if !interface.filter.is_empty() {
            // The first byte says that the filter is a text.
            let filter = excerpt(interface.filter);
            option(out, 11, &[&[0], filter.as_bytes()]);
        }
        end_of_options(out);
    });
}

/// Appends a packet of another file as it was captured, with its options.
pub fn copied(out: &mut Vec<u8>, format: WriteFormat, copied: &Packet<'_>) {
    if format == WriteFormat::Pcap {
        let data: &[&[u8]] = &[copied.frame];
        let (interface, time_ns, original_len) = (0, copied.time_ns, copied.original_len);
        let as_captured =
            CapturedPacket { interface, time_ns, original_len, data, inbound: None, comment: "" };
        return packet(out, format, &as_captured);
    }
    block(out, ENHANCED_PACKET, |out| {
        out.extend(copied.interface.to_le_bytes());
        time(out, copied.time_ns);
        // Bounded by the longest packet that is read.
        out.extend((copied.frame.len() as u32).to_le_bytes());
        out.extend(copied.original_len.to_le_bytes());
        out.extend_from_slice(copied.frame);
        pad(out, copied.frame.len());
        let mut has_options = false;
        for (code, value) in copied.options.little_endian() {
            option(out, code, &[&value]);
            has_options = true;
        }
        if has_options {
            end_of_options(out);
        }
    });
}

/// Appends a packet.
#[inline]
pub fn packet(out: &mut Vec<u8>, format: WriteFormat, packet: &CapturedPacket<'_>) {
    // Packets are bounded by the snaplen, far below 4 GiB.
    let captured = packet.data.iter().map(|part| part.len() as u32).sum::<u32>();
    let original = packet.original_len.max(captured);
    match format {
        WriteFormat::Pcap => {
            let (seconds, rest) =
                (packet.time_ns / 1_000_000_000, (packet.time_ns % 1_000_000_000) as u32);
            // The format ends in 2106.
            let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
            for word in [seconds, rest, captured, original] {
                out.extend(word.to_le_bytes());
            }
            packet.data.iter().for_each(|part| out.extend_from_slice(part));
        }
        WriteFormat::Pcapng => block(out, ENHANCED_PACKET, |out| {
            out.extend(packet.interface.to_le_bytes());
            time(out, packet.time_ns);
            out.extend(captured.to_le_bytes());
            out.extend(original.to_le_bytes());
            packet.data.iter().for_each(|part| out.extend_from_slice(part));
            pad(out, captured as usize);
            if let Some(inbound) = packet.inbound {
                option(out, 2, &[&[if inbound { 1 } else { 2 }, 0, 0, 0]]);
            }
            if !packet.comment.is_empty() {
                text(out, 1, packet.comment);
            }
            if packet.inbound.is_some() || !packet.comment.is_empty() {
                end_of_options(out);
            }
        }),
    }
}

/// Appends the counters of an interface; pcap has none.
pub fn statistics(
    out: &mut Vec<u8>,
    format: WriteFormat,
    interface: u32,
    counters: &CaptureCounters,
) {
    if format == WriteFormat::Pcap {
        return;
    }
    block(out, INTERFACE_STATISTICS, |out| {
        out.extend(interface.to_le_bytes());
        time(out, counters.ended_ns);
        for (code, ns) in [(2_u16, counters.started_ns), (3, counters.ended_ns)] {
            out.extend(code.to_le_bytes());
            out.extend([8, 0]);
            time(out, ns);
        }
        // isb_ifrecv, isb_ifdrop and isb_usrdeliv, as dumpcap writes them.
        for (code, count) in
            [(4, counters.received), (5, counters.dropped), (8, counters.delivered)]
        {
            option(out, code, &[&count.to_le_bytes()]);
        }
        end_of_options(out);
    });
}

/// A block: its type, and its length before and behind its body.
#[inline]
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    out.extend(length);
    if let Some(field) = out.get_mut(start + 4..start + 8) {
        field.copy_from_slice(&length);
    }
}

/// The upper half of a time comes first.
#[inline]
fn time(out: &mut Vec<u8>, ns: u64) {
    out.extend(((ns >> 32) as u32).to_le_bytes());
    out.extend((ns as u32).to_le_bytes());
}

#[inline]
fn option(out: &mut Vec<u8>, code: u16, value: &[&[u8]]) {
    let length: usize = value.iter().map(|part| part.len()).sum();
    out.extend(code.to_le_bytes());
    // Texts are bounded; every other value has at most 8 bytes.
    out.extend((length as u16).to_le_bytes());
    value.iter().for_each(|part| out.extend_from_slice(part));
    pad(out, length);
}

fn text(out: &mut Vec<u8>, code: u16, value: &str) {
    option(out, code, &[excerpt(value).as_bytes()]);
}

fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

#[inline]
fn end_of_options(out: &mut Vec<u8>) {
    out.extend([0; 4]);
}

#[inline]
fn pad(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&[0; 3][..length.next_multiple_of(4) - length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Reader;

    fn file(format: WriteFormat) -> Vec<u8> {
        let mut out = Vec::new();
        let interfaces = [
            CapturedInterface {
                name: "eth0",
                link: LinkType::ETHERNET,
                snaplen: 96,
                filter: "tcp",
            },
            CapturedInterface { name: "lo", link: LinkType::RAW, snaplen: 0, filter: "" },
        ];
        begin(&mut out, format, "test 1", &interfaces);
        for number in 0..5_u32 {
            let bytes = vec![7; number as usize];
            packet(
                &mut out,
                format,
                &CapturedPacket {
                    interface: number % 2,
                    time_ns: 1_700_000_000_123_456_789 + u64::from(number),
                    original_len: 1500,
                    data: &[&bytes, &[1, 2, 3]],
                    inbound: (number % 2 == 0).then_some(number == 0),
                    comment: if number == 3 { "lost" } else { "" },
                },
            );
        }
        let before = out.len();
        let counters = CaptureCounters {
            started_ns: 1_700_000_000_000_000_000,
            ended_ns: 1_700_000_001_000_000_000,
            received: 10,
            dropped: 2,
            delivered: 5,
        };
        statistics(&mut out, format, 0, &counters);
        if format == WriteFormat::Pcapng {
            assert_eq!(out.len() - before, STATISTICS_LEN);
        }
        out
    }

    #[test]
    fn what_is_written_is_read() {
        for format in [WriteFormat::Pcapng, WriteFormat::Pcap] {
            let file = file(format);
            let mut reader = Reader::new(&file[..]).unwrap();
            for number in 0..5_u32 {
                let packet = reader.next_packet().unwrap().unwrap();
                assert_eq!(packet.time_ns, 1_700_000_000_123_456_789 + u64::from(number));
                assert_eq!((packet.original_len, packet.data.len()), (1500, number as usize + 3));
                assert!(packet.data.ends_with(&[1, 2, 3]));
                if format == WriteFormat::Pcapng {
                    assert_eq!(packet.interface, number % 2);
                    let inbound = (number % 2 == 0).then_some(number == 0);
                    assert_eq!(packet.options.inbound(), inbound);
                    assert_eq!(packet.options.comments().next().is_some(), number == 3);
                }
            }
            assert!(reader.next_packet().unwrap().is_none());
            let summary = reader.summary();
            let first = &summary.interfaces[0];
            assert_eq!((first.link, first.snaplen), (LinkType::ETHERNET, 96));
            if format == WriteFormat::Pcapng {
                assert_eq!((first.name.as_str(), first.received), ("eth0", Some(10)));
                assert_eq!(summary.dropped(), Some(2));
                assert_eq!(summary.captured_by, ["test 1"]);
            }
        }
    }

    #[test]
    fn packets_are_copied_with_their_options() {
        let original = file(WriteFormat::Pcapng);
        let mut reader = Reader::new(&original[..]).unwrap();
        let (mut pcapng, mut pcap) = (Vec::new(), Vec::new());
        let new = |link| CapturedInterface { name: "a", link, snaplen: 0, filter: "" };
        let first = new(LinkType::ETHERNET);
        begin(&mut pcapng, WriteFormat::Pcapng, "copy", &[]);
        begin(&mut pcap, WriteFormat::Pcap, "copy", &[first]);
        interface(&mut pcapng, &first);
        interface(&mut pcapng, &new(LinkType::RAW));
        while let Some(packet) = reader.next_packet().unwrap() {
            copied(&mut pcapng, WriteFormat::Pcapng, &packet);
            copied(&mut pcap, WriteFormat::Pcap, &packet);
        }
        for (copy, has_options) in [(pcapng, true), (pcap, false)] {
            let (mut before, mut after) =
                (Reader::new(&original[..]).unwrap(), Reader::new(&copy[..]).unwrap());
            while let Some(a) = before.next_packet().unwrap() {
                let b = after.next_packet().unwrap().unwrap();
                assert_eq!(
                    (a.time_ns, a.original_len, a.frame),
                    (b.time_ns, b.original_len, b.frame)
                );
                if has_options {
                    assert_eq!((a.interface, a.link), (b.interface, b.link));
                    assert!(a.options.iter().eq(b.options.iter()));
                }
            }
            assert!(after.next_packet().unwrap().is_none());
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let mut out = Vec::new();
        let name = "\u{e9}".repeat(MAX_TEXT);
        let interface =
            CapturedInterface { name: &name, link: LinkType::RAW, snaplen: 0, filter: &name };
        begin(&mut out, WriteFormat::Pcapng, &name, &[interface]);
        assert!(out.len() < 4 * MAX_TEXT);
        assert!(Reader::new(&out[..]).unwrap().next_packet().unwrap().is_none());
    }
}
