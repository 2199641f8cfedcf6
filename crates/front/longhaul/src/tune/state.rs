//! The directory of persistent state. For root only one that nobody else can
//! write to, whatever the environment says.

use crate::input::path_variable as set;
use crate::{Fault, Problem};
use host::directory::{self, Directory, Trust};
use host::identity;
use std::io;
use std::path::{Path, PathBuf};
use tune::HostDisk;

/// Where root's state is kept (Filesystem Hierarchy Standard, `/var/lib`).
const SYSTEM: &str = "/var/lib/longhaul";

/// A directory of state that has been checked.
#[derive(Debug)]
pub(super) struct State {
    pub(super) directory: PathBuf,
    pub(super) trust: Trust,
    /// True if the environment names it.
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
    pub(super) fn find() -> Result<Self, Problem> {
        let named = set("LONGHAUL_STATE_DIR");
        let explicit = named.is_some();
        let path = match named {
            Some(path) => std::path::absolute(&path).map_err(unusable)?,
            None if identity::is_root() => PathBuf::from(SYSTEM),
            None => user_state().ok_or_else(|| {
                unusable(
                    "HOME is not set, so there is no directory for the journal; set \
                     LONGHAUL_STATE_DIR",
                )
            })?,
        };
        Ok(State { explicit, ..Self::at(&path)? })
    }

    /// A given directory, under the same rules.
    pub(super) fn at(path: &Path) -> Result<Self, Problem> {
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

/// A directory that cannot be used.
fn unusable(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Host, error)
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
fn check(path: &Path) -> Result<(), Problem> {
    for ancestor in path.ancestors() {
        match Directory::open(ancestor, Trust::RootOnly) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if directory::is_unsafe(&error) => {
                return Err(unusable(format!(
                    "refusing {} for root's journals: {error}; set LONGHAUL_STATE_DIR to a path \
                     that only root can write to (chown root, chmod go-w), without links, or \
                     unset it for {SYSTEM}",
                    path.display()
                )));
            }
            Err(error) => {
                return Err(unusable(format!("cannot open {}: {error}", path.display())));
            }
            Ok(_) => return Ok(()),
        }
    }
    Ok(())
}
