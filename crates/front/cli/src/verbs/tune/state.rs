//! The directory of persistent state. For root only one that nobody else can
//! write to, whatever the environment says.

use crate::console::Console;
use crate::failure::Failure;
use host::directory::{self, Directory, Trust};
use host::identity;
use std::io;
use std::path::{Path, PathBuf};
use tune::{Adopted, HostDisk, Lock, Tuner};

/// Where root's state is kept (Filesystem Hierarchy Standard, `/var/lib`).
const SYSTEM: &str = "/var/lib/longhaul";

/// A directory of state that has been checked.
#[derive(Debug)]
pub(super) struct State {
    pub(super) directory: PathBuf,
    pub(super) trust: Trust,
    /// Whether the environment names it.
    explicit: bool,
}

impl State {
    /// The directory from the environment, or the user's default.
    ///
    /// Root's is `LONGHAUL_STATE_DIR`, where only root can write to any component of
    /// its path, else `/var/lib/longhaul`: `HOME` and `XDG_STATE_HOME` may be those
    /// of the user who called sudo. Another user's is `LONGHAUL_STATE_DIR`, else
    /// longhaul in the user's directory of state (XDG Base Directory, where a
    /// relative path counts as none).
    pub(super) fn find() -> Result<Self, Failure> {
        let named = set("LONGHAUL_STATE_DIR");
        let explicit = named.is_some();
        let path = match named {
            Some(path) => std::path::absolute(&path).map_err(Failure::usage)?,
            None if identity::is_root() => PathBuf::from(SYSTEM),
            None => user_state().ok_or_else(|| {
                Failure::usage(
                    "HOME is not set, so there is no directory for the journal; set \
                     LONGHAUL_STATE_DIR",
                )
            })?,
        };
        Ok(State { explicit, ..Self::at(&path)? })
    }

    /// A given directory, under the same rules.
    pub(super) fn at(path: &Path) -> Result<Self, Failure> {
        if identity::is_root() {
            check(path)?;
            let directory = path.to_owned();
            return Ok(State { directory, trust: Trust::RootOnly, explicit: true });
        }
        // A home may lie behind a link; only the user's own directory counts.
        Ok(State { directory: resolved(path), trust: Trust::Owner, explicit: true })
    }

    /// The directory of journals of this machine.
    pub(super) fn journals(self) -> HostDisk {
        HostDisk { journals: self.directory.join("tune"), trust: self.trust }
    }

    /// Where earlier versions kept root's journals, where that may have been.
    pub(super) fn earlier(&self) -> Vec<PathBuf> {
        if self.explicit || !identity::is_root() {
            return Vec::new();
        }
        let root = resolved(&identity::root_home()).join(".local/state");
        let home = set("HOME").map(|home| home.join(".local/state"));
        let states = [Some(root), home, set("XDG_STATE_HOME")].into_iter().flatten();
        let mut found: Vec<PathBuf> = Vec::new();
        for state in states.filter(|state| state.is_absolute()) {
            let journals = state.join("longhaul/tune");
            let known = |one: &PathBuf| resolved(one) == resolved(&journals);
            if tune::has_journals(&journals) && !found.iter().any(known) {
                found.push(journals);
            }
        }
        found
    }
}

/// Moves journals of an earlier version, and reports those it refuses.
pub(super) fn adopt(
    tuner: &Tuner<'_>,
    disk: &HostDisk,
    earlier: &[PathBuf],
    console: &mut Console,
) -> Result<(), Failure> {
    if earlier.is_empty() {
        return Ok(());
    }
    let lock = Lock::take(&disk.journals, disk.trust).map_err(super::apply::locked)?;
    for old in earlier {
        for found in tuner.adopt(&lock, old).map_err(super::apply::unfit)? {
            console.say(&match found {
                Adopted::Moved { from, to } => {
                    format!("moved the journal {} to {}", from.display(), to.display())
                }
                Adopted::Refused { path, why } => {
                    format!("ignored {}: {why}; check it by hand, then remove it", path.display())
                }
            });
        }
    }
    Ok(())
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn user_state() -> Option<PathBuf> {
    let home = || set("HOME").filter(|home| home.is_absolute()).map(|h| h.join(".local/state"));
    let xdg = set("XDG_STATE_HOME").filter(|folder| folder.is_absolute());
    xdg.or_else(home).map(|state| state.join("longhaul"))
}

/// A path with the links of its existing part followed.
fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

/// Refuses a path whose existing part others than root can change.
fn check(path: &Path) -> Result<(), Failure> {
    for ancestor in path.ancestors() {
        match Directory::open(ancestor, Trust::RootOnly) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if directory::is_unsafe(&error) => {
                return Err(Failure::usage(format!(
                    "refusing {} for root's journals: {error}; set LONGHAUL_STATE_DIR to a path \
                     that only root can write to (chown root, chmod go-w), without links, or \
                     unset it for {SYSTEM}",
                    path.display()
                )));
            }
            Err(error) => {
                return Err(Failure::usage(format!("cannot open {}: {error}", path.display())));
            }
            Ok(_) => return Ok(()),
        }
    }
    Ok(())
}
