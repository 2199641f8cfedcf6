//! `longhaul lab paths`: the paths that have a name.

use super::own_paths;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::Args;
use serde::Serialize;
use topology::PATHS;

/// List the paths that have a name, with where each is from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PathsArgs {
    /// Print them as JSON instead
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab paths
  longhaul lab run --link geo -- ping -c 3 server
  longhaul lab run --link geo,loss=1% -- ping -c 3 server      one, with a change
  longhaul lab run --link my.toml:office -- ping -c 3 server   one of your own

A file of your own has a table a path, with the keys of --link. Those in
~/.config/longhaul/paths.toml are known by their names alone:
  [office]
  base = \"transatlantic\"
  rate = \"50mbit\"
  loss = \"0.1%\"";

/// A path to list: built in, or the user's own.
#[derive(Serialize)]
struct Listed {
    name: String,
    about: String,
    source: String,
    link: String,
}

fn listed() -> Result<Vec<Listed>, Failure> {
    let built_in = PATHS.iter().map(|path| Listed {
        name: path.name.to_owned(),
        about: path.about.to_owned(),
        source: path.source.to_owned(),
        link: path.spec.to_owned(),
    });
    let own = own_paths().map_err(Failure::usage)?;
    let own = own.iter().map(|path| {
        let base = path.base.as_ref().map(|base| format!("{base},")).unwrap_or_default();
        Listed {
            name: path.name.clone(),
            about: path.about.clone().unwrap_or_else(|| "your own".to_owned()),
            source: path.source.clone().unwrap_or_else(|| "your paths.toml".to_owned()),
            link: base + &path.spec(),
        }
    });
    Ok(built_in.chain(own).collect())
}

pub(super) fn run(args: &PathsArgs, console: &mut Console) -> Outcome {
    let all = listed()?;
    if args.json {
        let json = serde_json::to_string_pretty(&all).map_err(Failure::work)?;
        console.print(&(json + "\n"));
        return Ok(DONE);
    }
    let [bold, dim] = if console.out.colour {
        [anstyle::Style::new().bold(), anstyle::Style::new().dimmed()]
    } else {
        [anstyle::Style::new(); 2]
    };
    let mut text = String::new();
    for Listed { name, about, source, link } in all {
        text += &format!("{bold}{name}{bold:#}  {about}\n    {link}\n    {dim}{source}{dim:#}\n");
    }
    console.print(&text);
    Ok(DONE)
}
