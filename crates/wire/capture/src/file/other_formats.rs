//! Formats that are not read, by their first bytes, so that an error can say what to do.

use super::Problem;

/// Captures of other programs; Wireshark's `editcap` converts them.
const CAPTURES: [(&[u8], &str); 14] = [
    (b"snoop\0\0\0", "snoop (RFC 1761)"),
    (b"GMBU", "Microsoft Network Monitor 2"),
    (b"RTSS", "Microsoft Network Monitor 1"),
    (b"TRSNIFF data    ", "NetWare Sniffer"),
    (b"XCP\0", "NetXray or Windows Sniffer"),
    (b"iptrace 1.0", "AIX iptrace"),
    (b"iptrace 2.0", "AIX iptrace"),
    (b"\x7fver", "EtherPeek or OmniPeek"),
    (b"\x05VNF", "Visual Networks"),
    (b"\x54\x52\x00\x64\x00", "HP-UX nettl"),
    (b"\xaa\xaa\xaa\xaa", "5View"),
    (b"\x00\x00\x02\x00\x12\x05\x00\x10", "Tektronix K12"),
    (b"btsnoop\0", "Bluetooth HCI (btsnoop)"),
    (b"ObserverPktBuffe", "Observer"),
];

/// Archives, and compression that nothing here reads.
const PACKED: [(&[u8], &str); 5] = [
    (b"PK\x03\x04", "a ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x1f\x9d", "a file of `compress`"),
    (b"Rar!", "a RAR archive"),
    (b"LZIP", "a file of lzip"),
];

/// What is wrong with a file that begins with `head`, and is neither pcap nor pcapng.
pub(super) fn problem(head: &[u8]) -> Problem {
    let named = |list: &[(&[u8], &'static str)]| {
        list.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name)
    };
    if let Some(name) = named(&CAPTURES) {
        return Problem::OtherFormat(name);
    }
    named(&PACKED).map_or(Problem::UnknownFormat, Problem::Packed)
}
