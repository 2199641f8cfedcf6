//! Families of scenarios: each draws paths and traffic around one idea. What limits a run is
//! not assumed by the family, but computed from what happened in it.

mod hosts;
mod losses;
mod saturated;
mod transients;

use crate::Scenario;
use crate::draws::{Draws, Mix};
use units::ByteCount;

/// A family of scenarios.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    draw: fn(&mut Draws) -> Scenario,
    /// How many scenarios of each rotation are of it.
    pub weight: usize,
}

const fn family(name: &'static str, weight: usize, draw: fn(&mut Draws) -> Scenario) -> Family {
    Family { name, draw, weight }
}

/// The families of all hosts.
const FAMILIES: &[Family] = &[
    family("plain", 3, saturated::plain),
    family("shallow-queue", 3, saturated::shallow_queue),
    family("aqm", 2, saturated::aqm),
    family("ecn-marks", 3, saturated::ecn_marks),
    family("shared-bottleneck", 4, saturated::shared_bottleneck),
    family("policer", 3, losses::policer),
    family("loss", 4, losses::independent),
    family("clustered-loss", 4, losses::clustered),
    family("reordering", 6, losses::reordering),
    family("ack-path", 4, losses::ack_path),
    family("receive-window", 2, hosts::receive_window),
    family("window-scaling", 3, hosts::window_scaling),
    family("slow-receiver", 3, hosts::slow_receiver),
    family("send-buffer", 3, hosts::send_buffer),
    family("application", 3, hosts::application),
    family("pacing", 3, hosts::pacing),
    family("ramp", 3, transients::ramp),
    family("overshoot", 5, transients::overshoot),
    family("path-change", 3, transients::path_change),
    family("handovers", 2, transients::handovers),
    family("wifi", 2, transients::wifi),
    family("succession", 4, transients::succession),
];

/// Those of real hosts alone.
const OF_REAL_HOSTS: &[Family] = &[family("cpu", 3, hosts::cpu)];

/// The hosts of a scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hosts {
    /// Simulated: they have no CPU time.
    #[default]
    Simulated,
    /// Real kernels, over an emulated path.
    Real,
}

/// The families that run between such hosts.
pub fn families(hosts: Hosts) -> impl Iterator<Item = &'static Family> {
    let further = if hosts == Hosts::Real { OF_REAL_HOSTS } else { &[] };
    FAMILIES.iter().chain(further)
}

/// How the families' scenarios are mixed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Proportions {
    /// Every family has CUBIC, Reno and BBR, one and several streams, both directions, and
    /// ample and default buffers in equal parts.
    #[default]
    Balanced,
    /// As bulk transfers are: mostly CUBIC, one stream, and from the client. The terms were
    /// fitted to these.
    Bulk,
}

/// A set that scenarios are drawn from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScenarioSet {
    /// The hosts that they run between.
    pub hosts: Hosts,
    /// How the families' scenarios are mixed.
    pub proportions: Proportions,
}

impl Scenario {
    /// The scenario of that number for a seed: always the same one.
    #[must_use]
    pub fn draw(set: ScenarioSet, seed: u64, number: usize) -> Self {
        let ScenarioSet { hosts, proportions } = set;
        let total = families(hosts).map(|family| family.weight).sum::<usize>().max(1);
        // Neighbours are of different families: a stride that has no factor in common with
        // any total below it.
        let mut at = number.wrapping_mul(7919) % total;
        let found = families(hosts).enumerate().find(|(_, family)| {
            let within = at < family.weight;
            at = at.saturating_sub(if within { 0 } else { family.weight });
            within
        });
        let (place, family) = found.unwrap_or((0, &FAMILIES[0]));
        let mix = match proportions {
            // Families begin at different mixes, or the first runs would all be CUBIC's.
            Proportions::Balanced => Some(Mix::of(number / total * family.weight + at + place)),
            Proportions::Bulk => None,
        };
        let mut draws =
            mix.map_or_else(|| Draws::new(seed, number), |mix| Draws::of_mix(seed, number, mix));
        let scenario = Scenario { family: family.name, number, ..(family.draw)(&mut draws) };
        if mix.is_some_and(|mix| mix.default_buffers) {
            with_default_buffers(scenario)
        } else {
            scenario
        }
    }

    /// True if the send buffer or the receive window is Linux's default.
    #[must_use]
    pub fn has_default_buffers(&self) -> bool {
        self.send_buffer == Some(DEFAULT_SEND_BUFFER) || self.receive_window == Some(DEFAULT_WINDOW)
    }
}

/// Linux's default maximum of `tcp_wmem`, and the window of its default `tcp_rmem`: half of 6 MiB.
const DEFAULT_SEND_BUFFER: ByteCount = ByteCount::from_bytes(4 << 20);
const DEFAULT_WINDOW: ByteCount = ByteCount::from_bytes(3 << 20);

/// With Linux's default `tcp_rmem` and `tcp_wmem`, where the scenario does not set them.
fn with_default_buffers(scenario: Scenario) -> Scenario {
    Scenario {
        send_buffer: scenario.send_buffer.or(Some(DEFAULT_SEND_BUFFER)),
        receive_window: scenario.receive_window.or(Some(DEFAULT_WINDOW)),
        ..scenario
    }
}
