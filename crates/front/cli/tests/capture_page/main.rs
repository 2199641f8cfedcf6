//! The page of `longhaul pcap FILE --html`: its length, whatever the capture says, and, in
//! headless Chromium, what it draws and how it reacts. Without Chromium those count as
//! ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod browser;
mod files;

use files::{ACK, SYN, Sent, pcap, transfer};
use libtest_mimic::Arguments;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use tempfile::TempDir;

/// Bytes of a page at most.
const MAX_BYTES: u64 = 5_000_000;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Each browser is several busy processes.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(cores);
    let chromium = browser::is_installed();
    if !chromium && !arguments.list {
        assert!(!stall_retry::required(), "LONGHAUL_REQUIRE_PEERS=1 asks for chromium");
        eprintln!("chromium is not installed: its tests are skipped");
    }
    let tests: [(&str, bool, fn()); 6] = [
        ("wrong_use_is_one_line", false, wrong_use),
        ("a_page_is_short_whatever_the_capture_says", false, hostile),
        ("a_page_draws_and_reacts", true, interaction),
        ("a_peak_survives_every_zoom", true, peaks),
        ("hostile_captures_are_drawn", true, hostile_drawn),
        ("a_capture_without_tcp_has_a_page", true, without_tcp),
    ];
    let trials = tests.into_iter().map(|(name, needs_chromium, test)| {
        stall_retry::trial(name, test).with_ignored_flag(needs_chromium && !chromium)
    });
    stall_retry::run(&arguments, trials.collect())
}

fn longhaul(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul")).arg("pcap").args(arguments).output().unwrap()
}

