//! Joins the results of a study's shards.

use super::pages;
use super::results::Results;
use super::run::failed;
use crate::{Fault, Problem};
use campaign::{CampaignError, Store};
use record::StudyReport;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Studies to join: the shards of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyMergeRequest {
    /// The directories of their results.
    pub folders: Vec<PathBuf>,
    /// A new directory for the joined results.
    pub into: PathBuf,
}

/// Joins the results of a study's shards, and writes the report's page and one for each cell.
///
/// # Errors
/// Results of different studies, runs that differ between two directories, a directory that exists.
pub fn merge(request: &StudyMergeRequest) -> Result<StudyReport, Problem> {
    let StudyMergeRequest { folders, into } = request;
    campaign::merge(folders, into).map_err(|error| match error {
        CampaignError::Full { .. } | CampaignError::System { .. } => failed(error),
        other => Problem::new(Fault::Request, other),
    })?;
    let store = Store::read(into).map_err(failed)?;
    let study = store.study().map_err(failed)?;
    let results = Results::of(study, &store)?;
    pages::write_all(&results, &store, into)?;
    Ok(results.report)
}
