//! Positions and great circles.

use std::fmt;

/// Mean radius of the Earth, km (IUGG). A sphere errs by at most 0.6 % from the ellipsoid.
pub const EARTH_RADIUS_KM: f64 = 6_371.008_8;

/// Geographical coordinates.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Position {
    latitude: f64,
    longitude: f64,
}

impl Position {
    /// From degrees north and east; `None` outside of ±90 and ±180.
    #[must_use]
    pub fn new(latitude: f64, longitude: f64) -> Option<Self> {
        ((-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude))
            .then_some(Position { latitude, longitude })
    }

    /// Degrees north of the equator, -90 to 90.
    #[must_use]
    pub fn latitude(self) -> f64 {
        self.latitude
    }

    /// Degrees east of Greenwich, -180 to 180.
    #[must_use]
    pub fn longitude(self) -> f64 {
        self.longitude
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.latitude, self.longitude)
    }
}

/// Length of the great circle between two positions, km, by the haversine formula.
#[must_use]
pub fn great_circle_km(from: Position, to: Position) -> f64 {
    let half = |a: f64, b: f64| ((b - a).to_radians() / 2.0).sin().powi(2);
    let cosines = from.latitude.to_radians().cos() * to.latitude.to_radians().cos();
    let haversine = half(from.latitude, to.latitude) + cosines * half(from.longitude, to.longitude);
    2.0 * EARTH_RADIUS_KM * haversine.clamp(0.0, 1.0).sqrt().asin()
}
