//! Every key of the table: it parses, takes effect, is printed and is in the help.

use super::*;

/// What else a key may need: jitter, a discipline that has the option, a change.
fn beside() -> Vec<String> {
    let disciplines = discipline::names().into_iter().map(|name| format!("queue={name}"));
    let others = ["", "jitter=1ms", "@1s.rate=2mbit"].map(str::to_owned);
    others.into_iter().chain(disciplines).collect()
}

/// A path that accepts `setting`, without and with it.
fn pair(setting: &str) -> (PathSpec, PathSpec) {
    let base = |beside: &str| format!("rate=50mbit,rtt=100ms,{beside}");
    beside()
        .iter()
        .find_map(|beside| {
            let with = format!("{},{setting}", base(beside)).replace("rtt=100ms,,", "rtt=100ms,");
            let with = match setting.split_once('=') {
                // `rate` and the delays cannot be given twice.
                Some(("rate", _)) => with.replace("rate=50mbit,", ""),
                Some(("rtt" | "delay", _)) => with.replace("rtt=100ms,", ""),
                _ => with,
            };
            Some((base(beside).parse().ok()?, with.parse().ok()?))
        })
        .unwrap_or_else(|| panic!("no path accepts {setting}"))
}

#[test]
fn every_key_is_printed_as_it_was_given() {
    for key in KEYS {
        let (without, with) = pair(key.example);
        assert_ne!(without, with, "{}", key.example);
        let spec = with.to_spec();
        assert!(spec.split(',').any(|part| part == key.example), "{} in {spec}", key.example);
        assert_eq!(path(&spec), with, "{spec}");
        assert!(key.example.starts_with(&format!("{}=", key.name)), "{}", key.name);
    }
}

#[test]
fn every_key_of_a_direction_changes_the_link() {
    for key in KEYS.iter().filter(|key| matches!(key.target, key::Target::Direction(_))) {
        for prefix in ["up.", "@5s.up."] {
            let (without, with) = pair(&format!("{prefix}{}", key.example));
            // Whether jitter reorders shows in the link only where there is jitter.
            let (without, with) = match key.name {
                "overtake" => {
                    let jitter = |spec: &PathSpec| change(spec, "@5s.jitter=2ms");
                    (jitter(&without), jitter(&with))
                }
                _ => (without, with),
            };
            let links = |spec: &PathSpec| spec.schedules(7)[0].clone();
            assert_ne!(links(&without), links(&with), "{prefix}{}", key.example);
        }
    }
}

#[test]
fn the_help_shows_every_key_within_80_columns() {
    let help = key_help();
    for key in KEYS {
        assert_eq!(help.matches(&format!("\n  {} ", key.example)).count(), 1, "{}", key.example);
    }
    assert!(help.lines().all(|line| line.len() <= 80), "{help}");
}

#[test]
fn every_discipline_has_the_defaults_that_the_help_shows() {
    let mut compared = 0;
    for entry in discipline::DISCIPLINES {
        let short = format!("rate=50mbit,rtt=100ms,queue={}", entry.name);
        let link = |text: &str| path(text).schedules(7);
        for key in KEYS.iter().filter(|key| key.is_queue_option()) {
            let key::Target::Direction(option) = key.target else { panic!("{}", key.name) };
            let default = entry.default_of(option);
            let given = format!("{short},{}", key.example);
            assert_eq!(given.parse::<PathSpec>().is_ok(), default.is_some(), "{given}");
            // `limit / 2` is no value.
            let shown = format!("{short},{}={}", key.name, default.unwrap_or_default());
            if shown.parse::<PathSpec>().is_ok() {
                assert_eq!(link(&shown), link(&short), "{shown}");
                compared += 1;
            }
        }
    }
    assert!(compared > 10, "{compared} defaults are values");
}
