//! The page: whole, self-contained, and deaf to what a peer would have it do.

use crate::{reading::balanced, synthetic};
use record::{Finding, LatencyPhase, LatencyProbe, LatencyUnderLoad, Measurement};
use report::html::{self, Page, Run};

fn keep(name: &str, html: &str) {
    // For a look: open target/tmp/<name>
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    assert!(std::fs::write(path, html).is_ok());
}

fn two(before: &(Measurement, Finding), after: &(Measurement, Finding)) -> String {
    let path = synthetic::path();
    let plan = synthetic::plan();
    let run = |label, (measurement, finding)| Run { label, measurement, finding };
    html::page(&Page {
        title: "A receiver's buffer, and what it cost".to_owned(),
        lead: "The same transfer twice over an emulated path of 100 Mbit/s and 173 ms, Geneva to \
               Chicago and back: with the hosts as they were, and with two settings changed."
            .to_owned(),
        path: Some(&path),
        runs: vec![run("before", (&before.0, &before.1)), run("after", (&after.0, &after.1))],
        plan: &plan,
        gain: Some(32.2),
    })
}

fn one((measurement, finding): &(Measurement, Finding)) -> String {
    html::page(&Page {
        title: "Test of 10.77.0.2".to_owned(),
        lead: String::new(),
        path: None,
        runs: vec![Run { label: "test", measurement, finding }],
        plan: &[],
        gain: None,
    })
}

#[test]
fn a_page_of_two_runs_tells_the_loop() {
    let html = two(&synthetic::before(), &synthetic::after());
    keep("two.html", &html);
    assert_eq!(balanced(&html), Ok(()));
    for part in [
        "32×",
        "2.98 → 96.1 Mbit/s",
        "link 100 Mbit/s",
        "predicted 3.03 Mbit/s",
        "predicted 96.5 Mbit/s",
        "rate × round trip 2.16 MB",
        "net.ipv4.tcp_rmem",
        "6.12.48-amd64",
        "cubic",
        "2026-11-21",
        "prefers-color-scheme: dark",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_page_tells_of_latency_under_load() {
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
    let html = one(&run);
    keep("latency.html", &html);
    assert_eq!(balanced(&html), Ok(()));
    for part in [
        "Latency under load",
        "ICMP echoes",
        ">140.25<",
        ">280.50<",
        "Bufferbloat A+: the load added 0.0 ms",
        ">load<",
        "a &lt;note&gt;",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("NaN") && !html.contains("added -0"));
}

#[test]
fn a_page_of_one_run_stands_alone() {
    let mut run = synthetic::before();
    run.0.path = None;
    let html = one(&run);
    keep("one.html", &html);
    assert_eq!(balanced(&html), Ok(()));
    assert!(!html.contains("What was changed"));
    run.1.limit = None;
    run.1.shares = None;
    for stream in &mut run.0.streams {
        stream.sender.clear();
        stream.receiver.clear();
    }
    let html = one(&run);
    assert!(html.contains("clocks could not be had") && html.contains("No samples"));
}

#[test]
fn an_invalid_path_is_said_first() {
    let mut before = synthetic::before();
    if let Some(path) = &mut before.0.path {
        path.valid = false;
        path.reasons = vec!["99 % of packets left 4 ms late: the machine was busy".to_owned()];
    }
    let html = two(&before, &synthetic::after());
    keep("invalid.html", &html);
    let alert = html.find("Not a valid result").unwrap_or(usize::MAX);
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
    let html = html::page(&Page {
        title: evil(),
        lead: evil(),
        path: Some(&path),
        runs: vec![Run { label: EVIL, measurement: &measurement, finding: &finding }; 2],
        plan: &plan,
        gain: Some(2.0),
    });
    assert_eq!(balanced(&html), Ok(()));
    assert_eq!(html.matches("<script").count(), 1, "our own");
    assert_eq!(html.matches("</script").count(), 1);
    assert_eq!(html.matches("</title>").count(), 1 + html.matches("<title id=").count());
    assert!(!html.contains("<img") && !html.contains("onerror=\""));
    assert!(html.matches("&lt;script&gt;alert(1)").count() >= 15);
}
