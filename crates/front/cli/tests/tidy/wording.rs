//! Names and phrases: those of the field, which a reader knows.

use super::{files, name};

/// Names of modules and types that say nothing to whoever has not read the code.
const PRIVATE_NAMES: [&str; 30] = [
    "course",
    "desk",
    "door",
    "hall",
    "judge",
    "ledger",
    "manner",
    "manners",
    "overflow",
    "patience",
    "place",
    "places",
    "puppet",
    "reach",
    "seen",
    "shake",
    "sheet",
    "standing",
    "tally",
    "teller",
    "terms",
    "turn",
    "way",
    "ways_in",
    "world",
    "worksheet",
    "brief",
    "bucket",
    "flow",
    "paper",
];

#[test]
fn names_are_those_of_the_field() {
    let declares = ["mod ", "struct ", "enum ", "trait ", "type "];
    let mut wrong = Vec::new();
    for path in files() {
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
            let line = line.strip_prefix("pub(super) ").unwrap_or(line);
            let Some(rest) = declares.iter().find_map(|word| line.strip_prefix(word)) else {
                continue;
            };
            let declared: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if PRIVATE_NAMES.contains(&declared.to_lowercase().as_str()) {
                wrong.push(format!("{}:{}: {declared}", name(&path), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "use the field's name:\n{}", wrong.join("\n"));
}

/// Phrases that a network engineer would stop at, each with the term of the field.
/// Common words (way, look, row, turn) are left to review.
const DIALECT: [(&str, &str); 22] = [
    ("sent again", "retransmitted"),
    ("what the path carries", "bottleneck rate"),
    ("reads slowly", "slow receiving application"),
    ("path is full", "bottleneck saturated"),
    ("vanish without a word", "silently dropped"),
    ("what the load adds", "RTT under load"),
    ("core is used up", "CPU-limited"),
    ("turned away", "refused"),
    ("turn away", "refuse"),
    ("thrown away", "discarded"),
    ("throw away", "discard"),
    ("cannot be told", "cannot identify"),
    ("cannot be had", "unavailable"),
    ("shall have", "with"),
    ("stands in the way", "prevents"),
    ("hears of", "learns of"),
    ("tells of", "reports"),
    ("look by look", "sample by sample"),
    ("stood still", "stalled"),
    ("stands still", "stalls"),
    ("there and back", "RTT"),
    ("of its own accord", "by itself"),
];

/// The string literals of a line of code, without comments.
fn literals(line: &str) -> Vec<&str> {
    if line.trim_start().starts_with("//") && !line.trim_start().starts_with("///") {
        return Vec::new();
    }
    // The doc comments of arguments are the help that users read.
    if line.trim_start().starts_with("///") {
        return vec![line];
    }
    line.split('"').skip(1).step_by(2).collect()
}

#[test]
fn users_read_the_terms_of_the_field() {
    let mut wrong = Vec::new();
    for path in files() {
        let shown = name(&path);
        let page = shown.ends_with(".md") && shown != "CHANGELOG.md";
        let source = shown.ends_with(".rs") && shown.contains("/src/");
        if !page && !source {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let parts = if page { vec![line] } else { literals(line) };
            for (phrase, term) in DIALECT {
                if parts.iter().any(|part| part.to_lowercase().contains(phrase)) {
                    wrong.push(format!("{shown}:{}: '{phrase}' (say: {term})", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "use the field's terms:\n{}", wrong.join("\n"));
}
