//! `pcap merge` of captures from both ends of a path, beside what the lab says of each
//! packet.

use crate::program::{LONGHAUL, carried, lab_with, run, worked};
use capture::file::Reader;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A packet of the lab: its direction (the name of the interface) and its bytes. Packets that
/// are the same bit by bit (resets, IP ID and all) may take each other's place.
type LabPacket = (String, Vec<u8>);

/// The packets of a lab's capture by their number in the file, with fate and ms in transit
/// from the comment.
fn fates(file: &Path) -> BTreeMap<u64, (LabPacket, u64, bool, f64)> {
    let mut reader = Reader::new(std::fs::File::open(file).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        let comment = packet.options.comments().next().unwrap().to_owned();
        packets.push((packet.number, packet.interface as usize, comment, packet.data.to_vec()));
    }
    let after = |text: &str, word: &str| -> Option<String> {
        let rest = text.split_once(word)?.1.trim_start();
        Some(rest.split([' ', ',']).next()?.to_owned())
    };
    let names: Vec<String> =
        reader.summary().interfaces.iter().map(|interface| interface.name.clone()).collect();
    let each = packets.into_iter().map(|(number, interface, comment, bytes)| {
        let own = after(&comment, "number").unwrap().parse().unwrap();
        let transit = after(&comment, "in transit").map_or(0.0, |ms| ms.parse().unwrap());
        let is_delivered = comment.starts_with("delivered");
        (number, ((names[interface].clone(), bytes), own, is_delivered, transit))
    });
    each.collect()
}

/// Losses, delays and pairs are those of the fates, packet by packet.
pub(crate) fn losses_and_delays_are_those_of_the_fates() {
    let server = format!("{LONGHAUL} server --one-off");
    for impaired in ["loss=1%,reorder=1%:5ms,seed=3", "loss=ge:0.002:0.2,jitter=2ms,overtake=yes"] {
        let folder = tempfile::tempdir().unwrap();
        let [client, server_file] = ["c.pcapng", "s.pcapng"].map(|name| folder.path().join(name));
        let captures =
            [format!("client={}", client.display()), format!("server={}", server_file.display())];
        let link = format!("rate=30mbit,rtt=20ms,duplicate=1%,{impaired}");
        let options = ["--pcap", &captures[0], "--pcap", &captures[1], "--server", &server];
        let ended = lab_with(&link, &options, &[LONGHAUL, "test", "server", "-t", "1.5"]);
        assert!(worked(&ended, 0), "{}", ended.stderr);
        let files = [client, server_file];
        let known = files.each_ref().map(|file| fates(file));
        let [a, b] = files.each_ref().map(|file| file.to_str().unwrap());
        let merged = run(&["pcap", "merge", a, b, "--same-clock", "--csv"]);
        assert_eq!(merged.code, Some(0), "{}", merged.stderr);
        let mut found = [BTreeSet::new(), BTreeSet::new()];
        let mut outside = 0;
        for row in merged.stdout.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            let in_file = |side: usize| -> Option<&(LabPacket, u64, bool, f64)> {
                known[side].get(&fields[2 + side].parse().ok()?)
            };
            match (in_file(0), in_file(1)) {
                (Some(in_a), Some(in_b)) => {
                    assert_eq!(in_a.0, in_b.0, "{row}");
                    let delay: f64 = fields[5].parse().unwrap();
                    // Each capture dates the lab's beginning by itself.
                    let is_exact = (delay * 1e3 - in_a.3).abs() < 0.1;
                    assert!(is_exact || in_a.1 != in_b.1, "{row}: {in_a:?}");
                    found[0].insert(in_a.0.clone());
                }
                (Some(one), None) | (None, Some(one)) => {
                    outside += usize::from(fields[1] == "outside");
                    found[1].insert(one.0.clone());
                }
                (None, None) => panic!("{row}"),
            }
        }
        let truth = [true, false].map(|is_delivered| -> BTreeSet<LabPacket> {
            let all = known.iter().flat_map(BTreeMap::values);
            all.filter(|it| it.2 == is_delivered).map(|it| it.0.clone()).collect()
        });
        assert!(truth[1].len() > 5 && outside < 3, "{} lost, {outside}", truth[1].len());
        for (found, truth) in found.iter().zip(&truth) {
            let wrong: Vec<_> = found.symmetric_difference(truth).take(5).collect();
            assert!(wrong.is_empty(), "{impaired}: {wrong:?}");
        }
    }
}

/// tcpdump at both ends has the super-segments of GSO and GRO: segments lost are those of
/// the lab's counters.
pub(crate) fn super_segments_are_matched() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["c.pcap", "s.pcap"].map(|name| folder.path().join(name).display().to_string());
    let dump = |file: &str| {
        format!("tcpdump -q -Z root --immediate-mode -U -s 100 -i lab0 -w {file} tcp 2>/dev/null &")
    };
    let server = format!("sh -c \"{} sleep 0.5; exec {LONGHAUL} server --one-off\"", dump(&b));
    let client = format!(
        "{} sleep 0.5; {LONGHAUL} test server -t 2 --json > /dev/null; sleep 0.5; kill %1; wait",
        dump(&a)
    );
    let link = "rate=50mbit,rtt=20ms,loss=1%,seed=7";
    let (_, report) = carried(link, &["--server", &server], &["bash", "-c", &client]);
    let merged = run(&["pcap", &a, &b, "--merge", "--json"]);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    let count = |key: &str| ["a_to_b", "b_to_a"].map(|way| merged[way][key].as_u64().unwrap());
    let lost: u64 = count("lost_segments").iter().sum();
    assert_eq!(Some(lost), report["achieved"]["lost"].as_u64(), "{merged}");
    assert!(count("partly_lost")[0] > 0 && count("only_after") == [0, 0], "{merged}");
    // Both clocks are one, and both directions take 10 ms.
    let clock = &merged["clock"]["segments"][0];
    assert!(clock["offset_s"].as_f64().unwrap().abs() < 1e-3, "{clock}");
    assert!((9.5e-3..12e-3).contains(&clock["uncertainty_s"].as_f64().unwrap()), "{clock}");
}
