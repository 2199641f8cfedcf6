//! Names of the files that are written in turn: `trace-01.pcapng` to `trace-10.pcapng`.

use std::path::{Path, PathBuf};

/// The name of file `number`, from 1, of `count`.
pub(crate) fn numbered(path: &Path, number: usize, count: usize) -> PathBuf {
    let width = count.to_string().len();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|it| format!(".{}", it.to_string_lossy()));
    let name = format!("{stem}-{number:0width$}{}", extension.unwrap_or_default());
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_the_ending() {
        let name = |path: &str, number, count| {
            numbered(Path::new(path), number, count).display().to_string()
        };
        assert_eq!(name("/tmp/trace.pcapng", 1, 10), "/tmp/trace-01.pcapng");
        assert_eq!(name("trace", 3, 9), "trace-3");
    }
}
