//! A route as KML (OGC 12-007r2) and as GeoJSON (RFC 7946).

use crate::untrusted;
use record::{PositionSource, RouteMap, RoutePoint, TraceReport};
use serde_json::{Value, json};

/// The places and the path as KML; without a map, a document without either.
#[must_use]
pub fn kml(report: &TraceReport) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<kml xmlns=\"http://www.opengis.net/kml/2.2\">\n\
         <Document>\n<name>Route to {}</name>\n",
        escaped(&report.target)
    );
    if let Some(map) = &report.map {
        for point in &map.points {
            text += &format!(
                "<Placemark><name>{}</name><description>{}</description><Point><coordinates>{}\
                 </coordinates></Point></Placemark>\n",
                escaped(&point.position.place),
                escaped(&description(point)),
                coordinates(point)
            );
        }
        let path: Vec<String> = map.points.iter().map(coordinates).collect();
        text += &format!(
            "<Placemark><name>{:.0} km</name><LineString><tessellate>1</tessellate><coordinates>{}\
             </coordinates></LineString></Placemark>\n",
            map.path_km,
            path.join(" ")
        );
    }
    text + "</Document>\n</kml>\n"
}

/// The places and the path as a feature collection; without a map, an empty one.
#[must_use]
pub fn geojson(report: &TraceReport) -> Value {
    let features = report
        .map
        .as_ref()
        .map_or_else(Vec::new, |map| map.points.iter().map(feature).chain([line(map)]).collect());
    json!({ "type": "FeatureCollection", "features": features })
}

fn feature(point: &RoutePoint) -> Value {
    json!({
        "type": "Feature",
        "geometry": { "type": "Point", "coordinates": position(point) },
        "properties": {
            "place": untrusted::clean(&point.position.place),
            "first_hop": point.first_ttl,
            "last_hop": point.last_ttl,
            "best_ms": point.best_ms,
            "leg_km": point.leg_km,
            "source": point.position.source,
        },
    })
}

/// The path, cut at the antimeridian as RFC 7946, section 3.1.9, asks.
fn line(map: &RouteMap) -> Value {
    let mut parts: Vec<Vec<[f64; 2]>> = vec![Vec::new()];
    let mut previous: Option<[f64; 2]> = None;
    for point in &map.points {
        let [x, y] = position(point);
        if let Some([from_x, from_y]) = previous
            && (x - from_x).abs() > 180.0
        {
            // The side of 180 degrees that the leg begins at.
            let edge = 180.0_f64.copysign(from_x);
            let share = (edge - from_x) / (x + 360.0_f64.copysign(from_x) - from_x);
            let latitude = from_y + share * (y - from_y);
            if let Some(part) = parts.last_mut() {
                part.push([edge, latitude]);
            }
            parts.push(vec![[-edge, latitude]]);
        }
        if let Some(part) = parts.last_mut() {
            part.push([x, y]);
        }
        previous = Some([x, y]);
    }
    json!({
        "type": "Feature",
        "geometry": { "type": "MultiLineString", "coordinates": parts },
        "properties": {
            "path_km": map.path_km,
            "great_circle_km": map.great_circle_km,
            "least_rtt_ms": map.least_rtt_ms,
        },
    })
}

fn position(point: &RoutePoint) -> [f64; 2] {
    [point.position.longitude, point.position.latitude]
}

fn coordinates(point: &RoutePoint) -> String {
    format!("{},{}", point.position.longitude, point.position.latitude)
}

fn description(point: &RoutePoint) -> String {
    let rtt = point.best_ms.map_or(String::new(), |best| format!(", {best:.1} ms"));
    let hint =
        if point.position.source == PositionSource::Name { ", by the host name" } else { "" };
    format!("hops {} to {}{rtt}{hint}", point.first_ttl, point.last_ttl)
}

/// Text for XML: sanitised, and without its special characters.
fn escaped(text: &str) -> String {
    untrusted::clean(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace(['\u{fffe}', '\u{ffff}'], "")
}

#[cfg(test)]
mod tests;
