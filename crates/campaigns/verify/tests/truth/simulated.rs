//! Cases in the simulated twin.

use crate::case::Case;
use crate::twin_run::run;

#[test]
fn a_case_runs_the_same_again() {
    let case = Case::new("", 5, "rate=10mbit,rtt=20ms,loss=1%".to_owned(), 2.0);
    let (one, other) = (run(&case, 3).unwrap(), run(&case, 3).unwrap());
    assert_eq!(one.measurement, other.measurement);
    let another = run(&case, 4).unwrap();
    assert_ne!(one.truth, another.truth);
}

#[test]
fn down_is_the_direction_of_a_reverse_transfer() {
    let path = "rate=10mbit,rtt=20ms,down.rate=2mbit";
    let rate = |reverse| {
        let case = Case { reverse, ..Case::new("", 0, path.to_owned(), 4.0) };
        run(&case, 1).unwrap().read[0] as f64 * 12e3 / 4.0
    };
    assert!(rate(true) < 2.1e6, "{}", rate(true));
    assert!(rate(false) > 8e6, "{}", rate(false));
}
