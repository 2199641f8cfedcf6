//! The seeds: files that people can read and write.
//!
//! A file `*.hex` holds binary input as hexadecimal digits; white space and
//! whatever follows a `#` on a line are left out. Every other file is the input
//! as it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One input of a target.
#[derive(Debug)]
pub struct Seed {
    /// The file.
    pub path: PathBuf,
    /// What the target is given.
    pub input: Vec<u8>,
}

/// Where the seeds of all targets are kept.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds")
}

/// The seeds of a target, in the order of their names.
///
/// # Errors
/// The system's own; `InvalidData` for a `*.hex` that is not hexadecimal.
pub fn of(target: &str) -> io::Result<Vec<Seed>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder().join(target))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    paths.into_iter().map(|path| Ok(Seed { input: read(&path)?, path })).collect()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    if path.extension().is_none_or(|extension| extension != "hex") {
        return Ok(bytes);
    }
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("{path:?} is not hex"));
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    decode(&text).ok_or_else(wrong)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or_default().chars())
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn hexadecimal_with_remarks() {
        assert_eq!(decode("00 ff # the length\n0a\n").as_deref(), Some(&[0, 255, 10][..]));
        assert_eq!(decode("# nothing").as_deref(), Some(&[][..]));
        assert_eq!(decode("0"), None);
        assert_eq!(decode("0g"), None);
    }
}
