//! The document whose experiment a study repeats, and where it states each value.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A document, and what a plan takes from it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudySource {
    /// Its title; `None`: not stated, as for the others.
    pub title: Option<String>,
    /// Its author or authors.
    pub author: Option<String>,
    /// The date of publication.
    pub date: Option<String>,
    /// Where it was published.
    pub address: Option<String>,
    /// The document where it states none of these, in a few words; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The plan's settings that the document states.
    pub published: Vec<PublishedSetting>,
    /// Those that it does not state.
    pub assumed: Vec<AssumedSettings>,
}

/// A setting of a plan, with the document's values.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSetting {
    /// The setting, by its name in the plan.
    pub setting: String,
    /// Each value, with its place.
    pub values: Vec<PublishedValue>,
}

/// A value that a document states, spelled as there.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedValue {
    /// Number, or a word where the value is one.
    pub number: String,
    /// Unit; empty for a count or a word.
    pub unit: String,
    /// Line of the document's text.
    pub line: u32,
    /// Section or figure that the line is in; empty: not known.
    pub section: String,
}

/// Settings that a document does not state.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssumedSettings {
    /// The settings, by their names in the plan.
    pub settings: Vec<String>,
    /// The reason for their values.
    pub reason: String,
}

impl StudySource {
    /// Title, author, date and address, each of them or "not stated".
    #[must_use]
    pub fn citation(&self) -> String {
        let or = |field: &Option<String>| field.as_deref().unwrap_or("not stated").to_owned();
        let about = if self.about.is_empty() { String::new() } else { format!("{}; ", self.about) };
        format!(
            "{about}title: {}; author: {}; date: {}; address: {}",
            or(&self.title),
            or(&self.author),
            or(&self.date),
            or(&self.address)
        )
    }
}

impl fmt::Display for PublishedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.number)?;
        if self.unit.is_empty() { Ok(()) } else { write!(f, " {}", self.unit) }
    }
}

/// The places of values: sections in the order of first mention, each with its lines.
#[must_use]
pub fn places(values: &[PublishedValue]) -> String {
    let mut sections: Vec<(&str, Vec<u32>)> = Vec::new();
    for value in values {
        let known = sections.iter().position(|(name, _)| *name == value.section);
        let at = known.unwrap_or_else(|| {
            sections.push((&value.section, Vec::new()));
            sections.len() - 1
        });
        let lines = &mut sections[at].1;
        if !lines.contains(&value.line) {
            lines.push(value.line);
        }
    }
    let place = |(name, lines): (&str, Vec<u32>)| {
        let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        let comma = if name.is_empty() { "" } else { ", " };
        format!("{name}{comma}{word} {}", numbers.join(", "))
    };
    sections.into_iter().map(place).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_document_does_not_state_is_not_stated() {
        let title = Some("A title".to_owned());
        let source = StudySource { title, ..StudySource::default() };
        let expected = "title: A title; author: not stated; date: not stated; address: not stated";
        assert_eq!(source.citation(), expected);
    }

    #[test]
    fn places_name_each_section_once() {
        let value = |section: &str, line| PublishedValue {
            number: "2.77".to_owned(),
            unit: "Mbit/s".to_owned(),
            line,
            section: section.to_owned(),
        };
        let values = [value("Tests", 103), value("Math", 68), value("Tests", 103), value("", 9)];
        assert_eq!(places(&values), "Tests, line 103; Math, line 68; line 9");
        assert_eq!(values[0].to_string(), "2.77 Mbit/s");
    }
}
