//! Applying a plan so that it can be undone: the journal before the value.

use crate::apply::same;
use crate::journal::{Begun, Entry, FileChange, Journal, Line, Shelf};
use crate::{Disk, Identity, JournalError, Lock, Settings, persist};
use record::{Outcome, PlannedSetting, TUNE_APPLY_SCHEMA, TuneApplied, TunePlan, Written};
use std::io;
use std::path::{Path, PathBuf};

/// A host's settings, and the folder of journals that says what they were.
#[derive(Clone)]
pub struct Ledger<'a> {
    /// The settings.
    pub settings: &'a dyn Settings,
    /// Where journals and the file for each boot are kept.
    pub disk: &'a dyn Disk,
    /// The folder of journals.
    pub folder: &'a Path,
    /// The file for each boot: [`crate::PERSISTED`].
    pub persisted: &'a Path,
    /// This machine.
    pub here: Identity,
    /// The time, in seconds since 1970.
    pub now_s: u64,
}

/// Why nothing was done, or not all.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A journal stands in the way.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The last run did not come to its end.
    #[error(
        "the last apply was broken off ({}): undo it first, with longhaul tune rollback", .0.display()
    )]
    BrokenOff(PathBuf),
    /// None of the settings may be changed from here.
    #[error(
        "cannot change {key}: {source}; run as root (sudo), in a container with --privileged or \
         --sysctl, or try it in a lab: --in-lab"
    )]
    NotPermitted {
        /// One of them.
        key: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file for each boot is not to be changed.
    #[error("cannot read {} to keep what it has: {source}", path.display())]
    Persisted {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What a run would do.
struct Prepared {
    entries: Vec<Entry>,
    /// What is left as it is, and why.
    skipped: Vec<Written>,
    /// Values of earlier plans in force, which the file for each boot has too.
    earlier: Vec<(String, String)>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn shelf(&self) -> Shelf<'a> {
        Shelf { disk: self.disk, folder: self.folder }
    }

    /// The journals, all of them fit to be followed here.
    pub(crate) fn journals(&self) -> Result<Vec<Journal>, JournalError> {
        let journals = self.shelf().all()?;
        journals.iter().try_for_each(|journal| journal.check(&self.here))?;
        Ok(journals)
    }

    /// What [`apply`](Self::apply) would do, without doing it.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn rehearse(&self, plan: &TunePlan, persist: bool) -> Result<TuneApplied, LedgerError> {
        let Prepared { entries, mut skipped, .. } = self.prepare(plan)?;
        let persisted = persist.then(|| self.persisted.display().to_string());
        skipped.extend(entries.into_iter().map(|Entry { key, before, planned }| Written {
            key,
            before,
            now: planned,
            outcome: Outcome::Set,
            note: String::new(),
        }));
        Ok(applied(plan, None, skipped, persisted, true))
    }

    /// Applies a plan: first the journal, then each value, read back, then the
    /// file for each boot where `persist` asks for it. A setting that is not
    /// to be changed here is left out, and the others are set.
    ///
    /// # Errors
    /// [`LedgerError`]. Where the journal could no longer be written the run
    /// ends there, and [`undo`](Self::undo) puts back what it had done.
    pub fn apply(
        &self,
        _lock: &Lock,
        plan: &TunePlan,
        persist: bool,
    ) -> Result<TuneApplied, LedgerError> {
        let Prepared { entries, skipped: mut settings, earlier } = self.prepare(plan)?;
        if entries.is_empty() && !persist {
            return Ok(applied(plan, None, settings, None, false));
        }
        let shelf = self.shelf();
        let mut journal = shelf.begin(Begun {
            schema: Begun::schema(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at_s: self.now_s,
            identity: self.here.clone(),
            goal: plan.goal.clone(),
            entries,
        })?;
        let mut refusal = None;
        for entry in &journal.begun.entries {
            let written = match self.set(entry) {
                Ok(now) => {
                    let line = Line::Set { key: entry.key.clone(), now: now.clone() };
                    shelf.add(&journal, &line)?;
                    journal.set.insert(entry.key.clone(), now.clone());
                    verified(entry, now)
                }
                Err(source) => {
                    shelf.add(&journal, &Line::Refused { key: entry.key.clone() })?;
                    let written = skipped(entry, &source);
                    refusal = Some((entry.key.clone(), source));
                    written
                }
            };
            settings.push(written);
        }
        let mut notes = Vec::new();
        let persisted = if persist {
            self.persist(&mut journal, earlier, &mut settings, &mut notes)?
        } else {
            None
        };
        if journal.set.is_empty() && journal.file.is_none() {
            shelf.forget(&journal)?;
            return match refusal {
                Some((key, source)) if is_forbidden(&source) => {
                    Err(LedgerError::NotPermitted { key, source })
                }
                _ => Ok(applied(plan, None, settings, None, false)),
            };
        }
        shelf.add(&journal, &Line::Ended)?;
        let applied = applied(plan, Some(&journal), settings, persisted, false);
        Ok(TuneApplied { notes, ..applied })
    }

    fn prepare(&self, plan: &TunePlan) -> Result<Prepared, LedgerError> {
        let journals = self.journals()?;
        if let Some(last) = journals.last()
            && !last.ended
            && !last.is_of_earlier_boot(&self.here)
        {
            return Err(LedgerError::BrokenOff(last.path.clone()));
        }
        let mut prepared = Prepared { entries: vec![], skipped: vec![], earlier: vec![] };
        let mut refusal = None;
        for PlannedSetting { key, now, planned, .. } in &plan.settings {
            let entry = |before: &str| Entry {
                key: key.clone(),
                before: before.to_owned(),
                planned: planned.clone(),
            };
            let may = || self.settings.may_write(key).and_then(|()| self.settings.read(key));
            match may() {
                Ok(before) if same(&before, planned) => {}
                Ok(before) => prepared.entries.push(entry(&before)),
                Err(source) => {
                    prepared.skipped.push(skipped(&entry(now), &source));
                    refusal.get_or_insert((key.clone(), source));
                }
            }
        }
        match refusal {
            Some((key, source)) if prepared.entries.is_empty() && is_forbidden(&source) => {
                return Err(LedgerError::NotPermitted { key, source });
            }
            _ => {}
        }
        let in_force = journals.into_iter().filter(|j| !j.is_of_earlier_boot(&self.here));
        prepared.earlier = in_force.flat_map(|journal| journal.set).collect();
        Ok(prepared)
    }

    /// Writes one value and gives what then reads; on an error all is as before.
    fn set(&self, entry: &Entry) -> io::Result<String> {
        self.settings.write(&entry.key, &entry.planned).inspect_err(|_| {
            // Of three numbers the kernel may have taken two.
            if self.settings.read(&entry.key).is_ok_and(|now| !same(&now, &entry.before)) {
                let _ = self.settings.write(&entry.key, &entry.before);
            }
        })?;
        self.settings.read(&entry.key)
    }

    /// Puts the file for each boot in its place; where the system refuses, that
    /// is one of the settings skipped.
    fn persist(
        &self,
        journal: &mut Journal,
        earlier: Vec<(String, String)>,
        settings: &mut Vec<Written>,
        notes: &mut Vec<String>,
    ) -> Result<Option<String>, LedgerError> {
        let path = self.persisted.display().to_string();
        let unreadable =
            |source| LedgerError::Persisted { path: self.persisted.to_owned(), source };
        let before = self.persisted_text().map_err(unreadable)?;
        let now = journal.set.iter().map(|(key, value)| (key.clone(), value.clone()));
        let values: Vec<(String, String)> = earlier.into_iter().chain(now).collect();
        let values: Vec<(&str, &str)> = values.iter().map(|(k, v)| (&**k, &**v)).collect();
        let planned = persist::text(before.as_deref(), &values);
        notes.extend(self.later_files(&values));
        if values.is_empty() || before.as_ref() == Some(&planned) {
            return Ok(before.is_some().then_some(path));
        }
        let change = FileChange { before, planned };
        self.shelf().add(journal, &Line::File(change.clone()))?;
        journal.file = Some(change.clone());
        if let Err(source) = self.place(Some(&change.planned)) {
            settings.push(Written {
                key: path,
                before: String::new(),
                now: String::new(),
                outcome: Outcome::Skipped,
                note: format!("cannot write it: {source}; the values last until the next boot"),
            });
            return Ok(None);
        }
        Ok(Some(path))
    }

    /// What wins over the file for each boot: files whose names come later set
    /// theirs later (sysctl.d(5)).
    fn later_files(&self, values: &[(&str, &str)]) -> Vec<String> {
        let (Some(folder), Some(own)) = (self.persisted.parent(), self.persisted.file_name())
        else {
            return Vec::new();
        };
        let own = own.to_string_lossy();
        let mut names = self.disk.list(folder).unwrap_or_default();
        names.retain(|name| name.ends_with(".conf") && **name > *own);
        names.sort_unstable();
        let other = |name: String| {
            let file = folder.join(name);
            let text = String::from_utf8(self.disk.load(&file).ok()?).ok()?;
            let key = persist::contradicted(&text, values)?;
            Some(format!("{} sets {key} to another value at each boot, and wins", file.display()))
        };
        names.into_iter().filter_map(other).collect()
    }

    /// The text of the file for each boot; `None` where there is none.
    pub(crate) fn persisted_text(&self) -> io::Result<Option<String>> {
        match self.disk.load(self.persisted) {
            Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the file for each boot a text, whole or not at all, or removes it.
    pub(crate) fn place(&self, text: Option<&str>) -> io::Result<()> {
        let Some(text) = text else { return self.disk.remove(self.persisted) };
        let beside = self.beside();
        self.disk.store(&beside, text.as_bytes())?;
        self.disk.rename(&beside, self.persisted)
    }

    /// Where it is written; sysctl(8) reads names that end in `.conf` alone.
    pub(crate) fn beside(&self) -> PathBuf {
        self.persisted.with_extension("conf.new")
    }
}

fn applied(
    plan: &TunePlan,
    journal: Option<&Journal>,
    settings: Vec<Written>,
    persisted: Option<String>,
    dry_run: bool,
) -> TuneApplied {
    TuneApplied {
        schema: TUNE_APPLY_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan.clone(),
        journal: journal.map(|journal| journal.path.display().to_string()),
        settings,
        persisted,
        notes: Vec::new(),
        dry_run,
    }
}

fn verified(entry: &Entry, now: String) -> Written {
    let Entry { key, before, planned } = entry.clone();
    let (outcome, note) = if same(&now, &planned) {
        (Outcome::Set, String::new())
    } else {
        (Outcome::Bounded, format!("asked for {planned}; the kernel keeps its own bounds"))
    };
    Written { key, before, now, outcome, note }
}

fn skipped(entry: &Entry, source: &io::Error) -> Written {
    let why = match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "not to be changed from here (another user's, or a namespace that only shows it)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "read-only here, as in a container",
        io::ErrorKind::NotFound => "not there: this kernel or namespace lacks it, or its module",
        io::ErrorKind::InvalidInput => "the kernel does not accept the value",
        _ => "the kernel refused",
    };
    let Entry { key, before, .. } = entry.clone();
    let note = format!("{why}: {source}");
    Written { key, now: before.clone(), before, outcome: Outcome::Skipped, note }
}

pub(crate) fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}
