//! `pcap`: packets, filters and their mistakes, text of the file, pipes that are silent or
//! closed.

use crate::program::{command, printed, run};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().div_ceil(4) * 4;
    let length = (padded as u32 + 12).to_le_bytes();
    let mut block = [&kind.to_le_bytes()[..], &length, body].concat();
    block.resize(8 + padded, 0);
    block.extend(length);
    block
}

/// A datagram inside of IPv4.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((28 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend([0x0f, 0xa0, 0x13, 0x88]);
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// Numbered datagrams of raw IP a millisecond apart, each with a comment.
fn capture(count: u32, comment: &[u8]) -> Vec<u8> {
    capture_of((0..count).map(|number| datagram(format!("datagram {number}").as_bytes())), comment)
}

/// These packets.
fn capture_of(packets: impl Iterator<Item = Vec<u8>>, comment: &[u8]) -> Vec<u8> {
    let mut file = block(
        0x0a0d_0d0a,
        &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat(),
    );
    file.extend(block(1, &[101, 0, 0, 0, 0, 0, 0, 0]));
    for (number, packet) in (0_u32..).zip(packets) {
        let (micros, length) = (number * 1000, packet.len() as u32);
        let mut body: Vec<u8> = [0, 0, micros, length, length]
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
        body.extend(&packet);
        body.resize(body.len().div_ceil(4) * 4, 0);
        body.extend([&1_u16.to_le_bytes()[..], &(comment.len() as u16).to_le_bytes()].concat());
        body.extend(comment);
        body.resize(body.len().div_ceil(4) * 4, 0);
        body.extend([0; 4]);
        file.extend(block(6, &body));
    }
    file
}

fn file(count: u32, comment: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.pcapng");
    std::fs::write(&path, capture(count, comment)).unwrap();
    (folder, path)
}

#[test]
fn packets_are_listed_filtered_and_shown_in_full() {
    let (_folder, path) = file(30, b"a comment");
    let path = path.to_str().unwrap();
    let list = printed(&["pcap", "packets", path]);
    assert_eq!(list.lines().count(), 31, "{list}");
    let line = list.lines().nth(3).unwrap();
    for part in ["3", "0.002000", "10.0.0.1", "10.0.0.2", "UDP", "4000 \u{2192} 5000 Len=10"] {
        assert!(line.contains(part), "{line}");
    }
    let few = printed(&["pcap", "packets", path, "-n", "2", "udp.length", ">", "18"]);
    assert!(few.lines().nth(1).unwrap().trim_start().starts_with("11 "), "{few}");
    assert_eq!(few.lines().count(), 3, "{few}");
    let full = printed(&["pcap", "packets", path, "--packet", "12"]);
    assert!(full.contains("udp.length") && full.contains("gram 11"), "{full}");
    let csv = printed(&["pcap", "packets", path, "frame.number == 7", "--csv"]);
    assert_eq!(
        csv.lines().nth(1),
        Some("7,0.006000000,10.0.0.1,10.0.0.2,UDP,38,,,4000 \u{2192} 5000 Len=10")
    );
    let fields = printed(&["pcap", "packets", path, "-n1", "-e", "ip.addr", "-e", "udp.payload"]);
    assert_eq!(fields.lines().nth(1), Some("10.0.0.1;10.0.0.2,646174616772616d2030"));
    let json = printed(&["pcap", "packets", path, "--json", "frame.number <= 2"]);
    let documents: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((documents.len(), &documents[1]["number"]), (2, &serde_json::json!(2)));
    assert_eq!(documents[1]["schema"], "longhaul.pcap-packet/1");
}

