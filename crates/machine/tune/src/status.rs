//! The status of applied plans.

use crate::apply::same;
use crate::journal::{FileChange, Journal};
use crate::undo::is_ours;
use crate::{JournalError, Tuner};
use record::{
    AppliedFile, AppliedPlan, AppliedSetting, OtherNetwork, SettingStatus, TUNE_STATUS_SCHEMA,
    TuneStatus,
};

impl Tuner<'_> {
    /// All applied plans. Read-only.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn status(&self) -> Result<TuneStatus, JournalError> {
        let journals = self.journals()?;
        let others = self.journals_of_other_networks()?;
        Ok(TuneStatus {
            schema: TUNE_STATUS_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at_s: self.now_s,
            applied: journals
                .iter()
                .enumerate()
                .map(|(index, journal)| self.applied_plan(journal, &journals[index + 1..]))
                .collect(),
            other_networks: others
                .iter()
                .map(|journal| OtherNetwork {
                    journal: journal.path.display().to_string(),
                    network: journal.begun.identity.network,
                })
                .collect(),
        })
    }

    /// The previous values of `later` plans are the present ones of this plan.
    fn applied_plan(&self, journal: &Journal, later: &[Journal]) -> AppliedPlan {
        let gone = journal.is_of_earlier_boot(&self.here);
        let entries = journal.begun.entries.iter();
        let held = entries.filter(|entry| !journal.refused.contains(&entry.key)).map(|entry| {
            let found = later.iter().flat_map(|journal| &journal.begun.entries);
            let found = found.filter(|one| one.key == entry.key).map(|one| one.before.clone());
            let now = self.settings.read(&entry.key).ok();
            let was = found.into_iter().next().or_else(|| now.clone());
            let set = journal.set.get(&entry.key).unwrap_or(&entry.planned);
            let status = match &was {
                None => SettingStatus::Unreadable,
                Some(was) if same(was, &entry.before) => SettingStatus::AsBefore,
                Some(was) if gone && !(same(was, set) && journal.file.is_some()) => {
                    SettingStatus::Gone
                }
                Some(was) if is_ours(was, &entry.before, set) => SettingStatus::AsSet,
                Some(_) => SettingStatus::Foreign,
            };
            let (key, before) = (entry.key.clone(), entry.before.clone());
            AppliedSetting { key, before, set: set.clone(), now, status }
        });
        AppliedPlan {
            goal: journal.begun.goal.clone(),
            since_s: journal.begun.at_s,
            journal: journal.path.display().to_string(),
            interrupted: !journal.ended,
            earlier_boot: gone,
            settings: held.collect(),
            routes: self.applied_routes(journal, later, gone),
            file: journal.file.as_ref().map(|change| self.applied_file(change, later)),
        }
    }

    fn applied_file(&self, change: &FileChange, later: &[Journal]) -> AppliedFile {
        let found = later.iter().find_map(|journal| journal.file.as_ref());
        let was = found.map_or_else(|| self.persisted_text(), |later| Ok(later.before.clone()));
        let status = match was {
            Err(_) => SettingStatus::Unreadable,
            Ok(now) if now == change.before => SettingStatus::AsBefore,
            Ok(now) if now.as_ref() == Some(&change.planned) => SettingStatus::AsSet,
            Ok(_) => SettingStatus::Foreign,
        };
        AppliedFile { path: self.persisted.display().to_string(), status }
    }
}
