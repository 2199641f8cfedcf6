//! The commands of ip-route(8) that do the same as a plan.

use super::find::Found;
use host::kernel_route::{KernelRoute, ROUTE_PROTOCOL};
use record::{RouteChange, RouteMetrics, RoutePrefix};

/// On this host: as the plan changes the routes to the prefix.
pub(super) fn here(prefix: RoutePrefix, found: &Found, metrics: &RouteMetrics) -> Vec<String> {
    let verb = match found.change {
        RouteChange::Copy => "add",
        RouteChange::Metrics => "replace",
    };
    let command = |route: &KernelRoute| {
        let all = route.tcp_metrics().overridden_by(metrics);
        // ip-route(8) takes metrics before the first of several next hops.
        let words = route.path_words();
        let (path, hops) = words.split_at(words.find("nexthop ").unwrap_or(words.len()));
        let all = all.to_string();
        let words: Vec<&str> =
            [path.trim(), &all, hops].into_iter().filter(|words| !words.is_empty()).collect();
        format!("sudo ip {}route {verb} {prefix} {}", family(prefix), words.join(" "))
    };
    found.routes.iter().map(command).collect()
}

/// On another host: over the next hop that packets to the prefix take there. A route of its own to
/// the prefix stays as it is, also when the second command reverts the first.
pub(super) fn elsewhere(prefix: RoutePrefix, metrics: &RouteMetrics) -> Vec<String> {
    if prefix.is_default() {
        return Vec::new();
    }
    let (ip, host) = (format!("ip {}route", family(prefix)), prefix.first_host());
    // The next hop is all that a copy needs.
    let next_hop =
        format!("$({ip} get {host} fibmatch | grep -oE '(via .+ )?dev [^ ]+' | head -n 1)");
    vec![
        format!("sudo {ip} add {prefix} {next_hop} proto {ROUTE_PROTOCOL} {metrics}"),
        format!("sudo {ip} del {prefix} proto {ROUTE_PROTOCOL}"),
    ]
}

fn family(prefix: RoutePrefix) -> &'static str {
    if prefix.is_ipv4() { "" } else { "-6 " }
}
