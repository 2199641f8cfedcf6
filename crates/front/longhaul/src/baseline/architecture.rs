//! What the user says the path is made of: line, provider, router, switch, cable, NIC.

use crate::{Field, Problem};
use record::ArchitectureNote;
use std::collections::BTreeMap;

/// Maximum number of notes, and of characters of a name and a text.
const MAX_NOTES: usize = 50;
const MAX_NAME: usize = 40;
const MAX_TEXT: usize = 200;

const ACCEPTED: &str = "as in router=FRITZ!Box 7590, each name once";

/// The notes of a TOML file of strings: `router = "FRITZ!Box 7590"`.
///
/// # Errors
/// The text is not such a file.
pub fn architecture(file: &str, text: &str) -> Result<Vec<ArchitectureNote>, Problem> {
    let read: BTreeMap<String, String> = toml::from_str(text).map_err(|error| {
        let what = format!("{file}: {}", error.message());
        Problem::field(
            Field::Notes,
            what,
            "a TOML file of lines such as router = \"FRITZ!Box 7590\"",
        )
    })?;
    Ok(read.into_iter().map(|(part, text)| ArchitectureNote { part, text }).collect())
}

/// Checks names and lengths.
pub(super) fn check(notes: &[ArchitectureNote]) -> Result<(), Problem> {
    let wrong = |what: String| Err(Problem::field(Field::Note, what, ACCEPTED));
    if notes.len() > MAX_NOTES {
        return wrong(format!("{} notes, of at most {MAX_NOTES}", notes.len()));
    }
    for (index, ArchitectureNote { part, text }) in notes.iter().enumerate() {
        let length = part.chars().count();
        if length == 0 || length > MAX_NAME || part.chars().any(char::is_control) {
            return wrong(format!("a note's name has 1 to {MAX_NAME} characters, not {length}"));
        }
        if text.is_empty() || text.chars().count() > MAX_TEXT || text.chars().any(char::is_control)
        {
            return wrong(format!(
                "the note {part:?} has no text, or more than {MAX_TEXT} characters"
            ));
        }
        if notes[..index].iter().any(|other| other.part == *part) {
            return wrong(format!("two notes are named {part:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(part: &str, text: &str) -> ArchitectureNote {
        ArchitectureNote { part: part.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn files_of_strings_are_read() {
        let read = architecture("home.toml", "router = \"A\"\nNIC = \"TX201\"\n").unwrap();
        assert_eq!(read, [note("NIC", "TX201"), note("router", "A")]);
        for text in ["router", "router = 3", "[line]\nrate = \"1\"", "\0"] {
            let problem = architecture("home.toml", text).unwrap_err();
            assert_eq!(problem.remedy.unwrap().field, Field::Notes, "{text}");
        }
    }

    #[test]
    fn names_and_lengths_are_checked() {
        assert_eq!(check(&[note("router", "A"), note("NIC", "B")]), Ok(()));
        for notes in [
            vec![note("", "A")],
            vec![note("router", "")],
            vec![note("router", "\u{1b}[31m")],
            vec![note(&"r".repeat(41), "A")],
            vec![note("router", &"A".repeat(201))],
            vec![note("router", "A"), note("router", "B")],
            (0..51).map(|n| note(&n.to_string(), "A")).collect(),
        ] {
            assert_eq!(check(&notes).unwrap_err().remedy.unwrap().field, Field::Note);
        }
    }
}
