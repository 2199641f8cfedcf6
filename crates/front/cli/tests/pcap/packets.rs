//! The values of every field, and which packets pass a display filter, in tshark and in
//! longhaul.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Fields that tshark shows in another form, or not in every file: the name, and why.
const NOT_COMPARED: [(&str, &str); 16] = [
    ("iperf3.cookie", "tshark has no such field"),
    ("iperf3.state", "likewise"),
    ("iperf3.length", "likewise"),
    ("tcp.flags.ace", "tshark shows it where AccECN is in use"),
    ("frame.interface_id", "files of pcap have no interfaces"),
    ("tcp.options.sack_perm", "tshark has the option's bytes"),
    ("tcp.analysis.duplicate_ack", "tshark has it twice"),
    ("data.data", "tshark has none in what it takes for a retransmission"),
    ("data.len", "likewise"),
    ("ip.reassembled.length", "compared by the flows"),
    ("ip.checksum.status", "tshark verifies none unless it is told to"),
    ("tcp.checksum.status", "likewise"),
    ("udp.checksum.status", "likewise"),
    ("_ws.expert.message", "tshark has those of every dissector"),
    ("_ws.expert.severity", "likewise"),
    ("_ws.expert.group", "likewise"),
];

/// Filters: the first twelve for frames of every kind, then those for a transfer, and from
/// the 21st on for datagrams.
const FILTERS: [&str; 24] = [
    "tcp.flags.syn",
    "tcp.flags & 0x12 == 0x12",
    "tcp.port != 5201",
    "any tcp.port != 5201",
    "all tcp.port > 5201",
    "tcp.port in {5201, 80..90} && !(tcp.len == 0)",
    "tcp.srcport > tcp.dstport",
    "not tcp or udp and not ip",
    "tcp contains \"ab\" || udp contains 61:62",
    "ip.addr == 10.0.0.0/31 and ip.src != 10.0.0.2",
    "ip.addr in {10.0.0.2 .. 10.0.0.9}",
    "frame[2:2] == 00:54 || eth.dst[4-5] == 00:02",
    "tcp[13] & 2",
    "frame.time_relative > 0.5 && frame.time_relative <= 0.75",
    "tcp.analysis.flags && !tcp.analysis.window_update",
    "tcp.analysis.ack_rtt > 0.0202",
    "tcp.analysis.bytes_in_flight > 20000",
    "tcp.analysis.duplicate_ack_num >= 2",
    "tcp.options.sack_re > 100 && tcp.options.sack.count == 1",
    "tcp.window_size_scalefactor > 1 and tcp.window_size < 65536",
    "tcp.stream == 1 and tcp.time_delta > 0.001",
    "ip.flags.mf == 1 or ip.frag_offset > 0",
    "icmp.type == 8 or udp.length > 2000",
    "frame.comment contains \"lost\"",
];

