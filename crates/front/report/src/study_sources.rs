//! The documents whose experiments a study repeats: what they state of its settings, and where.

use record::{StudyPart, StudySource, places};

/// A setting of one or several plans that has the same origin in all of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceRow<'a> {
    /// The settings, as plans name them.
    pub(crate) settings: String,
    /// The document's values, or the reason of an assumption.
    pub(crate) text: String,
    /// Where the document has them; `None`: an assumption.
    pub(crate) place: Option<String>,
    /// The plans, by the names of their parts.
    pub(crate) parts: Vec<&'a str>,
}

impl SourceRow<'_> {
    /// `published` or `assumed`.
    pub(crate) const fn kind(&self) -> &'static str {
        if self.place.is_some() { "published" } else { "assumed" }
    }

    /// Settings, values, place and plans as one line.
    pub(crate) fn line(&self) -> String {
        let place = self.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let parts = self.parts.join(", ");
        let parts = if parts.is_empty() { parts } else { format!(" [{parts}]") };
        format!("{}: {}{place}{parts}", self.settings, self.text)
    }
}

/// Title, author, date and address of each document, once.
pub(crate) fn citations(parts: &[StudyPart]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for citation in parts.iter().filter_map(|part| Some(part.plan.source.as_ref()?.citation())) {
        if !all.contains(&citation) {
            all.push(citation);
        }
    }
    all
}

/// The settings of all parts, those with the same origin once.
pub(crate) fn rows(parts: &[StudyPart]) -> Vec<SourceRow<'_>> {
    let mut all: Vec<SourceRow<'_>> = Vec::new();
    for part in parts {
        for mut row in part.plan.source.iter().flat_map(of_plan) {
            let same = |other: &&mut SourceRow<'_>| {
                (&other.settings, &other.text, &other.place)
                    == (&row.settings, &row.text, &row.place)
            };
            match all.iter_mut().find(same) {
                Some(known) => known.parts.push(&part.name),
                None => {
                    row.parts.extend(Some(part.name.as_str()).filter(|name| !name.is_empty()));
                    all.push(row);
                }
            }
        }
    }
    all
}

/// The settings of one plan.
pub(crate) fn of_plan(source: &StudySource) -> Vec<SourceRow<'static>> {
    let published = source.published.iter().map(|one| {
        let values: Vec<String> = one.values.iter().map(ToString::to_string).collect();
        (one.setting.clone(), values.join(", "), Some(places(&one.values)))
    });
    let assumed =
        source.assumed.iter().map(|one| (one.settings.join(", "), one.reason.clone(), None));
    let row = |(settings, text, place)| SourceRow { settings, text, place, parts: Vec::new() };
    published.chain(assumed).map(row).collect()
}
