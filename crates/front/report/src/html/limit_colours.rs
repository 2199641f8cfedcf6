//! The colour of each limit: the same on every page, and that of no run.
//!
//! In both themes every colour has a contrast of at least 3 to 1 to the background and to a card
//! (WCAG 2.2, 1.4.11), and a distance of at least 0.06 in OKLab to every other limit's and to
//! those of the runs. `tests/report/colours.rs` checks it.

use super::markup::Markup;
use crate::wording::Cause;
use record::Limit;

/// The colours of a limit in the light and in the dark theme.
const fn colours(limit: Limit) -> [&'static str; 2] {
    match limit {
        Limit::ReceiveWindow => ["#ae8100", "#fcd76f"],
        Limit::WindowScaling => ["#622536", "#c13d65"],
        Limit::SlowReceiver => ["#a2816d", "#f0c5c5"],
        Limit::SendBuffer => ["#b74593", "#fb84d2"],
        Limit::Application => ["#5c7b13", "#99c73d"],
        Limit::Pacing => ["#2d918e", "#3de2dd"],
        Limit::Cpu => ["#6d0f76", "#b65cbf"],
        Limit::Memory => ["#744168", "#e957bc"],
        Limit::PacingTimers => ["#432979", "#7a63b8"],
        Limit::Ramp => ["#a369d9", "#e078ff"],
        Limit::CongestionAvoidance => ["#5b52c3", "#9ea0fa"],
        Limit::PathRate => ["#1a89c5", "#3ca2e0"],
        Limit::ShallowQueue => ["#2d564b", "#00b292"],
        Limit::Aqm => ["#7a89a8", "#bee0f9"],
        Limit::SharedBottleneck => ["#044069", "#2c83c5"],
        Limit::Policer => ["#723e16", "#cb7739"],
        Limit::EcnMarks => ["#2b650e", "#5eb03d"],
        Limit::Loss => ["#e2314e", "#fe5828"],
        Limit::ClusteredLoss => ["#920034", "#e25a73"],
        Limit::Reordering => ["#12389e", "#6885f6"],
        Limit::AckPath => ["#5021b5", "#9162f5"],
        Limit::PathChange => ["#627fef", "#7a85a5"],
        Limit::FixedWindow => ["#374300", "#74881b"],
        Limit::Outage => ["#c9647d", "#da93a8"],
        Limit::PmtuBlackHole => ["#e84da8", "#b87899"],
        Limit::Unknown => ["#6b7076", "#9aa1aa"],
    }
}

/// The time that a sender waited for the network: for several limits, so the colour of none.
const NETWORK: (&str, [&str; 2]) = ("network", ["#455174", "#a9bfe0"]);

/// The custom properties of both themes, and the class of each limit.
pub(super) fn style() -> String {
    let all = || {
        let limits = Limit::ALL.into_iter().map(|limit| (limit.name(), colours(limit)));
        limits.chain([NETWORK])
    };
    let properties = |theme: usize| -> String {
        all().map(|(name, colours)| format!("--l-{name}:{};", colours[theme])).collect()
    };
    let classes: String =
        all().map(|(name, _)| format!(".l-{name}{{--s:var(--l-{name})}}\n")).collect();
    format!(
        ":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root:not(.print){{{}}}}}\n\
         {classes}",
        properties(0),
        properties(1)
    )
}

/// The class of a limit's colour.
pub(super) fn class(limit: Limit) -> String {
    format!("l-{}", limit.name())
}

/// The class of a cause's colour: that of its limit.
pub(super) fn class_of_cause(cause: Cause) -> String {
    match cause {
        Cause::ReceiveWindow => class(Limit::ReceiveWindow),
        Cause::SendBuffer => class(Limit::SendBuffer),
        Cause::Application => class(Limit::Application),
        Cause::Network => format!("l-{}", NETWORK.0),
    }
}

/// A mark of the limit's colour, before its name.
pub(super) fn mark(m: &mut Markup, limit: Limit) {
    m.leaf("i", &[("class", &class(limit))], &"");
}
