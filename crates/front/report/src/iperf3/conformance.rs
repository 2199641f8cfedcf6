//! Output of iperf3 3.21 compared with ours for the same figures.

mod documents;

use super::facts::{Asked, End, Head, Protocol, Row, Side, Stream, socket};
use super::number::Format;
use super::totals::Totals;
use super::{summary, text};
use iperf3_proto::{Results, StreamResult};

fn head(side: Side, protocol: Protocol, streams: u32, reverse: bool, bidir: bool) -> Head {
    let count = if bidir { 2 * streams } else { streams };
    let first_sends = (side == Side::Client) != reverse;
    Head {
        side,
        system: "Linux".to_owned(),
        peer_host: "127.0.0.1".to_owned(),
        peer_port: 5921,
        unix_s: 1_795_265_080.924,
        cookie: "ab2lvn2f574roshm44vhrw3bgheukw7dh5jr".to_owned(),
        control_mss: 32_768,
        send_buffer: 16_384,
        receive_buffer: 131_072,
        streams: (0..count)
            .map(|index| Stream {
                id: iperf3_proto::stream_id(index),
                socket: socket(index, side, protocol),
                sending: (index < streams) == first_sends,
                local_host: "127.0.0.1".to_owned(),
                local_port: 52_192,
                remote_host: "127.0.0.1".to_owned(),
                remote_port: 5921,
            })
            .collect(),
        asked: Asked {
            protocol,
            streams,
            block: 131_072,
            duration: 2,
            reverse,
            bidir,
            ..Asked::default()
        },
        interval_s: 1.0,
        title: None,
        extra_data: None,
        file: None,
    }
}

const MIB: u64 = 1 << 20;

fn row(id: u32, sending: bool, to_s: f64, bytes: u64) -> Row {
    Row {
        id,
        sending,
        from_s: to_s - 1.0,
        to_s,
        bytes,
        cwnd: 916_762,
        retransmits: 6,
        ..Row::default()
    }
}

fn result(id: i64, bytes: u64, seconds: f64) -> StreamResult {
    StreamResult {
        id,
        bytes: i64::try_from(bytes).unwrap(),
        end_time: Some(seconds),
        ..StreamResult::default()
    }
}

fn end_of(head: &Head, rows: &[Row], ours: Vec<StreamResult>, theirs: Vec<StreamResult>) -> End {
    let mut totals = Totals::default();
    rows.iter().for_each(|row| totals.add(row));
    let results = |streams| Results { streams, ..Results::default() };
    totals.end(
        head,
        Some(&results(ours)),
        (head.side == Side::Client).then(|| results(theirs)).as_ref(),
    )
}

#[test]
fn a_tcp_sender() {
    let head = head(Side::Client, Protocol::Tcp, 1, false, false);
    assert_eq!(
        text::head(&head, false),
        [
            "Connecting to host 127.0.0.1, port 5921",
            "[  5] local 127.0.0.1 port 52192 connected to 127.0.0.1 port 5921"
        ]
    );
    let mut rows = vec![row(1, true, 1.0, 424 * MIB)];
    rows[0].retransmits = 16;
    rows[0].cwnd = 1_572_864;
    assert_eq!(
        text::rows(&head, &rows, Format::Adaptive, true),
        [
            "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[  5]   0.00-1.00   sec   424 MBytes  3.56 Gbits/sec   16   1.50 MBytes       "
        ]
    );
    rows[0].omitted = true;
    assert_eq!(
        text::rows(&head, &rows, Format::Adaptive, false),
        ["[  5]   0.00-1.00   sec   424 MBytes  3.56 Gbits/sec   16   1.50 MBytes       (omitted)"]
    );
    rows[0].omitted = false;
    let end = end_of(
        &head,
        &rows,
        vec![StreamResult { retransmits: 22, ..result(1, 939 * MIB, 2.02) }],
        vec![result(1, 938 * MIB, 2.02)],
    );
    assert_eq!(
        summary::summary(&head, &end, Format::Adaptive, false),
        [
            "- - - - - - - - - - - - - - - - - - - - - - - - -",
            "[ ID] Interval           Transfer     Bitrate         Retr",
            "[  5]   0.00-2.02   sec   939 MBytes  3.90 Gbits/sec   22            sender",
            "[  5]   0.00-2.02   sec   938 MBytes  3.90 Gbits/sec                  receiver"
        ]
    );
    assert_eq!(summary::done(), ["", "iperf Done."]);
}

