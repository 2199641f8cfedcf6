//! The list of airports, and the cities that they serve.

use crate::{Location, Position};
use std::sync::LazyLock;

/// Lines of `code,metropolitan code,city,region,country,latitude,longitude`, sorted by code.
const LIST: &str = include_str!("../data/airports.csv");

/// An airport.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Airport {
    /// The IATA code.
    pub code: &'static str,
    /// The code of the metropolitan area, where it differs: PAR for CDG.
    metropolitan: Option<&'static str>,
    /// The city that it serves.
    pub city: &'static str,
    /// The first-level subdivision of the country.
    pub region: &'static str,
    /// The country: ISO 3166-1 alpha-2.
    pub country: &'static str,
    /// The position, to 0.01 degrees.
    pub position: Position,
}

/// A city with its airports.
pub(crate) struct City(Vec<Airport>);

fn list() -> impl Iterator<Item = Airport> {
    static AIRPORTS: LazyLock<Vec<Airport>> =
        LazyLock::new(|| LIST.lines().filter_map(parse).collect());
    AIRPORTS.iter().copied()
}

fn parse(line: &'static str) -> Option<Airport> {
    let mut fields = line.split(',');
    let mut next = || fields.next();
    let (code, metropolitan, city, region, country) = (next()?, next()?, next()?, next()?, next()?);
    let position = Position::new(next()?.parse().ok()?, next()?.parse().ok()?)?;
    let metropolitan = (!metropolitan.is_empty()).then_some(metropolitan);
    Some(Airport { code, metropolitan, city, region, country, position })
}

/// The airport with an IATA code, in either case.
#[must_use]
pub fn airport(code: &str) -> Option<Airport> {
    list().find(|airport| airport.code.eq_ignore_ascii_case(code))
}

/// The place of an airport's code, or of a metropolitan area's; its name is the code.
pub(crate) fn place_of_code(code: &str) -> Option<Location> {
    let name = code.to_uppercase();
    if let Some(Airport { position, .. }) = airport(code) {
        return Some(Location { name, position });
    }
    let found: Vec<Airport> = list().filter(|a| a.metropolitan == Some(&*name)).collect();
    (!found.is_empty()).then(|| Location { name, position: City(found).position() })
}

/// Cities with a name: `Paris`; `Paris, FR`; `Portland, Oregon, US`. Where none has exactly that
/// name, those whose name begins with its words: `Frankfurt` for Frankfurt am Main.
pub(crate) fn cities_named(text: &str) -> Vec<City> {
    let mut parts = text.split(',').map(words);
    let name = parts.next().unwrap_or_default();
    let within: Vec<Vec<String>> = parts.collect();
    if name.is_empty() {
        return Vec::new();
    }
    let inside = |airport: &Airport| {
        within
            .iter()
            .all(|part| [airport.region, airport.country].iter().any(|of| words(of) == *part))
    };
    let exact = grouped(list().filter(|airport| words(airport.city) == name && inside(airport)));
    if exact.is_empty() {
        grouped(list().filter(|airport| words(airport.city).starts_with(&name) && inside(airport)))
    } else {
        exact
    }
}

/// Words in lower case, without punctuation.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn grouped(airports: impl Iterator<Item = Airport>) -> Vec<City> {
    let mut cities: Vec<City> = Vec::new();
    for airport in airports {
        match cities.iter_mut().find(|city| city.has(&airport)) {
            Some(city) => city.0.push(airport),
            None => cities.push(City(vec![airport])),
        }
    }
    cities
}

impl City {
    fn has(&self, airport: &Airport) -> bool {
        self.0.iter().any(|of| {
            (of.metropolitan.is_some() && of.metropolitan == airport.metropolitan)
                || (of.city, of.region, of.country)
                    == (airport.city, airport.region, airport.country)
        })
    }

    /// How large the city is: whether it has a metropolitan code, then its airports.
    pub(crate) fn size(&self) -> (bool, usize) {
        (self.0.iter().any(|airport| airport.metropolitan.is_some()), self.0.len())
    }

    /// The name with region and country.
    pub(crate) fn name(&self) -> String {
        let Airport { city, region, country, .. } = self.0[0];
        format!("{city}, {region}, {country}")
    }

    /// The mean of the airports' positions; they are within one city, so degrees can be averaged.
    pub(crate) fn position(&self) -> Position {
        let mean = |of: fn(Position) -> f64| {
            let sum: f64 = self.0.iter().map(|airport| of(airport.position)).sum();
            // To the 0.01 degrees of the list.
            (sum / self.0.len() as f64 * 100.0).round() / 100.0
        };
        Position::new(mean(Position::latitude), mean(Position::longitude))
            .unwrap_or(self.0[0].position)
    }
}
