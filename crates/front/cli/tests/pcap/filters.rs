//! A table of display filters as people write them, in tshark and in longhaul: whether each is
//! accepted, and which packets of a made-up capture pass. `docs/reference/display-filters.md` has
//! the table; `LONGHAUL_BLESS=1` writes it there.

use crate::conversation;
use crate::frames::pcap_every;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Filters by what they are about.
const FILTERS: &[(&str, &[&str])] = &[
    (
        "Protocols",
        &[
            "tcp",
            "udp",
            "ip",
            "ipv6",
            "arp",
            "icmp",
            "icmpv6",
            "dns",
            "http",
            "tls",
            "ssl",
            "ssh",
            "ntp",
            "dhcp",
            "bootp",
            "mdns",
            "quic",
            "lldp",
            "vlan",
            "eth",
            "frame",
            "data",
            "syslog",
            "tcp or udp",
            "!arp and !dns",
            "not (tcp.port == 80 or tcp.port == 443)",
        ],
    ),
    (
        "Addresses",
        &[
            "ip.addr == 192.0.2.1",
            "ip.src == 192.0.2.1 && ip.dst == 198.51.100.7",
            "ip.addr == 192.0.2.0/24",
            "!(ip.addr == 192.0.2.1)",
            "ip.addr != 192.0.2.1",
            "ip.dst in {198.51.100.0/24}",
            "ip.src == 192.0.2.1 or ip.src == 198.51.100.7",
            "ip.host == \"192.0.2.1\"",
            "ip.host matches \"^198\\\\.51\"",
            "ip.src_host contains \"192.0\"",
            "ip.src[0:2] == c0:00",
            "ipv6.addr == 2001:db8::1",
            "ipv6.src == 2001:db8::/32",
            "eth.addr == 02:00:00:00:00:01",
            "eth.addr == 02-00-00-00-00-01",
            "eth.src[0:3] == 02:00:00",
            "eth.dst == ff:ff:ff:ff:ff:ff",
            "eth.dst[0] & 1",
            "eth.dst.ig == 1",
            "eth.type == 0x0806",
            "eth.type == IPv4",
            "arp.opcode == 1",
            "arp.opcode == request",
            "arp.isgratuitous == 1",
            "arp.src.proto_ipv4 == 192.0.2.1",
        ],
    ),
    (
        "IP",
        &[
            "ip.proto == 6",
            "ip.proto == TCP",
            "ip.proto == \"UDP\"",
            "ip.ttl < 10",
            "ip.len > 100",
            "ip.id == 0",
            "ip.flags.df == 1",
            "ip.flags.mf == 1 or ip.frag_offset > 0",
            "ip.dsfield.dscp == 46",
            "ip.dsfield.ecn == 3",
            "ip.checksum.status == 0",
            "ip.checksum.status == \"Bad\"",
            "ip.version == 4",
            "ip.hdr_len == 20",
            "ip[9] == 6",
            "icmp.type == 8",
            "icmp.type == 3 && icmp.code == 4",
            "ipv6.nxt == 17",
            "ip.geoip.country == \"US\"",
        ],
    ),
    (
        "TCP header",
        &[
            "tcp.port == 443",
            "tcp.port in {80, 443, 8000..8080}",
            "tcp.srcport == 80 and tcp.len > 0",
            "tcp.dstport != 80",
            "tcp.flags.syn == 1 and tcp.flags.ack == 0",
            "tcp.flags.syn == 1 && tcp.flags.ack == 1",
            "tcp.flags.reset == 1",
            "tcp.flags.fin == True",
            "tcp.flags == 0x012",
            "tcp.flags & 0x02",
            "tcp.flags.str contains \"S\"",
            "tcp.flags.str matches \"A.*F$\"",
            "tcp.flags.ecn == 1",
            "tcp.window_size_value < 1000",
            "tcp.window_size < 70000",
            "tcp.len > 0",
            "tcp.seq == 1",
            "tcp.ack == 1",
            "tcp.hdr_len > 20",
            "tcp.checksum.status == Bad",
            "tcp.checksum.status == 1",
            "tcp.urgent_pointer > 0",
            "tcp.options",
            "tcp.options.mss_val == 1460",
            "tcp.options.wscale.shift >= 7",
            "tcp.options.timestamp",
            "tcp.options.timestamp.tsval > 1000",
            "tcp.options.timestamp.tsecr == 0",
            "tcp.options.sack",
            "tcp.options.sack_le == 1001",
            "tcp.options.sack.count == 1",
            "tcp.options.sack_perm",
            "tcp.option_kind == 8",
            "tcp.option_len == 10",
            "tcp[13] == 0x12",
            "tcp[0:2] == 9c:40",
            "tcp.payload[0:3] == \"GET\"",
            "tcp.payload contains \"Host\"",
            "tcp contains \"HTTP/1.1\"",
            "tcp.payload matches \"user-agent: *curl\"",
        ],
    ),
    (
        "TCP streams and analysis",
        &[
            "tcp.stream == 0",
            "tcp.stream eq 1 and tcp.len > 0",
            "tcp.completeness == 7",
            "tcp.connection.syn",
            "tcp.connection.synack",
            "tcp.connection.fin",
            "tcp.connection.rst",
            "tcp.analysis.flags",
            "tcp.analysis.flags && !tcp.analysis.window_update",
            "tcp.analysis.retransmission",
            "tcp.analysis.fast_retransmission",
            "tcp.analysis.duplicate_ack",
            "tcp.analysis.duplicate_ack_num > 1",
            "tcp.analysis.lost_segment",
            "tcp.analysis.out_of_order",
            "tcp.analysis.zero_window",
            "tcp.analysis.ack_rtt > 0.5",
            "tcp.analysis.initial_rtt",
            "tcp.analysis.bytes_in_flight > 1000",
            "tcp.analysis.push_bytes_sent > 100",
            "tcp.analysis.rto",
            "tcp.time_delta > 1.5",
            "tcp.time_relative < 2",
            "tcp.segment",
            "tcp.segments",
            "tcp.reassembled.length > 1000",
        ],
    ),
    (
        "Frames",
        &[
            "frame.number == 3",
            "frame.number > 2 && frame.number <= 5",
            "frame.len > 200",
            "frame.len lt 60",
            "frame.time >= \"2023-11-14 22:13:25\"",
            "frame.time > \"Nov 14, 2023 22:13:30\" && frame.time < \"Nov 14, 2023 22:13:35\"",
            "frame.time_epoch > 1700000010",
            "frame.time_relative > 3 and frame.time_relative < 6",
            "frame.time_delta > 0.5",
            "frame.time_delta_displayed > 1.5",
            "frame.protocols contains \"dns\"",
            "frame.protocols == \"eth:ethertype:arp\"",
            "frame contains \"example\"",
            "frame contains 47:45:54",
            "frame matches \"(?i)EXAMPLE\\\\.(com|org)\"",
            "frame[0:4] == 02:00:00:00",
            "frame[-4:] == 00:00:00:00",
            "frame.marked == 1",
            "frame.coloring_rule.name == \"Bad TCP\"",
            "_ws.expert",
            "_ws.expert.severity == Warning",
            "_ws.expert.severity >= 0x400000",
            "_ws.expert.group == \"Sequence\"",
            "_ws.expert.message contains \"reset\"",
            "_ws.malformed",
        ],
    ),
    (
        "Applications",
        &[
            "udp.port == 53",
            "udp.length > 100",
            "udp.srcport == 53 || udp.dstport == 53",
            "udp[8:2] == 12:34",
            "udp.checksum.status == 1",
            "dns.flags.response == 0",
            "dns.flags.response == 1 && dns.flags.rcode != 0",
            "dns.qry.name == \"www.example.com\"",
            "dns.qry.name contains \"example\"",
            "dns.qry.name matches \"^www\"",
            "dns.qry.type == 1",
            "dns.a == 198.51.100.7",
            "dns.count.answers > 0",
            "http.request",
            "http.response",
            "http.request.method == \"GET\"",
            "http.request.method in {\"GET\", \"POST\"}",
            "http.request.uri contains \"index\"",
            "http.host == \"www.example.com\"",
            "http.host matches \"example\\\\.(com|org)$\"",
            "http.user_agent contains \"curl\"",
            "http.response.code == 404",
            "http.response.code >= 400 && http.response.code < 500",
            "http.content_type contains \"html\"",
            "http.request.full_uri",
            "tls.handshake.type == 1",
            "tls.handshake.extensions_server_name contains \"example\"",
            "ssl.handshake.type == 1",
            "tls.record.content_type == 22",
            "tls.alert_message",
            "tls.app_data",
            "dhcp.option.dhcp == 1",
            "dhcp.hw.mac_addr == 02:00:00:00:00:01",
            "ntp.stratum == 0",
            "ssh.protocol contains \"OpenSSH\"",
            "ftp.request.command == \"USER\"",
            "ftp.response.code == 331",
            "sip.Method == \"INVITE\"",
            "sip.Status-Code == 180",
            "http2",
            "smb2",
        ],
    ),
    (
        "Operators and functions",
        &[
            "len(tcp.payload) > 50",
            "len(dns.qry.name) == 15",
            "count(ip.addr) > 2",
            "count(tcp.options.sack_le) == 1",
            "lower(http.host) == \"www.example.com\"",
            "upper(http.request.method) == \"GET\"",
            "string(tcp.port) matches \"^4\"",
            "max(tcp.srcport, tcp.dstport) > 50000",
            "any tcp.port > 1024",
            "all tcp.port > 20",
            "tcp.port === 80",
            "tcp.port !== 80",
            "tcp.srcport > tcp.dstport",
            "tcp.dstport ge 40000 and tcp.dstport le 40010",
            "ip.addr#1 == 192.0.2.1",
            "not tcp.port in {80, 443}",
            "tcp.flags == 0b10",
            "tcp.payload[0] == 'G'",
            "eth.src[0:3,5] == 02:00:00:01",
            "tcp.port == http",
            "tcp.flags.syn == yes",
            "ip.addr == 192.0.2.256",
            "tcp.port == 80 and",
            "tcp.port = 80",
            "tcp.srcport + 1 == 81",
            "tcp && !tcp.analysis.flags xor udp",
        ],
    ),
];

