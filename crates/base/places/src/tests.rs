use super::*;
use proptest::prelude::*;

fn place(text: &str) -> Location {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn km(from: &str, to: &str) -> f64 {
    great_circle_km(place(from).position, place(to).position)
}

#[test]
fn cities_codes_and_coordinates() {
    assert_eq!(place("Eugene").name, "Eugene, Oregon, US");
    assert_eq!(place("Paris").name, "Paris, Ile-de-France, FR");
    assert_eq!(place("paris, us, texas").name, "Paris, Texas, US");
    assert_eq!(place("london").name, "London, England, GB");
    assert_eq!(place("Frankfurt").name, "Frankfurt am Main, Hesse, DE");
    assert_eq!(place("mel").name, "MEL");
    assert_eq!(
        (place("Pau").name, place("PAU").name),
        ("Pau/Pyrenees, Nouvelle-Aquitaine, FR".into(), "PAU".into())
    );
    assert_eq!(place("48.86, 2.35").position, Position::new(48.86, 2.35).unwrap());
    assert_eq!(place("-12.46 130.84").position.latitude(), -12.46);
    // A metropolitan code is all of its airports; an airport's code is that one.
    assert!(place("PAR").position != place("CDG").position);
    assert_eq!(airport("cdg").unwrap().city, "Paris");
}

#[test]
fn distances_as_published() {
    // A degree of latitude, a quarter of a meridian, antipodes.
    assert!((km("0,0", "1,0") - 111.195).abs() < 0.01);
    assert!((km("90,0", "0,77") - 10_007.56).abs() < 0.01);
    assert!((km("0,0", "0,180") - 20_015.1).abs() < 0.1);
    // The geodesic on WGS 84; the second crosses the date line.
    for (from, to, wgs84) in [("JFK", "LHR", 5_554.0), ("SYD", "SCL", 11_364.0)] {
        assert!((km(from, to) / wgs84 - 1.0).abs() < 6e-3, "{from} {to} {}", km(from, to));
    }
    assert_eq!(km("Paris", "Paris"), 0.0);
}

#[test]
fn wrong_places_name_the_remedy() {
    let error = |text: &str| text.parse::<Location>().unwrap_err().to_string();
    assert!(error("Atlantis").contains("48.86,2.35"), "{}", error("Atlantis"));
    for text in ["", " ", ",", ", FR", "Paris, DE", "\u{1b}[31m", "nan,nan"] {
        assert!(
            matches!(
                text.parse::<Location>(),
                Err(LocationError::Unknown(_) | LocationError::Range(_))
            ),
            "{text:?}"
        );
    }
    assert!(!error("\u{1b}[31m").contains('\u{1b}'));
    for text in ["91,0", "0,181", "-90.1,0", "inf,0"] {
        assert!(matches!(text.parse::<Location>(), Err(LocationError::Range(_))), "{text}");
    }
    let Err(LocationError::Ambiguous { choices, .. }) = "Springfield".parse::<Location>() else {
        panic!()
    };
    assert!(choices.len() > 1 && choices.iter().all(|choice| place(choice).name == *choice));
    assert_eq!("x".repeat(101).parse::<Location>(), Err(LocationError::TooLong));
}

#[test]
fn every_airport_is_found_by_its_code_and_its_citys_name() {
    let lines = include_str!("../data/airports.csv").lines();
    assert!(lines.clone().is_sorted() && lines.clone().count() > 7_000);
    for line in lines.step_by(97) {
        let found = airport(&line[..3]).unwrap_or_else(|| panic!("{line}"));
        let place = place(found.code);
        assert!(great_circle_km(place.position, found.position) < 0.1, "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_name_survives(text in "\\PC{0,40}") {
        if let Ok(place) = text.parse::<Location>() {
            let again: Location = String::from(place.clone()).parse().unwrap();
            prop_assert!(great_circle_km(place.position, again.position) < 300.0);
        }
    }

    #[test]
    fn distances_are_a_metric(a in (-90.0..90.0, -180.0..180.0), b in (-90.0..90.0, -180.0..180.0)) {
        let (a, b) = (Position::new(a.0, a.1).unwrap(), Position::new(b.0, b.1).unwrap());
        let km = great_circle_km(a, b);
        prop_assert!((0.0..=std::f64::consts::PI * EARTH_RADIUS_KM + 1e-6).contains(&km));
        prop_assert!((km - great_circle_km(b, a)).abs() < 1e-6);
    }
}
