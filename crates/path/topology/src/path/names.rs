//! Lookup of named paths: built-in, user-defined, from files.

use super::error::{PathError, short};
use super::files::Files;
use super::key_position::is_key;
use super::layer::{Layer, Part};
use super::named::{NamedPath, PATHS};
use super::user::{UserPath, UserPaths};
use crate::similar::similar;

/// Longest chain of bases: a longer one is a loop.
const MAX_BASE_DEPTH: usize = 8;

/// Parses an optional name, followed by settings that override it.
pub(super) fn read(text: &str, user: &UserPaths, files: &mut Files) -> Result<Layer, PathError> {
    let mut words = text.split(',').map(str::trim).filter(|word| !word.is_empty()).peekable();
    let name = words.next_if(|word| !word.contains('=') && !is_key(word));
    let layer = settings(words, files)?;
    match name {
        Some(name) => Ok(layer.over(Names { sets: vec![user] }.find(name, files, 0)?)),
        None => Ok(layer),
    }
}

/// Parses settings without a name.
pub(super) fn read_changes(text: &str, files: &mut Files) -> Result<Layer, PathError> {
    settings(text.split(',').map(str::trim).filter(|word| !word.is_empty()), files)
}

fn settings<'a>(
    words: impl Iterator<Item = &'a str>,
    files: &mut Files,
) -> Result<Layer, PathError> {
    let parts: Result<Vec<Part>, PathError> = words
        .map(|word| {
            let Some((key, value)) = word.split_once('=') else {
                let wrong = format!("'{}' is not KEY=VALUE, such as rate=100mbit", short(word));
                return Err(PathError::Shape(wrong));
            };
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        })
        .collect();
    Layer::read(&parts?, files)
}

/// Sets of user-defined paths, searched after the built-in ones.
struct Names<'a> {
    sets: Vec<&'a UserPaths>,
}

impl Names<'_> {
    fn find(&self, name: &str, files: &mut Files, depth: usize) -> Result<Layer, PathError> {
        if depth > MAX_BASE_DEPTH {
            let wrong = format!(
                "'{}' is its own base, or has more than {MAX_BASE_DEPTH} bases",
                short(name)
            );
            return Err(PathError::at("base", wrong));
        }
        if let Some((file, within)) = of_file(name) {
            let (file, text) = files.read("path", file)?;
            let set = UserPaths::parse(&file, &text)?;
            let path = match within {
                None => set.only()?,
                Some(name) => set.find(name).ok_or_else(|| {
                    let names = set.iter().map(|path| path.name.as_str());
                    PathError::at(&file, unknown(name, names))
                })?,
            };
            return self.build(path, &set, files, depth);
        }
        if let Some(path) = NamedPath::find(name) {
            return read_changes(path.spec, files);
        }
        match self.sets.iter().find_map(|set| set.find(name).map(|path| (*set, path))) {
            Some((set, path)) => self.build(path, set, files, depth),
            None => {
                let own = self.sets.iter().flat_map(|set| set.iter());
                let names =
                    PATHS.iter().map(|path| path.name).chain(own.map(|path| path.name.as_str()));
                Err(PathError::Shape(unknown(name, names)))
            }
        }
    }

    /// A user-defined path: its settings over those of its base, which may be in
    /// the same file.
    fn build(
        &self,
        path: &UserPath,
        set: &UserPaths,
        files: &mut Files,
        depth: usize,
    ) -> Result<Layer, PathError> {
        let mut files = files.beside(&set.file);
        let layer = Layer::read(&path.parts, &mut files)?;
        let Some(base) = &path.base else { return Ok(layer) };
        let mut sets = vec![set];
        sets.extend(&self.sets);
        // One set per level.
        let base = Names { sets }.find(base, &mut files, depth + 1)?;
        Ok(layer.over(base))
    }
}

/// `FILE.toml` and `FILE.toml:NAME`.
fn of_file(name: &str) -> Option<(&str, Option<&str>)> {
    if name.ends_with(".toml") {
        return Some((name, None));
    }
    let end = name.rfind(".toml:")? + ".toml".len();
    Some((&name[..end], Some(&name[end + 1..])))
}

fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = similar(name, names);
    let near = match near.is_empty() {
        true => String::new(),
        false => format!("; similar: {}", near.join(", ")),
    };
    format!("no path named '{}'{near}; longhaul lab paths lists them", short(name))
}