/// Filters that are refused by us alone, and why.
const REFUSED_HERE: &[(&str, &str)] = &[
    ("tcp.segment", "application data is not reassembled"),
    ("tcp.segments", "likewise"),
    ("tcp.reassembled.length > 1000", "likewise"),
    ("ip.geoip.country == \"US\"", "needs a database of locations"),
    ("frame.coloring_rule.name == \"Bad TCP\"", "packets have no colouring rules"),
    ("http2", "not dissected"),
    ("tcp.srcport + 1 == 81", "no arithmetic"),
];

/// Filters whose packets differ, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("data", "a retransmitted payload is data here"),
    ("udp[8:2] == 12:34", "a slice of a protocol reaches into its payload"),
];

/// Preferences of tshark for filters of a checksum's status: they are verified as we do.
const VERIFYING: [&str; 6] = [
    "-o",
    "ip.check_checksum:TRUE",
    "-o",
    "tcp.check_checksum:TRUE",
    "-o",
    "udp.check_checksum:TRUE",
];

fn all() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().flat_map(|(_, filters)| filters.iter().copied())
}

/// The packets that pass; `None` if the filter is refused.
type Verdict = Option<Vec<usize>>;

fn tshark(path: &Path) -> Command {
    let mut command = Command::new("tshark");
    command.env("TZ", "UTC").args(["-n", "-r"]).arg(path);
    command
}

