//! The least RTT between two places, by the speed of light.

use super::result::{Answer, CalcResult, Column, Entries, Row, SHEET_SCHEMA, Table, Value};
use super::{CalcError, check_rtt};
use crate::figures;
use places::{Location, great_circle_km};
use units::Rtt;

/// Speed of light in vacuum, km/s (SI).
const LIGHT_KM_PER_S: f64 = 299_792.458;

/// Group index of single-mode fibre at 1550 nm (ITU-T G.652; 1.4682 in data sheets).
const FIBRE_INDEX: f64 = 1.4682;

/// Altitude of a geostationary satellite, km.
const GEOSTATIONARY_KM: f64 = 35_786.0;

/// Length of a usual fibre route over the great circle.
const DETOUR: f64 = 1.5;

const SOURCE: &str = "great circle on a sphere of 6371.0088 km (IUGG)";
const FIBRE_SOURCE: &str = "light in fibre: c / 1.4682 (ITU-T G.652, 1550 nm)";

/// Two places, and an RTT that was measured between them.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistanceQuestion {
    /// One end.
    pub from: Location,
    /// The other.
    pub to: Location,
    /// The measured RTT.
    pub rtt: Option<Rtt>,
}

/// The least RTT over a fibre of this length.
#[must_use]
pub fn fibre_rtt(km: f64) -> Rtt {
    Rtt::from_secs(2.0 * km * FIBRE_INDEX / LIGHT_KM_PER_S)
}

/// Computes the great circle between two places and the least RTT along it.
///
/// # Errors
/// If the RTT is zero.
pub fn distance(question: &DistanceQuestion) -> Result<CalcResult, CalcError> {
    let DistanceQuestion { from, to, rtt } = question;
    let rtt = rtt.map(check_rtt).transpose()?;
    let km = great_circle_km(from.position, to.position);
    let mut answers = vec![
        Answer {
            key: "great_circle_km",
            label: "great circle".to_owned(),
            value: Some(Value::Kilometres(km)),
            equation: format!("{} to {}", from.position, to.position),
            source: SOURCE,
        },
        Answer {
            key: "least_rtt_ms",
            label: "least RTT".to_owned(),
            value: Some(Value::Rtt(fibre_rtt(km))),
            equation: format!("2 x {} km x 1.4682 / 299792 km/s", figures::digits(km)),
            source: FIBRE_SOURCE,
        },
    ];
    answers.extend(rtt.into_iter().flat_map(|rtt| measured(rtt, km)));
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "distance",
        asked: Entries(vec![
            ("from", Some(Value::Text(from.name.clone()))),
            ("to", Some(Value::Text(to.name.clone()))),
            ("rtt_ms", rtt.map(Value::Rtt)),
        ]),
        answers,
        holds: vec![
            "A bound: routes follow cables and exchange points, and routers and access links add \
             delay. A ratio of 1.5 to 2 is usual over long distances; a much larger one suggests a \
             detour (longhaul trace) or a queue (longhaul ping under load)."
                .to_owned(),
            "A city stands for the mean position of its airports, usually within 30 km of its \
             centre: 0.3 ms."
                .to_owned(),
        ],
        tables: vec![by_medium(km)],
        curve: None,
    })
}

/// What a measured RTT says of the path's length.
fn measured(rtt: Rtt, km: f64) -> [Answer; 2] {
    let least = fibre_rtt(km).secs_f64();
    let ratio = rtt.secs_f64() / least;
    let reach = rtt.secs_f64() / 2.0 * LIGHT_KM_PER_S / FIBRE_INDEX;
    let equation = format!("{} / {}", figures::rtt(rtt), figures::rtt(fibre_rtt(km)));
    let ratio = match (least > 0.0, ratio < 1.0) {
        (false, _) => (None, "both ends are at one place".to_owned()),
        (true, true) => (
            Some(Value::Number(ratio)),
            format!(
                "{equation}; below 1: the far end is not there, or answers from nearer (anycast)"
            ),
        ),
        (true, false) => (Some(Value::Number(ratio)), equation),
    };
    [
        Answer {
            key: "rtt_ratio",
            label: "measured / least".to_owned(),
            value: ratio.0,
            equation: ratio.1,
            source: FIBRE_SOURCE,
        },
        Answer {
            key: "longest_path_km",
            label: "path at most".to_owned(),
            value: Some(Value::Kilometres(reach)),
            equation: format!("{} / 2 x 299792 km/s / 1.4682", figures::rtt(rtt)),
            source: FIBRE_SOURCE,
        },
    ]
}

/// The least RTT by medium.
fn by_medium(km: f64) -> Table {
    let vacuum = |km: f64| Rtt::from_secs(2.0 * km / LIGHT_KM_PER_S);
    let rows = [
        ("light in vacuum", km, vacuum(km)),
        ("fibre along the great circle", km, fibre_rtt(km)),
        ("fibre, 1.5 x the great circle", DETOUR * km, fibre_rtt(DETOUR * km)),
        // Up and down, for each direction.
        (
            "geostationary satellite, overhead",
            2.0 * GEOSTATIONARY_KM,
            vacuum(2.0 * GEOSTATIONARY_KM),
        ),
    ];
    Table {
        title: "least RTT by medium".to_owned(),
        columns: vec![
            Column { key: "medium", title: "medium" },
            Column { key: "one_way_km", title: "one way" },
            Column { key: "rtt_ms", title: "RTT" },
        ],
        rows: rows
            .into_iter()
            .map(|(medium, km, rtt)| Row {
                cells: vec![
                    Some(Value::Text(medium.to_owned())),
                    Some(Value::Kilometres(km)),
                    Some(Value::Rtt(rtt)),
                ],
                marked: false,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(from: &str, to: &str, rtt: Option<&str>) -> CalcResult {
        let [from, to] = [from, to].map(|place| place.parse().unwrap());
        distance(&DistanceQuestion { from, to, rtt: rtt.map(|rtt| rtt.parse().unwrap()) }).unwrap()
    }

    fn number(result: &CalcResult, key: &str) -> f64 {
        match result.figure(key) {
            Some(Value::Kilometres(number) | Value::Number(number)) => *number,
            Some(Value::Rtt(rtt)) => rtt.millis_f64(),
            other => panic!("{key}: {other:?}"),
        }
    }

    #[test]
    fn from_oregon_to_paris() {
        // 8,396 km between the airports; 2 x 8396 / 204190 km/s = 82.2 ms.
        let found = ask("Eugene", "Paris", Some("163.6ms"));
        assert!((number(&found, "great_circle_km") / 8_396.0 - 1.0).abs() < 0.003, "{found:?}");
        assert!((number(&found, "least_rtt_ms") - 82.2).abs() < 0.4);
        assert!((number(&found, "rtt_ratio") - 1.99).abs() < 0.02);
        assert!((number(&found, "longest_path_km") - 16_703.0).abs() < 5.0);
    }

    #[test]
    fn an_rtt_below_the_least_and_no_distance() {
        let found = ask("0,0", "0,90", Some("20ms"));
        assert!(number(&found, "rtt_ratio") < 1.0);
        assert!(found.answers[2].equation.contains("anycast"));
        let none = ask("CDG", "CDG", Some("20ms"));
        assert_eq!(none.figure("rtt_ratio"), None);
        // 4 x 35,786 km / c.
        let Some(Value::Rtt(rtt)) = &none.tables[0].rows[3].cells[2] else { panic!() };
        assert!((rtt.millis_f64() - 477.5).abs() < 0.1);
    }
}
