//! Access to files through the caller.

use super::error::{PathError, short};
use std::io;

/// Reads a file by name, for this pure crate.
pub type Reader<'a> = dyn FnMut(&str) -> io::Result<String> + 'a;

/// Reads the files that a path names, relative to a folder.
pub(super) struct Files<'a, 'b> {
    pub(super) read: &'a mut Reader<'b>,
    /// The folder of the file that names them; empty for the command line.
    pub(super) folder: String,
}

impl<'b> Files<'_, 'b> {
    /// The same reader for the contents of another file: names in it are relative
    /// to its folder.
    pub(super) fn beside(&mut self, file: &str) -> Files<'_, 'b> {
        let folder = file.rfind('/').map_or("", |end| &file[..=end]);
        Files { read: &mut *self.read, folder: folder.to_owned() }
    }

    /// The whole name of a file, and what is in it.
    pub(super) fn read(&mut self, key: &str, name: &str) -> Result<(String, String), PathError> {
        if name.is_empty() {
            return Err(PathError::at(key, "the file name is missing"));
        }
        let name = match name.starts_with('/') {
            true => name.to_owned(),
            false => format!("{}{name}", self.folder),
        };
        match (self.read)(&name) {
            Ok(text) => Ok((name, text)),
            Err(error) => {
                // The message of the system must stay one line.
                let reason: String =
                    error.to_string().chars().filter(|c| !c.is_control()).take(120).collect();
                Err(PathError::at(key, format!("cannot read '{}': {reason}", short(&name))))
            }
        }
    }
}

/// A reader without files.
pub(super) fn no_files(_: &str) -> io::Result<String> {
    Err(io::Error::other("files cannot be read here"))
}
