//! Places on the Earth and the distance between them.
//!
//! A place is a pair of coordinates, an IATA code, or a city that has an airport. Cities come from
//! a list of 7,000 airports (data/airports.csv, data/LICENSE); the position of a city is the mean
//! of its airports' positions, usually within 30 km of its centre.

mod airports;
mod position;

pub use airports::{Airport, airport};
pub use position::{EARTH_RADIUS_KM, Position, great_circle_km};

use airports::City;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum length of a place's name, bytes.
const MAX_NAME: usize = 100;

/// Maximum number of cities that an error lists.
const MAX_CHOICES: usize = 5;

/// A named position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Location {
    /// The coordinates, or the city with region and country (ISO 3166-1 alpha-2).
    pub name: String,
    /// The position.
    pub position: Position,
}

/// A text that names no place, or several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// No city of that name has an airport.
    #[error(
        "no place {0:?} is known: give a city with an airport, an IATA code, as in CDG, or \
         coordinates, as in 48.86,2.35"
    )]
    Unknown(String),
    /// Several cities of the same size have the name.
    #[error("{name:?} names several places: give one of {}", quoted(choices))]
    Ambiguous {
        /// The text.
        name: String,
        /// The cities' names.
        choices: Vec<String>,
    },
    /// Coordinates out of range.
    #[error(
        "{0:?} is out of range: give a latitude from -90 to 90 and a longitude from -180 to 180, in degrees, as in 48.86,2.35"
    )]
    Range(String),
    /// The text is too long.
    #[error("a place's name has at most {MAX_NAME} bytes")]
    TooLong,
}

fn quoted(choices: &[String]) -> String {
    choices.iter().map(|choice| format!("{choice:?}")).collect::<Vec<_>>().join(", ")
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if text.len() > MAX_NAME {
            return Err(LocationError::TooLong);
        }
        if let Some((latitude, longitude)) = coordinates(text) {
            let position = Position::new(latitude, longitude)
                .ok_or_else(|| LocationError::Range(text.to_owned()))?;
            return Ok(Location { name: position.to_string(), position });
        }
        let code = || airports::place_of_code(text);
        // IATA codes are written in capitals: Pau is a city, PAU an airport elsewhere.
        if let Some(place) = (text == text.to_uppercase()).then(code).flatten() {
            return Ok(place);
        }
        let cities = airports::cities_named(text);
        let most = cities.iter().map(City::size).max();
        let largest: Vec<City> =
            cities.into_iter().filter(|city| Some(city.size()) == most).collect();
        match largest.as_slice() {
            [] => code().ok_or_else(|| LocationError::Unknown(text.to_owned())),
            [city] => Ok(Location { name: city.name(), position: city.position() }),
            several => Err(LocationError::Ambiguous {
                name: text.to_owned(),
                choices: several.iter().take(MAX_CHOICES).map(City::name).collect(),
            }),
        }
    }
}

fn coordinates(text: &str) -> Option<(f64, f64)> {
    let (latitude, longitude) = text.split_once([',', ' '])?;
    let degrees = |text: &str| text.trim_matches([' ', ',']).parse().ok();
    Some((degrees(latitude)?, degrees(longitude)?))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl From<Location> for String {
    fn from(place: Location) -> String {
        place.name
    }
}

impl TryFrom<String> for Location {
    type Error = LocationError;

    fn try_from(text: String) -> Result<Self, LocationError> {
        text.parse()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Location {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Location".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A city, an IATA code, or latitude and longitude in degrees: 48.86,2.35."
        })
    }
}

#[cfg(test)]
mod tests;