#[test]
fn mistakes_are_one_line_with_a_remedy() {
    let (_folder, path) = file(3, b"");
    let path = path.to_str().unwrap();
    for (arguments, code, says) in [
        (&["udp.prot == 1"][..], 2, "column 1: 'udp.prot' is no field or protocol; did you mean"),
        (&["udp.port", "==", "1", "2"], 2, "column 15: '&&' or '||' is missing"),
        (&["(udp"], 2, "column 1: the parenthesis is not closed"),
        (&["-e", "udp.prt"], 2, "did you mean udp.port?"),
        (&["--packet", "4"], 1, "has no packet 4; it has 3"),
        (&["--packet", "0"], 2, "0"),
        (&["--packet", "1", "udp"], 2, "cannot be used with"),
    ] {
        let output = run(&[&["pcap", "packets", path], arguments].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let output = run(&["pcap", "packets", path, "tcp"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(0), true));
    assert!(text.contains("none of 3 packets matches the filter"), "{text}");
}

#[test]
fn text_of_the_file_is_cleaned_in_every_form() {
    let (_folder, path) = file(1, b"\x1b[31mred\x07\xc2\x9b2J, =1+1\nnext");
    let path = path.to_str().unwrap();
    for form in [&["--packet", "1"][..], &["--packet", "1", "--json"], &["-e", "frame.comment"]] {
        let text = printed(&[&["pcap", "packets", path], form].concat());
        assert!(text.contains("red"), "{text}");
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_control), "{form:?}: {text:?}");
    }
    let text = printed(&["pcap", "packets", path, "-e", "frame.comment"]);
    assert_eq!(text.lines().count(), 2, "{text:?}");
}

