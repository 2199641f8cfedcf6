//! What is applied, and how it stands now.

use crate::apply::same;
use crate::journal::{FileChange, Journal};
use crate::undo::is_ours;
use crate::{JournalError, Ledger};
use record::{Held, Holding, KeptFile, Standing, TUNE_STATUS_SCHEMA, TuneStatus};

impl Ledger<'_> {
    /// Every plan in force. Only reads.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn status(&self) -> Result<TuneStatus, JournalError> {
        let journals = self.journals()?;
        Ok(TuneStatus {
            schema: TUNE_STATUS_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at_s: self.now_s,
            applied: journals
                .iter()
                .enumerate()
                .map(|(index, journal)| self.holding(journal, &journals[index + 1..]))
                .collect(),
        })
    }

    /// `later` plans went on from where this one left: what they found stands
    /// for what is now.
    fn holding(&self, journal: &Journal, later: &[Journal]) -> Holding {
        let gone = journal.is_of_earlier_boot(&self.here);
        let entries = journal.begun.entries.iter();
        let held = entries.filter(|entry| !journal.refused.contains(&entry.key)).map(|entry| {
            let found = later.iter().flat_map(|journal| &journal.begun.entries);
            let found = found.filter(|one| one.key == entry.key).map(|one| one.before.clone());
            let now = self.settings.read(&entry.key).ok();
            let was = found.into_iter().next().or_else(|| now.clone());
            let set = journal.set.get(&entry.key).unwrap_or(&entry.planned);
            let standing = match &was {
                None => Standing::Unreadable,
                Some(was) if same(was, &entry.before) => Standing::AsBefore,
                Some(was) if gone && !(same(was, set) && journal.file.is_some()) => Standing::Gone,
                Some(was) if is_ours(was, &entry.before, set) => Standing::AsSet,
                Some(_) => Standing::Foreign,
            };
            let (key, before) = (entry.key.clone(), entry.before.clone());
            Held { key, before, set: set.clone(), now, standing }
        });
        Holding {
            goal: journal.begun.goal.clone(),
            since_s: journal.begun.at_s,
            journal: journal.path.display().to_string(),
            broken_off: !journal.ended,
            earlier_boot: gone,
            settings: held.collect(),
            file: journal.file.as_ref().map(|change| self.kept(change, later)),
        }
    }

    fn kept(&self, change: &FileChange, later: &[Journal]) -> KeptFile {
        let found = later.iter().find_map(|journal| journal.file.as_ref());
        let was = found.map_or_else(|| self.persisted_text(), |later| Ok(later.before.clone()));
        let standing = match was {
            Err(_) => Standing::Unreadable,
            Ok(now) if now == change.before => Standing::AsBefore,
            Ok(now) if now.as_ref() == Some(&change.planned) => Standing::AsSet,
            Ok(_) => Standing::Foreign,
        };
        KeptFile { path: self.persisted.display().to_string(), standing }
    }
}
