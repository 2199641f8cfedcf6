//! Joins the stores of a study's shards into one.

use crate::pending::{self, Selection};
use crate::store::{HOSTS, NOT_SET};
use crate::{CampaignError, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use study::{CellRun, Study};

/// Stores that are joined at once: each has up to three open files.
pub const MAX_MERGED: usize = 256;

/// What stores of one study have in common, beside the study, the testbed and the version.
const IN_COMMON: [&str; 2] = [NOT_SET, HOSTS];

/// A joined store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// Stores that were read.
    pub stores: usize,
    /// Runs that it has.
    pub runs: usize,
    /// Runs that more than one store had; they were the same in all of them.
    pub shared: usize,
    /// Runs of the plans that no store had.
    pub missing: usize,
}

/// The runs of all stores, each with the index of a store that has it.
type Index = BTreeMap<(usize, CellRun), usize>;

/// Joins stores of one study into a new one, in the order in which one process would have measured
/// their runs.
///
/// # Errors
/// Stores of different studies, a run that differs between two of them, a directory that exists.
/// Stores are compared before anything is written.
pub fn merge(folders: &[PathBuf], into: &Path) -> Result<Merged, CampaignError> {
    if !(2..=MAX_MERGED).contains(&folders.len()) {
        return Err(CampaignError::MergeCount { count: folders.len() });
    }
    if into.symlink_metadata().is_ok() {
        return Err(CampaignError::Exists { folder: into.to_owned() });
    }
    let mut stores = Vec::new();
    for folder in folders {
        stores.push(Store::read(folder)?);
    }
    let study = in_common(&stores, folders)?;
    let (mut index, shared) = indexed(&study, &mut stores, folders)?;
    let [first, ..] = stores.as_slice() else {
        return Err(CampaignError::MergeCount { count: 0 });
    };
    let mut merged = Store::open(into, &study, first.testbed()?)?;
    merged.copy_property("version", &first.property("version")?)?;
    merged.copy_property("host", &hosts(&stores)?)?;
    for name in IN_COMMON {
        if let Some(value) = first.optional_property(name)? {
            merged.copy_property(name, &value)?;
        }
    }
    let runs = index.len();
    copy(&study, &mut index, &mut stores, &mut merged)?;
    let missing = pending::queue(&study, &merged, Selection::default())?.len();
    Ok(Merged { stores: stores.len(), runs, shared, missing })
}

/// The study of all stores.
fn in_common(stores: &[Store], folders: &[PathBuf]) -> Result<Study, CampaignError> {
    let [first, others @ ..] = stores else {
        return Err(CampaignError::MergeCount { count: 0 });
    };
    let study = first.study()?;
    let differ = |other: &Path, what| CampaignError::MergeDiffers {
        folders: [folders.first().cloned().unwrap_or_default(), other.to_owned()],
        what,
    };
    for (store, folder) in others.iter().zip(folders.iter().skip(1)) {
        if store.study()? != study {
            return Err(differ(folder, "the study, its form, its plan or its seed"));
        }
        if store.testbed()? != first.testbed()? {
            return Err(differ(folder, "where the runs took place"));
        }
        if store.property("version")? != first.property("version")? {
            return Err(differ(folder, "the version of longhaul"));
        }
        for name in IN_COMMON {
            if store.optional_property(name)? != first.optional_property(name)? {
                return Err(differ(folder, "the hosts, or the sysctls that they lack"));
            }
        }
    }
    for (store, folder) in stores.iter().zip(folders) {
        if !store.is_current()? {
            return Err(CampaignError::MergeOld { folder: folder.clone() });
        }
    }
    Ok(study)
}

/// The hosts that measured, each once.
fn hosts(stores: &[Store]) -> Result<String, CampaignError> {
    let mut hosts: Vec<String> = Vec::new();
    for store in stores {
        let host = store.property("host")?;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts.join("; "))
}

/// The runs of all stores, and how many are in several.
fn indexed(
    study: &Study,
    stores: &mut [Store],
    folders: &[PathBuf],
) -> Result<(Index, usize), CampaignError> {
    let (mut index, mut shared) = (Index::new(), 0);
    for at in 0..folders.len() {
        for (number, part) in study.parts.iter().enumerate() {
            let runs = stores.get(at).map(|store| store.done(&part.name)).transpose()?;
            for run in runs.into_iter().flatten() {
                let Some(earlier) = index.insert((number, run), at) else { continue };
                let [one, other] = [earlier, at].map(|at| {
                    stores.get_mut(at).map(|store| store.rows(&part.name, run)).transpose()
                });
                if one? != other? {
                    return Err(CampaignError::MergeConflict {
                        run: pending::name(part, run),
                        folders: [earlier, at]
                            .map(|at| folders.get(at).cloned().unwrap_or_default()),
                    });
                }
                shared += 1;
            }
        }
    }
    Ok((index, shared))
}

/// Copies all runs: first those that the plans begin with, in their order, then those that were added
/// to cells, round by round, then what an unfinished study has of later rounds.
fn copy(
    study: &Study,
    index: &mut Index,
    stores: &mut [Store],
    merged: &mut Store,
) -> Result<(), CampaignError> {
    let number_of = |name: &str| study.parts.iter().position(|part| part.name == name);
    loop {
        let queue = pending::queue(study, merged, Selection::default())?;
        let keys = queue.iter().filter_map(|job| Some((number_of(&job.part.name)?, job.run)));
        let found: Vec<_> = keys.filter_map(|key| index.remove_entry(&key)).collect();
        if found.is_empty() {
            break;
        }
        for (key, at) in found {
            copy_run(study, key, at, stores, merged)?;
        }
    }
    while let Some((key, at)) = index.pop_first() {
        copy_run(study, key, at, stores, merged)?;
    }
    Ok(())
}

fn copy_run(
    study: &Study,
    (part, run): (usize, CellRun),
    at: usize,
    stores: &mut [Store],
    merged: &mut Store,
) -> Result<(), CampaignError> {
    if let (Some(part), Some(store)) = (study.parts.get(part), stores.get_mut(at)) {
        merged.add_rows(&store.rows(&part.name, run)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
