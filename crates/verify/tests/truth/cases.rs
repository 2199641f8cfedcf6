//! The families of cases.

use crate::families::{self, Environment, case};
use topology::PathSpec;

#[test]
fn every_case_has_a_valid_path() {
    for number in 0..2_000 {
        let environment = if number % 2 == 0 { Environment::Twin } else { Environment::Lab };
        let case = case(environment, 11, number);
        let path = case.path.parse::<PathSpec>();
        assert!(path.is_ok(), "{number} {}: {:?}", case.path, path.err());
        assert!((0.1..=20.5).contains(&case.seconds), "{case:?}");
        assert!((1..=8).contains(&case.streams), "{case:?}");
        assert!(case.cross.len() <= 5, "{case:?}");
    }
}

#[test]
fn every_family_is_drawn_by_its_weight() {
    for environment in [Environment::Twin, Environment::Lab] {
        let total: usize = families::of(environment).map(|family| family.weight).sum();
        let drawn: Vec<&str> =
            (0..total).map(|number| case(environment, 3, number).family).collect();
        for family in families::of(environment) {
            let count = drawn.iter().filter(|name| **name == family.name).count();
            assert_eq!(count, family.weight, "{}", family.name);
        }
    }
}
