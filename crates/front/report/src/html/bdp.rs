//! The page of a path: its window in flight, and the figures with their equations.

use super::{CSS, document, footer, header::tile, markup::Markup, sliding_window};
use crate::bdp_rows;
use model::BdpReport;
use record::Action;
use sliding_window::Picture;
use units::{BitRate, ByteCount, Rtt};

/// The page as one HTML document.
#[must_use]
pub fn bdp_page(report: &BdpReport, version: &str) -> String {
    let rtt = Rtt::from_secs(report.rtt_ms / 1e3);
    let mut m = Markup::new();
    let title = format!("The window for {} over {rtt}", report.rate_bps);
    document(&mut m, &title, &[CSS, sliding_window::STYLE], "", |m| {
        m.element("main", &[], |m| {
            m.element("header", &[], |m| {
                m.leaf("p", &[("class", &"eyebrow")], &"Longhaul bdp");
                m.leaf("h1", &[], &title);
                m.leaf("p", &[("class", &"lead")], &lead(report));
            });
            tiles(m, report, rtt);
            m.element("section", &[], |m| {
                m.leaf("h2", &[], &"The window in flight");
                let assumption = match report.streams {
                    1 => format!("On a link of {}.", report.rate_bps),
                    n => format!("All {n} streams together, on a link of {}.", report.rate_bps),
                };
                sliding_window::write(m, &pictures(report, rtt), &assumption);
            });
            figures(m, report);
            next(m, report, rtt);
        });
        footer(m, version);
    });
    m.finish()
}

/// The window that is asked about: the given one, else the largest without window scaling.
fn asked(report: &BdpReport) -> &model::WindowRateLine {
    report.given.as_ref().unwrap_or(&report.unscaled)
}

fn lead(report: &BdpReport) -> String {
    let asked = asked(report);
    let window = match (report.streams, &report.given) {
        (1, Some(_)) => format!("A window of {}", asked.window_bytes),
        (1, None) => format!("Without window scaling, a window of {}", asked.window_bytes),
        (n, _) => format!("{n} windows of {}", asked.window_bytes),
    };
    if asked.rate_bps < report.rate_bps {
        let needed = report.window.bytes;
        format!(
            "{window} cannot carry more than {}: the sender waits for acknowledgements. To fill the \
             link, {needed} must be in flight.",
            asked.rate_bps
        )
    } else {
        format!("{window} can fill the link: acknowledgements arrive before all of it is sent.")
    }
}

fn tiles(m: &mut Markup, report: &BdpReport, rtt: Rtt) {
    let asked = asked(report);
    let streams = match report.streams {
        1 => "one connection".to_owned(),
        n => format!("{n} connections"),
    };
    let scale = report.window_per_stream.scale;
    let scale = scale.map_or_else(
        || "more streams are needed".to_owned(),
        |scale| format!("of each stream, window scale {scale}"),
    );
    m.element("section", &[("class", &"path"), ("aria-label", &"Path")], |m| {
        m.element("dl", &[], |m| {
            tile(m, "Bottleneck rate", &report.rate_bps.to_string(), &streams);
            tile(m, "RTT", &rtt.to_string(), "without queueing delay");
            tile(m, "BDP", &report.bdp.bytes.to_string(), "rate × RTT");
            tile(m, "Window", &asked.window_bytes.to_string(), "of each stream");
            let share = if asked.rate_bps < report.rate_bps {
                format!("{} of the link", units::percent_with(asked.link_share, 3))
            } else {
                "enough for the link".to_owned()
            };
            tile(m, "Window / RTT", &asked.rate_bps.to_string(), &share);
            tile(m, "Required window", &report.window_per_stream.bytes.to_string(), &scale);
        });
    });
}

/// The window that is asked about, beside one that fills the link, or one that does not.
fn pictures(report: &BdpReport, rtt: Rtt) -> Vec<Picture> {
    let all = |window: ByteCount| window.times(u64::from(report.streams));
    let (unscaled, asked) = (all(report.unscaled.window_bytes), all(asked(report).window_bytes));
    let needed = report.window.bytes;
    let windows = match (asked < needed, unscaled < needed) {
        (true, _) => vec![asked, needed],
        (false, true) => vec![unscaled, asked],
        (false, false) => vec![asked],
    };
    let link: BitRate = report.rate_bps;
    let each = windows.into_iter().enumerate();
    each.filter_map(|(index, window)| Picture::new(format!("window-{index}"), link, rtt, window))
        .collect()
}

fn figures(m: &mut Markup, report: &BdpReport) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Figures");
        m.table("conditions", |m| {
            m.element("tbody", &[], |m| {
                for (label, equation) in bdp_rows::rows(report).iter().flatten() {
                    m.row(label, [equation]);
                }
            });
        });
    });
}

fn next(m: &mut Markup, report: &BdpReport, rtt: Rtt) {
    let plan = Action::TunePlan { rate: report.rate_bps, rtt, streams: report.streams };
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Next");
        m.element("p", &[("class", &"note")], |m| {
            m.leaf("code", &[("class", &"next")], &plan.command());
            m.text(
                &" (on the sender and the receiver: the settings for this path; changes nothing)",
            );
        });
    });
}
