//! Results as people paste them: text of iperf3 and iperf 2 among other lines, documents with
//! something before and after them, in other encodings, compressed.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use proptest::prelude::*;
use record::{Caveat, Direction, Measurement, Protocol};
use std::io::Write;

fn read(text: &str) -> Vec<Measurement> {
    tool_results::read(text.as_bytes()).unwrap()
}

fn one(text: &str) -> Measurement {
    let mut all = read(text);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

const MIB: f64 = 1024.0 * 1024.0;

const CLIENT: &str = "\
Connecting to host 192.0.2.1, port 5201
[  5] local 198.51.100.2 port 41686 connected to 192.0.2.1 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec    3   1.20 MBytes       
[  5]   1.00-2.00   sec  56.0 MBytes   470 Mbits/sec    9    640 KBytes       
[  5]   2.00-3.00   sec   512 KBytes  4.19 Mbits/sec    0    640 KBytes       
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-3.00   sec   168 MBytes   471 Mbits/sec   12             sender
[  5]   0.00-3.04   sec   167 MBytes   461 Mbits/sec                  receiver

iperf Done.
";

fn is_client(measurement: &Measurement) {
    let stream = &measurement.streams[0];
    assert_eq!(measurement.streams.len(), 1);
    assert_eq!(stream.sent_bytes, (168.0 * MIB) as u64);
    assert_eq!(stream.received_bytes, (167.0 * MIB) as u64);
    assert_eq!((stream.received_seconds, stream.retransmits), (3.04, Some(12)));
    assert!(!stream.reverse);
    assert_eq!(measurement.spec.direction, Direction::Forward);
    assert_eq!(measurement.tool.as_ref().unwrap().tool, "iperf3");
    assert!(measurement.notes.iter().any(|note| note.contains("three digits")));
}

#[test]
fn iperf3_text_as_it_is_printed() {
    let measurement = one(CLIENT);
    is_client(&measurement);
    assert_eq!(measurement.spec.target, "192.0.2.1");
    let rates: Vec<u64> =
        measurement.streams[0].receiver.iter().map(|it| it.received_bytes).collect();
    assert_eq!(rates.len(), 4);
}

#[test]
fn iperf3_text_quoted_indented_and_behind_prompts() {
    let each =
        |prefix: &str| CLIENT.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
    for prefix in ["> ", "> > ", "    ", "\t", "| ", "Fri May  5 10:24:41 2023 "] {
        is_client(&one(&each(prefix)));
    }
    let prompts = format!(
        "Hello,\n[root@host ~]# iperf3 -c 192.0.2.1 -t 3\n{CLIENT}[root@host ~]# \nAny idea?\n"
    );
    is_client(&one(&prompts));
    is_client(&one(&CLIENT.replace('\n', "\r\n")));
    // Runs of white space, as many forums show them.
    let narrow: Vec<String> =
        CLIENT.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    is_client(&one(&narrow.join("\n")));
    // Broken by a mail program before the last word.
    let broken = CLIENT
        .replace("             sender", "\nsender")
        .replace("                  receiver", "\n> receiver");
    is_client(&one(&broken));
    // Of a locale that has commas.
    let commas: Vec<String> = CLIENT
        .lines()
        .map(|line| if line.contains(" sec ") { line.replace('.', ",") } else { line.to_owned() })
        .collect();
    is_client(&one(&commas.join("\n")));
}

#[test]
fn intervals_alone_and_totals_alone() {
    let rows: String = CLIENT.lines().skip(3).take(3).map(|line| format!("{line}\n")).collect();
    let measurement = one(&rows);
    assert_eq!(measurement.streams[0].retransmits, Some(12));
    assert_eq!(measurement.streams[0].sent_bytes, (168.5 * MIB) as u64);
    let totals: String = CLIENT.lines().skip(8).take(2).map(|line| format!("{line}\n")).collect();
    is_client(&one(&totals));
}

#[test]
fn a_reverse_test_in_bytes_with_omitted_seconds() {
    let measurement = one("Connecting to host 192.0.2.1, port 5999
Reverse mode, remote host 192.0.2.1 is sending
[  5] local 198.51.100.2 port 48036 connected to 192.0.2.1 port 5999
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  2.50 MBytes  2.50 MBytes/sec                  (omitted)
[  5]   0.00-1.00   sec  2.38 MBytes  2.37 MBytes/sec                  
[  5]   1.00-2.00   sec  2.38 MBytes  2.38 MBytes/sec                  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  4.75 MBytes  2.37 MBytes/sec    7             sender
[  5]   0.00-2.00   sec  4.75 MBytes  2.37 MBytes/sec                  receiver
");
    let stream = &measurement.streams[0];
    assert!(stream.reverse && measurement.spec.direction == Direction::Reverse);
    assert_eq!(stream.retransmits, Some(7));
    let omitted = |caveat: &Caveat| matches!(caveat, Caveat::OmittedSeconds { .. });
    assert!(stream.caveats.iter().any(omitted), "{:?}", stream.caveats);
}

#[test]
fn both_directions_and_sums() {
    let measurement = one("[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  5][TX-C]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0   1.12 MBytes
[  7][TX-C]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0   1.12 MBytes
[SUM][TX-C]   0.00-1.00   sec  5.00 MBytes  41.9 Mbits/sec    0
[  9][RX-C]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec
[SUM][RX-C]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5][TX-C]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    1             sender
[  5][TX-C]   0.00-1.00   sec  2.38 MBytes  20.0 Mbits/sec                  receiver
[  7][TX-C]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    2             sender
[  7][TX-C]   0.00-1.00   sec  2.38 MBytes  20.0 Mbits/sec                  receiver
[SUM][TX-C]   0.00-1.00   sec  5.00 MBytes  41.9 Mbits/sec    3             sender
snd_tcp_congestion bbr
[  9][RX-C]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    4             sender
[  9][RX-C]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  receiver
");
    assert_eq!(measurement.spec.direction, Direction::Both);
    let streams: Vec<(bool, Option<u64>)> =
        measurement.streams.iter().map(|it| (it.reverse, it.retransmits)).collect();
    assert_eq!(streams, [(false, Some(1)), (false, Some(2)), (true, Some(4))]);
    assert_eq!(measurement.spec.streams, 2);
    assert_eq!(measurement.streams[0].congestion.as_deref(), Some("bbr"));
}

const UDP_CLIENT: &str = "\
Connecting to host 192.0.2.1, port 5201
[  5] local 198.51.100.2 port 48528 connected to 192.0.2.1 port 5201
[ ID] Interval           Transfer     Bitrate         Total Datagrams
[  5]   0.00-1.00   sec   640 KBytes  5.24 Mbits/sec  453  
[  5]   1.00-2.00   sec   640 KBytes  5.24 Mbits/sec  453  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-2.00   sec  1.25 MBytes  5.24 Mbits/sec  0.000 ms  0/906 (0%)  sender
[  5]   0.00-2.04   sec  1.13 MBytes  4.64 Mbits/sec  0.432 ms  80/896 (8.9%)  receiver
";

#[test]
fn datagrams_at_either_end() {
    let measurement = one(UDP_CLIENT);
    assert_eq!(measurement.spec.protocol, Protocol::Udp);
    let datagrams = measurement.streams[0].datagrams.clone().unwrap();
    // Ten more were sent after the last arrival.
    assert_eq!((datagrams.sent, datagrams.received, datagrams.lost), (Some(906), 816, 90));
    assert_eq!(datagrams.length_bytes, 1448);
    assert!((datagrams.jitter.secs_f64() - 0.000_432).abs() < 1e-9);
    let server = one("Server listening on 5201 (test #1)
Accepted connection from 198.51.100.2, port 37312
[  5] local 192.0.2.1 port 5201 connected to 198.51.100.2 port 48528
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   573 KBytes  4.69 Mbits/sec  0.005 ms  47/452 (10%)
[  5]   1.00-2.00   sec   581 KBytes  4.76 Mbits/sec  -nan ms  33/444 (7.4%)
[  5]   2.00-2.04   sec  0.00 Bytes  0.00 bits/sec  0.432 ms  0/0 (-nan%)
");
    let datagrams = server.streams[0].datagrams.clone().unwrap();
    assert_eq!((datagrams.received, datagrams.lost), (816, 80));
    // The sender alone does not know what arrived.
    let sender: String = UDP_CLIENT.lines().take(5).map(|line| format!("{line}\n")).collect();
    let lacking = &one(&sender).tool.unwrap().unavailable;
    assert!(lacking.contains(&record::Unavailable::Received), "{lacking:?}");
}

#[test]
fn several_runs_of_either_program() {
    let text = format!(
        "$ iperf3 -c 192.0.2.1\n{CLIENT}$ iperf3 -c 192.0.2.1 -u\n{UDP_CLIENT}\n$ iperf -c 192.0.2.1 -i 1\n{}",
        "------------------------------------------------------------
Client connecting to 192.0.2.1, TCP port 5001
TCP window size: 85.0 KByte (default)
------------------------------------------------------------
[  3] local 198.51.100.2 port 40954 connected with 192.0.2.1 port 5001
[ ID] Interval       Transfer     Bandwidth
[  3]  0.0- 1.0 sec  11.2 MBytes  94.4 Mbits/sec
[  3]  1.0- 2.0 sec  11.4 MBytes  95.4 Mbits/sec
[  3]  0.0- 2.0 sec  22.6 MBytes  94.8 Mbits/sec
"
    );
    let all = read(&text);
    assert_eq!(all.len(), 3);
    is_client(&all[0]);
    assert_eq!(all[1].spec.protocol, Protocol::Udp);
    let tools: Vec<&str> = all.iter().map(|it| it.tool.as_ref().unwrap().tool.as_str()).collect();
    assert_eq!(tools, ["iperf3", "iperf3", "iperf 2"]);
    assert_eq!(all[2].tool.as_ref().unwrap().transfer, "test 3 of 3");
    assert_eq!(all[2].streams[0].sent_bytes, (22.6 * MIB).round() as u64);
    // A server that goes on: the next run begins where an interval begins at 0 again.
    let rows: String = CLIENT.lines().skip(3).map(|line| format!("{line}\n")).collect();
    assert_eq!(read(&format!("{rows}{rows}")).len(), 2);
}

#[test]
fn iperf2_datagrams_with_padded_counts() {
    let measurement =
        one("[  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec   0.035 ms    9/  893 (1%)\n");
    let datagrams = measurement.streams[0].datagrams.clone().unwrap();
    assert_eq!((datagrams.received, datagrams.lost), (884, 9));
}

#[test]
fn sums_alone() {
    let sums: String = CLIENT.replace("[  5] ", "[SUM] ");
    let measurement = one(&sums);
    is_client(&measurement);
    assert!(measurement.notes.iter().any(|note| note.contains("sum of the streams")));
}

#[test]
fn a_test_that_was_ended() {
    let text: String = CLIENT.lines().take(5).map(|line| format!("{line}\n")).collect();
    let measurement = one(&format!("{text}iperf3: interrupt - the client has terminated\n"));
    assert!(measurement.notes.iter().any(|note| note.contains("has terminated")));
    assert_eq!(measurement.streams[0].retransmits, Some(12));
}

/// A result with one interval.
fn json(bytes: u64) -> String {
    format!(
        "{{\"start\":{{\"connected\":[{{\"socket\":5}}],\"version\":\"iperf 3.17\",\"test_start\":\
         {{\"protocol\":\"TCP\",\"duration\":1}}}},\"intervals\":[{{\"streams\":[{{\"socket\":5,\
         \"start\":0,\"end\":1,\"bytes\":{bytes},\"sender\":true}}]}}],\"end\":{{\"streams\":[{{\
         \"sender\":{{\"socket\":5,\"end\":1,\"bytes\":{bytes}}},\"receiver\":{{\"socket\":5,\
         \"end\":1,\"bytes\":{bytes}}}}}]}}}}"
    )
}

fn has(measurement: &Measurement, note: &str) {
    assert!(measurement.notes.iter().any(|it| it.contains(note)), "{:?}", measurement.notes);
    assert_eq!(measurement.streams[0].received_bytes, 1000);
}

#[test]
fn a_document_with_something_around_it() {
    let document = json(1000);
    has(
        &one(&format!("$ iperf3 -c host -J\n{document}")),
        "1 line before the document was ignored",
    );
    has(&one(&format!("{document}\n$ \nbye\n")), "2 lines after the document were ignored");
    has(&one(&format!("{document}\n{}", json(7))), "another document");
    has(&one(&format!("{document}{}", &json(7)[..90])), "another document");
    // One that ends too early, and then a whole one.
    has(&one(&format!("{}\n{document}", &json(7)[..90])), "1 line before");
    let quoted: Vec<String> =
        document.replace(',', ",\n").lines().map(|it| format!("> {it}")).collect();
    assert_eq!(one(&quoted.join("\n")).streams[0].received_bytes, 1000);
}

#[test]
fn numbers_that_are_none() {
    for word in ["-nan", "nan", "NaN", "inf", "-inf", "-nan(ind)", "Infinity"] {
        let with = json(1000).replace("\"start\":0,", &format!("\"start\":0,\"rtt\":{word},"));
        has(&one(&with), "count as not reported");
        let spaced = with.replace(':', ": ");
        has(&one(&spaced), "count as not reported");
    }
    // Within a string, it stays.
    let name = json(1000).replace("iperf 3.17", "iperf 3.17, nan");
    assert!(one(&name).notes.iter().all(|note| !note.contains("not reported")));
}

#[test]
fn other_encodings_and_compression() {
    let document = json(1000);
    let utf16 = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        document.encode_utf16().flat_map(order).collect()
    };
    let (little, big) = (utf16(u16::to_le_bytes), utf16(u16::to_be_bytes));
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(document.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    for bytes in [
        [&[0xff, 0xfe][..], &little].concat(),
        [&[0xfe, 0xff][..], &big].concat(),
        little,
        big,
        [&[0xef, 0xbb, 0xbf][..], document.as_bytes()].concat(),
        gzip,
    ] {
        let all = tool_results::read(&bytes).unwrap();
        assert_eq!(all[0].streams[0].received_bytes, 1000, "{:?}", &bytes[..4]);
    }
    // Text in Latin-1.
    let latin = [b"Gr\xfc\xdfe,\n", CLIENT.as_bytes()].concat();
    is_client(&tool_results::read(&latin).unwrap()[0]);
}

#[test]
fn lines_between_those_of_a_stream() {
    let stream = "{\"event\":\"start\",\"data\":{\"version\":\"iperf 3.17\"}}\nhello\n{\"event\":\"interval\",\
         \"data\":{\"streams\":[{\"socket\":5,\"start\":0,\"end\":1,\"bytes\":1000,\"sender\":true}]}}\n\
         {\"event\":\"start\",\"data\":{}}\n";
    let measurement = one(stream);
    has(&measurement, "1 line between");
    has(&measurement, "another result");
}

proptest! {
    #[test]
    fn any_words_in_rows(
        words in prop::collection::vec(prop::sample::select(vec![
            "[  5]", "[SUM]", "[TX-C]", "0.00-1.00", "0.0-", "1.0", "sec", "1.5", "GBytes", "-nan",
            "inf", "9e99", "Mbits/sec", "MBytes/sec", "0/906", "ms", "sender", "receiver",
            "(omitted)", "18446744073709551615", "\n", "Total Datagrams", "Retr", "Accepted connection from ",
            "Reverse mode, remote host", "Client connecting to ", "[  3] Sent 5 datagrams", "{", "}",
        ]), 0..80),
    ) {
        if let Ok(all) = tool_results::read(words.join(" ").as_bytes()) {
            for one in &all {
                let _ = diagnose::explain(one);
            }
        }
    }
}

/// What iperf 2.1.8's client printed, without intervals.
const TRADEOFF: &str = "\
Server listening on TCP port 5001
TCP window size:  128 KByte (default)
------------------------------------------------------------
Client connecting to server, TCP port 5001
TCP window size: 16.0 KByte (default)
------------------------------------------------------------
[  1] local 10.0.0.1 port 54328 connected with 10.0.0.2 port 5001 (icwnd/mss/irtt=14/1448/100154)
[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-3.5766 sec  7.25 MBytes  2.03 MBytes/sec
[  2] local 10.0.0.1 port 5001 connected with 10.0.0.2 port 49942
[ ID] Interval       Transfer     Bandwidth
[  2] 0.0000-3.4726 sec  7.12 MBytes  2.09 MBytes/sec
";

/// The directions of each test's streams, and what they carried in units of 1/8 MiB.
fn carried(text: &str) -> Vec<(Direction, Vec<(bool, u64)>)> {
    let eighths = |bytes: u64| (bytes as f64 / MIB * 8.0).round() as u64;
    read(text)
        .iter()
        .map(|test| {
            let streams = test.streams.iter().map(|it| (it.reverse, eighths(it.sent_bytes)));
            (test.spec.direction, streams.collect())
        })
        .collect()
}

#[test]
fn one_direction_after_the_other_is_two_tests() {
    let [forward, reverse] = [Direction::Forward, Direction::Reverse];
    let two = vec![(forward, vec![(false, 58)]), (reverse, vec![(true, 57)])];
    assert_eq!(carried(TRADEOFF), two);
    // Lines of the reports alone.
    let rows: String = TRADEOFF
        .lines()
        .filter(|line| line.contains(" sec "))
        .map(|it| format!("{it}\n"))
        .collect();
    assert_eq!(carried(&rows), [(forward, vec![(false, 58)]), (forward, vec![(false, 57)])]);
    // Those with a sum are streams of one test.
    let sum = format!("{rows}[SUM] 0.0000-3.5766 sec  14.4 MBytes  4.02 MBytes/sec\n");
    assert_eq!(carried(&sum), [(forward, vec![(false, 58), (false, 57)])]);
}

#[test]
fn both_directions_at_once_are_one_test() {
    let dual = "\
Client connecting to server, TCP port 5001
[  1] local 10.0.0.1 port 47368 connected with 10.0.0.2 port 5001
[  2] local 10.0.0.1 port 5001 connected with 10.0.0.2 port 53276
[  1] 0.0000-1.0000 sec  2.00 MBytes  16.8 Mbits/sec
[  2] 0.0000-1.0000 sec  1.00 MBytes  8.39 Mbits/sec
[  1] 1.0000-2.0000 sec  2.00 MBytes  16.8 Mbits/sec
[  1] 0.0000-2.0000 sec  4.00 MBytes  16.8 Mbits/sec
[  2] 1.0000-2.0000 sec  1.00 MBytes  8.39 Mbits/sec
[  2] 0.0000-2.0000 sec  2.00 MBytes  8.39 Mbits/sec
";
    let both = vec![(Direction::Both, vec![(false, 32), (true, 16)])];
    assert_eq!(carried(dual), both);
    // On one connection: the other direction has a star.
    let full = dual.lines().filter(|line| !line.contains("53276"));
    let full: String = full.map(|line| line.replace("[  2]", "[ *1]") + "\n").collect();
    assert_eq!(carried(&full), both);
    let server = "\
Server listening on TCP port 5001
[  1] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 45860 (full-duplex)
[ *1] 0.0000-2.0000 sec  2.00 MBytes  8.39 Mbits/sec
[  1] 0.0000-2.0000 sec  4.00 MBytes  16.8 Mbits/sec
[SUM] 0.0000-2.0000 sec  6.00 MBytes  25.2 Mbits/sec
";
    assert_eq!(carried(server), [(Direction::Both, vec![(true, 16), (false, 32)])]);
    let reverse = server.lines().filter(|line| !line.contains("[  1] 0"));
    let reverse: String = reverse.map(|line| format!("{line}\n")).collect();
    assert_eq!(carried(&reverse), [(Direction::Reverse, vec![(true, 16)])]);
}

/// A server's log, in which it connects to a client that asked for it.
#[test]
fn a_servers_log_is_a_test_for_each_client() {
    let log = "\
Server listening on TCP port 5001
[  1] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 34778
[  1] 0.0000-3.0000 sec  4.00 MBytes  11.2 Mbits/sec
[  2] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 34798
[  3] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 34802
[  2] 0.0000-3.0000 sec  2.00 MBytes  5.59 Mbits/sec
[  3] 0.0000-3.0000 sec  1.00 MBytes  2.80 Mbits/sec
[SUM] 0.0000-3.0000 sec  3.00 MBytes  8.39 Mbits/sec
[  4] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 47368
Client connecting to 10.0.0.1, TCP port 5001
[ *5] local 10.0.0.2 port 53276 connected with 10.0.0.1 port 5001 (reverse)
[  4] 0.0000-3.0000 sec  4.00 MBytes  11.2 Mbits/sec
[ *5] 0.0000-3.0000 sec  3.00 MBytes  8.39 Mbits/sec
[SUM] 0.0000-3.0000 sec  7.00 MBytes  19.6 Mbits/sec
";
    assert_eq!(
        carried(log),
        [
            (Direction::Forward, vec![(false, 32)]),
            (Direction::Forward, vec![(false, 16), (false, 8)]),
            (Direction::Both, vec![(false, 32), (true, 24)]),
        ]
    );
}

/// iperf 2's lines of values: the first address is the data's source.
#[test]
fn values_of_flows_that_follow_each_other_are_tests_of_their_own() {
    let row = |time: u64, ends: &str, id: u32, span: &str, eighths: u64| {
        format!("{time},{ends},{id},{span},{},0\n", eighths << 17)
    };
    let (up, other) = ("10.0.0.1,57848,10.0.0.2,5001", "10.0.0.1,57850,10.0.0.2,5001");
    let (down, back) = ("10.0.0.2,60008,10.0.0.1,5001", "10.0.0.2,5001,10.0.0.1,57848");
    let at = |second: u64| 20_261_126_162_400 + second;
    let [first, second] = ["0.0-1.0", "1.0-2.0"];
    let reverse = (Direction::Reverse, vec![(true, 12)]);
    let forward = (Direction::Forward, vec![(false, 16)]);
    // -r, with times.
    let one = row(at(2), up, 1, "0.0-2.0", 16);
    assert_eq!(
        carried(&(one.clone() + &row(at(4), down, 2, "0.0-2.0", 12))),
        [forward.clone(), reverse.clone()]
    );
    // Without times, which of them ran at once is unknown.
    let untimed = one.replace("20261126162402", "19700101000000");
    let two = untimed.clone() + &untimed.replace("57848", "57850");
    assert_eq!(carried(&two), [forward.clone(), forward.clone()]);
    assert!(read(&two)[0].notes[0].contains("have no times"), "{:?}", read(&two)[0].notes);
    assert!(read(&untimed)[0].notes.is_empty());
    // -P 2, with one line each, and in turn.
    let two = one.clone() + &row(at(2), other, 2, "0.0-2.0", 8);
    assert_eq!(carried(&two), [(Direction::Forward, vec![(false, 16), (false, 8)])]);
    let turns = row(at(1), up, 1, first, 8)
        + &row(at(1), back, 1, first, 4)
        + &row(at(2), up, 1, second, 8)
        + &row(at(2), back, 1, second, 8);
    assert_eq!(carried(&turns), [(Direction::Both, vec![(false, 16), (true, 12)])]);
    // -R; and a server's log in which it connects to its client.
    assert_eq!(carried(&row(at(2), back, 1, "0.0-2.0", 12)), std::slice::from_ref(&reverse));
    let log = one + "Client connecting to 10.0.0.1, TCP port 5001\n";
    assert_eq!(carried(&(log + &row(at(5), down, 2, "0.0-2.0", 12))), [forward, reverse]);
}

#[test]
fn a_test_that_failed_says_why() {
    let text =
        "$ iperf3 -c host -n 5M\niperf3: error - unable to connect to server: Connection refused\n";
    let error = tool_results::read(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("failed before its first interval: unable to connect"), "{error}");
}
