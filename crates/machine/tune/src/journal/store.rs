//! The files of journals.

use super::{Begun, Journal, JournalError, Line, SET_ASIDE, UNFINISHED, number};
use crate::Disk;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// The directory of journals, numbered in sequence.
pub(crate) struct JournalStore<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) folder: &'a Path,
}

impl JournalStore<'_> {
    /// All journals, the oldest first.
    pub(crate) fn all(&self) -> Result<Vec<Journal>, JournalError> {
        let mut numbers = self.numbers()?;
        numbers.sort_unstable();
        let read = |number: u64| {
            let path = self.path(number);
            let bytes = self.disk.load(&path).map_err(access("read", &path))?;
            Journal::parse(&path, &bytes)
        };
        numbers.into_iter().map(read).collect()
    }

    /// Creates a journal and syncs it to disk.
    pub(crate) fn begin(&self, begun: Begun) -> Result<Journal, JournalError> {
        self.disk
            .make_folder(self.folder)
            .map_err(access("create a directory for", self.folder))?;
        let text = Line::Begun(begun.clone()).text().map_err(access("write", self.folder))?;
        let path = self.write_next(self.numbers()?.into_iter().max(), text.as_bytes())?;
        let (set, refused, routes) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Ok(Journal { path, begun, set, refused, routes, file: None, ended: false })
    }

    /// Writes a complete journal under the number after `last`.
    pub(crate) fn write_next(
        &self,
        last: Option<u64>,
        bytes: &[u8],
    ) -> Result<PathBuf, JournalError> {
        let path = self.path(last.map_or(1, |last| last.saturating_add(1)));
        let unfinished = self.unfinished();
        self.disk
            .store(&unfinished, bytes)
            .and_then(|()| self.disk.rename(&unfinished, &path))
            .map_err(access("write", &path))?;
        Ok(path)
    }

    pub(crate) fn add(&self, journal: &Journal, line: &Line) -> Result<(), JournalError> {
        line.text()
            .and_then(|text| self.disk.append(&journal.path, text.as_bytes()))
            .map_err(access("write", &journal.path))
    }

    /// Removes a journal whose values were all restored.
    pub(crate) fn remove(&self, journal: &Journal) -> Result<(), JournalError> {
        self.disk.remove(&journal.path).map_err(access("remove", &journal.path))
    }

    /// Renames a journal whose network namespace is gone, and its settings with it.
    pub(crate) fn set_aside(&self, journal: &Journal) -> Result<PathBuf, JournalError> {
        let mut aside = journal.path.clone().into_os_string();
        aside.push(SET_ASIDE);
        let aside = PathBuf::from(aside);
        self.disk.rename(&journal.path, &aside).map_err(access("rename", &journal.path))?;
        Ok(aside)
    }

    pub(crate) fn numbers(&self) -> Result<Vec<u64>, JournalError> {
        let names = self.disk.list(self.folder).map_err(access("list", self.folder))?;
        Ok(names.iter().filter_map(|name| number(name)).collect())
    }

    /// Removes the unfinished journal of a killed run, which had changed nothing.
    pub(crate) fn remove_unfinished(&self) -> Result<(), JournalError> {
        let unfinished = self.unfinished();
        self.disk.remove(&unfinished).map_err(access("remove", &unfinished))
    }

    fn unfinished(&self) -> PathBuf {
        self.folder.join(UNFINISHED)
    }

    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}.journal"))
    }
}

fn access(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Access { operation, path: path.clone(), source }
}
