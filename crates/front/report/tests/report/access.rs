//! Every page: names for screen readers, no sideways scrolling, axes with ticks on a phone, paper
//! on which everything fits, and no dead link.

use crate::elements::{self, Element};
use crate::pages::{self, PageFile};
use crate::style_rules::{self, Rule};
use std::collections::BTreeSet;

/// The narrowest screen, less the margins of a page, in CSS pixels.
const NARROW: f64 = 354.0;

fn each(check: impl Fn(&PageFile, &[Element], &[Rule])) {
    for page in pages::all() {
        check(&page, &elements::of(&page.html), &style_rules::of(&page.html));
    }
}

fn is_named(all: &[Element], element: &Element) -> bool {
    let written = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
    let of_id = |id: &str| all.iter().find(|one| one.attribute("id") == Some(id));
    let labelled = element.attribute("aria-labelledby").is_some_and(|ids| {
        ids.split_whitespace().all(|id| of_id(id).is_some())
            && ids.split_whitespace().any(|id| of_id(id).is_some_and(|it| written(Some(&it.text))))
    });
    let label = element.within.iter().any(|at| {
        all[*at].tag == "label" && written(Some(&all[*at].text)) && element.tag != "button"
    });
    labelled || label || written(element.attribute("aria-label"))
}

#[test]
fn every_control_and_drawing_has_a_name() {
    each(|page, all, _| {
        let of = |tag: &str| all.iter().filter(|one| one.tag == tag).collect::<Vec<_>>();
        assert_eq!(of("html")[0].attribute("lang"), Some("en"), "{}", page.name);
        for tag in ["title", "h1"] {
            let found = of(tag);
            let found: Vec<_> = found
                .iter()
                .filter(|one| one.within.iter().all(|at| all[*at].tag != "svg"))
                .collect();
            assert!(found.len() == 1 && !found[0].text.trim().is_empty(), "{}: {tag}", page.name);
        }
        assert_eq!(of("main").len(), 1, "{}", page.name);
        for element in all {
            let wrong = || format!("{}: {element:?}", page.name);
            let hidden = element.attribute("aria-hidden") == Some("true");
            match element.tag.as_str() {
                "svg" => {
                    assert!(element.attribute("role") == Some("img"), "{}", wrong());
                    assert!(is_named(all, element), "{}", wrong());
                }
                "canvas" | "input" | "select" | "textarea" => {
                    assert!(hidden || is_named(all, element), "{}", wrong());
                }
                "button" | "a" | "summary" => {
                    let text = !element.text.trim().is_empty();
                    assert!(text || is_named(all, element), "{}", wrong());
                }
                "th" => assert!(element.attribute("scope").is_some(), "{}", wrong()),
                _ => {}
            }
            if matches!(element.attribute("role"), Some("img" | "region" | "toolbar")) {
                assert!(is_named(all, element), "{}", wrong());
            }
        }
    });
}

/// The classes whose elements scroll sideways themselves.
fn scrollers(rules: &[Rule]) -> BTreeSet<&str> {
    let scrolls = |rule: &&Rule| {
        let value = rule.value("overflow-x").or(rule.value("overflow"));
        !rule.is_print() && value == Some("auto")
    };
    let classes = rules.iter().filter(scrolls).flat_map(|rule| rule.selectors.split(','));
    classes.filter_map(|selector| selector.trim().strip_prefix('.')).collect()
}

