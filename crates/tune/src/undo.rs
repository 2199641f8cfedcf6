//! Putting back what was before, from the journal.

use crate::apply::same;
use crate::journal::{Entry, FileChange, Journal};
use crate::ledger::is_forbidden;
use crate::{Ledger, LedgerError, Lock};
use record::{State, TUNE_ROLLBACK_SCHEMA, TuneUndone, Undone};
use std::io;

/// A value that someone else has set since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign<'a> {
    /// The sysctl with dots, or the file for each boot.
    pub key: &'a str,
    /// What it holds; `None` for a file.
    pub now: Option<&'a str>,
    /// What we had set.
    pub set: Option<&'a str>,
    /// What was before.
    pub before: Option<&'a str>,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Put back what was before we came.
    Overwrite,
    /// Let it be, and forget what was before.
    Accept,
    /// Let it be for now; the journal stays.
    Keep,
}

type Decide<'d> = &'d mut dyn FnMut(&Foreign<'_>) -> Decision;

impl Ledger<'_> {
    /// Undoes the last plan that was applied, or all of them: each value is as
    /// before, read back, when its journal is removed. May be broken off and
    /// begun again at any point. `decide` is asked about each value that is
    /// neither ours nor what was before.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn undo(
        &self,
        _lock: &Lock,
        all: bool,
        decide: &mut dyn FnMut(&Foreign<'_>) -> Decision,
    ) -> Result<TuneUndone, LedgerError> {
        let journals = self.journals()?;
        let mut report = TuneUndone {
            schema: TUNE_ROLLBACK_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            undone: 0,
            remain: journals.len(),
            settings: Vec::new(),
            notes: Vec::new(),
        };
        let shelf = self.shelf();
        shelf.sweep()?;
        let most = if all { journals.len() } else { 1 };
        for journal in journals.iter().rev().take(most) {
            let done = self.undo_one(journal, decide, &mut report)?;
            if done {
                shelf.forget(journal)?;
                report.undone += 1;
                report.remain -= 1;
            } else {
                report.notes.push(format!(
                    "what was before is still in {}; removing it accepts what is now",
                    journal.path.display()
                ));
            }
        }
        Ok(report)
    }

    /// Whether nothing is left to put back.
    fn undo_one(
        &self,
        journal: &Journal,
        decide: Decide<'_>,
        report: &mut TuneUndone,
    ) -> Result<bool, LedgerError> {
        let gone = journal.is_of_earlier_boot(&self.here);
        if gone {
            report.notes.push(format!(
                "'{}' was applied before the last boot, which took its values{}",
                journal.begun.goal,
                if journal.file.is_some() { "; its file set them again" } else { "" }
            ));
        }
        let first = report.settings.len();
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
        let ended = &report.settings[first..];
        let state = |state: State| ended.iter().filter(|undone| undone.state == state).count();
        // Not one could be written: that is no rollback, it is the wrong user.
        if let Some((key, source)) = refusal
            && state(State::Restored) + state(State::Overwritten) == 0
            && is_forbidden(&source)
        {
            return Err(LedgerError::NotPermitted { key, source });
        }
        let kept = ended.iter().any(|u| u.state == State::Left && !u.note.is_empty());
        Ok(state(State::Failed) == 0 && !kept)
    }

    fn undo_entry(
        &self,
        journal: &Journal,
        entry: &Entry,
        gone: bool,
        decide: Decide<'_>,
        refusal: &mut Option<(String, io::Error)>,
    ) -> Undone {
        let Entry { key, before, planned } = entry;
        let end = |found: Option<&str>, state, note: String| Undone {
            key: key.clone(),
            found: found.map(str::to_owned),
            before: Some(before.clone()),
            state,
            note,
        };
        let now = match self.settings.read(key) {
            Ok(now) => now,
            Err(_) if gone => return end(None, State::Gone, String::new()),
            Err(error) => return end(None, State::Failed, format!("cannot read it: {error}")),
        };
        if same(&now, before) {
            return end(Some(&now), State::AsBefore, String::new());
        }
        let set = journal.set.get(key).unwrap_or(planned);
        let ours = is_ours(&now, before, set);
        // After a boot only the file can have set it to what we had set.
        if gone && !(ours && journal.file.is_some()) {
            return end(Some(&now), State::Gone, String::new());
        }
        if !ours {
            let foreign = Foreign { key, now: Some(&now), set: Some(set), before: Some(before) };
            match decide(&foreign) {
                Decision::Overwrite => {}
                Decision::Accept => return end(Some(&now), State::Left, String::new()),
                Decision::Keep => {
                    return end(Some(&now), State::Left, changed_by_others(Some(set)));
                }
            }
        }
        let written = self.settings.write(key, before).and_then(|()| self.settings.read(key));
        match written {
            Ok(back) if same(&back, before) => {
                let state = if ours { State::Restored } else { State::Overwritten };
                end(Some(&now), state, String::new())
            }
            Ok(back) => end(Some(&now), State::Failed, format!("it was written and reads {back}")),
            Err(source) => {
                let note = format!("cannot set it: {source}");
                refusal.get_or_insert((key.clone(), source));
                end(Some(&now), State::Failed, note)
            }
        }
    }

    fn undo_file(&self, change: &FileChange, decide: Decide<'_>) -> Undone {
        let key = self.persisted.display().to_string();
        let end = |state, note: String| Undone {
            key: key.clone(),
            found: None,
            before: None,
            state,
            note,
        };
        let failed = |error: io::Error| end(State::Failed, format!("cannot put it back: {error}"));
        if let Err(error) = self.disk.remove(&self.beside()) {
            return failed(error);
        }
        let now = match self.persisted_text() {
            Ok(now) => now,
            Err(error) => return failed(error),
        };
        if now == change.before {
            return end(State::AsBefore, String::new());
        }
        let ours = now.as_ref() == Some(&change.planned);
        if !ours {
            match decide(&Foreign { key: &key, now: None, set: None, before: None }) {
                Decision::Overwrite => {}
                Decision::Accept => return end(State::Left, String::new()),
                Decision::Keep => return end(State::Left, changed_by_others(None)),
            }
        }
        match self.place(change.before.as_deref()) {
            Ok(()) => end(if ours { State::Restored } else { State::Overwritten }, String::new()),
            Err(error) => failed(error),
        }
    }
}

fn changed_by_others(set: Option<&str>) -> String {
    match set {
        Some(set) => {
            format!("changed by someone else since it was set to {set}; --force overwrites")
        }
        None => "changed by someone else since it was written; --force overwrites".to_owned(),
    }
}

/// Whether a value is one that we left: what was set, or of several numbers
/// some as set and some as before, where a write was broken off.
pub(crate) fn is_ours(now: &str, before: &str, set: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (now, before, set) = (words(now), words(before), words(set));
    now == set
        || now.len() == before.len()
            && now.len() == set.len()
            && now.iter().zip(before.iter().zip(&set)).all(|(n, (b, s))| n == b || n == s)
}
