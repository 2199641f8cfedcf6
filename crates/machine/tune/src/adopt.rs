//! Moves root's journals of earlier versions from a home directory to the present place.
//!
//! The old directory may belong to another user, who can put anything there. A
//! journal is moved only if root wrote it, nobody else can have changed it, and
//! every line is one that Longhaul writes; others are reported and stay.

use crate::journal::{self, Journal, JournalStore, number};
use crate::{JournalError, Lock, Tuner};
use host::directory::{Directory, Trust};
use std::io;
use std::path::{Path, PathBuf};

/// A journal found in an old directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adopted {
    /// It was moved.
    Moved {
        /// Where it was.
        from: PathBuf,
        /// Where it is.
        to: PathBuf,
    },
    /// It was refused and stays.
    Refused {
        /// The journal, or the untrusted part of its path.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Whether a directory has journals. Read-only.
#[must_use]
pub fn has_journals(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(1000).any(|entry| number(&entry.file_name().to_string_lossy()).is_some())
}

impl Tuner<'_> {
    /// Appends the journals of an old directory to the present ones. Can be
    /// interrupted and repeated at any point.
    ///
    /// # Errors
    /// [`JournalError`], where one cannot be written here.
    pub fn adopt(&self, _lock: &Lock, old: &Path) -> Result<Vec<Adopted>, JournalError> {
        let refused = |path: &Path, why: &dyn std::fmt::Display| Adopted::Refused {
            path: path.to_owned(),
            why: why.to_string(),
        };
        let names = Directory::open(old, Trust::NoSymlinks)
            .and_then(|directory| directory.names().map(|names| (directory, names)));
        let (directory, names) = match names {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Ok(vec![refused(old, &error)]),
        };
        let mut numbered: Vec<(u64, String)> =
            names.into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
        numbered.sort_unstable();
        let mut found = Vec::new();
        for (_, name) in numbered {
            let path = old.join(&name);
            let bytes = match directory.read_own(&name, journal::MAX_BYTES) {
                Ok(bytes) => bytes,
                Err(error) => {
                    found.push(refused(&path, &error));
                    continue;
                }
            };
            let sound = Journal::parse(&path, &bytes).and_then(|one| one.check(&self.here));
            if let Err(error) = sound {
                found.push(refused(&path, &error));
                continue;
            }
            let to = self.journal_store().adopt(&bytes)?;
            match directory.remove(&name) {
                Ok(()) => found.push(Adopted::Moved { from: path, to }),
                Err(error) => found.push(refused(&path, &error)),
            }
        }
        Ok(found)
    }
}

impl JournalStore<'_> {
    /// Stores a journal's bytes under the next number, unless an interrupted move has
    /// stored it already.
    fn adopt(&self, bytes: &[u8]) -> Result<PathBuf, JournalError> {
        let numbers = self.numbers()?;
        for number in &numbers {
            let path = self.path(*number);
            if self.disk.load(&path).is_ok_and(|there| there == bytes) {
                return Ok(path);
            }
        }
        self.write_next(numbers.into_iter().max(), bytes)
    }
}

#[cfg(test)]
mod tests;
