//! The paths that have a name: built in, or the user's own.

use crate::input::{self, path_variable};
use crate::{Fault, Field, Problem};
use host::file::ReadError;
use serde::Serialize;
use topology::{Emulator, EmulatorSettings, PATHS, PathSpec, UserPaths};

/// A named path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedPath {
    /// Its name.
    pub name: String,
    /// Its description.
    pub about: String,
    /// Where its values are from.
    pub source: String,
    /// The path, as a request has it.
    pub link: String,
    /// The path for another emulator, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<EmulatorSettings>,
}

/// Parses a path, and reads the files that it names.
///
/// # Errors
/// An error in it, or in the file of the user's own paths.
pub fn parse_path(text: &str) -> Result<PathSpec, Problem> {
    let path = own_paths().and_then(|own| {
        let path = PathSpec::parse_among(text, &own, &mut input::of_a_path);
        path.map_err(|error| Problem::new(Fault::Request, error))
    });
    path.map_err(|wrong| wrong.with(Field::Link, "a path such as rate=100mbit,rtt=50ms"))
}

/// The named paths, first those that are built in.
///
/// # Errors
/// The file of the user's own paths is wrong.
pub fn named_paths() -> Result<Vec<NamedPath>, Problem> {
    let built_in = PATHS.iter().map(|path| NamedPath {
        name: path.name.to_owned(),
        about: path.about.to_owned(),
        source: path.source.to_owned(),
        link: path.spec.to_owned(),
        settings: None,
    });
    let own = own_paths()?;
    let own = own.iter().map(|path| {
        let base = path.base.as_ref().map(|base| format!("{base},")).unwrap_or_default();
        NamedPath {
            name: path.name.clone(),
            about: path.about.clone().unwrap_or_else(|| "user-defined".to_owned()),
            source: path.source.clone().unwrap_or_else(|| "paths.toml".to_owned()),
            link: base + &path.spec(),
            settings: None,
        }
    });
    Ok(built_in.chain(own).collect())
}

impl NamedPath {
    /// Adds the settings of another emulator.
    ///
    /// # Errors
    /// The file of the user's own paths has changed meanwhile.
    pub fn for_emulator(&mut self, emulator: Emulator) -> Result<(), Problem> {
        self.settings = Some(topology::for_emulator(&parse_path(&self.name)?, emulator));
        Ok(())
    }
}

/// The user's own paths: longhaul/paths.toml in the configuration directory (XDG
/// Base Directory); none without that file.
fn own_paths() -> Result<UserPaths, Problem> {
    let folder =
        path_variable("XDG_CONFIG_HOME").or_else(|| Some(path_variable("HOME")?.join(".config")));
    let Some(file) = folder.map(|folder| folder.join("longhaul/paths.toml")) else {
        return Ok(UserPaths::default());
    };
    let name = file.display().to_string();
    match input::plan(&file) {
        Ok(text) => {
            UserPaths::parse(&name, &text).map_err(|error| Problem::new(Fault::Request, error))
        }
        Err(error @ (ReadError::TooLarge { .. } | ReadError::NotText)) => {
            Err(Problem::new(Fault::Request, format!("cannot read {name}: {error}")))
        }
        // Missing, or another user's, as with a HOME that sudo preserved.
        Err(_) => Ok(UserPaths::default()),
    }
}
