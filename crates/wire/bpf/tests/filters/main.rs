//! Compiled filters, run by a BPF machine over random packets: beside the dissector's verdict,
//! and beside the programs that tcpdump compiles, where tcpdump is installed.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod interpreter;
mod packets;
mod verdict;

use bpf::{FirstHeader, Instruction};
use interpreter::Metadata;
use libtest_mimic::Arguments;
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::process::{Command, ExitCode};
use verdict::{Facts, Filter};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tcpdump = Command::new("tcpdump").arg("--version").output().is_ok();
    if !tcpdump && !arguments.list {
        assert!(!stall_retry::required(), "LONGHAUL_REQUIRE_PEERS=1 asks for tcpdump");
        eprintln!("tcpdump is not installed: its test is skipped");
    }
    let tests: [(&str, bool, fn()); 6] = [
        ("matches_what_the_dissector_says", false, dissector),
        ("without_a_link_layer_the_kernel_knows_the_type", false, network_layer),
        ("matches_what_tcpdump_matches", true, beside_tcpdump),
        ("a_load_beyond_the_end_rejects", false, truncated),
        ("tags_that_were_taken_off_and_directions", false, metadata),
        ("long_filters_are_refused_or_right", false, long),
    ];
    let trials = tests.into_iter().map(|(name, needs_tcpdump, test)| {
        stall_retry::trial(name, test).with_ignored_flag(needs_tcpdump && !tcpdump)
    });
    stall_retry::run(&arguments, trials.collect())
}

const SNAPLEN: u32 = 192;

fn compiled(filter: &str, first: FirstHeader) -> Vec<Instruction> {
    let program = bpf::compile(filter, first, SNAPLEN, &mut |_| Vec::new());
    program.unwrap_or_else(|error| panic!("{filter}: {error}"))
}

/// Whole packets that are no fragments, and no RARP, which the dissector does not know.
fn frames(random: &mut Pcg64Mcg) -> Vec<Vec<u8>> {
    let frames = (0..200).map(|_| packets::frame(random));
    frames.filter(|frame| !Facts::of(frame).is_fragment && frame[12..14] != [0x80, 0x35]).collect()
}

fn dissector() {
    let mut random = Pcg64Mcg::seed_from_u64(15);
    let frames = frames(&mut random);
    let (mut matched, mut rejected) = (0, 0);
    for _ in 0..3000 {
        let filter = Filter::random(&mut random, 3);
        let program = compiled(&filter.to_string(), FirstHeader::Ethernet);
        for frame in &frames {
            let expected = if filter.matches(&Facts::of(frame)) { SNAPLEN } else { 0 };
            let returned = interpreter::run(&program, frame, Metadata::default());
            assert_eq!(returned, expected, "{filter}: {frame:02x?}");
            *(if returned > 0 { &mut matched } else { &mut rejected }) += 1;
        }
    }
    assert!(matched > 10_000 && rejected > 10_000, "{matched} {rejected}");
}

/// The same packets without their Ethernet header: the same verdicts, but for lengths.
fn network_layer() {
    let mut random = Pcg64Mcg::seed_from_u64(16);
    let frames = frames(&mut random);
    for _ in 0..500 {
        let text = Filter::random(&mut random, 3).to_string();
        if text.contains("less") || text.contains("greater") {
            continue;
        }
        let programs = [FirstHeader::Ethernet, FirstHeader::Network].map(|it| compiled(&text, it));
        for frame in &frames {
            let ether_type = u16::from_be_bytes([frame[12], frame[13]]);
            let known = Metadata { ether_type, ..Metadata::default() };
            let returned = [&frame[..], &frame[14..]];
            let [whole, inner] =
                [0, 1].map(|at| interpreter::run(&programs[at], returned[at], known));
            assert_eq!(whole, inner, "{text}: {frame:02x?}");
        }
    }
}

fn beside_tcpdump() {
    let mut random = Pcg64Mcg::seed_from_u64(17);
    // With fragments, too.
    let frames: Vec<Vec<u8>> = (0..300).map(|_| packets::frame(&mut random)).collect();
    let fixed = [
        "tcp or udp and port 53",
        "not port 80 and 443",
        "tcp src port 80 or 443 or 53",
        "net 10.1",
        "net 10 and not net 10.0",
        "ip proto 58",
        "proto 132",
        "rarp",
        "arp host 10.0.0.1",
        "src or dst port 5201 and dst or src host 10.0.0.2",
        "igmp or icmp6",
        "!(arp || ip6) && portrange 80-500",
    ];
    let random_ones = (0..150).map(|_| Filter::random(&mut random, 3).to_string());
    let filters: Vec<String> = fixed.into_iter().map(str::to_owned).chain(random_ones).collect();
    let mut compared = 0;
    for filter in filters {
        let output = Command::new("tcpdump").args(["-ddd", "-y", "EN10MB", &filter]).output();
        let output = output.unwrap();
        if !output.status.success() {
            // libpcap refuses filters that match nothing.
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(error.contains("rejects all packets"), "{filter}: {error}");
            let ours = compiled(&filter, FirstHeader::Ethernet);
            let all = frames.iter().map(|it| interpreter::run(&ours, it, Metadata::default()));
            assert_eq!(all.max(), Some(0), "{filter}");
            continue;
        }
        let its = its_program(&String::from_utf8(output.stdout).unwrap());
        let ours = compiled(&filter, FirstHeader::Ethernet);
        for frame in &frames {
            let [its, ours] = [&its, &ours]
                .map(|program| interpreter::run(program, frame, Metadata::default()) > 0);
            assert_eq!(ours, its, "{filter}: {frame:02x?}");
        }
        compared += 1;
    }
    assert!(compared > 80, "{compared} filters were compared");
}

