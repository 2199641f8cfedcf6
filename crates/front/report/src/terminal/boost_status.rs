//! Running boxes: what each carries, and what was not boosted.

use super::tune::row;
use super::{
    Style,
    line::{Line, block},
    style,
};
use record::{BoostStatus, BoxRole, BoxStatus};
use std::time::Duration;
use units::{BitRate, ByteCount, significant};

/// The boxes; rates are those since an earlier status of the same boxes.
#[must_use]
pub fn boost_status(status: &BoostStatus, earlier: Option<&BoostStatus>, style: &Style) -> String {
    let mut lines = Vec::new();
    for of in &status.boxes {
        let before = earlier.and_then(|earlier| {
            let same = earlier.boxes.iter().find(|one| one.name == of.name)?;
            Some((same, status.time - earlier.time))
        });
        if !lines.is_empty() {
            lines.push(Line::new(style));
        }
        lines.extend(of_box(of, before, status.time, style));
    }
    for silent in &status.silent {
        let text = format!("{} does not answer: {}", silent.name, silent.why);
        lines.extend(row(style, "Silent", style::WARN, &text));
    }
    if lines.is_empty() {
        let text = "no box of this user runs on this host; give the URL of a box's --metrics";
        lines.extend(row(style, "Boxes", style::PLAIN, text));
    }
    block(lines)
}

fn of_box(of: &BoxStatus, before: Option<(&BoxStatus, f64)>, now: f64, style: &Style) -> Vec<Line> {
    let mut title = of.name.clone();
    if let Some(pid) = of.pid {
        title += &format!(", process {pid}");
    }
    let up = (now - of.started_unix_s).max(0.0);
    title += &format!(", up for {up:.0} s");
    let mut lines = row(style, "Box", style::STRONG, &title);
    let flows = format!(
        "{} open, {} in all, {} on a used lane, {} reset; {} lanes",
        of.active_flows, of.flows, of.reused, of.reset, of.active_lanes
    );
    lines.extend(row(style, "Flows", style::PLAIN, &flows));
    let [from, to] = match of.role {
        BoxRole::Near => ["from applications", "to applications"],
        BoxRole::Far => ["from targets", "to targets"],
        BoxRole::Run => ["from the program", "to the program"],
    };
    let rate = |get: fn(&BoxStatus) -> u64| rate(get(of), before.map(|(same, s)| (get(same), s)));
    let carried = format!(
        "{}{} {from}, {}{} {to}",
        bytes(of.in_bytes),
        rate(|of| of.in_bytes),
        bytes(of.out_bytes),
        rate(|of| of.out_bytes),
    );
    lines.extend(row(style, "Payload", style::PLAIN, &carried));
    let wan = format!(
        "{}{} sent, {}{} received",
        bytes(of.wan_sent_bytes),
        rate(|of| of.wan_sent_bytes),
        bytes(of.wan_received_bytes),
        rate(|of| of.wan_received_bytes),
    );
    lines.extend(row(style, "WAN", style::PLAIN, &wan));
    if let Some(saved) = of.saved_s {
        lines.extend(row(style, "Saved", style::PLAIN, &spared(saved, of.direct_rate_bps)));
    }
    lines.extend(row(style, "CPU", style::PLAIN, &cpu(of, before)));
    let mut refused: Vec<String> = of
        .not_boosted
        .iter()
        .filter(|one| one.count > 0)
        .map(|one| format!("{} {}", one.count, one.reason.replace('_', " ")))
        .collect();
    if of.udp_refused > 0 {
        refused.push(format!("{} UDP datagrams", of.udp_refused));
    }
    if !refused.is_empty() {
        lines.extend(row(style, "Refused", style::WARN, &refused.join(", ")));
    }
    lines
}

fn bytes(count: u64) -> String {
    ByteCount::from_bytes(count).decimal().to_string()
}

