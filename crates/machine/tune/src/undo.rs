//! Restores the previous values from the journals.

use crate::apply::same;
use crate::journal::{Entry, FileChange, Journal};
use crate::tuner::is_forbidden;
use crate::{Lock, Tuner, TunerError};
use record::{RevertOutcome, RevertedSetting, RoutePrefix, TUNE_ROLLBACK_SCHEMA, TuneRollback};
use std::io;

/// A value that someone else has changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// The sysctl with dots, the route, or the boot file.
    pub key: &'a str,
    /// Its present value; `None` for a file.
    pub now: Option<&'a str>,
    /// The value that was set.
    pub set: Option<&'a str>,
    /// The previous value.
    pub before: Option<&'a str>,
}

/// The action for such a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Restore the previous value.
    Overwrite,
    /// Keep it, and discard the previous value.
    Accept,
    /// Keep it and the journal.
    Keep,
}

pub(crate) type Decide<'d> = &'d mut dyn FnMut(&Foreign<'_>) -> Decision;

impl Tuner<'_> {
    /// Reverts the last applied plan, or all of them. Each value is restored and read
    /// back before its journal is removed, so it can be interrupted and repeated at
    /// any point. `decide` is called for each value that is neither the one set nor
    /// the previous one.
    ///
    /// # Errors
    /// [`TunerError`].
    pub fn undo(
        &self,
        lock: &Lock,
        all: bool,
        decide: &mut dyn FnMut(&Foreign<'_>) -> Decision,
    ) -> Result<TuneRollback, TunerError> {
        self.undo_of(lock, None, all, decide)
    }

    /// The same with the plans for the route to one prefix alone, which share no setting with any
    /// other plan; with all plans if there is no prefix.
    ///
    /// # Errors
    /// [`TunerError`].
    pub fn undo_of(
        &self,
        _lock: &Lock,
        route: Option<RoutePrefix>,
        all: bool,
        decide: &mut dyn FnMut(&Foreign<'_>) -> Decision,
    ) -> Result<TuneRollback, TunerError> {
        let journals = self.journals()?;
        let is_asked = |journal: &&Journal| route.is_none() || journal.begun.route() == route;
        let mut report = TuneRollback {
            schema: TUNE_ROLLBACK_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            undone: 0,
            remain: journals.len(),
            settings: Vec::new(),
            routes: Vec::new(),
            notes: Vec::new(),
        };
        let journal_store = self.journal_store();
        journal_store.remove_unfinished()?;
        let most = if all { journals.len() } else { 1 };
        for journal in journals.iter().rev().filter(is_asked).take(most) {
            let done = self.undo_one(journal, decide, &mut report)?;
            if done {
                journal_store.remove(journal)?;
                report.undone += 1;
                report.remain -= 1;
            } else {
                report.notes.push(format!(
                    "the previous values are still in {}; remove it to accept the current ones",
                    journal.path.display()
                ));
            }
        }
        Ok(report)
    }

    /// Returns true if nothing is left to restore.
    fn undo_one(
        &self,
        journal: &Journal,
        decide: Decide<'_>,
        report: &mut TuneRollback,
    ) -> Result<bool, TunerError> {
        let gone = journal.is_of_earlier_boot(&self.here);
        if gone {
            report.notes.push(format!(
                "'{}' was applied before the last boot, which reset its values{}",
                journal.begun.goal,
                if journal.file.is_some() { "; its boot file set them again" } else { "" }
            ));
        }
        let (first, first_route) = (report.settings.len(), report.routes.len());
        if let Some(change) = &journal.file {
            let undone = self.undo_file(change, decide);
            report.settings.push(undone);
        }
        let mut refusal = None;
        for entry in journal.begun.entries.iter().rev() {
            if journal.refused.contains(&entry.key) {
                continue;
            }
            let undone = self.undo_entry(journal, entry, gone, decide, &mut refusal);
            report.settings.push(undone);
        }
        let mut route_refusal = None;
        for entry in journal.begun.routes.iter().rev() {
            if journal.is_refused(entry) {
                continue;
            }
            let undone = self.undo_route(journal, entry, gone, decide, &mut route_refusal);
            report.routes.push(undone);
        }
        let settings = report.settings.iter().skip(first).map(|one| (one.state, &one.note));
        let routes = report.routes.iter().skip(first_route).map(|one| (one.state, &one.note));
        let ended: Vec<(RevertOutcome, &String)> = settings.chain(routes).collect();
        let state = |state: RevertOutcome| ended.iter().filter(|one| one.0 == state).count();
        let written = state(RevertOutcome::Restored) + state(RevertOutcome::Overwritten);
        // None could be written: insufficient privileges.
        if let Some(source) = route_refusal
            && written == 0
            && is_forbidden(&source)
        {
            return Err(TunerError::RoutesNotPermitted { source });
        }
        if let Some((key, source)) = refusal
            && written == 0
            && is_forbidden(&source)
        {
            return Err(TunerError::NotPermitted { key, source });
        }
        let kept = ended.iter().any(|one| one.0 == RevertOutcome::Left && !one.1.is_empty());
        Ok(state(RevertOutcome::Failed) == 0 && !kept)
    }

    fn undo_entry(
        &self,
        journal: &Journal,
        entry: &Entry,
        gone: bool,
        decide: Decide<'_>,
        refusal: &mut Option<(String, io::Error)>,
    ) -> RevertedSetting {
        let Entry { key, before, planned } = entry;
        let end = |found: Option<&str>, state, note: String| RevertedSetting {
            key: key.clone(),
            found: found.map(str::to_owned),
            before: Some(before.clone()),
            state,
            note,
        };
        let now = match self.settings.read(key) {
            Ok(now) => now,
            Err(_) if gone => return end(None, RevertOutcome::Gone, String::new()),
            Err(error) => {
                return end(None, RevertOutcome::Failed, format!("cannot read it: {error}"));
            }
        };
        if same(&now, before) {
            return end(Some(&now), RevertOutcome::AsBefore, String::new());
        }
        let set = journal.set.get(key).unwrap_or(planned);
        let ours = is_ours(&now, before, set);
        // After a reboot only the boot file can have set this value.
        if gone && !(ours && journal.file.is_some()) {
            return end(Some(&now), RevertOutcome::Gone, String::new());
        }
        if !ours {
            let foreign = Foreign { key, now: Some(&now), set: Some(set), before: Some(before) };
            match decide(&foreign) {
                Decision::Overwrite => {}
                Decision::Accept => return end(Some(&now), RevertOutcome::Left, String::new()),
                Decision::Keep => {
                    return end(Some(&now), RevertOutcome::Left, changed_by_others(Some(set)));
                }
            }
        }
        let written = self.settings.write(key, before).and_then(|()| self.settings.read(key));
        match written {
            Ok(back) if same(&back, before) => {
                let state = if ours { RevertOutcome::Restored } else { RevertOutcome::Overwritten };
                end(Some(&now), state, String::new())
            }
            Ok(back) => {
                end(Some(&now), RevertOutcome::Failed, format!("written, but reads {back}"))
            }
            Err(source) => {
                let note = format!("cannot set it: {source}");
                refusal.get_or_insert((key.clone(), source));
                end(Some(&now), RevertOutcome::Failed, note)
            }
        }
    }

    fn undo_file(&self, change: &FileChange, decide: Decide<'_>) -> RevertedSetting {
        let key = self.persisted.display().to_string();
        let end = |state, note: String| RevertedSetting {
            key: key.clone(),
            found: None,
            before: None,
            state,
            note,
        };
        let failed =
            |error: io::Error| end(RevertOutcome::Failed, format!("cannot restore it: {error}"));
        if let Err(error) = self.disk.remove(&self.temporary_path()) {
            return failed(error);
        }
        let now = match self.persisted_text() {
            Ok(now) => now,
            Err(error) => return failed(error),
        };
        if now == change.before {
            return end(RevertOutcome::AsBefore, String::new());
        }
        let ours = now.as_ref() == Some(&change.planned);
        if !ours {
            match decide(&Foreign { key: &key, now: None, set: None, before: None }) {
                Decision::Overwrite => {}
                Decision::Accept => return end(RevertOutcome::Left, String::new()),
                Decision::Keep => return end(RevertOutcome::Left, changed_by_others(None)),
            }
        }
        match self.write_boot_file(change.before.as_deref()) {
            Ok(()) => end(
                if ours { RevertOutcome::Restored } else { RevertOutcome::Overwritten },
                String::new(),
            ),
            Err(error) => failed(error),
        }
    }
}

pub(crate) fn changed_by_others(set: Option<&str>) -> String {
    match set {
        Some(set) => {
            format!(
                "changed by someone else since it was set to {set}; a forced rollback overwrites it"
            )
        }
        None => "changed by someone else since it was written; a forced rollback overwrites it"
            .to_owned(),
    }
}

/// Returns true if a value is Longhaul's: the one set or, of several numbers after an
/// interrupted write, a mix of set and previous ones.
pub(crate) fn is_ours(now: &str, before: &str, set: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (now, before, set) = (words(now), words(before), words(set));
    now == set
        || now.len() == before.len()
            && now.len() == set.len()
            && now.iter().zip(before.iter().zip(&set)).all(|(n, (b, s))| n == b || n == s)
}
