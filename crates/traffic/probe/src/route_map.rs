//! The route over the ground: positions of hops, from databases and from host names, and the
//! legs between them.

use model::calc::fibre_rtt;
use places::{Airport, Location, Position, airport, great_circle_km};
use record::{Hop, HopPosition, PositionSource, RouteMap, RoutePoint};

/// Positions nearer than this are one place.
const SAME_PLACE_KM: f64 = 5.0;

/// Codes of airports that are common words in the names of routers.
const WORDS: [&str; 40] = [
    "acr", "adm", "agg", "bar", "bas", "bgp", "bng", "bra", "car", "ccr", "cdn", "cor", "cpe",
    "dia", "dsl", "ear", "edg", "eth", "ext", "gig", "gps", "hub", "int", "lan", "loc", "mac",
    "man", "mar", "mgt", "net", "pop", "ppp", "ras", "rev", "sat", "sub", "tel", "ten", "vla",
    "wan",
];

/// The hint in a host name: the code of an airport as a label or as a part of one, alone or
/// before digits, as in `ae1.par2.example.net` or `cr2-lax-01`. The registered domain, the last
/// two labels, counts for nothing.
pub(crate) fn hint(name: &str) -> Option<HopPosition> {
    let labels: Vec<&str> = name.trim_end_matches('.').split('.').collect();
    let hosts = labels.len().checked_sub(2)?;
    // The label next to the domain is usually the site.
    labels[..hosts].iter().rev().flat_map(|label| label.split(['-', '_'])).find_map(|part| {
        let code = part.trim_end_matches(|c: char| c.is_ascii_digit()).to_ascii_lowercase();
        let is_code = code.len() == 3 && !WORDS.contains(&code.as_str());
        let Airport { city, country, position, .. } = is_code.then(|| airport(&code)).flatten()?;
        Some(HopPosition {
            latitude: position.latitude(),
            longitude: position.longitude(),
            place: format!("{city}, {country}"),
            country: Some(country.to_owned()),
            source: PositionSource::Name,
        })
    })
}

/// A place with the RTT to it.
struct Anchor {
    position: Position,
    rtt_ms: f64,
}

impl Anchor {
    /// Whether light could have come from both: the way between two places is at most the sum of
    /// the ways to them, and each takes half an RTT.
    fn agrees(&self, position: Position, rtt_ms: f64) -> bool {
        let least = fibre_rtt(great_circle_km(self.position, position)).millis_f64();
        least <= self.rtt_ms + rtt_ms
    }
}

/// Gives hops the positions that their names hint at, and drops positions that are farther than
/// light travels within the RTT; returns a note for each of the latter.
pub(crate) fn locate(hops: &mut [Hop], from: Option<&Location>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut anchors: Vec<Anchor> =
        from.map(|place| Anchor { position: place.position, rtt_ms: 0.0 }).into_iter().collect();
    let mut keep = |hop: &mut Hop, notes: &mut Vec<String>| {
        let Some((position, rtt_ms)) = position(hop).zip(hop.best_ms) else { return };
        if anchors.iter().all(|anchor| anchor.agrees(position, rtt_ms)) {
            anchors.push(Anchor { position, rtt_ms });
            return;
        }
        if let Some(HopPosition { place, source: PositionSource::Database, .. }) = &hop.position {
            notes.push(format!(
                "hop {}: the database has {place}, which is farther than light travels in its RTT \
                 of {rtt_ms:.1} ms; left out of the map",
                hop.ttl
            ));
        }
        hop.position = None;
    };
    // Databases first: names are only hints.
    for hop in hops.iter_mut() {
        keep(hop, &mut notes);
    }
    for hop in hops.iter_mut().filter(|hop| hop.position.is_none()) {
        hop.position = hop.name.as_deref().and_then(hint);
        keep(hop, &mut notes);
    }
    notes
}

fn position(hop: &Hop) -> Option<Position> {
    let HopPosition { latitude, longitude, .. } = hop.position.as_ref()?;
    Position::new(*latitude, *longitude)
}

