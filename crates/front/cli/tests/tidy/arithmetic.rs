//! The simulator's arithmetic is the same on every machine.

use super::{metadata, root};

/// Clippy reads the settings next to a crate instead of the root's.
#[test]
fn the_settings_of_the_path_include_those_of_all_crates() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (all, path) = (read("clippy.toml"), read("crates/path/clippy.toml"));
    for line in all.lines().filter(|line| !line.is_empty()) {
        assert!(path.contains(line), "crates/path/clippy.toml lacks: {line}");
    }
}

/// Whether `num-traits`, and with it `rand_distr`, asks the platform for `exp` and `ln` depends on
/// what else is in a build.
#[test]
fn crates_of_the_path_do_not_compute_with_a_platforms_functions() {
    let metadata = metadata();
    let folder = root().join("crates/path");
    let mut crates = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let manifest = std::path::Path::new(package["manifest_path"].as_str().unwrap());
        if !manifest.starts_with(&folder) {
            continue;
        }
        crates += 1;
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let computes = ["num-traits", "rand_distr", "statrs"].contains(&used);
            assert!(!computes, "{}: use libm instead of {used}", package["name"]);
        }
    }
    assert!(crates >= 6, "{crates} crates in {}", folder.display());
}