/// The page of a capture of these segments.
fn page_of(folder: &TempDir, name: &str, segments: &[Sent]) -> PathBuf {
    let (capture, page) = (folder.path().join(name), folder.path().join("page.html"));
    std::fs::write(&capture, pcap(segments)).unwrap();
    let output = longhaul(&[capture.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    assert!(error.contains("page written to"), "{error}");
    assert!(std::fs::metadata(&page).unwrap().len() <= MAX_BYTES);
    page
}

fn evaluate(page: &Path, folder: &TempDir, script: &str) -> Value {
    browser::run(page, folder.path(), script).unwrap()
}

fn wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("a.pcap");
    std::fs::write(&capture, pcap(&transfer(40_000, 100, 0, u32::MAX))).unwrap();
    let capture = capture.to_str().unwrap();
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    for (arguments, expected) in [
        (&[capture, capture, "--html", page][..], "one capture"),
        (&["-", "--html", page], "standard input"),
        (&[capture, "--html", page, "--stream", "7"], "no TCP stream 7; the capture has 0 to 0"),
        (&[capture, "--html", page, "--json"], "cannot be used with"),
        (&[capture, "--stream", "0"], "--html"),
    ] {
        let output = longhaul(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(!Path::new(page).exists());
    }
    let output = longhaul(&[capture, "--html", "/nonexistent/page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

/// Many flows, each packet at any time, everything an event.
fn flood() -> Vec<Sent> {
    let mut state = 1_u64;
    let mut random = move |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut all = Vec::new();
    for index in 0..60_000_u64 {
        let port = if index % 2 == 0 { random(5) as u16 } else { random(60_000) as u16 };
        let flags = if random(8) == 0 { random(64) as u8 } else { ACK };
        all.push(Sent {
            // Anywhere in 80 years, in any order.
            at_us: random(2_500_000_000_000_000),
            from_b: random(2) == 0,
            port,
            seq: random(1 << 32) as u32,
            ack: random(1 << 32) as u32,
            flags,
            window: random(3) as u16,
            len: random(1400) as u16,
            sack: (random(3) == 0).then(|| (random(1 << 32) as u32, random(1 << 32) as u32)),
        });
    }
    all
}

const EVIL: &str = "a\u{202e}<i onclick=alert(1)>.pcap";

fn hostile() {
    let folder = tempfile::tempdir().unwrap();
    let page = page_of(&folder, EVIL, &flood());
    let html = std::fs::read_to_string(page).unwrap();
    assert!(!html.contains("<i onclick") && html.contains("&lt;i onclick"), "escaped");
    assert!(!html.contains('\u{202e}'));
    assert!(html.contains("default-src 'none'"));
    let html = html.to_lowercase();
    for reference in ["http:", "https:", "src=", "href=", "@import", "url(", "<link", "fetch("] {
        assert!(!html.contains(reference), "{reference}");
    }
}

fn hostile_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let page = page_of(&folder, EVIL, &flood());
    let result = evaluate(
        &page,
        &folder,
        "for (const stream of capture.streams) {
           setStream(stream.number);
           for (let i = 0; i < 12; i++) { zoom(0.3); draw(); pan(0.4); draw(); toEvent(1); draw(); }
           showPackets();
         }
         return { errors, streams: capture.streams.length, listed: capture.conversations.length };",
    );
    assert_eq!(result["errors"], serde_json::json!([]), "{result}");
    assert_eq!(result["streams"], 5, "{result}");
    assert_eq!(result["listed"], 2000, "{result}");
}

fn interaction() {
    let folder = tempfile::tempdir().unwrap();
    let mut segments = transfer(40_000, 20_000, 1000, u32::MAX);
    segments.extend(transfer(40_001, 100, 0, u32::MAX));
    let page = page_of(&folder, "transfer.pcap", &segments);
    let result = evaluate(&page, &folder, include_str!("interaction.js"));
    assert_eq!(result["errors"], serde_json::json!([]), "{result}");
    let wrong: Vec<&str> =
        result["wrong"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(result["checked"].as_u64().unwrap() > 30, "{result}");
}

/// ACKs are held back once: the RTT of the first is in the picture at every width.
fn peaks() {
    let folder = tempfile::tempdir().unwrap();
    let page = page_of(&folder, "peak.pcap", &transfer(40_000, 60_000, 0, 30_000));
    let result = evaluate(
        &page,
        &folder,
        "const { rtt, inFlight } = bins();
         const missing = [];
         const peak = range(rtt, rtt.value, state.home.from, state.home.to);
         const at = rtt.start[rtt.value.high.indexOf(peak.high)];
         for (const width of [1, 7, 100, 333, 1024, 4096]) {
           for (let scale = 1; scale > 1e-5; scale /= 3) {
             for (const share of [0, 0.1, 0.5, 0.99]) {
               const length = (state.home.to - state.home.from) * scale;
               const from = at - share * length;
               const columns = extremes(rtt, rtt.value, from, from + length, width);
               if (Math.max(...columns.high.filter((value) => value > 0)) !== peak.high) {
                 missing.push([width, scale, share]);
               }
               const average = averageExtremes(state.sent, from, from + length, width);
               const expected = range({ start: state.sent.moments, width: 0 },
                 { low: state.sent.rate, high: state.sent.rate }, from, from + length);
               if (expected.high > Math.max(...average.high) + 1e-6) missing.push([width, scale, share, 'rate']);
             }
           }
         }
         return { errors, missing, peak: peak.high / 1e9, single: state.stream.kept, all: state.stream.packetCount };",
    );
    assert_eq!(result["errors"], serde_json::json!([]), "{result}");
    assert_eq!(result["missing"], serde_json::json!([]), "{result}");
    assert!((result["peak"].as_f64().unwrap() - 0.32).abs() < 1e-6, "{result}");
    assert!(result["single"].as_u64() < result["all"].as_u64(), "{result}");
}

fn without_tcp() {
    let folder = tempfile::tempdir().unwrap();
    // A SYN alone: a stream without data.
    let page = page_of(&folder, "syn.pcap", &[Sent { flags: SYN, port: 9, ..Sent::default() }]);
    let result = evaluate(
        &page,
        &folder,
        "return { errors, rows: document.querySelectorAll('#conversation-rows tr').length };",
    );
    assert_eq!(result, serde_json::json!({ "errors": [], "rows": 1 }));
}
