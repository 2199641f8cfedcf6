//! The JSON document of several files, printed while they are read: its lists are as long as a
//! capture makes them, and none is kept.

use crate::console::Console;
use crate::failure::Failure;
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::io::{self, Write};

/// A document of the files read so far, as [`crate::console::json`] would print it as a whole.
pub(super) struct FilesDocument {
    schema: &'static str,
    has_files: bool,
}

/// A list whose rows are made while they are printed.
pub(super) struct Streamed<I>(RefCell<I>);

impl<T: Serialize, I: Iterator<Item = T>> Streamed<I> {
    pub(super) fn new(rows: I) -> Self {
        Streamed(RefCell::new(rows))
    }
}

impl<T: Serialize, I: Iterator<Item = T>> Serialize for Streamed<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
    }
}

impl FilesDocument {
    pub(super) fn new(schema: &'static str) -> Self {
        FilesDocument { schema, has_files: false }
    }

    /// Prints the object of a file.
    pub(super) fn add(
        &mut self,
        object: &impl Serialize,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let before = if self.has_files { ",\n    " } else { "{\n  \"files\": [\n    " };
        self.has_files = true;
        console.print(before);
        let mut out = Indented { console, text: Vec::new() };
        object.serialize(&mut serde_json::Serializer::pretty(&mut out)).map_err(Failure::work)?;
        out.print(usize::MAX);
        Ok(())
    }

    /// Prints the end of the document.
    pub(super) fn finish(self, console: &mut Console) {
        let before = if self.has_files { "\n  ]" } else { "{\n  \"files\": []" };
        let (schema, version) = (self.schema, env!("CARGO_PKG_VERSION"));
        console.print(&format!(
            "{before},\n  \"schema\": \"{schema}\",\n  \"version\": \"{version}\"\n}}\n"
        ));
    }
}

/// Prints lines in the place of a file's object.
struct Indented<'a> {
    console: &'a mut Console,
    text: Vec<u8>,
}

/// Bytes that are collected before they are printed.
const CHUNK: usize = 32 * 1024;

impl Indented<'_> {
    /// Prints the collected text up to its last line, or all of it if that is shorter than `most`.
    fn print(&mut self, most: usize) {
        let end = if self.text.len() < most {
            self.text.len()
        } else {
            self.text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0)
        };
        let rest = self.text.split_off(end);
        let text = String::from_utf8_lossy(&self.text).replace('\n', "\n    ");
        self.console.print(&report::untrusted::json(&text));
        self.text = rest;
    }
}

impl Write for Indented<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= CHUNK {
            self.print(CHUNK);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
