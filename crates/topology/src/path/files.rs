//! Reading files on behalf of a pure crate.

use super::error::{PathError, short};
use std::io;

/// Reads a file by its name: how callers lend their file system.
pub type Reader<'a> = dyn FnMut(&str) -> io::Result<String> + 'a;

/// The files a path may name, and where their names begin.
pub(super) struct Files<'a, 'b> {
    pub(super) read: &'a mut Reader<'b>,
    /// The folder of the file that names them; empty for the command line.
    pub(super) folder: String,
}

impl<'b> Files<'_, 'b> {
    /// The same reader for what stands in another file: names in it begin at
    /// its own folder, as people expect of files that lie side by side.
    pub(super) fn beside(&mut self, file: &str) -> Files<'_, 'b> {
        let folder = file.rfind('/').map_or("", |end| &file[..=end]);
        Files { read: &mut *self.read, folder: folder.to_owned() }
    }

    /// The whole name of a file, and what is in it.
    pub(super) fn read(&mut self, key: &str, name: &str) -> Result<(String, String), PathError> {
        if name.is_empty() {
            return Err(PathError::at(key, "the name of the file is missing"));
        }
        let name = match name.starts_with('/') {
            true => name.to_owned(),
            false => format!("{}{name}", self.folder),
        };
        match (self.read)(&name) {
            Ok(text) => Ok((name, text)),
            Err(error) => {
                // A system's message has no business with more lines than one.
                let reason: String =
                    error.to_string().chars().filter(|c| !c.is_control()).take(120).collect();
                Err(PathError::at(key, format!("cannot read '{}': {reason}", short(&name))))
            }
        }
    }
}

/// The reader of those who lend no files.
pub(super) fn no_files(_: &str) -> io::Result<String> {
    Err(io::Error::other("files are not read here"))
}
