//! The picture of a finding whose limit is a window, drawn with what was measured.

use super::{Picture, SYMBOLIC, write};
use crate::html::{Page, PageRun, markup::Markup};
use model::WindowInFlight;
use units::BitRate;

/// Nothing without a window and its RTT, and on a link that the window would fill.
pub(crate) fn of_finding(m: &mut Markup, page: &Page<'_>, index: usize, run: &PageRun<'_>) {
    let Some(flight) = run.window else { return };
    let ids = ["limit", "full"].map(|part| format!("window-{index}-{part}"));
    let (pictures, assumption): (Vec<Picture>, String) = match link(run) {
        Some((link, of)) if flight.waiting(link).is_some() => {
            let needed = model::window_for(link, flight.rtt);
            let windows = ids.into_iter().zip([flight.window, needed]);
            let of_window = |(id, window)| Picture::new(id, link, flight.rtt, window);
            (windows.filter_map(of_window).collect(), format!("The link is {of}, {link}."))
        }
        Some(_) => return,
        None => (
            symbolic(ids, flight),
            "The bottleneck rate is unknown, so the width of the bands has no meaning.".to_owned(),
        ),
    };
    if !pictures.is_empty() {
        let of_several = page.runs.len() > 1;
        let label = if of_several { format!(": {}", run.label) } else { String::new() };
        let heading = format!("The window in flight{label}");
        m.leaf("h3", &[("class", &"windows-name")], &heading);
        write(m, &pictures, &assumption);
    }
}

/// The rate of the link, and where it is from; `None` where a transfer gave a lower bound alone.
fn link(run: &PageRun<'_>) -> Option<(BitRate, &'static str)> {
    let configured = run.measurement.path.as_ref().and_then(|path| path.rate_bps);
    if let Some(rate) = configured.filter(|rate| *rate > BitRate::ZERO) {
        return Some((rate, "as configured"));
    }
    let estimate = run.finding.bottleneck.filter(|estimate| estimate.high_bps.is_some())?;
    Some((estimate.rate_bps, "the bottleneck rate as estimated from this transfer"))
}

fn symbolic([limit, full]: [String; 2], flight: WindowInFlight) -> Vec<Picture> {
    let Some(rate) = model::window_rate(flight.window, flight.rtt) else { return Vec::new() };
    let window = flight.window.to_string();
    let caption = format!("{window} in flight: the sender waits in every RTT");
    let small = [caption, window, rate.to_string()];
    let large = ["The BDP in flight: the sender is never idle", "BDP", "link rate"];
    let small = Picture::symbolic(limit, flight.rtt, SYMBOLIC, small);
    let large = Picture::symbolic(full, flight.rtt, 1.0, large.map(str::to_owned));
    small.into_iter().chain(large).collect()
}
