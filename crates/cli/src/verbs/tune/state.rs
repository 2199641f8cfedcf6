//! Where what must outlive a run is kept.

use crate::failure::Failure;
use std::path::PathBuf;

/// `LONGHAUL_STATE_DIR`, else longhaul in the folder of the user's state (XDG
/// Base Directory, where a relative path counts as none).
pub(super) fn folder() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("LONGHAUL_STATE_DIR") {
        return std::path::absolute(&folder).map_err(Failure::usage);
    }
    let xdg = set("XDG_STATE_HOME").filter(|folder| folder.is_absolute());
    let home = || set("HOME").filter(|home| home.is_absolute()).map(|h| h.join(".local/state"));
    xdg.or_else(home).map(|state| state.join("longhaul")).ok_or_else(|| {
        Failure::usage("there is no HOME to keep a journal in; set LONGHAUL_STATE_DIR to a folder")
    })
}