/// One filter in a run of its own.
fn its_verdict(path: &Path, filter: &str) -> Verdict {
    let mut command = tshark(path);
    let output = command.args(["-T", "fields", "-e", "frame.number", "-Y", filter]).output();
    numbers(&output.unwrap())
}

fn numbers(output: &std::process::Output) -> Verdict {
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
    let numbers = numbers.filter(|number| *number <= conversation::frames().len());
    output.status.success().then(|| numbers.collect())
}

fn our_verdict(path: &Path, filter: &str) -> (Verdict, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(["pcap", "packets", "--rules", "wireshark-4.0", "-e", "frame.number"]).arg(path);
    let output = command.arg(filter).output().unwrap();
    (numbers(&output), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Many filters in one run, as columns of a table with a row for each second, which is one packet.
/// Those with a comma, which separates them, and those that depend on what was shown before do not
/// go there.
fn together(
    path: &Path,
    preferences: &[&str],
    filters: &[&'static str],
) -> BTreeMap<&'static str, Verdict> {
    let mut command = tshark(path);
    command.args(preferences);
    let statistics = format!("io,stat,1,{}", filters.join(","));
    let output = command.args(["-q", "-z", &statistics]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: BTreeMap<&str, Vec<usize>> =
        filters.iter().map(|filter| (*filter, Vec::new())).collect();
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().filter(|line| line.contains("<>"));
    let mut count = 0;
    for (second, row) in rows.enumerate() {
        let cells: Vec<&str> = row.split('|').map(str::trim).filter(|it| !it.is_empty()).collect();
        // The interval, then frames and bytes of each.
        let frames = cells.iter().skip(1).step_by(2);
        assert_eq!(frames.len(), filters.len(), "{row}");
        for (filter, frames) in filters.iter().zip(frames) {
            if *frames != "0" {
                found.get_mut(filter).unwrap().push(second + 1);
            }
        }
        count += 1;
    }
    assert!(count > 20, "{text}");
    found.into_iter().map(|(filter, numbers)| (filter, Some(numbers))).collect()
}

/// tshark's verdicts: a run takes a third of a second, so most filters share one.
fn its_verdicts(path: &Path) -> BTreeMap<&'static str, Verdict> {
    let (alone, shared): (Vec<&str>, Vec<&str>) = all().partition(|filter| {
        filter.contains(',') || filter.contains("displayed") || REFUSED_THERE.contains(filter)
    });
    let (status, shared): (Vec<&str>, Vec<&str>) =
        shared.into_iter().partition(|filter| filter.contains("checksum.status"));
    let mut found = together(path, &[], &shared);
    found.extend(together(path, &VERIFYING, &status));
    let run = |filters: &[&'static str]| -> Vec<(&'static str, Verdict)> {
        filters.iter().map(|filter| (*filter, its_verdict(path, filter))).collect()
    };
    let (first, second) = alone.split_at(alone.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(second));
        found.extend(run(first));
        found.extend(other.join().unwrap());
    });
    found
}

