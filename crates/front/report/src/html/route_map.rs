//! The page of a route: an outline map with the legs between places, distances beside what light
//! in fibre needs, and the hops.

mod outline;

use super::{CSS, document, footer, header::tile, markup::Markup};
use crate::calendar;
use record::{Hop, PositionSource, RouteMap, RoutePoint, TraceReport};

const STYLE: &str = include_str!("route_map/route_map.css");

/// A hop that is this much slower than a later one delays its own replies, not the traffic.
const DELAYED_MS: f64 = 5.0;

/// The page as one HTML document.
#[must_use]
pub fn route_page(report: &TraceReport) -> String {
    let mut m = Markup::new();
    let title = format!("Route to {}", report.target);
    document(&mut m, &title, &[CSS, STYLE], "", |m| {
        m.element("main", &[], |m| {
            m.element("header", &[], |m| {
                m.leaf("p", &[("class", &"eyebrow")], &"Longhaul trace");
                m.leaf("h1", &[], &title);
                m.leaf("p", &[("class", &"lead")], &lead(report));
            });
            match &report.map {
                Some(map) => {
                    figures(m, map, report);
                    outline::write(m, map);
                    places(m, map);
                }
                None => nowhere(m),
            }
            hops(m, report);
            notes(m, report);
        });
        footer(m, &report.version);
    });
    m.finish()
}

fn lead(report: &TraceReport) -> String {
    let port = report.port.map_or(String::new(), |port| format!(" to port {port}"));
    format!(
        "{}, {} hops by {}{port}, {} rounds, {}.",
        report.address,
        report.hops.len(),
        report.method.to_uppercase(),
        report.rounds,
        calendar::utc(report.started_unix_s)
    )
}

fn nowhere(m: &mut Markup) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"No map");
        let text = "Fewer than two places are known. Name yours with --from, as in --from Paris, and \
                    give a location database with --mmdb, as in --mmdb GeoLite2-City.mmdb; without \
                    one, only airport codes in the names of routers give hints.";
        m.leaf("p", &[("class", &"note")], &text);
    });
}

fn figures(m: &mut Markup, map: &RouteMap, report: &TraceReport) {
    let best = report.hops.last().filter(|_| report.reached).and_then(|hop| hop.best_ms);
    m.element("section", &[("class", &"path"), ("aria-label", &"Distances")], |m| {
        m.element("dl", &[], |m| {
            tile(m, "Path", &km(map.path_km), &format!("{} places", map.points.len()));
            let ratio = map.path_km / map.great_circle_km.max(1.0);
            let detour = format!("the path is {ratio:.2} times as long");
            tile(m, "Great circle", &km(map.great_circle_km), &detour);
            tile(m, "Least RTT", &ms(map.least_rtt_ms), "in fibre along the great circle");
            tile(m, "Along the path", &ms(map.path_rtt_ms), "in fibre between the places");
            let measured = best.map_or("–".to_owned(), ms);
            let beside = best.map_or("the host did not reply".to_owned(), |best| {
                format!("{:.1} times the least", best / map.least_rtt_ms.max(0.1))
            });
            tile(m, "Shortest RTT", &measured, &beside);
            let countries = map.countries.join(" → ");
            let count = format!("{} in the order of the route", map.countries.len());
            tile(m, "Countries", if countries.is_empty() { "–" } else { &countries }, &count);
        });
    });
}

/// The places with their legs.
fn places(m: &mut Markup, map: &RouteMap) {
    table(
        m,
        "Places",
        &["Hops", "Place", "Leg", "Least RTT of the leg", "Shortest RTT", "Known by"],
        |m| {
            for point in &map.points {
                row(
                    m,
                    &[
                        hops_of(point),
                        point.position.place.clone(),
                        if point.leg_km > 0.0 { km(point.leg_km) } else { "–".to_owned() },
                        if point.leg_km > 0.0 {
                            ms(model::calc::fibre_rtt(point.leg_km).millis_f64())
                        } else {
                            "–".to_owned()
                        },
                        point.best_ms.map_or("–".to_owned(), ms),
                        source(point.position.source).to_owned(),
                    ],
                );
            }
        },
    );
    let note = "Legs are great circles: cables are longer. A place by a host's name is a hint, and \
                databases err, most of all for routers and anycast addresses.";
    m.leaf("p", &[("class", &"note")], &note);
}

