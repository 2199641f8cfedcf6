//! Studies that come with the program: published experiments, repeated in the lab, each
//! figure beside the published one.

mod cdn;
mod edge_cloud;
mod emulab;
mod http_buffers;
mod netherlight;
mod runs;
mod understanding;
mod zoo;

use crate::documents::Document;
use crate::plan::PlanError;
use crate::study::{Part, Study};
use record::{PublishedValue, StudyRun, StudyTestbed, StudyTrend};
use runs::Runs;

/// A study that comes with the program.
#[derive(Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// In one sentence.
    pub question: &'static str,
    /// The document that it repeats.
    pub document: &'static Document,
    /// Where it runs unless the user chooses.
    pub testbed: StudyTestbed,
    /// Names and plans of its parts, in the order of running.
    parts: &'static [(&'static str, &'static str)],
    /// The results that it checks.
    trends: &'static [Trend],
}

/// A published or expected result, and how a study's runs show it.
#[derive(Debug)]
pub struct Trend {
    /// Its name, as for `--only`.
    pub name: &'static str,
    published: Published,
    expected: Expected,
    /// The parts that it needs.
    parts: &'static [&'static str],
    /// `None`: runs that it needs are not there or not valid.
    measure: fn(&Runs<'_>) -> Option<Measured>,
}

/// A statement of the study's document.
#[derive(Debug)]
enum Published {
    /// The document states nothing of the kind.
    Nothing,
    /// In words and figures, each figure with its place, and places of statements in words.
    Stated(&'static str, &'static [At]),
}

/// Line, number (or a word that the statement has there) and unit, spelled as in the document.
#[derive(Debug)]
struct At(u32, &'static str, &'static str);

/// What is expected beyond what the document states.
#[derive(Debug)]
enum Expected {
    Nothing,
    /// In words and figures.
    By {
        text: &'static str,
        /// Another publication, or whose inference it is.
        source: &'static str,
    },
}

/// The source of an expectation that nobody published.
const INFERENCE: &str = "our inference, not published";

/// What a study's runs show of a result.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    text: String,
    holds: bool,
}

/// All of them.
pub const BUILT_IN: &[BuiltIn] = &[
    edge_cloud::STUDY,
    cdn::STUDY,
    netherlight::STUDY,
    http_buffers::STUDY,
    understanding::STUDY,
    emulab::STUDY,
    zoo::STUDY,
];

/// A built-in study that is not available as asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum BuiltInError {
    #[error("{study} has no trend or part '{name}'; it has {known}")]
    NoTrend { study: &'static str, name: String, known: String },
    #[error("{name}: {error}")]
    Part { name: String, error: PlanError },
}

impl BuiltIn {
    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        BUILT_IN.iter().find(|study| study.name == name)
    }

    /// The results that it checks.
    #[must_use]
    pub fn checked(&self) -> &'static [Trend] {
        self.trends
    }

    /// The names of its trends.
    pub fn trends(&self) -> impl Iterator<Item = &'static str> {
        self.trends.iter().map(|trend| trend.name)
    }

    /// The study, or one of its parts, or those that one trend needs.
    ///
    /// # Errors
    /// [`BuiltInError`].
    pub fn study(&self, quick: bool, only: Option<&str>) -> Result<Study, BuiltInError> {
        let is_part = |only: &str| self.parts.iter().any(|(name, _)| *name == only);
        let needed = match only {
            None => None,
            Some(name) if is_part(name) => Some(vec![name]),
            Some(name) => Some(self.trend(name)?.parts.to_vec()),
        };
        let wanted = |name: &str| needed.as_ref().is_none_or(|parts| parts.contains(&name));
        let parts = self.parts.iter().filter(|(name, _)| wanted(name));
        let parts = parts.map(|(name, text)| {
            let part = Part::parse(name, &zoo::with_controls(text), quick);
            part.map_err(|error| BuiltInError::Part { name: (*name).to_owned(), error })
        });
        Ok(Study {
            name: self.name.to_owned(),
            question: self.question.to_owned(),
            quick,
            parts: parts.collect::<Result<_, _>>()?,
        })
    }

    fn trend(&self, name: &str) -> Result<&'static Trend, BuiltInError> {
        self.trends.iter().find(|trend| trend.name == name).ok_or_else(|| {
            let known = self.trends().chain(self.parts.iter().map(|(name, _)| *name));
            let known = known.collect::<Vec<_>>().join(", ");
            BuiltInError::NoTrend { study: self.name, name: name.to_owned(), known }
        })
    }
}

/// The trends of a built-in study whose parts are there, from its runs; none for a study of
/// another plan.
#[must_use]
pub fn trends(study: &Study, runs: &[Vec<StudyRun>]) -> Vec<StudyTrend> {
    let Some(built_in) = BuiltIn::named(&study.name) else { return Vec::new() };
    let is_built_in = |part: &Part| {
        let is_text = |text| part.text == zoo::with_controls(text);
        built_in.parts.iter().any(|(name, text)| part.name == *name && is_text(text))
    };
    if !study.parts.iter().all(is_built_in) {
        return Vec::new();
    }
    let has = |name: &str| study.parts.iter().any(|part| part.name == name);
    let runs = Runs { study, runs };
    let possible = built_in.trends.iter().filter(|trend| trend.parts.iter().all(|name| has(name)));
    let trends = possible.map(|trend| {
        let measured = (trend.measure)(&runs);
        let fails = measured.as_ref().is_some_and(|measured| !measured.holds);
        let reason = not_reproduced(study, trend.name).filter(|_| fails);
        StudyTrend {
            holds: measured.as_ref().map(|measured| measured.holds),
            measured: measured.map(|measured| measured.text),
            not_reproduced: reason.map(str::to_owned),
            ..trend.stated(built_in.document)
        }
    });
    trends.collect()
}

impl Trend {
    /// The statement without a measurement.
    #[must_use]
    pub fn stated(&self, document: &Document) -> StudyTrend {
        let (published, cited) = match self.published {
            Published::Nothing => (None, Vec::new()),
            Published::Stated(text, cited) => {
                let value = |At(line, number, unit): &At| document.value(number, unit, *line);
                (Some(text.to_owned()), cited.iter().map(value).collect::<Vec<PublishedValue>>())
            }
        };
        let (expected, expected_by) = match self.expected {
            Expected::Nothing => (None, None),
            Expected::By { text, source } => (Some(text.to_owned()), Some(source.to_owned())),
        };
        let name = self.name.to_owned();
        StudyTrend {
            name,
            published,
            cited,
            expected,
            expected_by,
            measured: None,
            holds: None,
            not_reproduced: None,
        }
    }
}

/// Why a lab need not show a trend of a study; without a reason it is a failure that it does
/// not.
fn not_reproduced(study: &Study, trend: &str) -> Option<&'static str> {
    (study.name == netherlight::STUDY.name)
        .then(|| netherlight::not_reproduced(trend, study.quick))
        .flatten()
}

#[cfg(test)]
mod tests;
