//! Where the hops of a route are.

use serde::Serialize;

/// How a position is known.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PositionSource {
    /// The user named the place.
    Given,
    /// A location database has the address.
    Database,
    /// A hint only: the host name contains the code of an airport.
    Name,
}

/// Where a hop is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HopPosition {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// The place's name. Untrusted third-party data.
    pub place: String,
    /// ISO 3166-1 alpha-2, if known. Untrusted third-party data.
    pub country: Option<String>,
    /// How the position is known.
    pub source: PositionSource,
}

/// Consecutive hops at one place.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoutePoint {
    /// The first hop there; 0 is the host that traced.
    pub first_ttl: u8,
    /// The last.
    pub last_ttl: u8,
    /// Where.
    pub position: HopPosition,
    /// Great circle from the point before, km; 0 for the first.
    pub leg_km: f64,
    /// The shortest RTT to a hop there.
    pub best_ms: Option<f64>,
}

/// The route over the ground, as far as hops have positions.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouteMap {
    /// The places in the order of the route, at least two.
    pub points: Vec<RoutePoint>,
    /// Sum of the legs, km.
    pub path_km: f64,
    /// Great circle from the first to the last point, km.
    pub great_circle_km: f64,
    /// Least RTT in fibre along the great circle.
    pub least_rtt_ms: f64,
    /// Least RTT in fibre along all legs.
    pub path_rtt_ms: f64,
    /// Countries in the order of the route.
    pub countries: Vec<String>,
}
