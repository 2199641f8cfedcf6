//! Contrasts (WCAG 2.2, level AA) of every page in both themes, and the colours of the limits.

use crate::pages;
use crate::style_rules::{self, Colour, Rule, properties};
use record::Limit;
use std::collections::{BTreeMap, BTreeSet};

/// Of text (1.4.3).
const TEXT: f64 = 4.5;
/// Of graphics (1.4.11).
const GRAPHICS: f64 = 3.0;

/// What may be behind a text or a drawing that has no background of its own.
const BACKGROUNDS: [&str; 2] = ["background", "card"];

/// The name in `var(--name)`.
fn variable(value: &str) -> Option<&str> {
    value.trim().strip_prefix("var(--")?.strip_suffix(')')
}

/// Texts and what is behind each.
fn texts(rules: &[Rule]) -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    for rule in rules.iter().filter(|rule| !rule.is_print()) {
        // Colours of keys without text, and of fields with a colour of their own.
        if rule.selectors.starts_with(".k-") || rule.selectors.contains(".value.dark") {
            continue;
        }
        let is_text = rule.selectors.contains("text");
        let fill = rule.value("fill").filter(|_| is_text);
        // The colour of a curve is that of its name.
        let own = rule.value("--c");
        let Some(text) = rule.value("color").or(fill).or(own).and_then(variable) else { continue };
        let behind = rule.value("background").and_then(variable);
        for behind in behind.as_ref().map_or(&BACKGROUNDS[..], std::slice::from_ref) {
            if text != "c" {
                pairs.insert((text.to_owned(), (*behind).to_owned()));
            }
        }
    }
    // Where text of the page's colour is in a coloured box.
    pairs.insert(("text".to_owned(), "fixable-tint".to_owned()));
    pairs
}

fn colour(colours: &BTreeMap<String, Colour>, name: &str) -> Colour {
    *colours.get(name).unwrap_or_else(|| panic!("no colour --{name}"))
}

#[test]
fn texts_have_the_contrast_of_level_aa() {
    for page in pages::all() {
        let rules = style_rules::of(&page.html);
        for dark in [false, true] {
            let colours = properties(&rules, dark);
            let pairs = texts(&rules);
            assert!(pairs.len() > 20, "{}: {pairs:?}", page.name);
            for (text, behind) in &pairs {
                let contrast = colour(&colours, text).contrast(colour(&colours, behind));
                let of = format!("{}: --{text} on --{behind}, dark: {dark}", page.name);
                assert!(contrast >= TEXT, "{of}: {contrast:.2}");
            }
        }
    }
}

/// What a script draws with: colours of the capture's page that no text has.
#[test]
fn drawings_of_a_capture_have_contrast() {
    let rules = style_rules::of(&pages::capture().html);
    for dark in [false, true] {
        let colours = properties(&rules, dark);
        for name in ["data", "ack", "window", "sack", "late", "fast", "probe", "disordered"] {
            for behind in BACKGROUNDS {
                let contrast = colour(&colours, name).contrast(colour(&colours, behind));
                assert!(contrast >= GRAPHICS, "--{name} on --{behind}, {dark}: {contrast:.2}");
            }
        }
    }
}

#[test]
fn every_limit_has_a_colour_of_its_own_and_the_same_on_every_page() {
    let mut first: Option<[BTreeMap<String, Colour>; 2]> = None;
    for page in pages::all() {
        let rules = style_rules::of(&page.html);
        let of_limits = [false, true].map(|dark| {
            let mut colours = properties(&rules, dark);
            colours.retain(|name, _| name.starts_with("l-"));
            colours
        });
        // All limits, and the network's share of the time.
        assert_eq!(of_limits[0].len(), Limit::ALL.len() + 1, "{}", page.name);
        for limit in Limit::ALL {
            let class = format!(".l-{}", limit.name());
            let rule = rules.iter().find(|rule| rule.selectors == class);
            let value = rule.and_then(|rule| rule.value("--s")).and_then(variable);
            assert_eq!(value, Some(&class[1..]), "{}", page.name);
        }
        for (theme, colours) in of_limits.iter().enumerate() {
            let others = properties(&rules, theme == 1);
            distinct(colours, &others);
        }
        assert_eq!(first.get_or_insert_with(|| of_limits.clone()), &of_limits, "{}", page.name);
    }
}

/// No two limits look alike, and none like a run.
fn distinct(limits: &BTreeMap<String, Colour>, all: &BTreeMap<String, Colour>) {
    for (name, one) in limits {
        for behind in BACKGROUNDS {
            let contrast = one.contrast(colour(all, behind));
            assert!(contrast >= GRAPHICS, "--{name} on --{behind}: {contrast:.2}");
        }
        for (other, two) in limits.iter().filter(|other| other.0 != name) {
            let distance = one.distance(*two);
            assert!(distance >= 0.06, "--{name} and --{other}: {distance:.3}");
        }
        for (run, least) in [("run-0", 0.1), ("run-1", 0.06), ("run-2", 0.06), ("run-3", 0.06)] {
            let distance = one.distance(colour(all, run));
            assert!(distance >= least, "--{name} and --{run}: {distance:.3}");
        }
    }
}

#[test]
fn every_control_has_a_colour_of_its_own() {
    let rules = style_rules::of(&crate::simulation::advice());
    for dark in [false, true] {
        let mut colours = properties(&rules, dark);
        colours.retain(|name, _| name.starts_with("cc-") && name != "cc-other");
        assert_eq!(colours.len(), 19);
        for (name, one) in &colours {
            for (other, two) in colours.iter().filter(|other| other.0 != name) {
                let distance = one.distance(*two);
                assert!(distance >= 0.09, "--{name} and --{other}: {distance:.3}");
            }
        }
    }
}

/// A plot as a file is on white paper.
#[test]
fn texts_of_plots_as_files_have_contrast() {
    let white = Colour::of("#ffffff").unwrap();
    let svg = pages::plot_as_a_file();
    let mut checked = 0;
    for rule in style_rules::of(&svg) {
        let fill = rule.value("fill").filter(|_| rule.selectors.contains("text"));
        let Some(text) = rule.value("color").or(fill).and_then(Colour::of) else { continue };
        // Written on a dark field.
        if !rule.selectors.contains("dark") {
            assert!(text.contrast(white) >= TEXT, "{}", rule.selectors);
            checked += 1;
        }
    }
    assert!(checked >= 9, "{checked}");
}