fn lines(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn longhaul(path: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(["pcap", "packets", "--rules", "wireshark-4.0"]).arg(path);
    command
}

/// Packets that pass in one of the two programs alone, for each of some filters, and how many
/// filters passed any packet. A run of tshark takes a third of a second, so each capture gets
/// those that decide something in it.
pub(crate) fn differing_filters(path: &Path, which: Range<usize>) -> (Vec<String>, usize) {
    let (mut wrong, mut passed) = (Vec::new(), 0);
    for filter in FILTERS[which].iter().copied() {
        let mut tshark = Command::new("tshark");
        tshark.args(["-n", "-r"]).arg(path).args(["-T", "fields", "-e", "frame.number"]);
        let its = lines(tshark.args(["-Y", filter]));
        let ours = lines(longhaul(path).args(["-e", "frame.number", filter]));
        let ours = &ours[1..];
        passed += usize::from(!ours.is_empty());
        if its != ours {
            let only = |a: &[String], b: &[String]| {
                a.iter().filter(|number| !b.contains(number)).take(5).cloned().collect::<Vec<_>>()
            };
            wrong.push(format!(
                "{filter}: {} and {} packets; only tshark {:?}, only longhaul {:?}",
                its.len(),
                ours.len(),
                only(&its, ours),
                only(ours, &its)
            ));
        }
    }
    (wrong, passed)
}

/// Every value of every field that differs.
pub(crate) fn differing_values(path: &Path) -> Vec<String> {
    let fields =
        lines(Command::new(env!("CARGO_BIN_EXE_longhaul")).args(["pcap", "packets", "--fields"]));
    let is_field = |line: &&String| !line.contains(" protocol ");
    let names = fields.iter().filter(is_field).filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> =
        names.filter(|name| NOT_COMPARED.iter().all(|(its, _)| its != name)).collect();
    assert!(names.len() > 100, "{names:?}");
    let mut tshark = Command::new("tshark");
    tshark.env("TZ", "UTC").args(["-n", "-r"]).arg(path);
    tshark.args(["-T", "fields", "-E", "separator=/t"]);
    tshark.args(["-E", "aggregator=;", "-o", "tcp.desegment_tcp_streams:FALSE"]);
    // Protocols that are not dissected here.
    tshark.args(["--disable-protocol", "ipx"]);
    let mut ours = longhaul(path);
    for name in &names {
        tshark.args(["-e", name]);
        ours.args(["-e", name]);
    }
    let (its, ours) = (lines(&mut tshark), lines(&mut ours));
    let mut wrong = Vec::new();
    if its.len() + 1 != ours.len() {
        wrong.push(format!("{} packets and {}", its.len(), ours.len() - 1));
    }
    for (number, (its, ours)) in (1..).zip(its.iter().zip(&ours[1..])) {
        for ((name, its), ours) in names.iter().zip(its.split('\t')).zip(cells(ours)) {
            // Of what repeats or reorders bytes, tshark does not always show data.
            let known =
                |text: &str| text.replace(":tcp:data", ":tcp").replace(":tcp:iperf3", ":tcp");
            let is_known = *name == "frame.protocols" && known(its) == known(&ours);
            if !is_same(its, &ours) && !is_known {
                wrong.push(format!("packet {number}, {name}: tshark {its:?}, we {ours:?}"));
            }
        }
    }
    wrong.truncate(20);
    wrong
}

/// The cells of a line of CSV; what has commas is in quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// Whether two lists of values say the same: numbers in any base, long bytes as far as we
/// show them.
fn is_same(its: &str, ours: &str) -> bool {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let (its, ours): (Vec<&str>, Vec<&str>) = (its.split(';').collect(), ours.split(';').collect());
    its.len() == ours.len()
        && its.iter().zip(ours).all(|(its, ours)| {
            let cut = ours.split_once("...").map(|(start, _)| start);
            // Seconds of BPDUs, of which tshark writes as many decimals as are needed.
            let trimmed = ours.trim_end_matches('0').trim_end_matches('.');
            *its == ours
                || (ours.contains('.') && *its == trimmed)
                || number(its).is_some_and(|number_its| number(ours) == Some(number_its))
                || cut.is_some_and(|start| its.starts_with(start))
        })
}

/// The last column of TCP packets that differs, as far as both have it.
pub(crate) fn differing_info(path: &Path) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r"]).arg(path).args(["-Y", "tcp || udp || icmp || arp"]);
    tshark.args(["-o", "tcp.desegment_tcp_streams:FALSE", "-T", "fields", "-E", "separator=/t"]);
    tshark.args(["-e", "frame.number", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"]);
    let its = lines(&mut tshark);
    let ours = lines(longhaul(path).args(["--json", "tcp || udp || icmp || arp"]));
    assert_eq!(its.len(), ours.len());
    let mut wrong = Vec::new();
    for (its, ours) in its.iter().zip(&ours) {
        let ours: serde_json::Value = serde_json::from_str(ours).unwrap();
        let mut columns = its.splitn(3, '\t');
        let (number, protocol) = (columns.next().unwrap(), columns.next().unwrap());
        // Of others, tshark decrypts or decodes what is inside.
        if ours["protocol"] != protocol || !["TCP", "UDP", "ICMP", "ARP"].contains(&protocol) {
            continue;
        }
        let its = columns.next().unwrap();
        // What it knows from later packets and other layers.
        let its = its.split(" (request in ").next().unwrap().split(" (reply in ").next().unwrap();
        let its = its.split(" (no response").next().unwrap().split(" [ILLEGAL").next().unwrap();
        let marks = ours["marks"].as_str().unwrap();
        let ours = format!("{marks} {}", ours["info"].as_str().unwrap());
        let ours = ours.trim_start();
        if its.trim_end() != ours.trim_end() {
            wrong.push(format!("packet {number}: tshark {its:?}, we {ours:?}"));
        }
    }
    wrong.truncate(20);
    wrong
}
