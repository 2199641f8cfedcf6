//! The version, and the commit that release builds add to it.

#[path = "../../build.rs"]
#[expect(dead_code, reason = "cargo runs the build script; here its functions are tried")]
mod build;

use crate::program::printed;
use std::path::Path;
use std::process::Command;

#[test]
fn the_second_word_is_the_version() {
    let text = printed(&["--version"]);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[..2], ["longhaul", env!("CARGO_PKG_VERSION")], "{text}");
    assert_eq!(printed(&["test", "--version"]).split_whitespace().nth(1), Some(words[1]));
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments);
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_commit_is_that_of_the_sources_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert_eq!(build::commit(root), None, "no repository");
    git(root, &["init", "--quiet", "--initial-branch", "main"]);
    assert_eq!(build::commit(root), None, "no commit");
    git(root, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let commit = build::commit(root).unwrap();
    assert!(commit.len() >= 12 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{commit}");
    // An unpacked archive in a repository of something else.
    let inside = root.join("longhaul-0.1.0");
    std::fs::create_dir(&inside).unwrap();
    assert_eq!(build::commit(&inside), None);
    // What changes with the next commit is watched.
    let watched = build::head_files(root);
    assert!(watched.contains(&root.join(".git/HEAD")), "{watched:?}");
    assert!(watched.contains(&root.join(".git/refs/heads/main")), "{watched:?}");
}
