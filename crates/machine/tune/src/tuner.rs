//! Applies plans so that they can be reverted: each journal is written before the values.

use crate::apply::same;
use crate::journal::{Begun, Entry, FileChange, Journal, JournalStore, Line, RouteEntry};
use crate::persist::{self, BootFileError};
use crate::{Disk, Identity, JournalError, Lock, RouteError, RoutingTable, Settings};
use problem::Field;
use record::is_tuned_value as is_value;
use record::{
    Outcome, PlannedSetting, RoutePrefix, TUNE_APPLY_SCHEMA, TuneApplied, TunePlan, Written,
};
use std::io;
use std::path::{Path, PathBuf};

/// A host's settings and the journals of their previous values.
#[derive(Clone)]
pub struct Tuner<'a> {
    /// The settings.
    pub settings: &'a dyn Settings,
    /// The routes.
    pub routes: &'a dyn RoutingTable,
    /// Where journals and the boot file are kept.
    pub disk: &'a dyn Disk,
    /// The directory of journals.
    pub folder: &'a Path,
    /// The boot file: [`crate::PERSISTED`].
    pub persisted: &'a Path,
    /// This machine.
    pub here: Identity,
    /// The time, in seconds since 1970.
    pub now_s: u64,
}

/// Why a plan was not applied, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum TunerError {
    /// A journal prevents it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The last apply did not finish.
    #[error(
        "the last apply did not finish ({}): revert it first, with longhaul tune rollback", .0.display()
    )]
    Interrupted(PathBuf),
    /// None of the settings may be changed from here.
    #[error(
        "cannot change {key}: {source}; run as root (sudo), in a container with --privileged or \
         --sysctl, or try it in a lab: {}",
        Field::InLab
    )]
    NotPermitted {
        /// One of them.
        key: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// No route may be changed from here.
    #[error(
        "cannot change routes: {source}; run as root (sudo), in a container with --cap-add NET_ADMIN, or \
         try it in a lab: {}",
        Field::InLab
    )]
    RoutesNotPermitted {
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused every route.
    #[error("cannot change the route to {prefix}: {source}; nothing was changed")]
    RouteRefused {
        /// The destination.
        prefix: RoutePrefix,
        /// The kernel's error.
        source: io::Error,
    },
    /// There is no route whose metrics can be changed.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The boot file has settings that Longhaul did not write.
    #[error(
        "{} has settings that are not Longhaul's ({why}): move them to another file in its \
         directory, or omit {}", path.display(), Field::Persist
    )]
    Shared {
        /// The file.
        path: PathBuf,
        /// Which line.
        why: BootFileError,
    },
    /// The boot file cannot be read.
    #[error("cannot read {} to preserve its settings: {source}", path.display())]
    Persisted {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A prepared apply.
struct Prepared {
    entries: Vec<Entry>,
    /// Skipped settings, and why.
    skipped: Vec<Written>,
    /// Values of earlier applied plans, which the boot file has too.
    earlier: Vec<(String, String)>,
}

impl<'a> Tuner<'a> {
    pub(crate) fn journal_store(&self) -> JournalStore<'a> {
        JournalStore { disk: self.disk, folder: self.folder }
    }

    /// The journals of this network namespace, all checked against this host.
    pub(crate) fn journals(&self) -> Result<Vec<Journal>, JournalError> {
        let mut journals = self.journal_store().all()?;
        journals.retain(|journal| !journal.is_of_other_network(&self.here));
        journals.iter().try_for_each(|journal| journal.check(&self.here))?;
        Ok(journals)
    }

    /// The journals of other network namespaces, such as those of labs.
    pub(crate) fn journals_of_other_networks(&self) -> Result<Vec<Journal>, JournalError> {
        let mut journals = self.journal_store().all()?;
        journals.retain(|journal| journal.is_of_other_network(&self.here));
        Ok(journals)
    }

    /// Renames the journals of network namespaces that are gone, whose settings are gone with them.
    /// `exists` answers for the inode number of one; `None` if that is unknown. Returns the new
    /// names.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn set_aside_gone(
        &self,
        _lock: &Lock,
        exists: impl Fn(u64) -> Option<bool>,
    ) -> Result<Vec<PathBuf>, JournalError> {
        let journals = self.journals_of_other_networks()?;
        let gone = |journal: &&Journal| exists(journal.begun.identity.network) == Some(false);
        let store = self.journal_store();
        journals.iter().filter(gone).map(|journal| store.set_aside(journal)).collect()
    }

    /// What [`apply`](Self::apply) would do, without doing it.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn dry_run(&self, plan: &TunePlan, persist: bool) -> Result<TuneApplied, TunerError> {
        let Prepared { entries, mut skipped, .. } = self.prepare(plan, persist)?;
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

    /// Applies a plan: first the journal, then each value, read back, then the boot file
    /// if `persist` is set. Settings that cannot be changed here are skipped.
    ///
    /// # Errors
    /// [`TunerError`]. Where the journal cannot be written any more the run ends, and
    /// [`undo`](Self::undo) reverts its changes.
    pub fn apply(
        &self,
        _lock: &Lock,
        plan: &TunePlan,
        persist: bool,
    ) -> Result<TuneApplied, TunerError> {
        let Prepared { entries, skipped: mut settings, earlier } = self.prepare(plan, persist)?;
        if entries.is_empty() && !persist {
            return Ok(applied(plan, None, settings, None, false));
        }
        let journal_store = self.journal_store();
        let mut journal = journal_store.begin(self.begun(&plan.goal, entries, Vec::new()))?;
        let mut refusal = None;
        for entry in &journal.begun.entries {
            let written = match self.set(entry) {
                Ok(now) => {
                    let line = Line::Set { key: entry.key.clone(), now: now.clone() };
                    journal_store.add(&journal, &line)?;
                    journal.set.insert(entry.key.clone(), now.clone());
                    verified(entry, now)
                }
                Err(source) => {
                    journal_store.add(&journal, &Line::Refused { key: entry.key.clone() })?;
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
            journal_store.remove(&journal)?;
            return match refusal {
                Some((key, source)) if is_forbidden(&source) => {
                    Err(TunerError::NotPermitted { key, source })
                }
                _ => Ok(applied(plan, None, settings, None, false)),
            };
        }
        journal_store.add(&journal, &Line::Ended)?;
        let applied = applied(plan, Some(&journal), settings, persisted, false);
        Ok(TuneApplied { notes, ..applied })
    }

    fn prepare(&self, plan: &TunePlan, persist: bool) -> Result<Prepared, TunerError> {
        if persist && let Ok(Some(text)) = self.persisted_text() {
            let path = self.persisted.to_owned();
            persist::check(&text).map_err(|why| TunerError::Shared { path, why })?;
        }
        let journals = self.check_not_interrupted()?;
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
                // Such a value could not be restored from the journal.
                Ok(before) if !is_value(key, &before) || !is_value(key, planned) => {
                    let source = io::Error::new(io::ErrorKind::InvalidData, "unknown form");
                    prepared.skipped.push(skipped(&entry(now), &source));
                }
                Ok(before) => prepared.entries.push(entry(&before)),
                Err(source) => {
                    prepared.skipped.push(skipped(&entry(now), &source));
                    refusal.get_or_insert((key.clone(), source));
                }
            }
        }
        match refusal {
            Some((key, source)) if prepared.entries.is_empty() && is_forbidden(&source) => {
                return Err(TunerError::NotPermitted { key, source });
            }
            _ => {}
        }
        let in_force = journals.into_iter().filter(|j| !j.is_of_earlier_boot(&self.here));
        prepared.earlier = in_force.flat_map(|journal| journal.set).collect();
        Ok(prepared)
    }

    /// The first line of a journal of this host.
    pub(crate) fn begun(&self, goal: &str, entries: Vec<Entry>, routes: Vec<RouteEntry>) -> Begun {
        Begun {
            schema: Begun::schema(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at_s: self.now_s,
            identity: self.here.clone(),
            goal: goal.to_owned(),
            entries,
            routes,
        }
    }

    /// The journals, unless the last apply was interrupted.
    pub(crate) fn check_not_interrupted(&self) -> Result<Vec<Journal>, TunerError> {
        let journals = self.journals()?;
        match journals.last() {
            Some(last) if !last.ended && !last.is_of_earlier_boot(&self.here) => {
                Err(TunerError::Interrupted(last.path.clone()))
            }
            _ => Ok(journals),
        }
    }

    /// Writes one value and returns what it reads then; after an error it is unchanged.
    fn set(&self, entry: &Entry) -> io::Result<String> {
        self.settings.write(&entry.key, &entry.planned).inspect_err(|_| {
            // The kernel may have accepted two of three numbers.
            if self.settings.read(&entry.key).is_ok_and(|now| !same(&now, &entry.before)) {
                let _ = self.settings.write(&entry.key, &entry.before);
            }
        })?;
        self.settings.read(&entry.key)
    }

    /// Writes the boot file; if the system refuses, it counts as a skipped setting.
    fn persist(
        &self,
        journal: &mut Journal,
        earlier: Vec<(String, String)>,
        settings: &mut Vec<Written>,
        notes: &mut Vec<String>,
    ) -> Result<Option<String>, TunerError> {
        let path = self.persisted.display().to_string();
        let unreadable = |source| TunerError::Persisted { path: self.persisted.to_owned(), source };
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
        self.journal_store().add(journal, &Line::File(change.clone()))?;
        journal.file = Some(change.clone());
        if let Err(source) = self.write_boot_file(Some(&change.planned)) {
            settings.push(Written {
                key: path,
                before: String::new(),
                now: String::new(),
                outcome: Outcome::Skipped,
                note: format!("cannot write it: {source}; the values are lost at the next boot"),
            });
            return Ok(None);
        }
        Ok(Some(path))
    }

    /// Files that override the boot file: those with later names are applied later
    /// (sysctl.d(5)).
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
            Some(format!("{} overrides {key} at each boot", file.display()))
        };
        names.into_iter().filter_map(other).collect()
    }

    /// The text of the boot file; `None` if there is none.
    pub(crate) fn persisted_text(&self) -> io::Result<Option<String>> {
        match self.disk.load(self.persisted) {
            Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the boot file atomically, or removes it.
    pub(crate) fn write_boot_file(&self, text: Option<&str>) -> io::Result<()> {
        let Some(text) = text else { return self.disk.remove(self.persisted) };
        let beside = self.temporary_path();
        self.disk.store(&beside, text.as_bytes())?;
        self.disk.rename(&beside, self.persisted)
    }

    /// Path of the temporary file; sysctl(8) only reads names that end in `.conf`.
    pub(crate) fn temporary_path(&self) -> PathBuf {
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
        (Outcome::Bounded, format!("requested {planned}; the kernel bounded it"))
    };
    Written { key, before, now, outcome, note }
}

fn skipped(entry: &Entry, source: &io::Error) -> Written {
    let why = match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "not writable here (no permission, or read-only in this namespace)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "read-only here, as in a container",
        io::ErrorKind::NotFound => {
            "not present in this kernel or namespace, or its module is not \
                                    loaded"
        }
        io::ErrorKind::InvalidInput => "the kernel does not accept the value",
        io::ErrorKind::InvalidData => "its value has an unknown format",
        _ => "the kernel refused",
    };
    let Entry { key, before, .. } = entry.clone();
    let note = format!("{why}: {source}");
    Written { key, now: before.clone(), before, outcome: Outcome::Skipped, note }
}

pub(crate) fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}
