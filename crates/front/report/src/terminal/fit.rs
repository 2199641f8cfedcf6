//! Checks that output fits the terminal, for the tests of this module.

use super::{Style, line::columns};

/// Narrow to wide terminals, with Unicode and without, without colour.
pub(super) fn styles() -> impl Iterator<Item = Style> {
    [1, 20, 40, 80, 200]
        .into_iter()
        .flat_map(|width| [true, false].map(|unicode| Style { colour: false, width, unicode }))
}

/// No line is too long, ends in a space or holds an escape sequence.
pub(super) fn assert_fits(text: &str, style: &Style) {
    for line in text.lines() {
        assert!(columns(line) <= style.width, "{}: {line}", style.width);
        assert!(style.unicode || line.is_ascii(), "{line}");
        assert!(line == line.trim_end() && !line.contains('\u{1b}'), "{line:?}");
    }
}
