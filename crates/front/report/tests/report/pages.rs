//! A page of each kind.

use crate::{baseline, page, simulation, study, synthetic};
use capture::file::{Compression, FileSummary, Format};
use capture::overview::Overview;
use record::{Confidence, Figure, Limit, PlotKind};
use report::html::{self, CapturePage, StreamGraphs, StudyPage};
use report::terminal::StreamRow;
use tcp_graphs::Encoded;
use units::{BitRate, ByteCount, Rtt};

/// A document, and the files beside it that it may link to.
pub(crate) struct PageFile {
    pub(crate) name: &'static str,
    pub(crate) html: String,
    pub(crate) files: Vec<String>,
}

fn alone(name: &'static str, html: String) -> PageFile {
    PageFile { name, html, files: Vec::new() }
}

/// A page of each kind that is written, most of a test in several forms.
pub(crate) fn all() -> Vec<PageFile> {
    let (before, after) = (synthetic::before(), synthetic::after());
    vec![
        alone("demo", page::two(&before, &after)),
        alone("test", page::one(&before)),
        alone("segments", page::one(&synthetic::in_segments())),
        alone("latency", page::one(&page::with_latency())),
        alone("short", page::one(&short())),
        alone("bdp", bdp(None, 1)),
        alone("baseline", html::baseline_page(&baseline::full(), "a.json")),
        alone("simulation", simulation::page(&["cubic", "bbr"])),
        alone("advice", simulation::advice()),
        study_page(),
        capture(),
    ]
}

/// The path of the synthetic tests.
pub(crate) fn bdp(window: Option<u64>, streams: u32) -> String {
    let question = model::Question {
        rate: BitRate::from_bps(100_000_000),
        rtt: Rtt::from_micros(173_000),
        window: window.map(ByteCount::from_bytes),
        streams,
        mtu: 1500,
    };
    let Ok(report) = model::bdp_report(&question) else { panic!("{question:?}") };
    html::bdp_page(&report, "0.1.0")
}

