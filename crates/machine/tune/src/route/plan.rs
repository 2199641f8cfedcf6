//! The metrics for a destination, each with its reason.

use super::commands;
use super::find::{AVAILABLE, Found, RouteError, check_available, shown};
use super::goal::RouteGoal;
use super::predict::{InForce, Path};
use crate::{RoutingTable, Settings};
use model::Payload;
use record::{
    PlannedMetric, RouteChange, RouteMetric, RouteMetrics, SkippedMetric, TUNE_ROUTE_PLAN_SCHEMA,
    TuneRoutePlan,
};
use units::{ByteCount, LossRatio, percent};

/// Bytes of the first window that a receiver announces with Linux' defaults: half of the second
/// value of `tcp_rmem`, 128 KiB, and at most what a SYN's window field holds (RFC 7323, section
/// 2.2). A larger initial congestion window waits for it.
const FIRST_WINDOW: u64 = 65_535;

/// The ratio of predicted to present goodput from which a congestion control is worth it.
const WORTH: f64 = 1.02;

/// Plans for a destination: never lowers the initial congestion window, and sets what the goal
/// names. Only reads.
///
/// # Errors
/// [`RouteError`], if there is no route whose metrics can be changed, or the kernel lacks the
/// congestion control.
pub fn advise_route(
    settings: &dyn Settings,
    table: &dyn RoutingTable,
    goal: &RouteGoal,
) -> Result<TuneRoutePlan, RouteError> {
    let found = Found::new(table, goal.route)?;
    let route = found.in_force().ok_or(RouteError::NoRoute(goal.route))?;
    let payload = goal.payload(route.mtu());
    let host = settings.read("net.ipv4.tcp_congestion_control").unwrap_or_default();
    let present = route.tcp_metrics();
    let send_buffer = third(settings, "net.ipv4.tcp_wmem");
    let path = Path::new(goal, &payload, send_buffer);
    let before = InForce::new(&present, &host);
    let mut draft = Draft::default();
    congestion(&mut draft, settings, goal, path.as_ref(), &before, &present);
    initial_window(&mut draft, goal, &payload, &before);
    receive_window(&mut draft, settings, goal, &payload, &present);
    check_available(settings, &draft.metrics)?;
    let after = InForce::new(&present.overridden_by(&draft.metrics), &host);
    let mut notes = notes(goal, &found, &draft);
    if after.is_bbr() && path.as_ref().is_some_and(Path::is_behind_send_buffer) {
        notes.push(
            "no prediction: tcp_wmem holds less than the path, and BBR behind such a buffer was \
             slower than CUBIC; raise tcp_wmem first, with longhaul tune plan without a route"
                .to_owned(),
        );
    }
    let metrics = draft.metrics;
    let planned = !metrics.is_empty();
    let commands = match planned {
        true => commands::here(goal.route, &found, &metrics),
        false => Vec::new(),
    };
    let other_hosts = match planned {
        true => commands::elsewhere(goal.route, &metrics),
        false => Vec::new(),
    };
    Ok(TuneRoutePlan {
        schema: TUNE_ROUTE_PLAN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        goal: goal.text(),
        prefix: goal.route,
        change: found.change,
        in_force: shown(route),
        metrics,
        settings: draft.settings,
        left_out: draft.left_out,
        predictions: path.map(|path| path.predictions(&before, &after)).unwrap_or_default(),
        commands,
        other_hosts,
        limits: limits(goal, send_buffer),
        notes,
    })
}

#[derive(Default)]
struct Draft {
    metrics: RouteMetrics,
    settings: Vec<PlannedMetric>,
    left_out: Vec<SkippedMetric>,
}

impl Draft {
    fn set(&mut self, metric: RouteMetric, now: String, planned: String, why: String, risk: &str) {
        self.settings.push(PlannedMetric { metric, now, planned, why, risk: risk.to_owned() });
    }

    fn skip(&mut self, metric: RouteMetric, why: String) {
        self.left_out.push(SkippedMetric { metric, why });
    }
}

