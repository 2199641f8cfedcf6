//! What hosts, links and plans may be called.

use super::error::Problem;
use crate::toml_text::short;
use std::path::Path;

/// Longest name that can be given.
const MAX_LENGTH: usize = 32;

/// A name that stands in /etc/hosts. It begins with a letter, as `7` and `0x7`
/// would be taken for addresses, and `-7` for an option.
pub(super) fn check_host(name: &str) -> Result<(), Problem> {
    let wrong = if name == "localhost" {
        "is reserved for the loopback"
    } else if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        "does not begin with a lower-case letter"
    } else {
        return check("host", name);
    };
    Err(Problem::Name { what: "host", name: short(name, MAX_LENGTH), wrong })
}

/// A name by which a command finds something.
pub(super) fn check(what: &'static str, name: &str) -> Result<(), Problem> {
    let wrong = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_LENGTH {
        "has more than 32 characters"
    } else if !name.chars().all(is_of_names) {
        "has characters other than a-z, 0-9 and -"
    } else if name.starts_with('-') {
        "begins with -"
    } else {
        return Ok(());
    };
    Err(Problem::Name { what, name: short(name, MAX_LENGTH), wrong })
}

fn is_of_names(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

/// The name of a plan that does not say it: the file's stem, with `-` for
/// whatever is in no name.
pub(super) fn of_file(file: &str) -> String {
    let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let letters = stem.unwrap_or_default();
    let letters = letters.chars().map(|c| if is_of_names(c) { c } else { '-' }).take(MAX_LENGTH);
    let name = letters.collect::<String>().trim_matches('-').to_owned();
    if name.is_empty() { "lab".to_owned() } else { name }
}

/// `alice, bob, r1 and 5 more`.
pub(crate) fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first: Vec<&str> = names.take(most).collect();
    match (first.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => first.join(", "),
        (false, more) => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_plan() {
        for (file, name) in [
            ("plans/Parking Lot.toml", "parking-lot"),
            ("x.toml", "x"),
            ("/dev/stdin", "stdin"),
            ("", "lab"),
            ("---.toml", "lab"),
            ("ÄÖ_7.toml", "7"),
        ] {
            assert_eq!(of_file(file), name, "{file}");
            assert!(check("plan", &of_file(file)).is_ok());
        }
    }

    #[test]
    fn the_longest_name_and_one_too_long() {
        assert!(check_host(&"a".repeat(32)).is_ok());
        assert!(check_host(&"a".repeat(33)).is_err());
        for name in ["", "7", "-a", "A", "a_b", "a.b", "ä", "localhost", "a b"] {
            assert!(check_host(name).is_err(), "{name}");
        }
        assert!(check("link", "7").is_ok());
    }
}
