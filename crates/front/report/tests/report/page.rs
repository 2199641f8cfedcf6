//! The HTML page: well-formed, self-contained, and safe against a hostile peer.

use crate::{assertions::balanced, synthetic};
use model::WindowInFlight;
use record::{
    Decided, Finding, LatencyPhase, LatencyProbe, LatencyUnderLoad, Limit, Measurement,
    RateEstimate,
};
use report::html::{self, Page, PageRun};
use units::{BitRate, ByteCount, Rtt};

fn keep(name: &str, html: &str) {
    // To inspect it, open target/tmp/<name>.
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    assert!(std::fs::write(path, html).is_ok());
}

/// That of [`synthetic::before`].
fn window(finding: &Finding) -> Option<WindowInFlight> {
    let (window, rtt) = (ByteCount::from_bytes(65_535), Rtt::from_micros(173_300));
    (finding.limit == Some(Limit::ReceiveWindow)).then_some(WindowInFlight { window, rtt })
}

pub(crate) fn two(before: &(Measurement, Finding), after: &(Measurement, Finding)) -> String {
    let path = synthetic::path();
    let plan = synthetic::plan();
    let run = |label, (measurement, finding)| PageRun {
        label,
        measurement,
        finding,
        window: window(finding),
    };
    html::page(&Page {
        title: "A receive buffer smaller than the BDP".to_owned(),
        lead: "The same transfer over an emulated path of 100 Mbit/s and 173 ms RTT, before and \
               after changing two settings."
            .to_owned(),
        path: Some(&path),
        runs: vec![run("before", (&before.0, &before.1)), run("after", (&after.0, &after.1))],
        decision: None,
        plan: &plan,
        gain: Some(32.2),
        ..Page::default()
    })
}

#[test]
fn a_page_has_the_answer_of_the_second_test() {
    let (measurement, finding) = synthetic::before();
    let sentence = "It is loss: with -C bbr, 90 Mbit/s instead of 20 <b>.".to_owned();
    let decided =
        Decided { between: vec![], options: None, throughput_bps: None, limit: None, sentence };
    let page = Page {
        title: String::new(),
        lead: String::new(),
        path: None,
        runs: vec![PageRun {
            label: "test",
            measurement: &measurement,
            finding: &finding,
            window: None,
        }],
        decision: Some(&decided),
        plan: &[],
        gain: None,
        ..Page::default()
    };
    let with = html::page(&page);
    assert_eq!(balanced(&with), Ok(()));
    assert!(with.contains("<b>Second test: </b>It is loss: with -C bbr"), "{with}");
    assert!(with.contains("instead of 20 &lt;b&gt;."), "escaped");
    assert!(!html::page(&Page { decision: None, ..page }).contains("Second test"));
}

pub(crate) fn one((measurement, finding): &(Measurement, Finding)) -> String {
    html::page(&Page {
        title: "Test of 10.77.0.2".to_owned(),
        lead: String::new(),
        path: None,
        runs: vec![PageRun { label: "test", measurement, finding, window: window(finding) }],
        decision: None,
        plan: &[],
        gain: None,
        ..Page::default()
    })
}

