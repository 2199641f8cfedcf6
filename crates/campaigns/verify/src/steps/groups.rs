//! The groups of settings, their order, and the settings that are not tried.

use super::Step;
use record::{Direction, PlannedSetting, TunePlan};

/// Which direction of traffic a setting affects.
#[derive(Clone, Copy, PartialEq)]
enum Affects {
    Sending,
    Receiving,
    Both,
    /// Devices that come up later, which no test can measure now.
    Later,
}

/// The groups in order: window size, congestion control, connection start.
const GROUPS: [&str; 3] = ["buffers", "congestion control", "connection start"];

fn group_of(key: &str) -> (usize, Affects) {
    match key {
        "net.ipv4.tcp_wmem" | "net.core.wmem_max" => (0, Affects::Sending),
        "net.ipv4.tcp_rmem" | "net.core.rmem_max" | "net.ipv4.tcp_moderate_rcvbuf" => {
            (0, Affects::Receiving)
        }
        "net.core.optmem_max" | "net.ipv4.tcp_window_scaling" => (0, Affects::Both),
        "net.ipv4.tcp_congestion_control" => (1, Affects::Sending),
        "net.core.default_qdisc" => (1, Affects::Later),
        _ => (2, Affects::Both),
    }
}

/// The steps of a plan that tests in these directions can measure, and notes on
/// the skipped settings.
pub(super) fn of(plan: &TunePlan, directions: &[Direction]) -> (Vec<Step>, Vec<String>) {
    let sends = directions.iter().any(|direction| *direction != Direction::Reverse);
    let receives = directions.iter().any(|direction| *direction != Direction::Forward);
    let mut steps = GROUPS.map(|name| Step { name, settings: Vec::new() });
    let (mut unseen, mut later) = (Vec::new(), Vec::new());
    for setting in &plan.settings {
        let PlannedSetting { key, .. } = setting;
        let (group, affects) = group_of(key);
        let seen = match affects {
            Affects::Sending => sends,
            Affects::Receiving => receives,
            Affects::Both => true,
            Affects::Later => false,
        };
        match (seen, affects) {
            (true, _) => steps[group].settings.push(setting.clone()),
            (false, Affects::Later) => later.push(key.as_str()),
            (false, _) => unseen.push(key.as_str()),
        }
    }
    let mut notes = Vec::new();
    if !unseen.is_empty() {
        let (does, direction) =
            if sends { ("receives", "a download") } else { ("sends", "an upload") };
        notes.push(format!(
            "not tried: {}; it affects only what this host {does}, which {direction} or a \
             test of both directions measures",
            unseen.join(", ")
        ));
    }
    if !later.is_empty() {
        notes.push(format!(
            "not tried: {}; it affects only devices that come up later; longhaul tune apply sets \
             it",
            later.join(", ")
        ));
    }
    let left = plan.left_out.iter().map(|left| format!("skipped {}: {}", left.key, left.why));
    notes.extend(left);
    (steps.into_iter().filter(|step| !step.settings.is_empty()).collect(), notes)
}
