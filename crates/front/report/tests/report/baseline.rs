//! A baseline on the terminal and as a page.

use crate::assertions::{balanced, fits};
use record::{
    BaselineComparison, BaselineReport, BaselineStep, ComparedCondition, Comparison,
    ServerCandidate, ServerChoice,
};
use report::html::baseline_page;
use report::terminal::{Style, baseline};
use units::BitRate;

/// One that was measured in a lab.
const KEPT: &str = include_str!("../../../../../fuzz/seeds/baseline/lab");

const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[31m\u{202e}";

/// With every part, and texts as a hostile peer or list would choose them.
pub(crate) fn full() -> BaselineReport {
    let Ok(mut report) = serde_json::from_str::<BaselineReport>(KEPT) else {
        panic!("no baseline: its keys have changed")
    };
    report.target = HOSTILE.to_owned();
    report.peer = HOSTILE.to_owned();
    report.steps =
        vec![
            BaselineStep { text: format!("Look at {HOSTILE}"), command: Some(HOSTILE.to_owned()) };
            2
        ];
    let comparison = Comparison {
        method: "runs".to_owned(),
        baseline_count: 3,
        baseline_bps: 90e6,
        count: 3,
        now_bps: 45e6,
        difference_bps: -45e6,
        difference_share: Some(-0.5),
        low_bps: Some(-46e6),
        high_bps: Some(-44e6),
        confidence: 0.95,
        p: Some(0.001),
        real: Some(true),
        sentence: String::new(),
    };
    let compared = |one: &record::BaselineCondition| ComparedCondition {
        condition: one.condition,
        comparison: comparison.clone(),
        significant: Some(true),
        rise: None,
    };
    report.comparison = Some(BaselineComparison {
        target: HOSTILE.to_owned(),
        started_unix_s: 0,
        conditions: report.conditions.iter().map(compared).collect(),
        unmatched: 1,
        warnings: vec![HOSTILE.to_owned()],
        sentence: "It is slower.".to_owned(),
    });
    let server = ServerCandidate {
        host: HOSTILE.to_owned(),
        ports: (1, 2),
        rate_bps: Some(BitRate::from_bps(1_000_000_000)),
        location: HOSTILE.to_owned(),
        rtt_ms: None,
        rtt_from: None,
        rejected: Some("unreachable: no reply".to_owned()),
    };
    report.choice = Some(ServerChoice {
        list: HOSTILE.to_owned(),
        needed_bps: BitRate::from_bps(1_000_000_000),
        needed_from: "requested".to_owned(),
        servers: vec![server; 100],
    });
    report
}

#[test]
fn the_terminal_shows_every_part_in_its_width() {
    let report = full();
    for (width, unicode) in [(80, true), (200, true), (40, false), (1, false)] {
        let text = baseline(&report, &Style { colour: false, width, unicode });
        fits(&text, width);
        assert!(!text.contains('\u{202e}'), "{text}");
        assert!(unicode || text.is_ascii(), "{text}");
    }
    let text = baseline(&report, &Style { colour: false, width: 80, unicode: true });
    for part in [
        "Before the tests",
        "median           75 % interval    median RTT bloat",
        "mean goodput                    before          now",
        "download, 4 streams",
        "20.1 → ",
        "Limit of each condition",
        "Compared with",
        "-50 %  yes",
        "1 condition in only one baseline",
        "unreachable: no reply",
        "92 more: see the page",
        "Next steps",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_page_is_complete_and_loads_nothing() {
    let page = baseline_page(&full(), "monday.json");
    assert_eq!(balanced(&page), Ok(()));
    for fetched in ["src=", "href=", "url(", "<script"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    for part in [
        "Next steps",
        "dots-row",
        "Limit of each condition",
        "Compared with 1970",
        "monday.json",
        ">Median goodput<",
        ">Median RTT<",
        ">Mean before<",
        ">Mean now<",
        ">Mean RTT rise<",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Without a test there is a page all the same.
    let mut empty = full();
    (empty.conditions, empty.interrupted) = (Vec::new(), true);
    let page = baseline_page(&empty, "");
    assert_eq!(balanced(&page), Ok(()));
    assert!(page.contains("No test completed") && page.contains("Interrupted"));
}