/// The rate of a counter since an earlier value, some seconds ago; empty without one.
fn rate(now: u64, before: Option<(u64, f64)>) -> String {
    let Some((before, seconds)) = before.filter(|(_, seconds)| *seconds > 0.0) else {
        return String::new();
    };
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    format!(" ({})", BitRate::of(ByteCount::from_bytes(now.saturating_sub(before)), time))
}

/// The time that flows were spared, and what it is compared with.
fn spared(seconds: f64, direct: Option<BitRate>) -> String {
    let least = format!("at least {} s", significant(seconds, 3));
    match direct {
        Some(rate) => format!("{least} compared with {rate} direct"),
        None => format!("{least} (round trips of slow start that warm connections spared)"),
    }
}

fn cpu(of: &BoxStatus, before: Option<(&BoxStatus, f64)>) -> String {
    let mut text = format!("{} s", significant(of.cpu_s, 3));
    if let Some((same, seconds)) = before.filter(|(_, seconds)| *seconds > 0.0) {
        let cores = (of.cpu_s - same.cpu_s).max(0.0) / seconds;
        text += &format!(", {} cores now", significant(cores, 2));
    }
    let moved = of.in_bytes.saturating_add(of.out_bytes);
    if moved >= 100_000_000 {
        let price = of.cpu_s / (moved as f64 / 1e9);
        text += &format!(", {} s per GB", significant(price, 2));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{NotBoostedCount, SilentBox};

    #[test]
    fn time_saved_says_what_it_is_compared_with() {
        let text = |saved_s, direct_rate_bps| {
            let of = BoxStatus::new("near-1".to_owned(), BoxRole::Near);
            let boxes = vec![BoxStatus { saved_s, direct_rate_bps, ..of }];
            let status =
                BoostStatus { schema: String::new(), time: 1.0, boxes, silent: Vec::new() };
            boost_status(&status, None, &Style { colour: false, width: 100, unicode: true })
        };
        let slow_start = "at least 12.4 s (round trips of slow start that warm connections spared)";
        assert!(text(Some(12.4), None).contains(slow_start));
        let direct = text(Some(260.0), Some("3.03mbit".parse().unwrap()));
        assert!(direct.contains("at least 260 s compared with 3.03 Mbit/s direct"), "{direct}");
        assert!(!text(None, None).contains("Saved"), "far does not know it");
    }

    #[test]
    fn a_box_has_rates_once_it_is_read_twice() {
        let mut of = BoxStatus::new("near-1\u{1b}[2J".to_owned(), BoxRole::Near);
        (of.pid, of.started_unix_s, of.cpu_s) = (Some(7), 1000.0, 2.0);
        (of.flows, of.active_flows, of.in_bytes) = (5, 1, 1_000_000_000);
        let reason = "not_allowed".to_owned();
        of.not_boosted.push(NotBoostedCount { reason, count: 3 });
        of.udp_refused = 9;
        let mut status = BoostStatus {
            schema: String::new(),
            time: 1010.0,
            boxes: vec![of],
            silent: vec![SilentBox { name: "far-2".to_owned(), why: "timed out".to_owned() }],
        };
        let style = Style { colour: false, width: 100, unicode: true };
        let first = boost_status(&status, None, &style);
        for shown in
            ["process 7, up for 10 s", "1 open, 5 in all", "1 GB from applications", "2 s per GB"]
        {
            assert!(first.contains(shown), "{shown}: {first}");
        }
        assert!(
            first.contains("3 not allowed, 9 UDP datagrams") && first.contains("far-2 does not")
        );
        assert!(!first.contains('\u{1b}') && !first.contains("bit/s"), "{first}");
        let earlier = status.clone();
        status.time += 2.0;
        status.boxes[0].in_bytes += 25_000_000;
        status.boxes[0].cpu_s += 1.0;
        let second = boost_status(&status, Some(&earlier), &style);
        assert!(
            second.contains("(100 Mbit/s) from") && second.contains("0.5 cores now"),
            "{second}"
        );
        let none = BoostStatus { boxes: Vec::new(), silent: Vec::new(), ..status };
        assert!(boost_status(&none, None, &style).contains("no box of this user"));
    }
}