#[test]
fn a_tcp_server_that_receives() {
    let head = head(Side::Server, Protocol::Tcp, 2, false, false);
    let rows = [row(1, false, 1.0, 381 * MIB), row(3, false, 1.0, 347 * MIB)];
    assert_eq!(
        text::listening(5201, 1).join("\n"),
        "-----------------------------------------------------------\n\
         Server listening on 5201 (test #1)\n\
         -----------------------------------------------------------"
    );
    assert_eq!(
        text::rows(&head, &rows, Format::Adaptive, true),
        [
            "[ ID] Interval           Transfer     Bitrate",
            "[  5]   0.00-1.00   sec   381 MBytes  3.20 Gbits/sec                  ",
            "[  8]   0.00-1.00   sec   347 MBytes  2.91 Gbits/sec                  ",
            "[SUM]   0.00-1.00   sec   728 MBytes  6.11 Gbits/sec                  "
        ]
    );
    let end =
        end_of(&head, &rows, vec![result(1, 714 * MIB, 2.01), result(3, 681 * MIB, 2.01)], vec![]);
    assert_eq!(
        summary::summary(&head, &end, Format::Adaptive, false)[1..],
        [
            "[ ID] Interval           Transfer     Bitrate",
            "[  5]   0.00-2.01   sec   714 MBytes  2.98 Gbits/sec                  receiver",
            "[  8]   0.00-2.01   sec   681 MBytes  2.84 Gbits/sec                  receiver",
            "[SUM]   0.00-2.01   sec  1.36 GBytes  5.82 Gbits/sec                  receiver"
        ]
    );
}

#[test]
fn bidirectional_streams_have_roles() {
    let head = head(Side::Client, Protocol::Tcp, 2, false, true);
    assert_eq!(head.streams.iter().map(|stream| stream.socket).collect::<Vec<_>>(), [5, 7, 9, 12]);
    // Rows in any order: the sender's are printed first.
    let rows = [
        row(4, false, 1.0, 250 * MIB),
        row(5, false, 1.0, 257 * MIB),
        row(1, true, 1.0, 155 * MIB),
        row(3, true, 1.0, 145 * MIB),
    ];
    assert_eq!(
        text::rows(&head, &rows, Format::Adaptive, true),
        [
            "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd",
            "[  5][TX-C]   0.00-1.00   sec   155 MBytes  1.30 Gbits/sec    6    895 KBytes       ",
            "[  7][TX-C]   0.00-1.00   sec   145 MBytes  1.22 Gbits/sec    6    895 KBytes       ",
            "[SUM][TX-C]   0.00-1.00   sec   300 MBytes  2.52 Gbits/sec   12             ",
            "[  9][RX-C]   0.00-1.00   sec   250 MBytes  2.10 Gbits/sec                  ",
            "[ 12][RX-C]   0.00-1.00   sec   257 MBytes  2.16 Gbits/sec                  ",
            "[SUM][RX-C]   0.00-1.00   sec   507 MBytes  4.25 Gbits/sec                  "
        ]
    );
}

