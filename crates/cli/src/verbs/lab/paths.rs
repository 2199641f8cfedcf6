//! `longhaul lab paths`: the named paths.

use super::own_paths;
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use clap::Args;
use report::untrusted::clean;
use serde::Serialize;
use topology::PATHS;

/// List the named paths and the source of each
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PathsArgs {
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab paths
  longhaul lab run --link geo -- ping -c 3 server
  longhaul lab run --link geo,loss=1% -- ping -c 3 server      geo with loss
  longhaul lab run --link my.toml:office -- ping -c 3 server   from a file

A file of your own has one table per path, with the keys of --link. Paths in
~/.config/longhaul/paths.toml need no file name:
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
            about: path.about.clone().unwrap_or_else(|| "user-defined".to_owned()),
            source: path.source.clone().unwrap_or_else(|| "paths.toml".to_owned()),
            link: base + &path.spec(),
        }
    });
    Ok(built_in.chain(own).collect())
}

pub(super) fn run(args: &PathsArgs, console: &mut Console) -> Outcome {
    let all = listed()?;
    if args.json {
        console.print(&console::json(&all)?);
        return Ok(DONE);
    }
    let [bold, dim] = if console.out.colour {
        [anstyle::Style::new().bold(), anstyle::Style::new().dimmed()]
    } else {
        [anstyle::Style::new(); 2]
    };
    let mut text = String::new();
    for Listed { name, about, source, link } in all {
        let [name, about, source, link] = [name, about, source, link].map(|text| clean(&text));
        text += &format!("{bold}{name}{bold:#}  {about}\n    {link}\n    {dim}{source}{dim:#}\n");
    }
    console.print(&text);
    Ok(DONE)
}
