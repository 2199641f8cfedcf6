//! Which settings are tried together, in which order, and which are not tried.

use super::Step;
use record::{Direction, PlannedSetting, TunePlan};

/// Where a setting of a plan bears.
#[derive(Clone, Copy, PartialEq)]
enum Bears {
    OnSending,
    OnReceiving,
    OnBoth,
    /// On devices that come up later, which no test of now can see.
    Later,
}

/// The groups in their order: what allows a window at all, what fills it, and
/// how connections begin.
const GROUPS: [&str; 3] = ["buffers", "congestion control", "manners"];

fn belongs(key: &str) -> (usize, Bears) {
    match key {
        "net.ipv4.tcp_wmem" | "net.core.wmem_max" => (0, Bears::OnSending),
        "net.ipv4.tcp_rmem" | "net.core.rmem_max" | "net.ipv4.tcp_moderate_rcvbuf" => {
            (0, Bears::OnReceiving)
        }
        "net.core.optmem_max" | "net.ipv4.tcp_window_scaling" => (0, Bears::OnBoth),
        "net.ipv4.tcp_congestion_control" => (1, Bears::OnSending),
        "net.core.default_qdisc" => (1, Bears::Later),
        _ => (2, Bears::OnBoth),
    }
}

/// The steps of a plan, as far as tests in these directions can show them, and
/// in words what is left out.
pub(super) fn of(plan: &TunePlan, directions: &[Direction]) -> (Vec<Step>, Vec<String>) {
    let sends = directions.iter().any(|direction| *direction != Direction::Reverse);
    let receives = directions.iter().any(|direction| *direction != Direction::Forward);
    let mut steps = GROUPS.map(|name| Step { name, settings: Vec::new() });
    let (mut unseen, mut later) = (Vec::new(), Vec::new());
    for setting in &plan.settings {
        let PlannedSetting { key, .. } = setting;
        let (group, bears) = belongs(key);
        let seen = match bears {
            Bears::OnSending => sends,
            Bears::OnReceiving => receives,
            Bears::OnBoth => true,
            Bears::Later => false,
        };
        match (seen, bears) {
            (true, _) => steps[group].settings.push(setting.clone()),
            (false, Bears::Later) => later.push(key.as_str()),
            (false, _) => unseen.push(key.as_str()),
        }
    }
    let mut notes = Vec::new();
    if !unseen.is_empty() {
        let (does, option) = if sends { ("receives", "-R") } else { ("sends", "no -R") };
        notes.push(format!(
            "not tried: {}; that bears on what this host {does}, which {option} or --both measures",
            unseen.join(", ")
        ));
    }
    if !later.is_empty() {
        notes.push(format!(
            "not tried: {}; devices that are up keep what they have, so that no test would show \
             it; longhaul tune apply sets it",
            later.join(", ")
        ));
    }
    let left = plan.left_out.iter().map(|left| format!("{} is left out: {}", left.key, left.why));
    notes.extend(left);
    (steps.into_iter().filter(|step| !step.settings.is_empty()).collect(), notes)
}