/// `tcpdump -ddd`: the number of instructions, then each in decimal.
fn its_program(text: &str) -> Vec<Instruction> {
    let instructions = text.lines().skip(1).map(|line| {
        let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        Instruction {
            code: numbers[0] as u16,
            if_true: numbers[1] as u8,
            if_false: numbers[2] as u8,
            value: numbers[3],
        }
    });
    instructions.collect()
}

fn truncated() {
    let mut random = Pcg64Mcg::seed_from_u64(18);
    let program = compiled("tcp or not port 80 or host 10.0.0.1", FirstHeader::Ethernet);
    for frame in frames(&mut random) {
        for length in 0..frame.len() {
            // It ends, whatever the packet.
            interpreter::run(&program, &frame[..length], Metadata::default());
        }
    }
    assert_eq!(interpreter::run(&program, &[0; 13], Metadata::default()), 0);
    let all = compiled("", FirstHeader::Ethernet);
    assert_eq!(interpreter::run(&all, &[], Metadata::default()), SNAPLEN);
    let none = bpf::reject_all();
    assert_eq!(interpreter::run(&none, &[0; 100], Metadata::default()), 0);
}

fn metadata() {
    let run = |filter: &str, known: Metadata| {
        let program = compiled(filter, FirstHeader::Ethernet);
        interpreter::run(&program, &[0; 60], known) > 0
    };
    let tagged = Metadata { vlan: Some(0x2007), ..Metadata::default() };
    for (filter, known, expected) in [
        ("vlan", tagged, true),
        ("vlan 7", tagged, true),
        ("vlan 8", tagged, false),
        ("vlan", Metadata::default(), false),
        ("outbound", Metadata { packet_type: 4, ..Metadata::default() }, true),
        ("inbound", Metadata { packet_type: 4, ..Metadata::default() }, false),
        ("inbound", Metadata::default(), true),
    ] {
        assert_eq!(run(filter, known), expected, "{filter} {known:?}");
    }
    let mut frame = [0; 60];
    (frame[12], frame[13], frame[15]) = (0x81, 0, 9);
    for (filter, expected) in [("vlan 9", true), ("vlan 7", false), ("vlan", true)] {
        let program = compiled(filter, FirstHeader::Ethernet);
        let returned = interpreter::run(&program, &frame, Metadata::default());
        assert_eq!(returned > 0, expected, "{filter}");
    }
}

/// Jumps beyond 255 instructions, and programs at their limit.
fn long() {
    let hosts = |count: usize| {
        let hosts: Vec<String> = (0..count).map(|last| format!("net {}", last % 200)).collect();
        hosts.join(" or ")
    };
    let mut random = Pcg64Mcg::seed_from_u64(19);
    let frames = frames(&mut random);
    for count in [10, 30, 60, 120] {
        let text = format!("not ({}) and not arp", hosts(count));
        let program = compiled(&text, FirstHeader::Ethernet);
        assert!(program.len() <= bpf::MAX_INSTRUCTIONS);
        for frame in &frames {
            let facts = Facts::of(frame);
            let first = frame[14] >> 4;
            let addresses = [&frame[26..30], &frame[30..34]];
            let is_listed = addresses.iter().any(|it| usize::from(it[0]) < count);
            let is_arp = facts.protocols.contains(&capture::dissect::Protocol::Arp);
            let is_v4 = facts.protocols.contains(&capture::dissect::Protocol::Ipv4) && first == 4;
            let expected = !(is_arp || is_v4 && is_listed);
            let returned = interpreter::run(&program, frame, Metadata::default()) > 0;
            assert_eq!(returned, expected, "{count}: {frame:02x?}");
        }
    }
    let refused = bpf::compile(&hosts(200), FirstHeader::Ethernet, SNAPLEN, &mut |_| Vec::new());
    assert_eq!(refused, Err(bpf::FilterError::TooComplex));
}
