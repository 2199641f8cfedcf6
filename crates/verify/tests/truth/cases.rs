//! The families of cases.

use crate::families::{FAMILIES, case};
use topology::PathSpec;

#[test]
fn every_case_has_a_valid_path() {
    for number in 0..2_000 {
        let case = case(11, number);
        let path = case.path.parse::<PathSpec>();
        assert!(path.is_ok(), "{number} {}: {:?}", case.path, path.err());
        assert!((0.1..=20.5).contains(&case.seconds), "{case:?}");
        assert!((1..=8).contains(&case.streams), "{case:?}");
        assert!(case.cross.len() <= 5, "{case:?}");
    }
}

#[test]
fn every_family_is_drawn_by_its_weight() {
    let total: usize = FAMILIES.iter().map(|family| family.weight).sum();
    for family in FAMILIES {
        let count = (0..total).filter(|number| case(3, *number).family == family.name).count();
        assert_eq!(count, family.weight, "{}", family.name);
    }
}