/// Names of hosts in multicast DNS: in the list, in the fields, and in documents.
#[test]
fn names_in_messages_are_cleaned() {
    let message = b"\0\0\0\0\0\x01\0\0\0\0\0\0\x0dhi\x1b]0;ev\x07il\r\n\x05local\0\0\x0c\0\x01";
    let mut query = datagram(message);
    query[20..24].copy_from_slice(&[0x14, 0xe9, 0x14, 0xe9]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.pcapng");
    std::fs::write(&path, capture_of([query].into_iter(), b"")).unwrap();
    let path = path.to_str().unwrap();
    for (form, name) in [
        (&[][..], "PTR hi?]0;ev?il??.local"),
        (&["-e", "dns.qry.name"], "hi]0;evil"),
        (&["--packet", "1"], "hi]0;evil"),
        (&["--packet", "1", "--json"], "hi]0;evil"),
    ] {
        let text = printed(&[&["pcap", "packets", path], form].concat());
        assert!(text.contains(name), "{form:?}: {text:?}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{form:?}: {text:?}");
    }
    assert!(printed(&["pcap", "packets", path]).contains("MDNS"));
    assert!(printed(&["pcap", "hierarchy", path]).contains("mdns"));
}

/// Rows appear while the pipe stays open, and the first signal ends the program.
#[test]
fn a_silent_pipe_is_shown_at_once_and_ended_by_the_first_signal() {
    let mut child = command(&["pcap", "packets", "-", "-e", "frame.number"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&capture(3, b"")).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for expected in ["frame.number\n", "1\n", "2\n", "3\n"] {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let ended = receive.recv_timeout(Duration::from_secs(30));
    let ended = ended.unwrap().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("Interrupted after packet 3."));
    drop(input);
}

#[test]
fn a_closed_pipe_ends_the_list_quietly() {
    let (_folder, path) = file(20_000, b"");
    let mut child = command(&["pcap", "packets", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("source"), "{line}");
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

/// The packets that pass are written as they were, also in the place of the file itself.
#[test]
fn packets_are_written_to_a_capture() {
    let (folder, path) = file(30, b"a comment");
    let (path, out) = (path.to_str().unwrap(), folder.path().join("few.pcapng"));
    let out = out.to_str().unwrap();
    let fields = ["-e", "frame.time_epoch", "-e", "frame.comment", "-e", "udp.payload"];
    let output = run(&["pcap", "packets", path, "udp.length > 18", "-n", "5", "-w", out]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{text}");
    assert!(text.contains("5 packets written to"), "{text}");
    let all = [&["pcap", "packets", path, "udp.length > 18", "-n", "5"], &fields[..]].concat();
    let wanted = printed(&all);
    assert_eq!(wanted.lines().count(), 6, "{wanted}");
    assert_eq!(printed(&[&["pcap", "packets", out], &fields[..]].concat()), wanted);
    // The output replaces the input.
    assert!(run(&["pcap", "packets", out, "frame.number > 3", "-w", out]).status.success());
    assert_eq!(printed(&["pcap", "packets", out]).lines().count(), 3);
    let output = run(&["pcap", "packets", path, "tcp", "-w", out]);
    assert!(output.status.success());
    assert!(run(&["pcap", "packets", out]).stdout.is_empty());
}

/// Neither control characters nor lines that look like the other end's.
#[test]
fn a_stream_is_followed_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stream.pcapng");
    let payloads = [&b"first\x1b[31m\n< forged\n"[..], b"rest \xff", b" of it\n"];
    let bytes = capture_of(payloads.iter().map(|it| datagram(it)), b"");
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let follow =
        |more: &[&str]| printed(&[&["pcap", "follow", path, "0", "-t", "udp"], more].concat());
    let text = follow(&[]);
    let lines: Vec<&str> = text.lines().collect();
    let head = "UDP stream 0: 10.0.0.1:4000 > 10.0.0.2:5000";
    assert_eq!(lines, [head, "> first.[31m", "> < forged", "> rest . of it"]);
    let hex = follow(&["--as", "hex", "-n", "5"]);
    assert_eq!(hex.lines().nth(1).map(str::trim_end), Some(HEX_OF_FIRST));
    assert_eq!(follow(&["--as", "raw"]).lines().nth(2), Some("> 7265737420ff"));
    assert_eq!(follow(&["--end", "second"]).lines().count(), 1);
    let json = follow(&["--json"]);
    let last: serde_json::Value = serde_json::from_str(json.lines().nth(2).unwrap()).unwrap();
    assert_eq!((&last["packet"], &last["end"]), (&3.into(), &"first".into()), "{last}");
    let out = folder.path().join("bytes");
    let arguments = ["pcap", "follow", path, "0", "-t", "udp", "-w", out.to_str().unwrap()];
    assert!(run(&arguments).status.success());
    assert_eq!(std::fs::read(&out).unwrap(), payloads.concat());
    let output = run(&["pcap", "follow", path, "0"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("has no TCP stream 0") && text.lines().count() == 1, "{text}");
}

const HEX_OF_FIRST: &str = "> 00000000  66 69 72 73 74                                   first";

#[test]
fn packets_are_counted_per_interval() {
    let (_folder, path) = file(30, b"");
    let path = path.to_str().unwrap();
    let json = printed(&["pcap", "io", path, "frame.number <= 3", "udp", "-i", "10ms", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["interval_s"], 0.01);
    assert_eq!(document["curves"][0]["packets"], serde_json::json!([3, 0, 0]));
    assert_eq!(document["curves"][1]["packets"], serde_json::json!([10, 10, 10]));
    let text = printed(&["pcap", "io", path, "--unit", "packets"]);
    assert!(text.contains("all packets") && text.contains("30 packets, 1160 bytes"), "{text}");
}

#[test]
fn expert_information_is_counted_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.pcap");
    // An IP packet that is too short for the header in it.
    let mut malformed = datagram(b"");
    malformed[3] = 24;
    let bytes = capture_of([datagram(b"whole"), malformed].into_iter(), b"");
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let json = printed(&["pcap", "expert", path, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let item = &document["items"][0];
    assert_eq!((&item["severity"], &item["count"]), (&"Error".into(), &1.into()), "{document}");
    assert_eq!(item["first_packet"], 2);
    let none = printed(&["pcap", "expert", path, "frame.number == 1"]);
    assert!(none.contains("Nothing stands out."), "{none}");
}
