//! Assertions on output, and golden files.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// No line is too long, ends in a space or holds an escape code. A word of a command to paste is
/// not broken, however narrow the terminal.
pub(crate) fn fits(text: &str, width: usize) {
    for line in text.lines() {
        let wide = unicode_width::UnicodeWidthStr::width(line);
        let word = line.strip_prefix("Next: ").or_else(|| line.strip_prefix("      "));
        let word = word.map(|word| word.trim_end_matches(" \\"));
        let is_word = word.is_some_and(|word| !word.contains(' ') || word.starts_with('\''));
        assert!(wide <= width || is_word, "{wide} columns of {width}: {line:?}");
        assert_eq!(line, line.trim_end(), "a trailing space");
        assert!(!line.contains('\u{1b}'), "an escape code: {line:?}");
    }
}

/// The text is what the golden file says.
pub(crate) fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/report/golden").join(name);
    if std::env::var_os("LONGHAUL_BLESS").is_some() {
        assert!(std::fs::write(&path, text).is_ok(), "{name} cannot be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} differs; LONGHAUL_BLESS=1 keeps the new one:\n{text}");
}

/// The page's Content-Security-Policy has the hashes of its style sheets and scripts and nothing
/// else, and nothing on the page would need more.
fn permitted_by_its_policy(html: &str) -> Result<(), String> {
    let texts = |open: &str, close: &str| -> Vec<String> {
        let parts = html.split(open).skip(1).filter_map(|rest| rest.split_once(close));
        parts
            .map(|(text, _)| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text))))
            .collect()
    };
    let or_none = |hashes: Vec<String>| match hashes.is_empty() {
        true => "'none'".to_owned(),
        false => hashes.join(" "),
    };
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        or_none(texts("<style>", "</style>")),
        or_none(texts("<script>", "</script>")),
    );
    let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    let (head, _) = html.split_once(&meta).ok_or(format!("not its policy: {meta}"))?;
    if head.contains("<s") {
        return Err("something comes before the policy".to_owned());
    }
    Ok(())
}

/// A tag has neither a style attribute nor an event handler, which the policy forbids.
fn plain(tag: &str) -> Result<(), String> {
    let names = tag.split('"').step_by(2).filter_map(|part| part.trim().strip_suffix('='));
    for name in names.filter_map(|part| part.split_whitespace().next_back()) {
        if name == "style" || name.starts_with("on") {
            return Err(format!("an attribute that the policy forbids: <{tag}>"));
        }
    }
    Ok(())
}

/// Every element that is opened is closed, in order; a page keeps its own policy.
pub(crate) fn balanced(html: &str) -> Result<(), String> {
    if html.starts_with("<!DOCTYPE html>") {
        permitted_by_its_policy(html)?;
    }
    const VOID: [&str; 4] = ["meta", "br", "link", "hr"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').ok_or_else(|| format!("'<' without '>': {rest:.40}"))?;
        let tag = &rest[..end];
        plain(tag)?;
        rest = &rest[end + 1..];
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last.as_deref() != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
        // What a browser reads as text, not as elements.
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            let end = rest.find(&close).ok_or_else(|| format!("no {close}"))?;
            rest = &rest[end + close.len()..];
        } else if !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("left open: {open:?}")) }
}
