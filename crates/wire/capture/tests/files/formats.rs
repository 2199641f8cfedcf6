//! Formats beside those of everyday: modified pcap, further compressions, and formats that are named.

use crate::build::{self, Order, Packet};
use crate::read;
use capture::file::{Compression, Format, Problem, is_capture};
use std::io::Read;

/// What `xz --check=sha256` makes of four packets.
pub(crate) const XZ: &str = "\
     fd377a585a00000ae1fb0ca10200210116000000742fe5a3e0020d006f5d006a30d1c87d8bf8099baf1fcc79 \
     08758a71fb47d7495cde784af3077c7afabc2db04feae1e075c41becc0fa314447c4d0d651de5b5a431ae9a3 \
     374f96f2b0766623c175741e4f13d5aff00822f58c07286f76b47e75ac7cf8e78054740eabdfca5e3054c9b7 \
     cc5c8202ad011f511ced00006fb3d06db3667f8e08b60e68c318699664e8c35ba55872640ce8f422e1cae1f1 \
     0001a3018e040000f9f7326bb6e9df1c02000000000a595a";

/// What `bzip2` makes of them.
pub(crate) const BZIP2: &str = "\
     425a6839314159265359efa5e93a00009cfffffdd84400204001004302680802081000400000842200104008 \
     0044000040200030009b584a8d469a0000001a68346a800d1a0346800048a654f50006868c21a0500b602007 \
     d2b083efcf765d8e59d29733300710690c193aad602e5006004b49b09b95ae7efc44811315088e01420d742f \
     03106ea85032682e6b86217c58a505280c185f4f0150640a5780b045c41d03c203c0620500e43ed5cf6a3ef4 \
     6aa4fc5dc914e14243be97a4e8";

/// What `lz4 -BD --content-size` makes of them.
pub(crate) const LZ4: &str = "\
     04224d186440a7ae00000086d4c3b2a1020004000100300400010d0030f1536507001336040010020d001102 \
     060070010800450000282700f001400600000a0000010a0000029c4014512500610000000150104400014600 \
     62e80300005b0004000140000846001f4d4600032803e846001f07010011a200f15365d0070000800004000d \
     6b001f726b00032f07d06b001e0f02001200900062b80b0000a50004000d90001f979000032f0bb89000430f \
     02000d500707070707000000004bac8a20";

/// A file of the patched tcpdump, whose packets have headers of `header` bytes.
pub(crate) fn modified(order: Order, header: usize, packets: &[Packet]) -> Vec<u8> {
    let plain = build::pcap(order, false, packets);
    let mut file = order.u32(0xa1b2_cd34).to_vec();
    file.extend(&plain[4..24]);
    let mut rest = &plain[24..];
    for (_, bytes, _) in packets {
        let (record, after) = rest.split_at(16 + bytes.len());
        file.extend(&record[..16]);
        // The interface's index, the protocol, the type of the packet.
        file.extend(order.u32(3));
        file.extend([0x08, 0, 4, 0, 1, 2, 3, 4].iter().take(header - 20));
        file.extend(bytes);
        rest = after;
    }
    file
}

#[test]
fn modified_pcap_with_headers_of_either_length() {
    let packets = build::packets(50);
    for order in [Order(false), Order(true)] {
        for header in [20, 24, 28] {
            let (read, summary, broken) = read(&modified(order, header, &packets)).unwrap();
            assert!(broken.is_none(), "{broken:?}");
            assert_eq!(read, packets, "{order:?} {header}");
            assert_eq!((summary.format, summary.big_endian), (Format::PcapModified, order.0));
        }
    }
    // One packet, and none.
    for count in [0, 1] {
        let file = modified(Order(false), 24, &build::packets(count));
        assert_eq!(read(&file).unwrap().0.len(), count as usize);
    }
}

#[test]
fn ixia_has_a_longer_header_of_the_file() {
    let packets = build::packets(3);
    for (magic, nanos) in [(0x1c00_01ac_u32, true), (0x1c00_01ab, false)] {
        let mut file = build::pcap(Order(false), nanos, &packets);
        file[..4].copy_from_slice(&magic.to_le_bytes());
        file.splice(24..24, [0; 4]);
        assert_eq!(read(&file).unwrap().0, packets);
    }
}

#[test]
fn xz_bzip2_and_lz4() {
    let packets = build::packets(4);
    for (hex, how) in [(XZ, Compression::Xz), (BZIP2, Compression::Bzip2), (LZ4, Compression::Lz4)]
    {
        let one = build::hex(hex);
        let (read, summary, broken) = read(&one).unwrap();
        assert!(broken.is_none(), "{how:?}: {broken:?}");
        assert_eq!((read.as_slice(), summary.compression), (packets.as_slice(), how));
        // Streams one after the other are one file: the second has another file header, which is
        // no packet's.
        let mut plain = Vec::new();
        let both = [&one[..], &one].concat();
        capture::file::Decompressed::new(&both[..]).unwrap().read_to_end(&mut plain).unwrap();
        let whole = build::pcap(Order(false), false, &packets);
        assert_eq!(plain, [&whole[..], &whole].concat(), "{how:?}");
        // A flipped bit in the middle is noticed, by a checksum if by nothing else.
        let mut damaged = one;
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        let mut source = capture::file::Decompressed::new(&damaged[..]).unwrap();
        assert!(how == Compression::Lz4 || source.read_to_end(&mut Vec::new()).is_err(), "{how:?}");
    }
}

#[test]
fn bzip2_expands_runs() {
    // `head -c 2000000 /dev/zero | bzip2`
    let zeros = build::hex(
        "425a683931415926535982b85a42000f51e000c00000008008200030cc09aa698a921b552921e2ee48a70a12\
         10570b4840",
    );
    let mut plain = Vec::new();
    capture::file::Decompressed::new(&zeros[..]).unwrap().read_to_end(&mut plain).unwrap();
    assert_eq!(plain, vec![0; 2_000_000]);
}

#[test]
fn a_dictionary_beyond_the_limit_is_refused() {
    // The block's header asks for a dictionary of 1.5 GiB (property 37).
    let mut file = build::hex(XZ);
    let at = (12..40).find(|at| file[at - 2..*at] == [0x21, 0x01]).unwrap();
    file[at] = 37;
    let size = (usize::from(file[12]) + 1) * 4;
    let crc = crc32(&file[12..12 + size - 4]).to_le_bytes();
    file[12 + size - 4..12 + size].copy_from_slice(&crc);
    let broken = read(&file).unwrap_err();
    assert!(broken.to_string().contains("memory"), "{broken}");
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn other_formats_are_named() {
    for (start, name) in [
        (&b"snoop\0\0\0\0\0\0\x02\0\0\0\x04"[..], "snoop"),
        (b"GMBU\x00\x02\x01\x00", "Network Monitor 2"),
        (b"RTSS\x01\x01", "Network Monitor 1"),
        (b"TRSNIFF data    \x1a", "Sniffer"),
    ] {
        let broken = read(start).unwrap_err();
        assert!(broken.to_string().contains(name), "{broken}");
        assert!(broken.to_string().contains("editcap -F pcapng"), "{broken}");
        assert!(is_capture(start));
    }
    let zip = read(b"PK\x03\x04\x14\0\0\0").unwrap_err();
    assert!(matches!(zip.problem, Problem::Packed(_)), "{zip}");
    assert!(
        !is_capture(b"PK\x03\x04\x14\0\0\0") && !is_capture(b"{\"start\":") && !is_capture(b"")
    );
}
