//! Help, manual pages and completions.

use crate::program::printed;

const VERBS: [&str; 9] =
    ["demo", "test", "server", "explain", "doctor", "bdp", "lab", "completions", "man"];

#[test]
fn every_verb_has_help_with_examples() {
    let all = printed(&["--help"]);
    for verb in VERBS {
        assert!(all.contains(&format!("\n  {verb} ")), "{verb}: {all}");
        let help = match verb {
            "lab" => printed(&["lab", "run", "--help"]),
            _ => printed(&[verb, "--help"]),
        };
        assert!(help.contains("Examples:") && help.contains("longhaul "), "{verb}: {help}");
    }
}

#[test]
fn manual_pages_and_completions_are_made() {
    let folder = tempfile::tempdir().unwrap();
    printed(&["man", "--dir", folder.path().to_str().unwrap()]);
    for page in ["longhaul.1", "longhaul-demo.1", "longhaul-lab-run.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(".SH"), "{page}");
    }
    assert!(printed(&["man"]).contains(".TH longhaul"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(printed(&["completions", shell]).contains("one-off"), "{shell}");
    }
}
