//! Scripts that stand in for programs.

use std::path::Path;
use std::process::Command;

/// Writes an executable shell script.
///
/// A process of its own writes it: a program that another thread starts meanwhile inherits
/// every open file until it calls exec(2), and a file that is open for writing cannot be run
/// (ETXTBSY).
///
/// # Panics
/// Where it cannot be written.
#[expect(clippy::expect_used, reason = "a test without its script cannot go on")]
pub fn write_script(path: &Path, text: &str) {
    let write = "printf '#!/bin/sh\n%s\n' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let status = Command::new("sh").arg("-c").arg(write).arg(path).arg(text).status();
    assert!(status.expect("sh runs").success(), "{} was not written", path.display());
}

#[cfg(test)]
mod tests {
    use super::write_script;
    use std::process::Command;

    #[test]
    fn a_script_runs_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it's a 'script'");
        std::thread::scope(|scope| {
            // Others start programs all the while.
            for _ in 0..3 {
                scope.spawn(|| (0..20).for_each(|_| drop(Command::new("true").status())));
            }
            for text in ["echo \"$1\" '%s'", "exec echo \"$1\" '%s'"] {
                write_script(&path, text);
                let output = Command::new(&path).arg("x").output().unwrap();
                assert_eq!(output.stdout, b"x %s\n");
            }
        });
    }
}
