//! Files in turn, and files that are whole whatever happens.

use super::*;
use capture::LinkType;
use capture::file::Reader;
use capture::write::CapturedInterface;
use std::path::Path;

fn header(format: WriteFormat) -> Vec<u8> {
    let mut header = Vec::new();
    let interface =
        CapturedInterface { name: "eth0", link: LinkType::ETHERNET, snaplen: 192, filter: "" };
    write::begin(&mut header, format, "test", &[interface]);
    header
}

fn open(output: Output, format: WriteFormat) -> OpenOutput {
    OpenOutput::open(output, format, header(format), None).unwrap()
}

/// Packet `number`: 100 bytes, of which the time is the number.
fn packet(number: u64) -> CapturedPacket<'static> {
    CapturedPacket {
        interface: 0,
        time_ns: number,
        original_len: 1500,
        data: &[&[7; 100]],
        inbound: None,
        comment: "",
    }
}

/// Times of the packets of a file, and whether it has statistics.
fn read(path: &Path) -> (Vec<u64>, bool) {
    let file = std::fs::read(path).unwrap();
    let mut reader = Reader::new(&file[..]).unwrap();
    let mut times = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        times.push(packet.time_ns);
    }
    (times, reader.summary().interfaces[0].received.is_some())
}

#[test]
fn files_are_written_in_turn_and_never_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let size = ByteCount::from_bytes(64 * 1024);
    let path = folder.path().join("t.pcapng");
    let mut output = open(Output::Rotating { path, files: 3, size }, WriteFormat::Pcapng);
    assert_eq!(output.files().len(), 1);
    for number in 0..3000 {
        if output.is_full(100) {
            output.finish(&CaptureCounters::default()).unwrap();
            output.rotate().unwrap();
        }
        output.push(&packet(number)).unwrap();
    }
    output.finish(&CaptureCounters::default()).unwrap();
    let mut all = Vec::new();
    for path in output.files() {
        let length = std::fs::metadata(&path).unwrap().len();
        assert!((1000..=64 * 1024).contains(&length), "{length}");
        let (times, has_statistics) = read(&path);
        assert!(has_statistics);
        all.extend(times);
    }
    // The last packets, in order, without a gap.
    assert!(all.len() > 900 && all.len() < 1500, "{}", all.len());
    let expected: Vec<u64> = (3000 - all.len() as u64..3000).collect();
    assert_eq!(all, expected);
}

#[test]
fn files_that_were_not_reached_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let size = ByteCount::from_bytes(64 * 1024);
    let path = folder.path().join("t.pcap");
    let mut output = open(Output::Rotating { path, files: 2, size }, WriteFormat::Pcap);
    output.push(&packet(1)).unwrap();
    output.finish(&CaptureCounters::default()).unwrap();
    assert_eq!(output.files(), [folder.path().join("t-1.pcap")]);
    assert_eq!(read(&folder.path().join("t-2.pcap")), (Vec::new(), false));
    for (files, bytes) in [(1, 1 << 20), (501, 1 << 20), (2, 1000)] {
        let size = ByteCount::from_bytes(bytes);
        let output = Output::Rotating { path: folder.path().join("x"), files, size };
        let refused = OpenOutput::open(output, WriteFormat::Pcap, Vec::new(), None);
        assert!(matches!(refused, Err(CaptureError::Rotation(_))));
    }
}

/// A file that can be written to up to a limit (RLIMIT_FSIZE would end this process): the
/// descriptor of a file is replaced by one that is full, and what was whole before remains.
#[test]
fn a_failed_write_leaves_whole_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pcapng");
    let mut output = open(Output::File(path.clone()), WriteFormat::Pcapng);
    for number in 0..100 {
        output.push(&packet(number)).unwrap();
    }
    output.flush().unwrap();
    output.files[0].1 = File::options().write(true).open("/dev/full").unwrap();
    output.push(&packet(100)).unwrap();
    let error = output.flush().unwrap_err();
    assert!(["InvalidInput", "StorageFull"].contains(&format!("{:?}", error.kind()).as_str()));
    assert_eq!(read(&path).0.len(), 100);
}