#[test]
fn no_page_scrolls_sideways() {
    each(|page, all, rules| {
        let scrollers = scrollers(rules);
        let scrolls = |element: &Element| scrollers.iter().any(|class| element.has_class(class));
        for element in all.iter().filter(|one| one.tag == "table" || one.tag == "pre") {
            let classes = element.attribute("class").unwrap_or_default();
            let wraps = rules.iter().any(|rule| {
                element.tag == "pre"
                    && rule.selectors == format!("pre.{classes}")
                    && rule.value("white-space") == Some("pre-wrap")
            });
            let inside = element.within.iter().any(|at| scrolls(&all[*at]));
            assert!(wraps || scrolls(element) || inside, "{}: {element:?}", page.name);
        }
        // Drawings are as wide as their place.
        for element in all.iter().filter(|one| one.tag == "svg" || one.tag == "canvas") {
            assert_eq!(element.attribute("width"), None, "{}", page.name);
        }
        let body = rules.iter().find(|rule| rule.selectors == "body");
        let breaks = body.and_then(|rule| rule.value("overflow-wrap"));
        assert_eq!(breaks, Some("break-word"), "{}", page.name);
        // Nothing else is wider than a phone.
        for rule in rules.iter().filter(|rule| !rule.is_print()) {
            let inside = |selector: &str| {
                let first = selector.trim().trim_start_matches('.');
                scrollers.iter().any(|class| first.split([' ', ':']).next() == Some(class))
            };
            if rule.selectors.split(',').all(inside) {
                continue;
            }
            for name in ["width", "min-width"] {
                let pixels = rule.value(name).and_then(|value| value.strip_suffix("px"));
                let pixels = pixels.map_or(0.0, |text| text.parse::<f64>().unwrap());
                assert!(pixels <= NARROW, "{}: {rule:?}", page.name);
            }
        }
    });
}

#[test]
fn tables_and_drawings_fit_the_paper() {
    each(|page, all, rules| {
        let printed = |class: &str, name: &str| {
            let of = |rule: &&Rule| {
                let mut each = rule.selectors.split(',').map(str::trim);
                rule.is_print() && each.any(|one| one.trim_start_matches('.') == class)
            };
            rules.iter().filter(of).find_map(|rule| rule.value(name))
        };
        for class in scrollers(rules) {
            let is_wrapped = printed(class, "white-space") == Some("pre-wrap");
            let shown = printed(class, "overflow") == Some("visible") || is_wrapped;
            assert!(shown, "{}: .{class} is cut off on paper", page.name);
        }
        for canvas in all.iter().filter(|one| one.tag == "canvas") {
            let figure = canvas.within.iter().map(|at| &all[*at]).find(|one| one.tag == "figure");
            let kind = figure.and_then(|figure| figure.attribute("data-graph")).unwrap();
            let height = printed(&format!("graph.{kind} canvas"), "height");
            assert_eq!(height, Some("auto"), "{}: {kind} loses its ratio", page.name);
        }
        let dark = rules.iter().filter(|rule| rule.media.contains("dark"));
        for rule in dark {
            assert!(rule.media.contains("screen"), "{}: dark on paper: {rule:?}", page.name);
        }
    });
}

#[test]
fn axes_have_three_ticks_on_a_phone() {
    each(|page, all, _| {
        for (at, svg) in all.iter().enumerate().filter(|(_, one)| one.has_class("narrow")) {
            for class in ["tick-x", "tick-y"] {
                let inside = |class| {
                    let of = move |one: &&Element| one.has_class(class) && one.within.contains(&at);
                    all.iter().filter(of).count()
                };
                // Rows are levels or cells, and the columns of a map are levels: there may be two.
                let is_rows = class == "tick-y" && inside("row-above") > 0;
                let is_by_level = is_rows || inside("heat") > 0;
                assert!(
                    inside(class) >= 3 || is_by_level,
                    "{}: {class} of {:?}",
                    page.name,
                    svg.attributes
                );
            }
        }
    });
}

#[test]
fn no_link_is_dead() {
    each(|page, all, _| {
        let ids: Vec<&str> = all.iter().filter_map(|one| one.attribute("id")).collect();
        let unique: BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{}: an id twice", page.name);
        for element in all {
            for (name, value) in &element.attributes {
                let ours = value.strip_prefix("url(#").and_then(|id| id.strip_suffix(')'));
                let own = value.strip_prefix('#').filter(|_| name == "href");
                let named = Some(value.as_str()).filter(|_| name == "for");
                for id in [ours, own, named].into_iter().flatten() {
                    assert!(ids.contains(&id), "{}: no #{id}", page.name);
                }
                if name == "href" && own.is_none() {
                    let file = value.split('#').next().unwrap_or_default();
                    assert!(page.files.iter().any(|one| one == file), "{}: {value}", page.name);
                }
            }
        }
    });
}
