//! What SECURITY.md promises of the tree itself: tests that exist, and one place for output files.

use super::{files, root};
use std::path::Path;

/// Each bullet of SECURITY.md under *Guaranteed* names the tests that hold it, as
/// ``(tests: `FILE: NAME`, `NAME`; `FILE: NAME`)``, and there are these.
#[test]
fn guarantees_name_tests_that_exist() {
    let text = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let guaranteed = text.split_once("\n## Guaranteed\n").unwrap().1;
    let guaranteed = guaranteed.split_once("\n## ").unwrap().0;
    let (mut wrong, mut named) = (Vec::new(), 0);
    for bullet in guaranteed.split("\n- ").skip(1) {
        let bullet = bullet.split("\n\n").next().unwrap();
        let (title, tests) = bullet.split_once("(tests: ").unwrap_or((bullet, ""));
        let title: String = title.chars().take(40).collect();
        let (mut file, mut count) = ("", 0);
        for quoted in tests.split('`').skip(1).step_by(2) {
            count += 1;
            let (path, test) = quoted.split_once(": ").unwrap_or((file, quoted));
            file = path;
            if !has_test(&root().join("crates").join(path), test) {
                wrong.push(format!("{title}: no test {test} in {path}"));
            }
        }
        if count == 0 {
            wrong.push(format!("{title}: names no test"));
        }
        named += count;
    }
    assert!(named > 50, "{named} tests are named");
    assert!(wrong.is_empty(), "SECURITY.md:\n{}", wrong.join("\n"));
}

/// Whether a file has a test of that name: a function with the attribute, or one of an integration
/// test with a harness of its own.
fn has_test(file: &Path, test: &str) -> bool {
    let Ok(text) = std::fs::read_to_string(file) else { return false };
    let has_harness = file.components().any(|part| part.as_os_str() == "tests");
    let start = format!("fn {test}(");
    let mut before = ["", "", ""];
    text.lines().any(|line| {
        let found = line.trim_start_matches("pub(crate) ").trim_start().starts_with(&start);
        let is_test = before.iter().any(|line| line.trim() == "#[test]");
        before.rotate_left(1);
        before[2] = line;
        found && (is_test || (has_harness && line.starts_with("pub(crate) fn ")))
    })
}

/// Files are created, renamed and removed by `host::output_file` and `host::directory`, which
/// follow no link that another user planted. Others open what has no name (`disk.rs`, `bulk.rs`),
/// files of the kernel (`sysctl.rs`, `tun.rs`, and more), or what is below a directory that is open
/// or that they made.
#[test]
fn output_files_are_opened_in_one_place() {
    const OTHERS: [&str; 14] = [
        "front/longhaul/src/boost/verify/private_directory.rs",
        "traffic/copy/src/directory.rs",
        "traffic/edge/src/nginx.rs",
        "linux/host/src/bulk.rs",
        "linux/host/src/confined.rs",
        "linux/host/src/file.rs",
        "linux/host/src/join.rs",
        "linux/host/src/sandbox.rs",
        "linux/host/src/slow_disk.rs",
        "linux/host/src/sysctl.rs",
        "linux/host/src/tun.rs",
        "front/longhaul/src/doctor/gather.rs",
        "front/longhaul/src/doctor/disk.rs",
        "machine/tune/src/apply.rs",
    ];
    const CALLS: [&str; 14] = [
        "File::create",
        "File::options",
        "OpenOptions",
        "DirBuilder",
        "fs::write",
        "fs::copy",
        "fs::rename",
        "fs::remove_",
        "fs::create_dir",
        "fs::hard_link",
        "fs::set_permissions",
        "unix::fs::symlink",
        "tempfile",
        "libc::open(",
    ];
    // Crates of tests alone.
    const TEST_CRATES: [&str; 2] = ["front/fuzz-targets", "base/stall-retry"];
    let crates = root().join("crates");
    let mut wrong = Vec::new();
    for path in files() {
        let Ok(within) = path.strip_prefix(&crates) else { continue };
        let shown = within.display().to_string();
        let is_test =
            shown.contains("/tests") || TEST_CRATES.iter().any(|name| shown.starts_with(name));
        if !shown.contains("/src/") || is_test || OTHERS.contains(&shown.as_str()) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap();
            let calls = |call: &&str| {
                let found = line.find(*call);
                found.is_some_and(|at| !line[..at].ends_with(char::is_alphanumeric))
            };
            if CALLS.iter().any(calls) {
                wrong.push(format!("{shown}:{}: {line}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "use host::output_file:\n{}", wrong.join("\n"));
}
