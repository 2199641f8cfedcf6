//! User-defined paths in TOML, with the keys and values of the command line.
//!
//! ```toml
//! [office]                      # --link paths.toml:office
//! about = "Office to the data centre"
//! base = "cable"                # a built-in path, or another of these
//! loss = "0.1%"
//! down.rate = "20mbit"
//! "@10s".rate = "1mbit"
//! ```
//!
//! Keys before the first table are a path without a table: `--link one.toml`.

use super::error::{PathError, short};
use super::key_position::is_key;
use super::layer::Part;
use super::named::NamedPath;
use crate::toml_text::TomlText;
use toml::{Table, Value};

/// A user-defined path, not checked yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserPath {
    /// The name of its table, or its `name`; empty if it has none.
    pub name: String,
    /// Its description.
    pub about: Option<String>,
    /// Source of its figures.
    pub source: Option<String>,
    /// The path whose settings it overrides.
    pub base: Option<String>,
    pub(super) parts: Vec<Part>,
}

impl UserPath {
    /// Its settings as on the command line, without those of its base.
    #[must_use]
    pub fn spec(&self) -> String {
        let parts: Vec<String> =
            self.parts.iter().map(|(key, value)| format!("{key}={value}")).collect();
        parts.join(",")
    }
}

/// The paths of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserPaths {
    /// Its name; names of files in it are relative to its folder.
    pub(super) file: String,
    /// The path without a table.
    own: Option<UserPath>,
    tables: Vec<UserPath>,
}

impl UserPaths {
    /// Parses the text of a file. The paths are checked when they are used.
    ///
    /// # Errors
    /// [`PathError`] if it is not TOML, or contains a value that no path has.
    pub fn parse(file: &str, text: &str) -> Result<Self, PathError> {
        let table: Table = TomlText::new(text).read().map_err(|error| {
            let line = error.at.map_or(1, |(line, _)| line);
            PathError::at(file, format!("line {line}: {}", error.problem))
        })?;
        let mut own = Table::new();
        let mut tables = Vec::new();
        for (key, value) in table {
            match value {
                Value::Table(table) if !is_prefix(&key) => {
                    check_name(file, &key)?;
                    if table.contains_key("name") {
                        let wrong = format!("[{}] names it already; omit name=", short(&key));
                        return Err(PathError::at(file, wrong));
                    }
                    tables.push(UserPath { name: key, ..path(file, table)? });
                }
                value => {
                    own.insert(key, value);
                }
            }
        }
        let own = if own.is_empty() { None } else { Some(path(file, own)?) };
        if let Some(own) = &own
            && tables.iter().any(|other| other.name == own.name)
        {
            let wrong = format!("'{}' is defined twice; rename one", short(&own.name));
            return Err(PathError::at(file, wrong));
        }
        Ok(UserPaths { file: file.to_owned(), own, tables })
    }

    /// Its paths: first the one without a table, then the others by name.
    pub fn iter(&self) -> impl Iterator<Item = &UserPath> {
        self.own.iter().chain(&self.tables)
    }

    pub(super) fn find(&self, name: &str) -> Option<&UserPath> {
        self.iter().find(|path| path.name == name)
    }

    /// The path if only the file is named: the one without a table, or the only
    /// one.
    pub(super) fn only(&self) -> Result<&UserPath, PathError> {
        match (&self.own, &self.tables[..]) {
            (Some(path), _) | (None, [path]) => Ok(path),
            (None, []) => {
                Err(PathError::at(&self.file, "the file defines no path; write rate= and rtt="))
            }
            (None, tables) => {
                let names: Vec<String> =
                    tables.iter().take(8).map(|path| short(&path.name)).collect();
                let wrong = format!(
                    "the file defines several paths; write {}:NAME, one of {}",
                    short(&self.file),
                    names.join(", ")
                );
                Err(PathError::at(&self.file, wrong))
            }
        }
    }
}

/// `up`, `down` and times: prefixes of keys that TOML parses as tables.
fn is_prefix(key: &str) -> bool {
    key == "up" || key == "down" || key.starts_with('@')
}

fn check_name(file: &str, name: &str) -> Result<(), PathError> {
    let shown = short(name);
    let wrong = if NamedPath::find(name).is_some() {
        format!(
            "'{shown}' is the name of a built-in path; choose another, for example with base = \"{shown}\""
        )
    } else if name.is_empty() || name.contains(|c: char| ",=:/".contains(c) || c.is_whitespace()) {
        format!("'{shown}' is not a valid path name; use letters, digits, - and _")
    } else if is_key(name) || is_prefix(name) || name.contains(char::is_control) {
        format!("'{shown}' is a key and cannot name a path; choose another name")
    } else {
        return Ok(());
    };
    Err(PathError::at(file, wrong))
}

fn path(file: &str, table: Table) -> Result<UserPath, PathError> {
    let mut path = UserPath::default();
    flatten(file, "", table, &mut path)?;
    if !path.name.is_empty() {
        check_name(file, &path.name)?;
    }
    Ok(path)
}

/// `up.rate` is a table `up` to TOML, and a key of two parts here.
fn flatten(file: &str, prefix: &str, table: Table, path: &mut UserPath) -> Result<(), PathError> {
    for (key, value) in table {
        let integer = format!("{prefix}{key}");
        let text = match value {
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(true) => "yes".to_owned(),
            Value::Boolean(false) => "no".to_owned(),
            Value::Table(table) if is_prefix(&key) => {
                flatten(file, &format!("{integer}."), table, path)?;
                continue;
            }
            Value::Array(_) | Value::Datetime(_) | Value::Table(_) => {
                let wrong = "a value is a quoted string, a number, true or false";
                return Err(PathError::at(&integer, format!("{wrong} (in {})", short(file))));
            }
        };
        match integer.as_str() {
            "name" => path.name = text,
            "about" => path.about = Some(text),
            "source" => path.source = Some(text),
            "base" => path.base = Some(text),
            _ => path.parts.push((integer, text.trim().to_owned())),
        }
    }
    Ok(())
}