fn hops_of(point: &RoutePoint) -> String {
    match (point.first_ttl, point.last_ttl) {
        (0, 0) => "this host".to_owned(),
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}–{last}"),
    }
}

const fn source(source: PositionSource) -> &'static str {
    match source {
        PositionSource::Given => "--from",
        PositionSource::Database => "database",
        PositionSource::Name => "hint in the host name",
    }
}

fn hops(m: &mut Markup, report: &TraceReport) {
    table(
        m,
        "Hops",
        &["Hop", "Address", "Network", "Place", "Loss", "Best", "Mean", "Replies"],
        |m| {
            for (index, hop) in report.hops.iter().enumerate() {
                let network = match (hop.asn, &hop.as_name) {
                    (Some(asn), Some(name)) => format!("AS{asn} {name}"),
                    (Some(asn), None) => format!("AS{asn}"),
                    (None, name) => name.clone().unwrap_or_default(),
                };
                let address = match (&hop.address, &hop.name) {
                    (Some(address), Some(name)) => format!("{name} ({address})"),
                    (Some(address), None) => address.clone(),
                    (None, _) => "no reply".to_owned(),
                };
                let place = hop.position.as_ref().map(|position| match position.source {
                    PositionSource::Name => format!("{} (hint)", position.place),
                    PositionSource::Given | PositionSource::Database => position.place.clone(),
                });
                row(
                    m,
                    &[
                        hop.ttl.to_string(),
                        address,
                        network,
                        place.or_else(|| hop.place.clone()).unwrap_or_default(),
                        units::percent_with(hop.loss, 3),
                        hop.best_ms.map_or("–".to_owned(), ms),
                        hop.avg_ms.map_or("–".to_owned(), ms),
                        replies(hop, &report.hops[index + 1..]).to_owned(),
                    ],
                );
            }
        },
    );
}

/// What the replies of a hop say of its router, beside those of later hops.
fn replies(hop: &Hop, later: &[Hop]) -> &'static str {
    let replying = || later.iter().filter(|later| later.received > 0);
    let least = |of: fn(&Hop) -> f64| replying().map(of).reduce(f64::min);
    if hop.received == 0 {
        return if replying().next().is_some() { "ICMP blocked" } else { "none" };
    }
    let lossier = least(|hop| hop.loss).is_some_and(|loss| hop.loss > loss);
    let slower = least(|hop| hop.avg_ms.unwrap_or(f64::INFINITY))
        .zip(hop.avg_ms)
        .is_some_and(|(later, here)| here > later + DELAYED_MS);
    match (lossier, slower) {
        (true, _) => "ICMP rate-limited: later hops lose less",
        (false, true) => "ICMP deprioritised: later hops are faster",
        (false, false) => "",
    }
}

fn notes(m: &mut Markup, report: &TraceReport) {
    for note in &report.notes {
        m.leaf("p", &[("class", &"note")], note);
    }
}

fn table(m: &mut Markup, title: &str, heads: &[&str], rows: impl FnOnce(&mut Markup)) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &title);
        m.table("route", |m| {
            m.thead(heads);
            m.element("tbody", &[], rows);
        });
    });
}

fn row(m: &mut Markup, cells: &[String]) {
    m.element("tr", &[], |m| {
        for cell in cells {
            m.leaf("td", &[], cell);
        }
    });
}

fn km(km: f64) -> String {
    format!("{km:.0} km")
}

fn ms(ms: f64) -> String {
    format!("{ms:.1} ms")
}
