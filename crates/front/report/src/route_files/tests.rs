use super::*;
use crate::html;
use record::{Hop, HopPosition, TRACE_SCHEMA};

fn point(place: &str, latitude: f64, longitude: f64, ttl: u8) -> RoutePoint {
    let source = if ttl == 2 { PositionSource::Name } else { PositionSource::Database };
    let position =
        HopPosition { latitude, longitude, place: place.to_owned(), country: None, source };
    RoutePoint { first_ttl: ttl, last_ttl: ttl, position, leg_km: 12_000.0, best_ms: Some(147.0) }
}

fn hop(ttl: u8, received: u64, loss: f64, avg_ms: Option<f64>) -> Hop {
    let address = (received > 0).then(|| format!("192.0.2.{ttl}"));
    Hop { ttl, address, sent: 10, received, loss, avg_ms, best_ms: avg_ms, ..Hop::default() }
}

fn report() -> TraceReport {
    TraceReport {
        schema: TRACE_SCHEMA,
        version: "1".to_owned(),
        started_unix_s: 0,
        target: "<far>.example".to_owned(),
        address: "192.0.2.9".to_owned(),
        method: "udp",
        port: Some(33_434),
        rounds: 10,
        interval_ms: 1000.0,
        timeout_ms: 1000.0,
        reached: true,
        hops: vec![
            hop(1, 10, 0.0, Some(1.0)),
            hop(2, 0, 1.0, None),
            hop(3, 5, 0.5, Some(150.0)),
            hop(4, 10, 0.0, Some(180.0)),
            hop(5, 10, 0.0, Some(147.0)),
        ],
        map: Some(RouteMap {
            points: vec![
                point("Los Angeles & <b>", 34.0, -118.0, 1),
                point("Melbourne, AU", -37.8, 145.0, 2),
            ],
            path_km: 12_788.0,
            great_circle_km: 12_788.0,
            least_rtt_ms: 125.3,
            path_rtt_ms: 125.3,
            countries: vec!["US".to_owned(), "AU".to_owned()],
        }),
        notes: vec!["a note".to_owned()],
    }
}

#[test]
fn kml_has_the_places_and_the_path() {
    let text = kml(&report());
    assert!(text.contains("<coordinates>-118,34 145,-37.8</coordinates>"), "{text}");
    assert!(text.contains("Los Angeles &amp; &lt;b&gt;") && !text.contains("<b>"));
    assert!(text.contains("by the host name") && text.contains("&lt;far&gt;.example"));
    assert!(!kml(&TraceReport { map: None, ..report() }).contains("Placemark"));
}

#[test]
fn geojson_is_cut_at_the_antimeridian() {
    let value = geojson(&report());
    let features = value["features"].as_array().unwrap();
    assert_eq!(features.len(), 3);
    assert_eq!(features[0]["geometry"]["coordinates"], json!([-118.0, 34.0]));
    let parts = features[2]["geometry"]["coordinates"].as_array().unwrap();
    assert_eq!(parts.len(), 2, "{parts:?}");
    // 62 of 97 degrees to the west.
    let latitude = 34.0 + 62.0 / 97.0 * (-37.8 - 34.0);
    for (at, longitude) in [(&parts[0][1], -180.0), (&parts[1][0], 180.0)] {
        assert_eq!(at[0], json!(longitude));
        assert!((at[1].as_f64().unwrap() - latitude).abs() < 1e-9, "{at}");
    }
    let none = geojson(&TraceReport { map: None, ..report() });
    assert_eq!(none["features"], json!([]));
}

#[test]
fn the_page_has_map_places_and_what_replies_say() {
    let page = html::route_page(&report());
    assert!(page.len() < 100_000, "{}", page.len());
    for text in [
        "12788 km",
        "US → AU",
        "1.2 times the least",
        "Los Angeles &amp; &lt;b&gt;",
        "ICMP blocked",
        "ICMP rate-limited: later hops lose less",
        "ICMP deprioritised: later hops are faster",
        "class=\"leg hint\"",
        "a note",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<b>") && !page.contains("<far>"));
    let without = html::route_page(&TraceReport { map: None, ..report() });
    assert!(without.contains("--mmdb") && !without.contains("<svg"));
}
