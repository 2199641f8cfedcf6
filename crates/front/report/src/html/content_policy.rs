//! A page's Content-Security-Policy (level 3, W3C).

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// A policy under which the page fetches nothing, and runs and applies nothing but this
/// style sheet and this script: no event handlers, no style attributes, no other elements.
pub(super) fn of(style: &str, script: &str) -> String {
    let script = match script {
        "" => "'none'".to_owned(),
        script => source(script),
    };
    format!(
        "default-src 'none'; style-src {}; script-src {script}; base-uri 'none'; form-action 'none'",
        source(style)
    )
}

/// The source expression of an element's text: its hash.
#[must_use]
pub fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_browsers_compute() {
        // The example of CSP level 3, section 8.4.
        let hash = "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='";
        assert_eq!(source("alert('Hello, world.');"), hash);
        assert!(of("a", "").contains("script-src 'none'"));
    }
}
