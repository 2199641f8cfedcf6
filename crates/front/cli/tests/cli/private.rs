//! A directory for state that root, too, is allowed to use: the temporary one may
//! lie below `/tmp`, in which everybody can create names.

use host::directory::{Directory, Trust};
use host::identity;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An empty directory whose path only root can change, where root asks.
pub(crate) fn directory() -> TempDir {
    if !identity::is_root() {
        return tempfile::tempdir().unwrap();
    }
    let places = [env!("CARGO_TARGET_TMPDIR"), "/run", "/var/lib", "/root"];
    let safe = |place: &PathBuf| Directory::open(place, Trust::RootOnly).is_ok();
    let mut places = places.iter().filter_map(|place| Path::new(place).canonicalize().ok());
    let place =
        places.find(safe).unwrap_or_else(|| panic!("no directory that only root can change"));
    tempfile::Builder::new().prefix("longhaul-").tempdir_in(place).unwrap()
}
