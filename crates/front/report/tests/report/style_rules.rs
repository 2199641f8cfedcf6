//! The rules of a page's style sheet, and its colours.

use std::collections::BTreeMap;

/// A rule: the condition of its `@media`, its selectors, its declarations.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) media: String,
    pub(crate) selectors: String,
    pub(crate) declarations: Vec<(String, String)>,
}

impl Rule {
    /// The value of a declaration.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.declarations.iter().rev().find(|one| one.0 == name);
        found.map(|one| one.1.as_str())
    }

    pub(crate) fn is_print(&self) -> bool {
        self.media.contains("print")
    }
}

/// The rules of the style sheets of a document.
pub(crate) fn of(html: &str) -> Vec<Rule> {
    let sheets = html.split("<style>").skip(1).filter_map(|rest| rest.split_once("</style>"));
    let mut rules = Vec::new();
    for (sheet, _) in sheets {
        let mut text = String::new();
        for (at, part) in sheet.split("/*").enumerate() {
            text += if at == 0 { part } else { part.split_once("*/").map_or("", |rest| rest.1) };
        }
        read(&text, "", &mut rules);
    }
    assert!(!rules.is_empty(), "no style sheet");
    rules
}

fn read(mut text: &str, media: &str, rules: &mut Vec<Rule>) {
    while let Some((head, rest)) = text.split_once('{') {
        let head = head.trim();
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        let end = end.unwrap_or_else(|| panic!("{head} is not closed"));
        if let Some(condition) = head.strip_prefix("@media") {
            read(&rest[..end], condition.trim(), rules);
        } else {
            let declarations = rest[..end].split(';').filter_map(|one| one.split_once(':'));
            let declarations = declarations.map(|(name, value)| (name.trim(), value.trim()));
            rules.push(Rule {
                media: media.to_owned(),
                selectors: head.to_owned(),
                declarations: declarations.map(|(a, b)| (a.to_owned(), b.to_owned())).collect(),
            });
        }
        text = &rest[end + 1..];
    }
}

/// A colour in sRGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Colour([u8; 3]);

impl Colour {
    /// `#rrggbb`.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some(Colour([part(0)?, part(2)?, part(4)?]))
    }

    fn linear(self) -> [f64; 3] {
        self.0.map(|value| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// The contrast ratio of WCAG 2.2.
    pub(crate) fn contrast(self, other: Self) -> f64 {
        let luminance = |colour: Colour| {
            let [red, green, blue] = colour.linear();
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let (one, other) = (luminance(self), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// The distance in OKLab (B. Ottosson, 2020): 0.02 is a difference that is just noticed.
    pub(crate) fn distance(self, other: Self) -> f64 {
        let (one, other) = (self.oklab(), other.oklab());
        let squares = one.iter().zip(other).map(|(a, b)| (a - b).powi(2));
        squares.sum::<f64>().sqrt()
    }

    fn oklab(self) -> [f64; 3] {
        let times = |matrix: [[f64; 3]; 3], [a, b, c]: [f64; 3]| {
            matrix.map(|row| row[0] * a + row[1] * b + row[2] * c)
        };
        let cones = times(
            [
                [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
                [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
                [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
            ],
            self.linear(),
        );
        times(
            [
                [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
                [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
                [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
            ],
            cones.map(f64::cbrt),
        )
    }
}

/// The colours of the custom properties of `:root`, in the light or the dark theme.
pub(crate) fn properties(rules: &[Rule], dark: bool) -> BTreeMap<String, Colour> {
    let of_root = rules.iter().filter(|rule| rule.selectors.starts_with(":root"));
    let applies = |rule: &&Rule| {
        rule.media.is_empty() || (dark && rule.media.contains("dark") && !rule.is_print())
    };
    let mut all = BTreeMap::new();
    for (name, value) in of_root.filter(applies).flat_map(|rule| &rule.declarations) {
        let colour = Colour::of(value);
        all.extend(name.strip_prefix("--").zip(colour).map(|(name, it)| (name.to_owned(), it)));
    }
    all
}
