//! The text of other tools: real outputs, and any text.

use doctor::{PastedCounter, PastedReport, Target, is_sysctl, pasted, pasted_settings};
use proptest::prelude::{ProptestConfig, proptest};
use record::{Area, Verdict};
use units::{BitRate, Rtt};

/// From this project's own machines: `netstat -st` of net-tools 2.10, and `ss -tin` of
/// iproute2 6.1 during a transfer over 20 Mbit/s and 60 ms with 0.1 % loss.
const LINUX: &str = include_str!("pasted/netstat-linux.txt");
const SS: &str = include_str!("pasted/ss-tin.txt");
/// The same without loss, with a send buffer of 32 KiB.
const SS_SEND_BUFFER: &str = include_str!("pasted/ss-tin-sndbuf.txt");
/// The lines of a published output of macOS, with the totals that it leaves out.
const MACOS: &str = include_str!("pasted/netstat-macos.txt");

/// 1 Gbit/s over 100 ms.
fn target() -> Target {
    Target {
        rate: BitRate::from_bps(1_000_000_000),
        rate_from: String::new(),
        rtt: Some(Rtt::from_micros(100_000)),
        rtt_from: String::new(),
        streams: 1,
        mss: None,
    }
}

fn counter<'a>(report: &'a PastedReport, name: &str) -> &'a PastedCounter {
    let found = report.counters.iter().find(|one| one.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {report:#?}"))
}

#[test]
fn netstat_of_linux_has_shares_of_data_segments() {
    let report = pasted(LINUX).unwrap();
    assert_eq!(report.format, "netstat of Linux");
    let again = counter(&report, "Tcp.RetransSegs");
    let sent = counter(&report, "TcpExt.TCPOrigDataSent");
    assert_eq!(again.of.as_deref(), Some("TcpExt.TCPOrigDataSent"));
    let share = again.value as f64 / sent.value as f64;
    assert!((again.share.unwrap() - share).abs() < 1e-12 && share > 0.0);
    assert!(again.meaning.contains("retransmitted") && again.remedy.is_some(), "{again:?}");
    // A counter that net-tools prints by its kernel name.
    assert_eq!(counter(&report, "TcpExt.TCPLossProbes").meaning, "tail loss probes (TLP)");
    assert!(report.counters.iter().all(|one| !one.meaning.is_empty()), "{report:#?}");
    // Without the counter of data segments the segments sent count, ACKs included.
    let without = LINUX.replace("TCPOrigDataSent", "TCPUnknown");
    let report = pasted(&without).unwrap();
    assert_eq!(counter(&report, "Tcp.RetransSegs").of.as_deref(), Some("Tcp.OutSegs"));
}

#[test]
fn sections_keep_the_same_words_apart() {
    let text = "Udp:\n    100 packets received\n    7 packets to unknown port received\n\
                    3 receive buffer errors\nUdpLite:\n    9 packets received\nTcp:\n\
                    1 segment retransmitted\n    5 segments send out\n";
    let report = pasted(text).unwrap();
    assert_eq!(counter(&report, "Udp.InDatagrams").value, 100);
    assert_eq!(counter(&report, "Udp.RcvbufErrors").share, Some(0.03));
    // One segment, without the plural, and the older spelling of the total.
    assert_eq!(counter(&report, "Tcp.RetransSegs").share, Some(0.2));
}

#[test]
fn netstat_of_macos_explains_the_published_lines() {
    let report = pasted(MACOS).unwrap();
    assert_eq!(report.format, "netstat of macOS");
    let of = |name: &str| counter(&report, name);
    let flow = of("data packets sent after flow control");
    assert!(flow.value == 500 && flow.meaning.contains("interface's own queue"), "{flow:?}");
    // 3 570 597 of 7 141 194 in sequence.
    let order = of("out-of-order packets");
    assert!((order.share.unwrap() - 3_570_597.0 / 7_141_194.0).abs() < 1e-12, "{order:?}");
    let again = of("data packets retransmitted");
    assert!((again.share.unwrap() - 2_407.0 / 1_203_440.0).abs() < 1e-12, "{again:?}");
    assert!(of("bad resets").value == 41 && of("retransmit timeouts").value == 1);
    for name in ["challenge ACKs sent due to unexpected SYN", "packets received after close"] {
        assert!(!of(name).meaning.is_empty());
    }
    // Datagrams are not explained.
    assert_eq!(report.unread_lines, 1);
}

#[test]
fn ss_shows_what_limits_each_connection() {
    let report = pasted(SS).unwrap();
    assert_eq!((report.format.as_str(), report.connections.len()), ("ss -tin", 2));
    let data = &report.connections[0];
    assert_eq!((data.local.as_str(), data.peer.as_str()), ("10.0.0.1:54986", "10.0.0.2:5201"));
    assert_eq!(data.congestion.as_deref(), Some("cubic"));
    assert_eq!(
        (data.rtt_ms, data.min_rtt_ms, data.cwnd_segments),
        (Some(61.51), Some(60.0), Some(66))
    );
    // 66 x 1448 x 8 / 61.51 ms, and 4344 of 4 845 045 bytes.
    let rate = data.cwnd_rate_bps.unwrap().as_f64();
    assert!((rate / (66.0 * 1_448.0 * 8.0 / 0.061_51) - 1.0).abs() < 1e-6, "{rate}");
    assert!((data.retransmitted_share.unwrap() - 4_344.0 / 4_845_045.0).abs() < 1e-12);
    assert!(data.findings.iter().any(|text| text.contains("0.09 %") && text.contains("CUBIC")));
    assert_eq!(data.sndbuf_limited_share, Some(0.0));
    let control = &report.connections[1];
    assert!(control.is_app_limited && control.findings[0].starts_with("application-limited"));
    assert_eq!(counter(&report, "bytes_sent").value, 4_845_045 + 205);
}

#[test]
fn ss_names_the_send_buffer_and_a_standing_queue() {
    let report = pasted(SS_SEND_BUFFER).unwrap();
    let data = &report.connections[0];
    // 76 of 2608 ms.
    assert!((data.sndbuf_limited_share.unwrap() - 76.0 / 2_608.0).abs() < 1e-12);
    assert!(data.findings.iter().any(|text| text.contains("sndbuf-limited 2.9 %")), "{data:?}");
    // One line for each connection, as with -O, and rates with a prefix.
    let one = "ESTAB 0 0 [2001:db8::1]:443 [2001:db8::2]:50000 ts sack bbr rto:204 rtt:50/2 mss:1428 \
               cwnd:100 busy:1000ms rwnd_limited:930ms(93.0%) delivery_rate 12.5Mbps minrtt:20";
    let report = pasted(one).unwrap();
    let data = &report.connections[0];
    assert_eq!(data.local, "[2001:db8::1]:443");
    assert_eq!(data.congestion.as_deref(), Some("bbr"));
    assert_eq!(data.delivery_rate_bps.unwrap().bps(), 12_500_000);
    for found in ["rwnd-limited 93 %", "no window scaling", "2.5 times its minimum"] {
        assert!(data.findings.iter().any(|text| text.contains(found)), "{found}: {data:?}");
    }
}

#[test]
fn nstat_has_the_counters_of_netstat() {
    let text = "#kernel\nIpInReceives                    297748239          0.0\n\
                TcpInSegs                       1000               0.0\n\
                TcpOutSegs                      4000               0.0\n\
                TcpRetransSegs                  20                 0.0\n\
                TcpExtTCPOrigDataSent           2000               0.0\n\
                TcpExtTCPTimeouts               5                  0.0\n\
                TcpExtTCPKeepAlive              7                  0.0\n\
                UdpInDatagrams                  x                  0.0\n";
    let report = pasted(text).unwrap();
    assert_eq!(report.format, "nstat");
    let again = counter(&report, "Tcp.RetransSegs");
    assert_eq!((again.value, again.of.as_deref()), (20, Some("TcpExt.TCPOrigDataSent")));
    assert!((again.share.unwrap() - 0.01).abs() < 1e-12, "{again:?}");
    assert_eq!(counter(&report, "TcpExt.TCPTimeouts").share, Some(0.25));
    // The keepalives, the counters of IP, and a value that is no number.
    assert_eq!(report.unread_lines, 2, "{report:?}");
    assert!(pasted("#kernel\nTcpNothing 5 0.0\n").is_err());
}

#[test]
fn settings_of_a_text_are_checked_against_a_target() {
    let text = "kernel.osrelease = 6.1.0-18-amd64\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\n\
                net.ipv4.tcp_congestion_control = cubic\nnet.ipv4.tcp_wmem = 4096 16384 67108864\n";
    assert!(is_sysctl(text) && !is_sysctl(LINUX) && !is_sysctl(SS) && !is_sysctl(""));
    let report = pasted_settings(text, &target(), 0);
    let of = |id: &str| report.checks.iter().find(|one| one.id == id).unwrap();
    let read = of("net.ipv4.tcp_rmem");
    assert_eq!(read.verdict, Verdict::Fail);
    assert!(read.seen.contains("6291456"), "{read:?}");
    let line = read.command.as_ref().unwrap().to_string();
    assert_eq!(line, "sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 50331648'");
    assert_eq!(of("net.ipv4.tcp_wmem").verdict, Verdict::Pass);
    assert_eq!(of("net.ipv4.tcp_congestion_control").verdict, Verdict::Pass);
    let missing = of("net.ipv4.tcp_sack");
    assert_eq!((missing.verdict, missing.seen.as_str()), (Verdict::Unknown, "not in the text"));
    assert!(report.fail >= 1 && report.checks.iter().all(|one| one.area == Area::Settings));
    assert!(report.checks.iter().all(|one| !one.id.contains("device")), "{report:?}");
}

#[test]
fn text_in_no_format_is_one_line_with_what_is_accepted() {
    for (text, begins) in [
        ("", "the text is empty; accepted: netstat -s"),
        ("\n\n{\"intervals\":[]}\n", "begins with '{\"intervals\":[]}'"),
        ("TCP Statistics for IPv4\n\n  Active Opens = 5\n", "this is netstat output from Windows"),
        ("Tcp:\n", "begins with 'Tcp:'"),
        ("tcp:\n  nothing known 5\n", "begins with 'tcp:'"),
    ] {
        let error = pasted(text).unwrap_err().to_string();
        assert!(error.contains(begins) && !error.contains('\n'), "{error}");
    }
    let long = "x".repeat(100_000);
    assert!(pasted(&long).unwrap_err().to_string().len() < 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_read_without_a_panic(text in "(?s).{0,400}", cut in 0usize..2_000, with: u8) {
        let whole = [LINUX, MACOS, SS, SS_SEND_BUFFER][usize::from(with % 4)];
        let mut end = cut.min(whole.len());
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        let setting = format!("net.ipv4.tcp_rmem = {text}\n{text} = {text}\nTcpRetransSegs {cut} 0.0");
        for text in [setting, text.clone(), whole[..end].to_owned(), format!("{}{text}", &whole[..end])] {
            if is_sysctl(&text) {
                let report = pasted_settings(&text, &target(), 0);
                proptest::prop_assert!(serde_json::to_string(&report).is_ok());
            }
            if let Ok(report) = pasted(&text) {
                for one in &report.connections {
                    let shares =
                        [one.retransmitted_share, one.rwnd_limited_share, one.sndbuf_limited_share];
                    proptest::prop_assert!(shares.into_iter().flatten().all(|s| (0.0..=1.0).contains(&s)));
                }
                proptest::prop_assert!(serde_json::to_string(&report).is_ok());
            }
        }
    }

    #[test]
    fn any_numbers_are_read(cwnd: u64, mss: u64, rtt in "[0-9]{0,30}\\.?[0-9]{0,5}", sent: u64, again: u64) {
        let text = format!(
            "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic rto:204 rtt:{rtt}/1 minrtt:{rtt} mss:{mss} \
             cwnd:{cwnd} bytes_sent:{sent} bytes_retrans:{again} busy:{rtt}ms rwnd_limited:{again}ms(9%)"
        );
        let report = pasted(&text).unwrap();
        proptest::prop_assert_eq!(report.connections.len(), 1);
    }
}
