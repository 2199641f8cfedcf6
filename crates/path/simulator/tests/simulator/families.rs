//! The families of scenarios.

use simulator::draws::KERNEL_CONTROLS;
use simulator::{Hosts, Proportions, Scenario, ScenarioSet, families};
use topology::PathSpec;

fn scenario(hosts: Hosts, proportions: Proportions, seed: u64, number: usize) -> Scenario {
    Scenario::draw(ScenarioSet { hosts, proportions }, seed, number)
}

#[test]
fn every_scenario_has_a_valid_path() {
    for number in 0..2_000 {
        let hosts = if number % 2 == 0 { Hosts::Simulated } else { Hosts::Real };
        let proportions = if number % 4 < 2 { Proportions::Balanced } else { Proportions::Bulk };
        let scenario = scenario(hosts, proportions, 11, number);
        let path = scenario.path.parse::<PathSpec>();
        assert!(path.is_ok(), "{number} {}: {:?}", scenario.path, path.err());
        assert!((0.1..=20.5).contains(&scenario.seconds), "{scenario:?}");
        assert!((1..=8).contains(&scenario.streams), "{scenario:?}");
        assert!(scenario.cross.len() <= 5, "{scenario:?}");
    }
}

#[test]
fn every_family_is_drawn_by_its_weight() {
    for hosts in [Hosts::Simulated, Hosts::Real] {
        let total: usize = families(hosts).map(|family| family.weight).sum();
        let drawn: Vec<&str> =
            (0..total).map(|number| scenario(hosts, Proportions::Bulk, 3, number).family).collect();
        for family in families(hosts) {
            let count = drawn.iter().filter(|name| **name == family.name).count();
            assert_eq!(count, family.weight, "{}", family.name);
        }
    }
}

#[test]
fn the_balanced_draw_has_all_controls_streams_directions_and_buffers_in_equal_parts() {
    let total: usize = families(Hosts::Simulated).map(|family| family.weight).sum();
    // Rotations with every mix of the families of any weight.
    let all: Vec<Scenario> = (0..24 * total)
        .map(|number| scenario(Hosts::Simulated, Proportions::Balanced, 3, number))
        .collect();
    for family in families(Hosts::Simulated) {
        let count = |holds: &dyn Fn(&Scenario) -> bool| {
            all.iter().filter(|scenario| scenario.family == family.name && holds(scenario)).count()
        };
        let runs = 24 * family.weight;
        for control in KERNEL_CONTROLS {
            let (of, name) = (count(&|scenario| scenario.congestion == control), family.name);
            assert_eq!(of, runs / 3, "{name} {control:?}");
            let reverse = count(&|scenario| scenario.congestion == control && scenario.reverse);
            assert_eq!(reverse, runs / 6, "{name} {control:?} -R");
        }
        // A window of 64 KiB leaves room for fewer streams.
        if family.name != "window-scaling" {
            assert_eq!(count(&|scenario| scenario.streams > 1), runs / 2, "{}", family.name);
        }
        assert!(count(&Scenario::has_default_buffers) >= runs / 2, "{}", family.name);
    }
}