/// The route over the ground; `None` with fewer than two places.
pub(crate) fn route_map(hops: &[Hop], from: Option<&Location>) -> Option<RouteMap> {
    let start = from.map(|place| RoutePoint {
        first_ttl: 0,
        last_ttl: 0,
        position: HopPosition {
            latitude: place.position.latitude(),
            longitude: place.position.longitude(),
            place: place.name.clone(),
            country: None,
            source: PositionSource::Given,
        },
        leg_km: 0.0,
        best_ms: None,
    });
    let mut points: Vec<RoutePoint> = start.into_iter().collect();
    for hop in hops {
        let (Some(at), Some(position)) = (position(hop), &hop.position) else { continue };
        let leg_km = points.last().map_or(0.0, |last| great_circle_km(place_of(last), at));
        match points.last_mut() {
            Some(last) if leg_km < SAME_PLACE_KM => {
                last.last_ttl = hop.ttl;
                last.best_ms = [last.best_ms, hop.best_ms].into_iter().flatten().reduce(f64::min);
                last.position.country = last.position.country.take().or(position.country.clone());
            }
            _ => points.push(RoutePoint {
                first_ttl: hop.ttl,
                last_ttl: hop.ttl,
                position: position.clone(),
                leg_km,
                best_ms: hop.best_ms,
            }),
        }
    }
    let [first, .., last] = points.as_slice() else { return None };
    let great_circle_km = great_circle_km(place_of(first), place_of(last));
    let path_km = points.iter().map(|point| point.leg_km).sum();
    let mut countries: Vec<String> =
        points.iter().filter_map(|point| point.position.country.clone()).collect();
    countries.dedup();
    Some(RouteMap {
        path_km,
        great_circle_km,
        least_rtt_ms: fibre_rtt(great_circle_km).millis_f64(),
        path_rtt_ms: fibre_rtt(path_km).millis_f64(),
        countries,
        points,
    })
}

fn place_of(point: &RoutePoint) -> Position {
    let HopPosition { latitude, longitude, .. } = point.position;
    Position::new(latitude, longitude).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(ttl: u8, name: &str, best_ms: f64) -> Hop {
        let (name, best_ms) = (Some(name.to_owned()), Some(best_ms));
        Hop { ttl, name, best_ms, address: Some("192.0.2.1".to_owned()), ..Hop::default() }
    }

    fn in_database(ttl: u8, place: &str, best_ms: f64) -> Hop {
        let Location { name, position } = place.parse().unwrap();
        let position = HopPosition {
            latitude: position.latitude(),
            longitude: position.longitude(),
            country: name.rsplit(", ").next().map(str::to_owned),
            place: name,
            source: PositionSource::Database,
        };
        Hop { position: Some(position), ..hop(ttl, "r1.example.net", best_ms) }
    }

    #[test]
    fn names_hint_at_airports() {
        for (name, city) in [
            ("ae-1.r20.lax01.example.net", "Los Angeles, US"),
            ("be3.ccr41.jfk02.example.com", "New York, US"),
            ("cr2-cdg-01.core.example.org", "Paris, FR"),
            ("xe0.FRA4.example.net.", "Frankfurt am Main, DE"),
        ] {
            let hint = hint(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!((hint.place.as_str(), hint.source), (city, PositionSource::Name));
        }
        for name in [
            "",
            ".",
            "lax",
            "lax.com",
            "www.lax.com",
            "net.pop.bgp.example.net",
            "r1.laxx.example.net",
            "a.b.c.d",
        ] {
            assert_eq!(hint(name), None, "{name}");
        }
    }

    #[test]
    fn a_hint_or_database_farther_than_light_travels_is_left_out() {
        let from: Location = "PDX".parse().unwrap();
        // Portland to Frankfurt: 8,300 km, 81 ms at least.
        for (best, kept) in [(20.0, false), (90.0, true)] {
            let mut hops = [hop(1, "core.fra1.example.net", best)];
            assert_eq!(locate(&mut hops, Some(&from)), Vec::<String>::new());
            assert_eq!(hops[0].position.is_some(), kept, "{best}");
        }
        let mut hops = [in_database(3, "Sydney", 12.0)];
        let notes = locate(&mut hops, Some(&from));
        assert!(notes.len() == 1 && notes[0].contains("hop 3") && notes[0].contains("12.0 ms"));
        assert_eq!(hops[0].position, None);
        // Without a start, two hops contradict each other: the database is believed first.
        let mut hops = [hop(1, "r.syd1.example.net", 1.0), in_database(2, "Paris", 2.0)];
        assert!(locate(&mut hops, None).is_empty());
        assert!(hops[0].position.is_none() && hops[1].position.is_some());
    }

    #[test]
    fn legs_and_countries() {
        let from: Location =
            "Boardman".parse().unwrap_or_else(|_| "45.84,-119.70".parse().unwrap());
        let hops = [
            in_database(2, "Seattle", 9.0),
            hop(3, "nowhere.example.net", 9.0),
            in_database(4, "Paris", 147.0),
            in_database(5, "CDG", 146.0),
            in_database(6, "Manchester, GB", 146.0),
        ];
        let map = route_map(&hops, Some(&from)).unwrap();
        assert!(map.points.len() >= 4, "{map:?}");
        assert!(map.path_km > map.great_circle_km && map.path_rtt_ms > map.least_rtt_ms);
        assert_eq!(map.countries.last().map(String::as_str), Some("GB"));
        let sum: f64 = map.points.iter().map(|point| point.leg_km).sum();
        assert!((sum - map.path_km).abs() < 1e-9);
        assert_eq!(route_map(&hops[..1], None), None);
        assert_eq!(route_map(&[], Some(&from)), None);
    }
}
