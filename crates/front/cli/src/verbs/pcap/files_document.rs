//! The JSON document of several files, printed while they are read: its lists are as long as a
//! capture makes them, and none is kept.

use crate::console::Console;
use crate::failure::Failure;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::io::{self, Write};

/// A document of the files read so far, as [`crate::console::json`] would print it as a whole.
pub(super) struct FilesDocument {
    schema: &'static str,
    has_files: bool,
}

/// The rows of a list.
pub(super) type Rows<'a> = Box<dyn Iterator<Item = Value> + 'a>;

impl FilesDocument {
    pub(super) fn new(schema: &'static str) -> Self {
        FilesDocument { schema, has_files: false }
    }

    /// Prints the object of a file; `rows` are the list under the name of a member of it.
    pub(super) fn add(
        &mut self,
        object: Value,
        rows: Option<(&str, Rows<'_>)>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let Value::Object(members) = object else { return Ok(()) };
        let before = if self.has_files { ",\n    " } else { "{\n  \"files\": [\n    " };
        self.has_files = true;
        console.print(before);
        let mut out = Indented { console, text: Vec::new() };
        let rows = rows.map(|(name, rows)| (name, RefCell::new(rows)));
        let mut serializer = serde_json::Serializer::pretty(&mut out);
        let object = FileObject { members: &members, rows };
        object.serialize(&mut serializer).map_err(Failure::work)?;
        out.print(usize::MAX);
        Ok(())
    }

    /// Prints the end of the document.
    pub(super) fn finish(self, console: &mut Console) {
        let before = if self.has_files { "\n  ]" } else { "{\n  \"files\": []" };
        let (schema, version) = (json!(self.schema), json!(env!("CARGO_PKG_VERSION")));
        console
            .print(&format!("{before},\n  \"schema\": {schema},\n  \"version\": {version}\n}}\n"));
    }
}

struct FileObject<'a, 'r> {
    members: &'a Map<String, Value>,
    rows: Option<(&'a str, RefCell<Rows<'r>>)>,
}

impl Serialize for FileObject<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (name, value) in self.members {
            match &self.rows {
                Some((list, rows)) if list == name => map.serialize_entry(name, &List(rows))?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct List<'a, 'r>(&'a RefCell<Rows<'r>>);

impl Serialize for List<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
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
