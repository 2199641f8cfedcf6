//! The version that `--version` prints: in release builds with the commit, where the
//! sources are a git repository.
//!
//! Other builds leave the commit out: with it, every commit would compile the program and
//! all its tests anew.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let commit = if is_release { commit(&root) } else { None };
    if commit.is_some() {
        for path in head_files(&root) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=VERSION_AND_COMMIT={version}{commit}");
}

/// The commit of the sources; `None` without git, and for an unpacked archive that lies
/// in a repository of something else.
pub(crate) fn commit(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    git(root, &["rev-parse", "--short=12", "HEAD"])
}

/// The files that change when another commit is checked out.
pub(crate) fn head_files(root: &Path) -> Vec<PathBuf> {
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD", "packed-refs"].map(str::to_owned).into_iter().chain(branch);
    names
        .filter_map(|name| git(root, &["rev-parse", "--git-path", &name]))
        .map(|path| root.join(path))
        .filter(|path| path.exists())
        .collect()
}

/// A line that git prints; `None` if it fails or prints nothing.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
