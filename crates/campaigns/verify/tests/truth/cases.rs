//! The families of cases.

use crate::case::Case;
use crate::families::{self, Environment, Set, case};
use topology::PathSpec;

#[test]
fn every_case_has_a_valid_path() {
    for number in 0..2_000 {
        let environment = if number % 2 == 0 { Environment::Twin } else { Environment::Lab };
        let set = if number % 4 < 2 { Set::Balanced } else { Set::Bulk };
        let case = case(environment, set, 11, number);
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
            (0..total).map(|number| case(environment, Set::Bulk, 3, number).family).collect();
        for family in families::of(environment) {
            let count = drawn.iter().filter(|name| **name == family.name).count();
            assert_eq!(count, family.weight, "{}", family.name);
        }
    }
}

#[test]
fn the_balanced_draw_has_all_controls_streams_directions_and_buffers_in_equal_parts() {
    let total: usize = families::of(Environment::Twin).map(|family| family.weight).sum();
    // Rotations with every mix of the families of any weight.
    let all: Vec<Case> =
        (0..24 * total).map(|number| case(Environment::Twin, Set::Balanced, 3, number)).collect();
    for family in families::of(Environment::Twin) {
        let count = |holds: &dyn Fn(&Case) -> bool| {
            all.iter().filter(|case| case.family == family.name && holds(case)).count()
        };
        let runs = 24 * family.weight;
        for control in ["cubic", "reno", "bbr"] {
            let (of, name) = (count(&|case| case.congestion == control), family.name);
            assert_eq!(of, runs / 3, "{name} {control}");
            let reverse = count(&|case| case.congestion == control && case.reverse);
            assert_eq!(reverse, runs / 6, "{name} {control} -R");
        }
        // A window of 64 KiB leaves room for fewer streams.
        if family.name != "window-scaling" {
            assert_eq!(count(&|case| case.streams > 1), runs / 2, "{}", family.name);
        }
        assert!(count(&families::has_default_buffers) >= runs / 2, "{}", family.name);
    }
}
