//! Verbs are front ends of one use case each.

use super::{files, name, root};

/// A verb's module uses no other verb's: what two share is in the library, or beside `verbs`.
#[test]
fn no_verb_imports_another() {
    let folder = root().join("crates/front/cli/src/verbs");
    let listed = std::fs::read_to_string(folder.with_extension("rs")).unwrap();
    // Modules that verbs share are no verbs, and private.
    let verbs: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("pub(crate) mod ")?.strip_suffix(';'))
        .collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    let mut wrong = Vec::new();
    for path in files().into_iter().filter(|path| path.starts_with(&folder)) {
        let below = path.strip_prefix(&folder).unwrap();
        let own = below.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        // As often as a file is deep, `super` is the module of all verbs.
        let up = "super::".repeat(below.iter().count());
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let of_verbs = ["verbs::", up.as_str()].into_iter().flat_map(|prefix| {
                let uses = code.split(prefix).skip(1);
                uses.flat_map(|rest| rest.trim_start_matches('{').split(", "))
            });
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let mut named = of_verbs.map(|rest| rest.split(|c| !is_name(c)).next().unwrap_or(""));
            if let Some(verb) = named.find(|verb| verbs.contains(verb) && *verb != own) {
                wrong.push(format!("{}:{}: {verb}: {}", name(&path), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "move what they share:\n{}", wrong.join("\n"));
}

/// Lines of the command line without its tests: what it is more than arguments, consent,
/// rendering and exit codes belongs to the library.
#[test]
fn the_command_line_is_small() {
    const MAX_LINES: usize = 14_550;
    const TESTS: [&str; 4] = ["documented.rs", "examples.rs", "next_commands.rs", "tests.rs"];
    let folder = root().join("crates/front/cli/src");
    let is_test = |path: &std::path::Path| TESTS.iter().any(|name| path.ends_with(name));
    let sources = files().into_iter().filter(|path| path.starts_with(&folder) && !is_test(path));
    let code = |path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.split("mod tests {").next().map_or(0, |code| code.lines().count())
    };
    let lines: usize = sources.map(code).sum();
    assert!((1_000..=MAX_LINES).contains(&lines), "{lines} lines");
}