#[test]
fn the_page_of_a_path_draws_its_window_beside_one_that_fills_the_link() {
    let drawn = |html: &str| html.matches("in flight: the sender is").count() / 2;
    let html = bdp(None, 1);
    for part in [
        "64 KiB in flight: the sender is idle 97 % of the time",
        "2.16 MB in flight: the sender is never idle",
        "Without window scaling, a window of 64 KiB cannot carry more than 3.03 Mbit/s",
        "BDP = rate x RTT = 100 Mbit/s x 173 ms = 17.3 Mbit = 2.1625 MB",
        "longhaul tune plan --rate 100mbit --rtt 173ms<",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(drawn(&html), 2, "{html}");
    let four = bdp(Some(64 << 10), 4);
    assert!(four.contains("256 KiB in flight: the sender is idle 88 % of the time"), "{four}");
    // A window that suffices is shown beside 64 KiB, which do not.
    let large = bdp(Some(4 << 20), 1);
    assert!(large.contains("A window of 4 MiB can fill the link"), "{large}");
    assert!(large.contains("4 MiB in flight: the sender is never idle") && drawn(&large) == 2);
    // Of 128 streams, 64 KiB each fill the link as well.
    assert_eq!(drawn(&bdp(Some(1 << 20), 128)), 1);
}

/// A transfer of a duration with which a naive axis has two ticks.
fn short() -> (record::Measurement, record::Finding) {
    (synthetic::measurement(65_535.0, 9.0, 1), synthetic::before().1)
}

/// Every kind of plot; the first cells have pages.
fn study_page() -> PageFile {
    let plots = PlotKind::ALL.map(|kind| study::plot(kind, Figure::MeanRtt)).to_vec();
    let (mut report, runs) = study::results(plots, |cell, _| 1e6 * (cell + 1) as f64);
    report.parts[0].cells[0].limit = Some(Limit::Loss);
    let html = html::study(&StudyPage {
        report: &report,
        runs: &[runs],
        plans: &["[path]".to_owned()],
        command: "longhaul study run",
        host: "Linux",
        pages: &[vec![0, 1, 2]],
    });
    assert!(html.contains("<i class=\"l-loss\"></i>loss</td>"), "{html}");
    PageFile { name: "study", html, files: (0..3).map(|cell| html::cell_page("", cell)).collect() }
}

/// A plot of a study as a file.
pub(crate) fn plot_as_a_file() -> String {
    let plots = vec![study::plot(PlotKind::Lines, Figure::MeanRtt)];
    let (report, runs) = study::results(plots, |cell, _| 1e6 * (cell + 1) as f64);
    html::study_plots(&report, &[runs]).remove(0).svg
}

fn graphs(stream: u32, limit: Option<Limit>) -> StreamGraphs {
    let none = || [Vec::new(), Vec::new()];
    let mut finding = synthetic::before().1;
    (finding.limit, finding.confidence) = (limit, Some(Confidence::Likely));
    "random loss of <1.8 %> keeps the window small".clone_into(&mut finding.sentence);
    let known = limit.is_some();
    let ends = [format!("192.0.2.1:{stream}"), "192.0.2.2:80".to_owned()];
    StreamGraphs {
        stream,
        ends: ends.clone(),
        payload: [1, 0],
        side: 0,
        row: StreamRow {
            stream,
            ends,
            seconds: 4.0,
            payload: ByteCount::from_bytes(896_000),
            goodput: known.then(|| BitRate::from_bps(1_792_000)),
            retransmits: Vec::new(),
            retransmit_share: 0.016,
            rtt: known.then(|| (Rtt::from_micros(60_000), Rtt::from_micros(68_900))),
            point: String::new(),
            caveats: Vec::new(),
            window: None,
            ecn: Default::default(),
            limit: None,
            times: Vec::new(),
            congestion: None,
        },
        segments: known.then_some((640, 10)),
        finding: known.then_some(finding),
        about: vec!["Captured at the sender.".to_owned()],
        graphs: Encoded {
            width_ns: [1, 1],
            bins: none(),
            packets: none(),
            kept: 0,
            packet_count: 0,
        },
    }
}

/// A capture with an explained stream, and one of which nothing is known.
pub(crate) fn capture() -> PageFile {
    let file = FileSummary {
        format: Format::PcapMicros,
        big_endian: false,
        compression: Compression::None,
        interfaces: Vec::new(),
        sections: 0,
        packets: 2,
        packet_comments: 0,
        comments: vec!["a </comment>".to_owned()],
        captured_by: vec!["dumpcap".to_owned()],
        names: Vec::new(),
        other_blocks: 0,
        backwards: None,
    };
    let html = html::capture_page(&CapturePage {
        name: "a.pcap",
        file: &file,
        overview: &Overview::default(),
        notes: &["The file ends within a packet.".to_owned()],
        conversations: &[],
        conversation_count: 0,
        streams: vec![graphs(7, Some(Limit::Loss)), graphs(9, None)],
    });
    alone("capture", html)
}

#[test]
fn a_capture_begins_with_the_card_of_its_stream() {
    let html = capture().html;
    let (_, body) = html.split_once("<h1>").unwrap();
    let (top, rest) = body.split_once("</article>").unwrap();
    // Cause, rate, loss and RTT, before any prose.
    for part in [
        "Stream 7: 192.0.2.1:7 → 192.0.2.2:80",
        "<i class=\"l-loss\"></i>loss, likely<",
        ">Limited by random loss<",
        "Random loss of &lt;1.8 %&gt; keeps",
        ">1.79 Mbit/s<",
        ">1.6 %<",
        ">10 of 640 segments<",
        ">68.9 ms<",
        "<details class=\"about\"><summary>Details of this stream</summary>",
    ] {
        assert!(top.contains(part), "{part}: {top}");
    }
    let summary = top.find("<summary>").unwrap();
    assert!(top.find("Captured at the sender.").unwrap() > summary, "{top}");
    // The other stream's is hidden until it is selected, and says what is unknown.
    assert!(rest.contains("data-stream=\"9\" hidden=\"\""), "{rest}");
    assert_eq!(rest.split("<ul").next().unwrap().matches(">unknown<").count(), 4);
    // A warning about the file is not folded; what it says of itself is.
    let after = rest.split("</article>").nth(1).unwrap();
    let warning = after.find("ends within a packet").unwrap();
    assert!(warning < after.find("<summary>File information").unwrap());
    assert!(after.contains("Comment: a &lt;/comment&gt;"));
}