/// The section of the page that has the table.
const HEADING: &str = "## Filters beside tshark 4.0\n";

/// The page with this table in its section.
fn page_with(page: &str, table: &str) -> String {
    let (before, rest) = page.split_once(HEADING).unwrap();
    let after = rest.find("\n## ").map_or("", |at| &rest[at..]);
    format!("{before}{HEADING}{table}{after}")
}

pub(crate) fn filters_as_people_write_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversation.pcap");
    // The statistics of tshark do not show the last interval: something follows the frames.
    let mut frames = conversation::frames();
    frames.push(frames[frames.len() - 1].clone());
    std::fs::write(&path, pcap_every(1000, 1, &frames)).unwrap();
    let its = its_verdicts(&path);
    let (mut wrong, mut refused, mut passed) = (Vec::new(), Vec::new(), 0);
    let mut table = String::from(
        "\nFor each filter: whether each program accepts it, whether it selects the same packets\nof a synthetic capture, and how many.\n",
    );
    for (title, filters) in FILTERS {
        table += &format!(
            "\n### {title}\n\n| filter | tshark 4.0 | longhaul | packets |\n|---|---|---|---|\n"
        );
        for filter in *filters {
            let (ours, error) = our_verdict(&path, filter);
            let its = &its[filter];
            passed += usize::from(ours.as_ref().is_some_and(|numbers| !numbers.is_empty()));
            let reason = |list: &[(&str, &'static str)]| {
                list.iter().find(|(its, _)| its == filter).map(|(_, reason)| *reason)
            };
            let verdict = match (its, &ours) {
                (Some(a), Some(b)) if a == b => "the same packets".to_owned(),
                (Some(a), Some(b)) => {
                    let known = reason(DIFFERENT);
                    if known.is_none() {
                        wrong.push(format!("{filter}: tshark {a:?}, longhaul {b:?}"));
                    }
                    format!("other packets: {}", known.unwrap_or_default())
                }
                (Some(a), None) => {
                    refused.push(*filter);
                    let known = reason(REFUSED_HERE);
                    if known.is_none() {
                        wrong.push(format!("{filter}: tshark {a:?}, longhaul {error}"));
                    }
                    format!("refused: {}", known.unwrap_or_default())
                }
                (None, Some(_)) => "accepted".to_owned(),
                (None, None) => "refused".to_owned(),
            };
            let its = if its.is_some() { "accepted" } else { "refused" };
            let packets = ours.map_or_else(String::new, |numbers| numbers.len().to_string());
            let filter = filter.replace('|', "\\|");
            table += &format!("| `{filter}` | {its} | {verdict} | {packets} |\n");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all().count() >= 120 && passed >= 100, "{} filters, {passed} pass", all().count());
    assert!(refused.len() <= 10, "refused by us alone: {refused:?}");
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/display-filters.md");
    let before = std::fs::read_to_string(&page).unwrap();
    let after = page_with(&before, &table);
    if std::env::var_os("LONGHAUL_BLESS").is_some() {
        std::fs::write(&page, after).unwrap();
    } else {
        assert!(before == after, "the table is out of date: LONGHAUL_BLESS=1 writes it");
    }
}

/// Filters that tshark 4.0 refuses.
const REFUSED_THERE: [&str; 7] = [
    "tcp.flags.ecn == 1",
    "tcp.port == http",
    "tcp.flags.syn == yes",
    "ip.addr == 192.0.2.256",
    "tcp.port == 80 and",
    "tcp.port = 80",
    "tcp && !tcp.analysis.flags xor udp",
];
