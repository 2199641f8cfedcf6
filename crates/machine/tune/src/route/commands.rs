//! The commands of ip-route(8) that do the same as a plan.

use super::find::Found;
use host::kernel_route::KernelRoute;
use record::{RouteChange, RouteMetrics, RoutePrefix};

/// On this host: as the plan changes the routes to the prefix.
pub(super) fn here(prefix: RoutePrefix, found: &Found, metrics: &RouteMetrics) -> Vec<String> {
    let verb = match found.change {
        RouteChange::Copy => "add",
        RouteChange::Metrics => "replace",
    };
    let command = |route: &KernelRoute| {
        let all = route.tcp_metrics().overridden_by(metrics);
        format!("sudo ip {}route {verb} {prefix} {} {all}", family(prefix), route.path_words())
    };
    found.routes.iter().map(command).collect()
}

/// On another host: over the next hop that packets to the prefix take there.
pub(super) fn elsewhere(prefix: RoutePrefix, metrics: &RouteMetrics) -> Vec<String> {
    if prefix.is_default() {
        return Vec::new();
    }
    let (ip, host) = (format!("ip {}route", family(prefix)), prefix.first_host());
    // The next hop is all that a copy needs.
    let next_hop =
        format!("$({ip} get {host} fibmatch | grep -oE '(via .+ )?dev [^ ]+' | head -n 1)");
    vec![
        format!("sudo {ip} replace {prefix} {next_hop} {metrics}"),
        format!("sudo {ip} del {prefix}"),
    ]
}

fn family(prefix: RoutePrefix) -> &'static str {
    if prefix.is_ipv4() { "" } else { "-6 " }
}