fn congestion(
    draft: &mut Draft,
    settings: &dyn Settings,
    goal: &RouteGoal,
    path: Option<&Path>,
    before: &InForce,
    present: &RouteMetrics,
) {
    let metric = RouteMetric::Congctl;
    let (name, why) = match &goal.congestion {
        Some(name) => (name.trim().to_owned(), "requested".to_owned()),
        None => match worthwhile(settings, goal, path, before) {
            Ok(chosen) => chosen,
            Err(why) => return draft.skip(metric, why),
        },
    };
    if name == before.congestion {
        return draft.skip(metric, format!("connections over this route use {name} already"));
    }
    let from = if present.congctl.is_some() { "this route" } else { "the host's default" };
    let risk = match name.as_str() {
        "bbr" => "unfair to CUBIC connections in shallow queues",
        _ => "open connections keep theirs",
    };
    draft.set(metric, format!("{} ({from})", before.congestion), name.clone(), why, risk);
    draft.metrics.congctl = Some(name);
}

/// BBR, if the loss is known and makes it faster than the present one; else the reason.
fn worthwhile(
    settings: &dyn Settings,
    goal: &RouteGoal,
    path: Option<&Path>,
    before: &InForce,
) -> Result<(String, String), String> {
    let Some(loss) = goal.loss.filter(|loss| *loss > LossRatio::NONE) else {
        return Err(format!(
            "without a known loss {} fills the path; if the path loses packets, give the loss that \
             a test reported",
            before.congestion
        ));
    };
    let bbr = InForce { congestion: "bbr".to_owned(), ..before.clone() };
    let rates = path.and_then(|path| path.long(before).zip(path.long(&bbr)));
    let Some((now, then)) = rates else {
        return Err(format!(
            "no equation gives the rate of {} or of BBR at {} loss",
            before.congestion,
            percent(loss.fraction())
        ));
    };
    if before == &bbr {
        return Err("connections over this route use bbr already".to_owned());
    }
    if then.as_f64() < WORTH * now.as_f64() {
        return Err(format!("{} reaches {now}, and BBR {then}", before.congestion));
    }
    let available = settings.read(AVAILABLE).unwrap_or_default();
    if !available.split(' ').any(|one| one == "bbr") {
        return Err(format!(
            "bbr would reach {then}, and is not available (available: {available}); load its \
             module: modprobe tcp_bbr"
        ));
    }
    let why = format!(
        "at {} loss {} reaches {now} and BBR {then}: it does not back off at each loss (Cardwell et \
         al. 2016)",
        percent(loss.fraction()),
        before.congestion
    );
    Ok(("bbr".to_owned(), why))
}

fn initial_window(draft: &mut Draft, goal: &RouteGoal, payload: &Payload, before: &InForce) {
    let metric = RouteMetric::Initcwnd;
    let (now, mss) = (before.initcwnd, u64::from(payload.mss().unwrap_or(1)));
    let in_flight = model::bdp(goal.rate, goal.rtt);
    let needed = model::per_stream(in_flight, goal.streams.max(1)).bytes() / mss;
    let first = FIRST_WINDOW / mss;
    let best = u32::try_from(needed.min(first)).unwrap_or(u32::MAX);
    let asked = goal.initcwnd;
    let planned = asked.unwrap_or(best.max(now));
    if planned == now {
        return draft.skip(
            metric,
            match asked {
                Some(_) => format!("it is {now} segments already"),
                None => {
                    format!("{now} segments suffice: the path holds {needed} (RFC 6928 has 10)")
                }
            },
        );
    }
    let rounds = (f64::from(planned) / f64::from(now)).log2();
    let why = match asked {
        Some(_) => "requested".to_owned(),
        None => format!(
            "{} x {} = {in_flight}, {needed} segments of {mss} bytes; RFC 6928 begins with 10. \
             {planned} fill the first window of a receiver with Linux' defaults (64 KiB) and save \
             {rounds:.1} of the RTTs in which slow start doubles the window (RFC 5681, section 3.1)",
            goal.rate, goal.rtt
        ),
    };
    let risk = "each connection begins with a burst of that many packets, which a shallow queue \
                drops in part; fq and BBR pace it";
    draft.set(metric, format!("{now} segments"), planned.to_string(), why, risk);
    draft.metrics.initcwnd = Some(planned);
}