#[test]
fn bidirectional_datagrams() {
    let head = head(Side::Server, Protocol::Udp, 1, false, true);
    let datagrams = |row| Row { packets: 5, jitter_ms: 0.481, ..row };
    let rows = [datagrams(row(1, false, 1.0, 163_840)), datagrams(row(3, true, 1.0, 163_840))];
    assert_eq!(
        text::rows(&head, &rows, Format::Adaptive, true),
        [
            "[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
            "[  5][RX-S]   0.00-1.00   sec   160 KBytes  1.31 Mbits/sec  0.481 ms  0/5 (0%)  ",
            "[  6][TX-S]   0.00-1.00   sec   160 KBytes  1.31 Mbits/sec            5  "
        ]
    );
    let end = end_of(&head, &rows, vec![result(1, 163_840, 1.0), result(3, 163_840, 1.0)], vec![]);
    let lines = summary::summary(&head, &end, Format::Adaptive, true);
    assert!(lines.contains(&"[  5] (sender statistics not available)".to_owned()), "{lines:?}");
    assert!(lines.contains(&"[  6] (receiver statistics not available)".to_owned()), "{lines:?}");
}

#[test]
fn lost_datagrams() {
    let head = head(Side::Client, Protocol::Udp, 1, false, false);
    let sender = StreamResult { packets: 900, ..result(1, 9 * 131_072, 2.0) };
    let receiver = StreamResult {
        packets: 900,
        errors: 225,
        jitter: 0.000_068,
        ..result(1, 9 * 131_072, 2.0)
    };
    let rows = [Row { packets: 5, ..row(1, true, 1.0, 163_840) }];
    assert_eq!(
        text::rows(&head, &rows, Format::Adaptive, true),
        [
            "[ ID] Interval           Transfer     Bitrate         Total Datagrams",
            "[  5]   0.00-1.00   sec   160 KBytes  1.31 Mbits/sec  5  "
        ]
    );
    let end = end_of(&head, &rows, vec![sender], vec![receiver.clone()]);
    assert_eq!(
        summary::summary(&head, &end, Format::Bits(1), false)[2..],
        [
            "[  5]   0.00-2.00   sec  1.12 MBytes  4719 Kbits/sec  0.000 ms  0/900 (0%)  sender",
            "[  5]   0.00-2.00   sec  1.12 MBytes  4719 Kbits/sec  0.068 ms  225/900 (25%)  receiver"
        ]
    );
    // A peer before 3.14 does not report the losses of the omitted part.
    let mut omits = head;
    omits.asked.omit = 1;
    let end = end_of(&omits, &rows, vec![], vec![receiver]);
    let lines = summary::summary(&omits, &end, Format::Bits(1), false);
    assert!(
        lines.iter().any(|line| line.contains("  0.068 ms  Unknown/900  receiver")),
        "{lines:?}"
    );
}

#[test]
fn verbose_prints_parameters_and_cpu_utilization() {
    let reverse = head(Side::Client, Protocol::Tcp, 1, true, false);
    assert_eq!(
        text::head(&reverse, true),
        [
            "Control connection MSS 32768",
            "Time: Sat, 21 Nov 2026 12:44:40 GMT",
            "Connecting to host 127.0.0.1, port 5921",
            "Reverse mode, remote host 127.0.0.1 is sending",
            "      Cookie: ab2lvn2f574roshm44vhrw3bgheukw7dh5jr",
            "      TCP MSS: 32768 (default)",
            "[  5] local 127.0.0.1 port 52192 connected to 127.0.0.1 port 5921",
            "Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, \
             2 second test, tos 0"
        ]
    );
    let head = head(Side::Client, Protocol::Tcp, 1, false, false);
    let mut totals = Totals::default();
    totals.add(&row(1, true, 1.0, 964 * MIB));
    let end = |total, user, system| Results {
        cpu_util_total: total,
        cpu_util_user: user,
        cpu_util_system: system,
        congestion_used: Some("bbr".to_owned()),
        ..Results::default()
    };
    let end = totals.end(&head, Some(&end(27.4, 0.7, 26.7)), Some(&end(28.1, 0.6, 27.5)));
    assert_eq!(
        summary::summary(&head, &end, Format::Adaptive, true)[5..],
        [
            "CPU Utilization: local/sender 27.4% (0.7%u/26.7%s), remote/receiver 28.1% (0.6%u/27.5%s)",
            "snd_tcp_congestion bbr",
            "rcv_tcp_congestion bbr"
        ]
    );
}
