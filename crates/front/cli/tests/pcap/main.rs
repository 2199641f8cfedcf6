//! `longhaul pcap` beside tshark: hierarchy, conversations and endpoints of every
//! encapsulation, of fragments, and of captures that the lab makes; fields and filters. Without tshark the tests count as ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod compare;
mod conversation;
mod filters;
mod flags;
mod frames;
mod messages;
mod packets;

use libtest_mimic::Arguments;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tshark = Command::new("tshark").arg("--version").output().is_ok();
    let lab = !arguments.list && lab("rate=1gbit,rtt=1ms", "true", "true", None);
    let missing = !tshark || !lab;
    if missing && !arguments.list {
        assert!(!stall_retry::required(), "LONGHAUL_REQUIRE_PEERS=1 asks for tshark and a lab");
        eprintln!("tshark is not installed, or no lab can be made here: tests are skipped");
    }
    let tests: [(&str, bool, fn()); 22] = [
        ("ethernet_frames", false, ethernet_frames),
        ("other_link_types", false, link_types),
        ("streams_that_reuse_ports", false, reused_ports),
        ("packets_cut_off_by_the_snaplen", false, cut_off),
        ("fragments_that_make_packets", false, fragments),
        ("filters_as_people_write_them", false, filters::filters_as_people_write_them),
        ("fields_of_every_encapsulation", false, fields_of_frames),
        ("fields_and_filters_of_a_transfer", true, fields_of_a_transfer),
        ("fields_and_filters_of_pings_and_datagrams", true, fields_of_datagrams),
        ("states_of_a_test_on_any_port", true, states),
        ("a_lossy_transfer", true, lossy),
        ("a_reordered_and_duplicated_transfer", true, reordered),
        ("pings_and_datagrams", true, pings),
        ("several_streams_in_both_directions", true, streams),
        ("headers_captured_beside_a_transfer", true, live_capture),
        ("flags_of_random_loss", true, || flags_over("rate=50mbit,rtt=20ms,loss=1%,seed=1")),
        ("flags_of_clustered_loss", true, || flags_over("rate=20mbit,rtt=40ms,loss=ge:0.002:0.2")),
        ("flags_of_reordering", true, || flags_over("rate=50mbit,rtt=20ms,reorder=1%:30ms")),
        ("flags_of_jitter", true, || flags_over("rate=50mbit,rtt=40ms,jitter=3ms,overtake=yes")),
        ("flags_of_duplicates", true, || flags_over("rate=50mbit,rtt=20ms,duplicate=1%,loss=1%")),
        ("flags_of_a_policer", true, || flags_over("rate=100mbit,rtt=20ms,police=10mbit:64KiB")),
        ("flags_without_window_scaling", true, || {
            flags_over("rate=50mbit,rtt=40ms,window-scale=strip");
        }),
    ];
    let trials = tests.into_iter().map(|(name, needs_lab, test)| {
        let missing = !tshark || (needs_lab && !lab);
        stall_retry::trial(name, test).with_ignored_flag(missing)
    });
    stall_retry::run(&arguments, trials.collect())
}

/// Runs programs in a lab, and captures at the client; whether the lab could be made.
fn lab(link: &str, server: &str, client: &str, capture: Option<&Path>) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(["lab", "run", "--link", link]);
    if server != "true" {
        command.args(["--server", server]);
    }
    if let Some(path) = capture {
        command.arg("--pcap").arg(format!("client={}", path.display()));
    }
    let output = command.args(["--", "sh", "-c", client]).output().unwrap();
    // A busy machine's lab carries packets all the same.
    matches!(output.status.code(), Some(0 | 3))
}

