//! Names that a receiver accepts: below its directory, whatever the sender writes.

use std::fmt;

/// Longest path, bytes.
const MAX_PATH: usize = 4_095;
/// Longest component, bytes (`NAME_MAX`).
const MAX_NAME: usize = 255;
/// Most components.
const MAX_DEPTH: usize = 256;

/// A path below the directory of a copy: components that are names, joined by single
/// slashes. Any bytes but NUL, as Linux allows.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelativePath(Vec<u8>);

/// Why a path is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongPath {
    /// An empty component: the path is empty, absolute, or has two slashes in a row.
    #[error("a component of the path is empty")]
    Empty,
    /// `.` or `..`
    #[error("the path has a component \".\" or \"..\"")]
    Dots,
    /// Its names or the path are too long.
    #[error("the path is too long")]
    TooLong,
    /// NUL cannot be in a name.
    #[error("the path contains NUL")]
    Nul,
}

impl RelativePath {
    /// Checks a path.
    ///
    /// # Errors
    /// It could lead out of a directory, or Linux has no such name.
    pub fn new(bytes: Vec<u8>) -> Result<Self, WrongPath> {
        if bytes.len() > MAX_PATH || bytes.split(|byte| *byte == b'/').count() > MAX_DEPTH {
            return Err(WrongPath::TooLong);
        }
        for name in bytes.split(|byte| *byte == b'/') {
            match name {
                [] => return Err(WrongPath::Empty),
                b"." | b".." => return Err(WrongPath::Dots),
                _ if name.len() > MAX_NAME => return Err(WrongPath::TooLong),
                _ if name.contains(&0) => return Err(WrongPath::Nul),
                _ => {}
            }
        }
        Ok(RelativePath(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The first component, and the rest behind it.
    #[must_use]
    pub fn split_first(&self) -> (&[u8], Option<&[u8]>) {
        match self.0.iter().position(|byte| *byte == b'/') {
            Some(at) => (&self.0[..at], Some(&self.0[at + 1..])),
            None => (&self.0, None),
        }
    }

    /// The directory that contains it, if that is not the copy's own, and its name there.
    #[must_use]
    pub fn split_last(&self) -> (Option<&[u8]>, &[u8]) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (Some(&self.0[..at]), &self.0[at + 1..]),
            None => (None, &self.0),
        }
    }

    /// A name below it.
    ///
    /// # Errors
    /// As [`RelativePath::new`].
    pub fn join(&self, name: &[u8]) -> Result<Self, WrongPath> {
        RelativePath::new([&self.0, &b"/"[..], name].concat())
    }

    /// The same path with another first component.
    ///
    /// # Errors
    /// As [`RelativePath::new`].
    pub fn with_first(&self, first: &[u8]) -> Result<Self, WrongPath> {
        match self.split_first() {
            (_, None) => RelativePath::new(first.to_vec()),
            (_, Some(rest)) => RelativePath::new([first, b"/", rest].concat()),
        }
    }

    /// Whether a symbolic link at this path that contains `target` stays below the copy's
    /// directory, whatever else is created there, before or after it.
    ///
    /// The target climbs first and descends then: `..` is refused behind a name. The parent of
    /// the link is a directory and no link, so what it climbs to is known from its text, and is
    /// not above the copy's directory. What it descends through is below that, or another link,
    /// of which the same is true. `..` behind a name would climb from where a link leads to.
    #[must_use]
    pub fn contains_target(&self, target: &[u8]) -> bool {
        if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
            return false;
        }
        // The link's own name is no directory.
        let mut depth = self.0.split(|byte| *byte == b'/').count() - 1;
        let mut descends = false;
        for name in target.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." if descends || depth == 0 => return false,
                b".." => depth -= 1,
                _ => descends = true,
            }
        }
        true
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Result<RelativePath, WrongPath> {
        RelativePath::new(text.as_bytes().to_vec())
    }

    #[test]
    fn paths_stay_below_their_directory() {
        for good in ["a", "a/b", "...", "a b/\n", ".a/..b", "\u{e9}", "-rf"] {
            assert!(path(good).is_ok(), "{good:?}");
        }
        let long = "x".repeat(256);
        let deep = ["a"; 257].join("/");
        let wrong = [
            ("", WrongPath::Empty),
            ("/", WrongPath::Empty),
            ("/etc/passwd", WrongPath::Empty),
            ("a//b", WrongPath::Empty),
            ("a/", WrongPath::Empty),
            (".", WrongPath::Dots),
            ("..", WrongPath::Dots),
            ("a/../b", WrongPath::Dots),
            ("a/.", WrongPath::Dots),
            ("a\0b", WrongPath::Nul),
            (&long, WrongPath::TooLong),
            (&deep, WrongPath::TooLong),
        ];
        for (text, why) in wrong {
            assert_eq!(path(text), Err(why), "{text:?}");
        }
        assert_eq!(RelativePath::new(vec![b'a'; 5_000]), Err(WrongPath::TooLong));
    }

    #[test]
    fn paths_are_split_and_joined() {
        let deep = path("a/b/c").unwrap();
        assert_eq!(deep.split_first(), (&b"a"[..], Some(&b"b/c"[..])));
        assert_eq!(deep.split_last(), (Some(&b"a/b"[..]), &b"c"[..]));
        assert_eq!(deep.with_first(b"x").unwrap(), path("x/b/c").unwrap());
        let top = path("a").unwrap();
        assert_eq!(top.split_first(), (&b"a"[..], None));
        assert_eq!(top.with_first(b"x").unwrap(), path("x").unwrap());
        assert_eq!(top.join(b"b").unwrap(), path("a/b").unwrap());
        assert_eq!(top.join(b".."), Err(WrongPath::Dots));
        assert_eq!(top.join(b"b/../c"), Err(WrongPath::Dots));
    }

    #[test]
    fn links_that_lead_out_are_told_from_others() {
        let link = path("a/b/link").unwrap();
        for inside in ["x", "../x", "../../a/x", "./x//y", "../../x"] {
            assert!(link.contains_target(inside.as_bytes()), "{inside}");
        }
        for outside in ["", "/etc", "../../../x", "x/../../../../y", "../../..", "a\0"] {
            assert!(!link.contains_target(outside.as_bytes()), "{outside}");
        }
        // Where these lead is decided by what x is.
        for unknown in ["x/..", "x/../y", "../x/../y", "x/./.."] {
            assert!(!link.contains_target(unknown.as_bytes()), "{unknown}");
        }
        assert!(!path("link").unwrap().contains_target(b".."));
    }
}