#[test]
fn a_page_of_two_runs_compares_them() {
    let html = two(&synthetic::before(), &synthetic::after());
    keep("two.html", &html);
    assert_eq!(balanced(&html), Ok(()));
    for part in [
        "32×",
        "2.98 → 96.1 Mbit/s",
        "link rate 100 Mbit/s<",
        "predicted 3.03 Mbit/s",
        "predicted 96.5 Mbit/s",
        "BDP 2.16 MB",
        "net.ipv4.tcp_rmem",
        ">client: 6.12.48-amd64<",
        ">client: cubic<",
        ">client: 4096 16384 16777216<",
        ">server: 11 %<",
        "2026-11-21",
        "prefers-color-scheme: dark",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_window_that_limits_is_drawn_with_the_link_as_far_as_it_is_known() {
    let run = synthetic::before();
    let known = one(&run);
    for part in [
        "64 kB in flight: the sender is idle 97 % of the time",
        "2.17 MB in flight: the sender is never idle",
        "The link is as configured, 100 Mbit/s. Drawn without headers",
    ] {
        assert!(known.replace("65.5 kB", "64 kB").contains(part), "{part}: {known}");
    }
    let of = |link: Option<u64>, estimate: Option<RateEstimate>| {
        let mut run = run.clone();
        if let Some(path) = &mut run.0.path {
            path.rate_bps = link.map(BitRate::from_bps);
        }
        run.1.bottleneck = estimate;
        one(&run)
    };
    let estimate = |high_bps| {
        let rate_bps = BitRate::from_bps(50_000_000);
        Some(RateEstimate { rate_bps, low_bps: rate_bps, high_bps })
    };
    let seen = of(None, estimate(Some(BitRate::from_bps(51_000_000))));
    assert!(seen.contains("the bottleneck rate as estimated from this transfer, 50 Mbit/s."));
    // A lower bound is no link rate, and no idle share follows from it.
    let unknown = of(None, estimate(None));
    assert!(unknown.contains("The bottleneck rate is unknown, so the width"), "{unknown}");
    assert!(!unknown.contains("idle 9") && unknown.contains(">idle<"), "{unknown}");
    // On a link that the window fills, the sender would not wait.
    let full = of(Some(3_000_000), None);
    assert!(!full.contains("class=\"windows\""), "{full}");
    assert!(!one(&synthetic::after()).contains("class=\"windows\""));
}

/// A run with the latency under load, whose grade is A+.
pub(crate) fn with_latency() -> (Measurement, Finding) {
    let mut run = synthetic::before();
    let phase = |ms: f64| LatencyPhase {
        count: 100,
        lost: 1,
        min_ms: Some(ms),
        p99_ms: Some(ms * 2.0),
        ..LatencyPhase::default()
    };
    let probe = |n: i32| LatencyProbe {
        at_s: f64::from(n) * 0.1,
        rtt_ms: (n % 40 != 0).then_some(if n > 0 { 140.0 } else { 40.0 }),
    };
    run.0.latency = Some(LatencyUnderLoad {
        method: "icmp".to_owned(),
        port: None,
        interval_ms: 100.0,
        before: phase(40.0),
        during: phase(140.25),
        after: LatencyPhase::default(),
        rise_ms: Some(-0.01),
        grade: Some("A+".to_owned()),
        rpm_tcp: None,
        rpm_word: None,
        rpm_port: None,
        rpm_count: 0,
        probes: (-20..220).map(probe).collect(),
        notes: vec!["a <note>".to_owned()],
    });
    run
}

#[test]
fn a_page_shows_latency_under_load() {
    let run = with_latency();
    let html = one(&run);
    keep("latency.html", &html);
    assert_eq!(balanced(&html), Ok(()));
    for part in [
        "Latency under load",
        "ICMP echo requests",
        ">140.25<",
        ">280.50<",
        "Bufferbloat grade A+: mean RTT +0.0 ms under load",
        ">under load<",
        "a &lt;note&gt;",
        // Beside the headline.
        "<b>A+</b>latency under load: mean RTT +0.0 ms</p>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("NaN") && !html.contains("RTT -0"));
}

#[test]
fn a_page_of_one_run_stands_alone() {
    let mut run = synthetic::before();
    run.0.path = None;
    let html = one(&run);
    keep("one.html", &html);
    assert_eq!(balanced(&html), Ok(()));
    assert!(!html.contains("Changed settings"));
    // A link rate far above the throughput is an arrow, not the scale.
    let mut far_below = synthetic::before();
    far_below.0.latency = None;
    assert!(one(&far_below).contains("link rate 100 Mbit/s ↑"));
    run.1.limit = None;
    run.1.shares = None;
    for stream in &mut run.0.streams {
        stream.sender.clear();
        stream.receiver.clear();
    }
    let html = one(&run);
    assert!(html.contains("timers are unavailable") && html.contains("No samples"));
}

#[test]
fn a_page_shows_the_limits_over_time() {
    let run = synthetic::in_segments();
    let html = one(&run);
    keep("segments.html", &html);
    assert_eq!(balanced(&html), Ok(()));
    for part in [
        "Likely: loss 72 %, clustered-loss 20 %<",
        "Bottleneck rate: 96.1 Mbit/s of payload (90 % interval: 94.8 to 97.2 Mbit/s)",
        "Limits: ramp from 0 s to 1.2 s, path-rate from 1.2 s to 3.4 s, loss from 3.4 s",
        "<title>loss from 3.4 s to 8 s</title>",
        "</b> 46 % of the time, 83 % of the lost goodput",
        "<td>1.2</td><td>3.4</td><th scope=\"row\"><i class=\"l-path-rate\"></i>path-rate</th>\
         <td>&gt;99 %</td><td>96 Mbit/s</td><td>0 %</td>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    // Throughput, bytes in flight and RTT, each wide and narrow.
    assert_eq!(html.matches("<title>loss from").count(), 6);
    assert!(!html.contains(">steady state<"));
    // Of two runs, each has its own bands; the common charts have none.
    let html = two(&synthetic::before(), &run);
    keep("segments-two.html", &html);
    assert_eq!(html.matches("<title>loss from").count(), 2, "its card, its bytes in flight");
    assert_eq!(html.matches(">steady state<").count(), 1);
}

#[test]
fn an_invalid_path_is_reported_first() {
    let mut before = synthetic::before();
    if let Some(path) = &mut before.0.path {
        path.valid = false;
        path.reasons = vec!["99 % of packets left 4 ms late: the machine was busy".to_owned()];
    }
    let html = two(&before, &synthetic::after());
    keep("invalid.html", &html);
    let alert = html.find("Invalid result").unwrap_or(usize::MAX);
    assert!(alert < html.find("32×").unwrap_or(0));
    assert!(html.contains("the machine was busy"));
}

#[test]
fn nothing_is_fetched() {
    let html = two(&synthetic::before(), &synthetic::after()).to_lowercase();
    for reference in
        ["http:", "https:", "src=", "href=", "@import", "url(h", "url(/", "<link", "<img", "fetch("]
    {
        assert!(!html.contains(reference), "{reference}");
    }
    let ours = html.matches("url(").count();
    assert_eq!(ours, html.matches("url(#").count());
}

#[test]
fn a_peer_cannot_write_the_page() {
    const EVIL: &str = "</title></script><script>alert(1)</script><img src=x onerror=\"a\">'\"&";
    let evil = || EVIL.to_owned();
    let (mut measurement, mut finding) = synthetic::before();
    measurement.peer = evil();
    measurement.notes = vec![evil()];
    measurement.version = evil();
    measurement.host.kernel = evil();
    measurement.spec.target = evil();
    measurement.spec.congestion = Some(evil());
    measurement.streams[0].congestion = Some(evil());
    finding.sentence = evil();
    finding.equation = Some(evil());
    let mut path = synthetic::path();
    path.queue = evil();
    path.valid = false;
    path.reasons = vec![evil()];
    measurement.path = Some(path.clone());
    let plan: Vec<_> = synthetic::plan()
        .into_iter()
        .map(|mut item| {
            (item.host, item.key, item.from, item.to, item.why) =
                (evil(), evil(), evil(), evil(), evil());
            item
        })
        .collect();
    let decided = Decided {
        between: vec![],
        options: Some(evil()),
        throughput_bps: None,
        limit: None,
        sentence: evil(),
    };
    let html = html::page(&Page {
        title: evil(),
        lead: evil(),
        path: Some(&path),
        runs: vec![
            PageRun {
                label: EVIL,
                measurement: &measurement,
                finding: &finding,
                window: None
            };
            2
        ],
        decision: Some(&decided),
        plan: &plan,
        gain: Some(2.0),
        ..Page::default()
    });
    assert_eq!(balanced(&html), Ok(()));
    assert_eq!(html.matches("<script").count(), 1, "our own");
    assert_eq!(html.matches("</script").count(), 1);
    assert_eq!(html.matches("</title>").count(), 1 + html.matches("<title id=").count());
    assert!(!html.contains("<img") && !html.contains("onerror=\""));
    assert!(html.matches("&lt;script&gt;alert(1)").count() >= 15);
}

#[test]
fn naks_are_marked_on_the_curve_and_the_disk_is_drawn_beside_it() {
    let (mut measurement, finding) = synthetic::before();
    let plain = one(&(measurement.clone(), finding.clone()));
    assert!(!plain.contains("class=\"nak\"") && !plain.contains("NAK"), "of TCP");
    let samples = measurement.streams.iter_mut().flat_map(|stream| &mut stream.sender);
    for sample in samples {
        sample.naks = Some(if sample.t_s > 3.0 { 5 } else { 0 });
        sample.source_bytes = Some((sample.t_s * 1e6) as u64);
    }
    let html = one(&(measurement, finding));
    assert_eq!(balanced(&html), Ok(()));
    keep("naks.html", &html);
    // A triangle in each shape of the chart, which says how many, and a legend.
    assert_eq!(html.matches("class=\"nak\"").count(), 2, "{html}");
    assert!(html.contains("<title>5 NAKs at 3") || html.contains("<title>5 NAKs at 2"), "{html}");
    assert!(html.contains("▼ 5 NAKs</b> received by the sender, in 1 interval"), "{html}");
    assert!(html.contains("curve disk") && html.contains("the rate at which the file is read"));
}
