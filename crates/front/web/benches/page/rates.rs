//! Rates that the page shows in Chromium beside those of `longhaul test` over the same path.

use crate::browser;
use crate::hosts::Hosts;
use bench_harness::{Fallible, heading, median, note, row};
use perf::client::{ClientConfig, EndAfter};
use record::Direction;
use std::time::Duration;

/// What is promised of a path.
#[derive(Clone, Copy)]
enum Promise {
    /// The page's rate differs by this share at most, with one flow and with six.
    Within(f64),
    /// With six flows, the page has this share at least, or this rate and its CPU is the limit.
    SixFlows(f64, f64),
}

const PATHS: [(&str, Promise); 4] = [
    ("rate=10mbit,rtt=20ms", Promise::Within(0.03)),
    ("rate=100mbit,rtt=50ms", Promise::Within(0.03)),
    ("rate=500mbit,rtt=20ms", Promise::Within(0.03)),
    ("rate=1gbit,rtt=100ms", Promise::SixFlows(0.9, 500e6)),
];

/// One shape: a direction and a number of flows.
const SHAPES: [(&str, &str, Direction, u32); 4] = [
    ("download", "one_flow", Direction::Reverse, 1),
    ("download", "several_flows", Direction::Reverse, 6),
    ("upload", "one_flow", Direction::Forward, 1),
    ("upload", "several_flows", Direction::Forward, 6),
];

/// Measures in turns; prints medians, and whether the promises are kept.
pub(crate) fn measure(rounds: usize) -> Fallible<()> {
    heading();
    for (path, promise) in PATHS {
        let mut figures: [[Vec<f64>; 2]; 4] = Default::default();
        for _ in 0..rounds {
            let page = Hosts::of(path, "cubic", &[])?;
            let page = page
                .over(|hosts| hosts.serving(|server, _| browser::run(hosts.visitor(), server)))?;
            page.not_valid.iter().for_each(|why| println!("  not valid: {why}"));
            for ((kind, flows, direction, streams), both) in SHAPES.iter().zip(&mut figures) {
                let page = page.result[*kind][*flows].as_f64();
                both[0].push(page.ok_or(format!("no {kind} with {flows}"))?);
                both[1].push(test(path, *direction, *streams)?);
            }
        }
        for ((kind, _, _, streams), [page, test]) in SHAPES.iter().zip(&figures) {
            let (page, test) = (median(page), median(test));
            let what = format!("{path} {kind} {streams}: page / test");
            let measured = format!("{:.1}/{:.1} {:.3}", page / 1e6, test / 1e6, page / test);
            match promise {
                Promise::Within(share) => {
                    let promised = format!("1 ± {share}");
                    row(&what, &promised, &measured, (page / test - 1.0).abs() <= share);
                }
                Promise::SixFlows(share, least) if *streams == 6 => {
                    let kept = page >= share * test || page >= least;
                    row(&what, &format!("{share}, or {:.0} M", least / 1e6), &measured, kept);
                }
                Promise::SixFlows(..) => note(&what, &measured),
            }
        }
    }
    Ok(())
}

fn test(path: &str, direction: Direction, streams: u32) -> Fallible<f64> {
    let config = ClientConfig {
        end: EndAfter::Seconds(5.0),
        omit_seconds: 2,
        direction,
        streams,
        watch_load: Duration::ZERO,
        ..ClientConfig::new("")
    };
    let done = Hosts::of(path, "cubic", &[])?.over(|hosts| hosts.test(config))?;
    Ok(diagnose::explain(&done.result).throughput_bps.as_f64())
}
