//! Files in formats beside those of everyday, packets that are not understood, standard input.

use crate::conversation::{self, Conversation};
use crate::program::{command, printed, run};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// A file with that content, and its path.
fn saved(content: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// What the program prints of this standard input.
fn piped(arguments: &[&str], input: &[u8]) -> (bool, String, String) {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || to.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

const TEXT: &str = "\
> Connecting to host 192.0.2.1, port 5201
> [ ID] Interval           Transfer     Bitrate         Retr  Cwnd
> [  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec    0   1.20 MBytes
> [  5]   1.00-2.00   sec   112 MBytes   941 Mbits/sec    0   1.20 MBytes
> [  5]   2.00-3.00   sec   112 MBytes   941 Mbits/sec    0   1.20 MBytes
";

#[test]
fn explain_reads_standard_input() {
    let (done, text, error) = piped(&["explain", "-"], TEXT.as_bytes());
    assert!(done && text.contains("iperf3"), "{text}{error}");
    let packets = Conversation { lose_every: 100, ..Conversation::default() }.packets();
    let capture = conversation::file(&packets);
    let (_folder, path) = saved(&capture);
    let expected = printed(&["explain", &path, "--json"]);
    let (done, json, error) = piped(&["explain", "-", "--json"], &capture);
    assert!(done, "{error}");
    assert_eq!(json, expected);
    let (done, _, error) = piped(&["explain", "-"], b"hello\n");
    assert!(!done && error.contains("cannot explain standard input: it is of"), "{error}");
}

/// It is read once, so that its streams are listed without an explanation.
#[test]
fn streams_of_standard_input() {
    let packets = Conversation { lose_every: 100, ..Conversation::default() }.packets();
    let (done, text, error) =
        piped(&["pcap", "streams", "-", "--json"], &conversation::file(&packets));
    assert!(done, "{error}");
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let stream = &document["files"][0]["streams"][0];
    assert!(stream["payload_bytes"].as_u64().unwrap() > 0 && stream["limit"].is_null(), "{stream}");
}

#[test]
fn other_captures_are_named_with_the_command_that_converts() {
    let (_folder, path) = saved(b"snoop\0\0\0\0\0\0\x02\0\0\0\x04");
    for arguments in [&["pcap", &path][..], &["explain", &path]] {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert!(error.contains("snoop") && error.contains("editcap -F pcapng"), "{error}");
    }
}

/// A pcap file of that link type.
fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, link]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for frame in frames {
        let length = frame.len() as u32;
        file.extend([1_700_000_000, 0, length, length].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(frame);
    }
    file
}

#[test]
fn packets_in_unknown_encapsulations_are_counted_and_named() {
    let ethernet = |kind: u16| {
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), &[0; 40]].concat()
    };
    // NSH; and LLDP, in which no packets are.
    let mut frames = vec![ethernet(0x894f); 1200];
    frames.push(ethernet(0x88cc));
    let note = "1,200 packets not understood: EtherType 0x894f (NSH)";
    let (_folder, path) = saved(&pcap(1, &frames));
    assert!(printed(&["pcap", &path]).contains(note));
    let error = run(&["explain", &path]).stderr;
    assert!(String::from_utf8_lossy(&error).contains(note));
    let document: Value = serde_json::from_str(&printed(&["pcap", &path, "--json"])).unwrap();
    let counted = &document["files"][0]["not_understood"];
    assert_eq!(counted[0]["packets"], 1200, "{counted}");
    let page = format!("{path}.html");
    printed(&["pcap", &path, "--html", &page]);
    assert!(std::fs::read_to_string(page).unwrap().contains(note));
    // Two kinds, and one of a link type.
    frames.extend(vec![ethernet(0x8903); 3]);
    let (_folder, path) = saved(&pcap(1, &frames));
    let both = "1,203 packets not understood: 1,200 EtherType 0x894f (NSH), 3 EtherType 0x8903";
    assert!(printed(&["pcap", &path]).contains(both));
    let (_folder, path) = saved(&pcap(220, &[vec![0; 64]]));
    assert!(printed(&["pcap", &path]).contains("1 packet not understood: link type 220 (USB)"));
}

/// Copies whose options were not captured whole, as of others.
#[test]
fn copies_of_a_mirror_port_with_cut_options_count() {
    let once = Conversation { seconds: 1, ..Conversation::default() }.packets();
    let twice = conversation::mirrored(&once, 9, |_| true);
    let copies = twice.len() - once.len();
    let whole = conversation::file(&twice);
    let (mut file, mut rest) = (whole[..24].to_vec(), &whole[24..]);
    let mut cut = 0;
    while let Some(header) = rest.first_chunk::<16>() {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let (packet, after) = rest[16..].split_at(length);
        rest = after;
        // Of each packet and its copy, by a number that both have; no SYN.
        let is_cut = packet[33] & 2 == 0 && packet[32] > 0x50 && packet[27].is_multiple_of(3);
        let kept = if is_cut { 44 } else { length };
        cut += usize::from(is_cut);
        file.extend(&header[..8]);
        file.extend((kept as u32).to_le_bytes());
        file.extend(&header[12..]);
        file.extend(&packet[..kept]);
    }
    assert!(cut > copies / 10, "{cut} of {copies}");
    let (_folder, path) = saved(&file);
    let document: Value =
        serde_json::from_str(&printed(&["pcap", "streams", &path, "--json"])).unwrap();
    let caveats = &document["files"][0]["streams"][0]["caveats"];
    assert_eq!(caveats[0]["kind"], "mirror-copies", "{caveats}");
    assert_eq!(caveats[0]["packets"].as_u64(), Some(copies as u64), "{caveats}");
}