/// A route's metric only lowers the first receive window: the kernel takes the smaller one of it
/// and what `tcp_rmem` allows (`tcp_select_initial_window` in Linux' `tcp_output.c`).
fn receive_window(
    draft: &mut Draft,
    settings: &dyn Settings,
    goal: &RouteGoal,
    payload: &Payload,
    present: &RouteMetrics,
) {
    let metric = RouteMetric::Initrwnd;
    let numbers = settings.read("net.ipv4.tcp_rmem").unwrap_or_default();
    let initial: u64 = numbers.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(131_072);
    let first = initial / 2 / u64::from(payload.mss().unwrap_or(1));
    let Some(planned) = goal.initrwnd else {
        return draft.skip(
            metric,
            format!(
                "it can only lower the first window, now {first} segments; the second value of \
                 tcp_rmem raises it"
            ),
        );
    };
    let now = present.initrwnd;
    if u64::from(planned) >= first && now.is_none() {
        return draft.skip(
            metric,
            format!(
                "{planned} segments are without effect: the first window is the smaller one of it \
                 and of {first} segments, half of tcp_rmem's second value ({initial} bytes)"
            ),
        );
    }
    if now == Some(planned) {
        return draft.skip(metric, format!("it is {planned} segments already"));
    }
    let now = now.map_or(format!("{first} segments (tcp_rmem)"), |now| format!("{now} segments"));
    let risk = "what this host receives starts more slowly";
    draft.set(metric, now, planned.to_string(), "requested".to_owned(), risk);
    draft.metrics.initrwnd = Some(planned);
}

/// What no metric of a route changes.
fn limits(goal: &RouteGoal, send_buffer: Option<ByteCount>) -> Vec<String> {
    let window = send_buffer
        .map(|buffer| model::share_of_buffer(buffer, model::AUTOTUNED_SEND_SHARE))
        .and_then(|window| model::window_rate(window, goal.rtt));
    let send = match (send_buffer, window) {
        (Some(buffer), Some(rate)) => format!(
            "the send buffer: tcp_wmem ({buffer}) limits a connection to about {rate}; longhaul tune \
             plan without a route raises it"
        ),
        _ => "the send buffer: that is tcp_wmem's".to_owned(),
    };
    vec![
        "the receive window: that is tcp_rmem's on the receiving host (the metric window only \
         lowers it)"
            .to_owned(),
        send,
        "what the far host sends: its own route to this host decides".to_owned(),
        "open connections, and programs that choose a congestion control themselves".to_owned(),
    ]
}

fn notes(goal: &RouteGoal, found: &Found, draft: &Draft) -> Vec<String> {
    let mut notes = Vec::new();
    let prefix = goal.route;
    if prefix.is_default() {
        notes.push(format!(
            "{prefix} is the default route: its metrics apply to every destination without a longer \
             prefix in the routing table"
        ));
    }
    if found.change == RouteChange::Copy && !draft.metrics.is_empty() {
        notes.push(
            "the copy does not follow the route in force: if its gateway or device changes, and if a \
             VPN adds a route to a shorter prefix, packets still take the copy; longhaul tune status \
             reports that"
                .to_owned(),
        );
    }
    if found.within > 0 {
        notes.push(format!(
            "routes to parts of {prefix} keep their own metrics: {} in the routing table",
            found.within
        ));
    }
    if found.routes.iter().any(host::kernel_route::KernelRoute::has_other_metrics) {
        notes.push(
            "the route has further metrics, such as an MTU, which longhaul tune apply keeps and the \
             printed commands leave out"
                .to_owned(),
        );
    }
    if let Some(stale) = &found.stale {
        notes.push(format!("{stale}; roll back and apply again to follow it"));
    }
    notes
}

/// The third number of a sysctl, bytes.
fn third(settings: &dyn Settings, key: &str) -> Option<ByteCount> {
    let text = settings.read(key).ok()?;
    text.split(' ').nth(2)?.parse().ok().map(ByteCount::from_bytes)
}
