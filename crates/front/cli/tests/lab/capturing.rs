//! `longhaul capture` and `test --pcap` on a lab's hosts: every packet is in the file or counted
//! as dropped, files are whole however a capture ends, and privileges are gone while it runs.

use crate::program::{LONGHAUL, lab, lab_with, run, start, until, worked};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What `longhaul pcap` says of a file, which must be whole.
#[track_caller]
fn read(path: &Path) -> Value {
    let ended = run(&["pcap", "--json", path.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{}: {}", path.display(), ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    document["files"][0].clone()
}

#[track_caller]
fn packets(path: &Path) -> u64 {
    read(path)["packets"].as_u64().unwrap()
}

/// A transfer, counted by the interface, by the kernel's filter and by the file.
pub(crate) fn every_packet_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (file, filtered, report) = (at("all.pcapng"), at("some.pcap"), at("all.json"));
    let counters = "awk '/lab0:/ { print $3 + $11 }' /proc/net/dev";
    // Neighbour discovery and the like are over before the first count.
    let script = format!(
        "sleep 0.3; before=$({counters}); \
         {LONGHAUL} capture lab0 -w {file} --json > {report} & all=$!; \
         {LONGHAUL} capture lab0 -q -w {filtered} 'tcp and dst port 5201' & some=$!; \
         sleep 0.7; \
         {LONGHAUL} test server -t 1 --json > {test}; \
         sleep 0.3; kill -TERM $all $some; wait $all $some; after=$({counters}); \
         echo $((after - before))",
        test = at("test.json"),
    );
    let server = format!("{LONGHAUL} server --one-off");
    let link = "rate=50mbit,rtt=10ms";
    let ended = lab_with(link, &["--server", &server], &["sh", "-c", &script]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let on_interface: u64 = ended.stdout.trim().parse().unwrap();
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["schema"], "longhaul.capture/1");
    let count = |key: &str| report[key].as_u64().unwrap();
    let (captured, dropped) = (count("packets"), count("dropped_packets"));
    assert!(captured > 500, "{report}");
    assert_eq!(captured + dropped, on_interface, "{report}");
    assert_eq!(count("accepted_packets"), on_interface, "{report}");
    let whole = read(Path::new(&file));
    assert_eq!(whole["packets"].as_u64(), Some(captured));
    let interface = &whole["interfaces"][0];
    assert_eq!(
        (interface["name"].as_str(), interface["snaplen_bytes"].as_u64()),
        (Some("lab0"), Some(192))
    );
    assert_eq!(interface["received"].as_u64(), Some(on_interface), "{interface}");
    assert_eq!(interface["dropped"].as_u64(), Some(dropped), "{interface}");
    // What the filter selects is what the dissector finds in the whole.
    let listed = run(&["pcap", "conversations", "--type", "tcp", "--json", &file]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let rows = listed["files"][0]["conversations"].as_array().unwrap();
    let to_server = rows.iter().map(|row| {
        let way = if row["b"]["port"] == 5201 { "a_to_b" } else { "b_to_a" };
        row[way]["frames"].as_u64().unwrap()
    });
    let to_server: u64 = to_server.sum();
    assert_eq!(packets(Path::new(&filtered)), to_server);
    let test: Value = serde_json::from_slice(&std::fs::read(at("test.json")).unwrap()).unwrap();
    let streams = run(&["pcap", "streams", "--json", &file]).stdout;
    let streams: Value = serde_json::from_str(&streams).unwrap();
    // The stream's payload: the cookie and what the test sent.
    let payload = streams["files"][0]["streams"].as_array().unwrap().iter();
    let payload = payload.map(|it| it["payload_bytes"].as_u64().unwrap_or(0)).max().unwrap();
    let received = test["received_bytes"].as_u64().unwrap();
    assert!(payload >= received && payload < received + received / 2, "{payload} {received}");
}

/// Signals, limits, a full disk, an interface that goes, a pipe that is closed, files in turn.
pub(crate) fn files_are_whole_however_a_capture_ends() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let script = format!(
        "cd {folder}; exec 2> errors; ping -q -i 0.002 -s 1000 server > /dev/null & load=$!; \
         capture() {{ {LONGHAUL} capture \"$@\"; echo $? >> codes; }}; \
         capture lab0 -q -w term.pcapng & one=$!; \
         sleep 0.6; kill -TERM $(pgrep -P $one); wait $one; \
         capture lab0 -q -w count.pcapng -c 7; \
         capture lab0 -q -w time.pcap -t 300ms -s 0; \
         capture any -q -w any.pcapng -c 20 icmp; \
         capture lab0 -q -w - | head -c 2000 > pipe.pcapng; \
         capture lab0 -q -w ring.pcapng --ring 3:65536B -t 1s -s 0; \
         mkdir small; mount -t tmpfs -o size=128k none small; \
         capture lab0 -q -w small/full.pcapng -s 0 -t 10s; cp small/full.pcapng .; \
         ip link add going type veth peer name peer; ip link set going up; ip link set peer up; \
         capture going -q -w gone.pcapng -t 10s & one=$!; \
         sleep 0.5; ip link del going; wait $one; \
         kill $load; wait",
        folder = folder.path().display(),
    );
    let ended = lab("rate=100mbit,rtt=1ms", &["sh", "-c", &script]);
    let errors = std::fs::read_to_string(at("errors")).unwrap_or_default();
    assert!(worked(&ended, 0), "{} {errors}", ended.stderr);
    let codes = std::fs::read_to_string(at("codes")).unwrap();
    assert_eq!(
        codes.split_whitespace().collect::<Vec<_>>(),
        ["0"; 6].iter().chain(&["1"; 2]).copied().collect::<Vec<_>>(),
        "{errors}"
    );
    let lines: Vec<&str> = errors.lines().filter(|line| line.contains("longhaul")).collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(lines[0].contains("No space left") && lines[0].contains("is complete"), "{errors}");
    assert!(lines[1].contains("going was removed; gone.pcapng is complete"), "{errors}");
    assert!(packets(&at("term.pcapng")) > 50);
    assert_eq!(packets(&at("count.pcapng")), 7);
    assert!(packets(&at("time.pcap")) > 20);
    assert_eq!(packets(&at("any.pcapng")), 20);
    assert_eq!(read(&at("any.pcapng"))["interfaces"][0]["link_type"], 276);
    read(&at("gone.pcapng"));
    // Most of the small disk is used, and the statistics are there.
    let full = read(&at("full.pcapng"));
    assert!(full["packets"].as_u64().unwrap() > 80, "{full}");
    assert!(full["interfaces"][0]["received"].as_u64() >= full["packets"].as_u64(), "{full}");
    let ring = [1, 2, 3].map(|number| at(&format!("ring-{number}.pcapng")));
    assert!(ring.iter().all(|path| std::fs::metadata(path).unwrap().len() <= 65_536));
    // The one that was written last may have begun just before the end.
    let full = ring.iter().filter(|path| packets(path) > 10).count();
    assert!(full >= 2, "{full}");
}

/// While it captures, it has no privilege, and as root it is another user.
pub(crate) fn privileges_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.pcapng").display().to_string();
    let script = format!(
        "{LONGHAUL} capture lab0 -q -w {file} -t 2s & sleep 0.6; \
         cat /proc/$!/status; cat /proc/$!/uid_map; wait"
    );
    let ended = lab("rate=100mbit,rtt=1ms", &["sh", "-c", &script]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let field = |name: &str| {
        let line = ended.stdout.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} {}", ended.stdout))
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    // Root of a user's namespace has no other user to become.
    let is_root = ended.stdout.lines().last().unwrap().split_whitespace().nth(2) != Some("1");
    if is_root {
        assert!(field("Uid:").iter().all(|uid| *uid == "65534"), "{}", ended.stdout);
        assert!(field("Groups:").is_empty(), "{}", ended.stdout);
    }
}

/// From outside, on a host of a lab that runs; and what is refused, each in one line.
pub(crate) fn captures_in_a_lab_and_what_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let name = format!("capturing-{}", std::process::id());
    let up = start(&[
        "lab",
        "run",
        "--name",
        &name,
        "--link",
        "rate=10mbit,rtt=2ms",
        "--",
        "ping",
        "-q",
        "-i",
        "0.01",
        "server",
    ]);
    let place = format!("{name}:client");
    let file = at("lab.pcapng");
    let mut listed = Value::Null;
    until("the lab is there", || {
        let ended = run(&["capture", "--in-lab", &place, "--json"]);
        listed = serde_json::from_str(&ended.stdout).unwrap_or_default();
        ended.code == Some(0)
    });
    let interfaces = listed["interfaces"].as_array().unwrap();
    let device = interfaces.iter().find(|it| it["name"] == "lab0").unwrap();
    assert!(device["addresses"][0].as_str().unwrap().starts_with("10."), "{device}");
    assert!(device["sent_packets_per_s"].as_f64().unwrap() > 20.0, "{device}");
    let ended = run(&["capture", "lab0", "--in-lab", &place, "-w", &file, "-c", "10"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(packets(Path::new(&file)), 10);
    std::fs::write(at("precious"), "data").unwrap();
    std::os::unix::fs::symlink(at("precious"), at("link")).unwrap();
    std::fs::hard_link(at("precious"), at("hard")).unwrap();
    let (link, hard, none) = (at("link"), at("hard"), at("none/c.pcapng"));
    for (arguments, code, part) in [
        (vec!["lab9", "-w", &file], 2, "no interface 'lab9'; available: lo, lab0, any"),
        (vec!["lab0"], 2, "give an output file: -w FILE"),
        (vec!["lab0", "-w", &link], 2, "is a symbolic link"),
        (vec!["lab0", "-w", &hard], 2, "has several hard links"),
        (vec!["lab0", "-w", "/dev/null"], 2, "is not a regular file"),
        (vec!["lab0", "-w", &none], 2, "No such file or directory"),
        (vec!["lab0", "-w", &file, "tcp", "port", "http"], 2, "where a port number is expected"),
        (vec!["lab0", "-w", &file, "wlan"], 2, "not supported; accepted: [src|dst] host"),
        (vec!["lab0", "-w", &file, "--ring", "1:1MB"], 2, "2 to 500 files"),
        (vec!["lab0", "-w", "-", "--ring", "3:1MB"], 2, "--ring needs a file name"),
        (vec!["lab0", "-w", &file, "--timestamps", "hardware"], 2, "no hardware timestamps"),
        (vec!["lab0", "-w", &file, "-B", "1kB"], 2, "give 2MiB to 1GiB"),
    ] {
        let ended = run(&[&["capture", "--in-lab", &place], &arguments[..]].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(std::fs::read(at("precious")).unwrap(), b"data");
    // A refused command leaves the capture before as it is.
    assert_eq!(packets(Path::new(&file)), 10);
    crate::program::signal("INT", up.id());
    crate::program::end(up);
}

/// A test with a capture of its own packets; without the privilege it does not begin.
pub(crate) fn a_test_keeps_its_packets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.pcapng");
    let server = format!("{LONGHAUL} server --one-off");
    let script = format!(
        "ping -q -c 20 -i 0.1 server > /dev/null & {LONGHAUL} test server -t 1 --json --pcap {}",
        file.display()
    );
    let link = "rate=50mbit,rtt=10ms";
    let ended = lab_with(link, &["--server", &server], &["sh", "-c", &script]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let capture = &report["capture"];
    assert_eq!(capture["files"][0].as_str(), file.to_str());
    assert_eq!(capture["interface"], "lab0", "{capture}");
    assert_eq!(capture["packets"].as_u64().unwrap(), packets(&file));
    let shown = run(&["pcap", "hierarchy", "--json", file.to_str().unwrap()]).stdout;
    // Its own connections alone, from the first SYN on.
    assert!(!shown.contains("icmp"), "{shown}");
    let streams = run(&["pcap", "streams", "--json", file.to_str().unwrap()]).stdout;
    let streams: Value = serde_json::from_str(&streams).unwrap();
    let tests = streams["files"][0]["iperf3_tests"].as_array().unwrap();
    let states = tests[0]["states"].as_array().unwrap();
    let names: Vec<&str> = states.iter().map(|it| it["state"].as_str().unwrap()).collect();
    let all = "PARAM_EXCHANGE CREATE_STREAMS TEST_START TEST_RUNNING TEST_END EXCHANGE_RESULTS \
               DISPLAY_RESULTS IPERF_DONE";
    assert_eq!(names.join(" "), all.split_whitespace().collect::<Vec<_>>().join(" "));
    let at = |state: usize| states[state]["at_s"].as_f64().unwrap();
    assert!((at(4) - at(3) - 1.0).abs() < 0.3, "{states:?}");
    // The snaplen keeps the headers and the first members.
    let parameters = &tests[0]["parameters"];
    assert_eq!((&parameters["cut"], &parameters["json"]["tcp"]), (&"snaplen".into(), &true.into()));
    let streams = streams["files"][0]["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 2, "{streams:?}");
    let times = streams.iter().find_map(|stream| stream["time_by_cause"].as_array()).unwrap();
    let sum: f64 = times.iter().map(|it| it["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{times:?}");

    let refused = Command::new("setpriv")
        .args(["--bounding-set", "-net_raw", "--inh-caps", "-net_raw", "--no-new-privs"])
        .args([LONGHAUL, "test", "127.0.0.1", "-p", "9", "--pcap"])
        .arg(folder.path().join("none.pcapng"))
        .output();
    let refused = refused.unwrap();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.contains("no permission to capture on lo"), "{error}");
    assert!(!folder.path().join("none.pcapng").exists());
}