/// Each frame in a file of its own in `make long`; in `make test` some in a file, as tshark takes
/// its time to start.
fn ethernet_frames() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let all = frames::all();
    let in_a_file = if std::env::var_os("LONGHAUL_LONG").is_some() { 1 } else { 6 };
    for some in all.chunks(in_a_file) {
        let (names, frames): (Vec<_>, Vec<_>) = some.iter().cloned().unzip();
        let path = folder.path().join("some.pcap");
        std::fs::write(&path, frames::pcap(1, &frames)).unwrap();
        let differences = compare::differences(&path);
        wrong.extend(differences.into_iter().map(|it| format!("{}: {it}", names.join(", "))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let frames: Vec<Vec<u8>> = all.into_iter().map(|(_, frame)| frame).collect();
    compare_frames(1, &frames);
}

/// Compares a file of these frames.
fn compare_frames(link: u32, frames: &[Vec<u8>]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcap");
    std::fs::write(&path, frames::pcap(link, frames)).unwrap();
    let wrong = compare::differences(&path);
    assert!(wrong.is_empty(), "link type {link}:\n{}", wrong.join("\n"));
}

fn link_types() {
    let v4 = frames::ipv4(6, 0, &frames::tcp([40_000, 50_001], 1, 16, &[0; 20]));
    let v6 = frames::ipv6(17, &frames::udp([40_001, 50_002], &[0; 20]));
    let before = |header: &[u8], packet: &[u8]| [header, packet].concat();
    for link in [101, 12] {
        compare_frames(link, &[v4.clone(), v6.clone()]);
    }
    compare_frames(228, std::slice::from_ref(&v4));
    compare_frames(229, std::slice::from_ref(&v6));
    compare_frames(0, &[before(&[2, 0, 0, 0], &v4), before(&[30, 0, 0, 0], &v6)]);
    compare_frames(108, &[before(&[0, 0, 0, 2], &v4), before(&[0, 0, 0, 24], &v6)]);
    let cooked =
        |kind: u16| [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &kind.to_be_bytes()].concat();
    compare_frames(113, &[before(&cooked(0x0800), &v4), before(&cooked(0x86dd), &v6)]);
    let cooked2 = |kind: u16| {
        let rest = [0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        [&kind.to_be_bytes()[..], &rest].concat()
    };
    compare_frames(276, &[before(&cooked2(0x0800), &v4), before(&cooked2(0x86dd), &v6)]);
    compare_frames(9, &[before(&[0xff, 3, 0, 0x21], &v4), before(&[0, 0x57], &v6)]);
    compare_frames(50, &[before(&[0xff, 3, 0, 0x21], &v4), before(&[0x0f, 0, 8, 0], &v4)]);
    let length = (2 + v4.len() as u16).to_be_bytes();
    compare_frames(51, &[before(&[0x11, 0, 0, 1, length[0], length[1], 0, 0x21], &v4)]);
    compare_frames(104, &[before(&[0x0f, 0, 8, 0], &v4), before(&[0x8f, 0, 0x86, 0xdd], &v6)]);
    let llc = before(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &v4);
    compare_frames(10, &[[&[0x57][..], &[2; 12], &llc].concat()]);
    wireless(&llc);
}

/// 802.11 with each of its headers, and each driver's header before it.
fn wireless(llc: &[u8]) {
    let data = |start: [u8; 2], more: usize| [&start[..], &vec![0; 22 + more], llc].concat();
    let plain = data([0x08, 1], 0);
    let encrypted = [&[0x08, 0x41][..], &[0; 22], &[1, 0, 0, 0x20, 0, 0, 0, 0], &[0; 60]].concat();
    // Data, QoS data, four addresses, QoS data with HT control, null, acknowledgement.
    let frames = [
        plain.clone(),
        data([0x88, 1], 2),
        data([0x08, 3], 6),
        data([0x88, 0x81], 6),
        encrypted,
        [&[0x48, 1][..], &[0; 22]].concat(),
        [&[0xd4, 0][..], &[0; 8]].concat(),
    ];
    compare_frames(105, &frames);
    let before = |header: &[u8], frame: &[u8]| [header, frame].concat();
    compare_frames(
        119,
        &[before(&[&[0x44, 0, 0, 0, 144, 0, 0, 0][..], &[0; 136]].concat(), &plain)],
    );
    let avs = [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56]].concat();
    compare_frames(163, &[before(&avs, &plain)]);
    compare_frames(192, &[before(&[0, 0, 8, 0, 105, 0, 0, 0], &plain)]);
    let with_fcs = [&plain[..], &[0; 4]].concat();
    let padded = [&[0x88, 1][..], &[0; 24 + 2], llc].concat();
    let time = [&[0, 0, 25, 0, 3, 0, 0, 0][..], &[0; 8], &[0x10], &[0; 8]].concat();
    compare_frames(
        127,
        &[
            before(&[0, 0, 8, 0, 0, 0, 0, 0], &plain),
            before(&[0, 0, 9, 0, 2, 0, 0, 0, 0x10], &with_fcs),
            before(&[0, 0, 9, 0, 2, 0, 0, 0, 0x20], &padded),
            before(&time, &with_fcs),
        ],
    );
}

/// Fragments that complete packets, in order and not, that overlap, that miss one.
fn fragments() {
    compare_frames(1, &frames::fragments());
}

/// A file of these frames, and the folder that it is in.
fn file_of(frames: &[Vec<u8>]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcap");
    std::fs::write(&path, frames::pcap(1, frames)).unwrap();
    (folder, path)
}

fn fields_of_frames() {
    // What an ICMP error quotes has fields in tshark alone.
    let all = frames::all().into_iter().filter(|(name, _)| *name != "icmp error");
    let mut frames: Vec<Vec<u8>> = all.map(|(_, frame)| frame).collect();
    frames.extend(frames::reused_ports());
    frames.extend(frames::fragments());
    let (_folder, path) = file_of(&frames);
    let mut wrong = packets::differing_values(&path);
    wrong.extend(packets::differing_info(&path));
    let (filters, passed) = packets::differing_filters(&path, 0..12);
    wrong.extend(filters);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed >= 8, "{passed} filters pass a packet");
}

fn fields_of_a_lab(link: &str, client: &str, which: std::ops::Range<usize>, least: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.pcapng");
    let program = env!("CARGO_BIN_EXE_longhaul");
    let server = format!("{program} server --one-off");
    assert!(lab(link, &server, &client.replace("longhaul", program), Some(&path)), "{link}");
    let mut wrong = packets::differing_values(&path);
    wrong.extend(packets::differing_info(&path));
    let (filters, passed) = packets::differing_filters(&path, which);
    wrong.extend(filters);
    assert!(wrong.is_empty(), "{link}:\n{}", wrong.join("\n"));
    assert!(passed >= least, "{passed} filters pass a packet");
}

fn fields_of_a_transfer() {
    let link = "rate=50mbit,rtt=20ms,loss=1%,reorder=1%:5ms,seed=1";
    fields_of_a_lab(link, "longhaul test server -t 1", 12..21, 7);
}

fn fields_of_datagrams() {
    let test = "longhaul test server -u -b 1mbit -l 3000 -t 1";
    let client = format!("ping -c 2 -i 0.1 -s 4000 server; {test}");
    fields_of_a_lab("rate=50mbit,rtt=5ms", &client, 20..24, 2);
}

fn reused_ports() {
    compare_frames(1, &frames::reused_ports());
}

/// The control connection of a test: its states in order, and no packet of data but the cookie.
fn states() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.pcapng");
    let program = env!("CARGO_BIN_EXE_longhaul");
    let server = format!("{program} server --one-off -p 7001");
    let client = format!("{program} test server -p 7001 -t 1 -b 5mbit");
    assert!(lab("rate=50mbit,rtt=5ms", &server, &client, Some(&path)), "the lab does not run");
    let shown = |filter: &str, field: &str| -> Vec<String> {
        let mut command = Command::new(program);
        command.args(["pcap", "packets", "-e", field]).arg(&path).arg(filter);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let cells = text.lines().skip(1).flat_map(|line| line.split(';'));
        cells.filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(shown("iperf3.state", "iperf3.state"), ["9", "10", "1", "2", "4", "13", "14", "16"]);
    let cookies = shown("iperf3.cookie", "iperf3.cookie");
    assert!(cookies.len() == 2 && cookies[0] == cookies[1], "{cookies:?}");
    assert_eq!(shown("iperf3.length", "iperf3.length").len(), 3);
    // Of the stream of data, the cookie.
    assert_eq!(shown("iperf3 && tcp.stream == 1", "frame.number").len(), 1);
    assert!(shown("tcp.stream == 1 && tcp.len > 0", "frame.number").len() > 20);
}

/// Frames cut at any length: the counts of what is whole agree.
fn cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let frame = frames::ethernet(
        0x0800,
        &frames::ipv4(6, 0, &frames::tcp([40_000, 50_001], 1, 16, &[0; 1000])),
    );
    let mut wrong = Vec::new();
    for length in [14 + 20 + 20, 66, 96, 200, 1000] {
        let mut file = frames::pcap(1, &[]);
        let (captured, original) = (length as u32, frame.len() as u32);
        for word in [1_700_000_000, 0, captured, original] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame[..length]);
        let path = folder.path().join("cut.pcap");
        std::fs::write(&path, file).unwrap();
        wrong.extend(compare::differences(&path).into_iter().map(|it| format!("{length}: {it}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares a capture of a lab.
fn compare_lab(link: &str, server: &str, client: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.pcapng");
    let program = env!("CARGO_BIN_EXE_longhaul");
    let [server, client] = [server, client].map(|it| it.replace("longhaul", program));
    assert!(lab(link, &server, &client, Some(&path)), "the lab does not run");
    let wrong = compare::differences(&path);
    assert!(wrong.is_empty(), "{link}:\n{}", wrong.join("\n"));
}

const SERVER: &str = "longhaul server --one-off";

fn lossy() {
    compare_lab("rate=50mbit,rtt=20ms,loss=0.5%", SERVER, "longhaul test server -t 1");
}

fn reordered() {
    let link = "rate=50mbit,rtt=20ms,reorder=1%:5ms,duplicate=1%";
    compare_lab(link, SERVER, "longhaul test server -t 1");
}

fn pings() {
    compare_lab(
        "rate=50mbit,rtt=5ms",
        SERVER,
        "ping -c 3 -i 0.1 server; longhaul test server -u -b 5mbit -t 1",
    );
}

fn streams() {
    compare_lab("rate=50mbit,rtt=5ms", SERVER, "longhaul test server -P 4 --bidir -t 1");
}

/// The file of `longhaul capture`, super-segments and cut packets included.
fn live_capture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.pcapng");
    let program = env!("CARGO_BIN_EXE_longhaul");
    let client = format!(
        "{program} capture lab0 -q -w {} & capture=$!; sleep 0.5; {program} test server -t 1; \
         ping -q -c 3 -i 0.1 server; kill $capture; wait",
        path.display()
    );
    let server = format!("{program} server --one-off");
    assert!(lab("rate=50mbit,rtt=5ms", &server, &client, None), "the lab does not run");
    let wrong = compare::differences(&path);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every flag of a transfer over `link`, at the client.
fn flags_over(link: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab.pcapng");
    let program = env!("CARGO_BIN_EXE_longhaul");
    let (server, client) =
        (format!("{program} server --one-off"), format!("{program} test server -t 2"));
    assert!(lab(link, &server, &client, Some(&path)), "{link}");
    let differences = flags::differences(&path);
    assert!(differences.is_empty(), "{link}:\n{}", differences.join("\n"));
}
