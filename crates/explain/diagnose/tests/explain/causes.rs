//! The rule that keeps causes apart.

#[test]
fn no_cause_uses_another() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/causes");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for part in text.split("causes::").skip(1) {
            let shared = ["Cause,", "Observed", "{Cause, Observed}"];
            let named = part.lines().next().unwrap_or_default();
            assert!(shared.iter().any(|name| part.starts_with(name)), "{path:?}: {named}");
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        assert!(!code.contains("super::"), "{path:?}");
    }
}
