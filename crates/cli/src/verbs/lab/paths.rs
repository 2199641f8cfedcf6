//! `longhaul lab paths`: the paths that have a name.

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::Args;
use topology::{NamedPath, PATHS, PathSpec};

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

A file of your own has a table a path, with the keys of --link:
  [office]
  base = \"transatlantic\"
  rate = \"50mbit\"
  loss = \"0.1%\"";

pub(super) fn run(args: &PathsArgs, console: &mut Console) -> Outcome {
    let all = PATHS;
    if args.json {
        let one = |path: &NamedPath| {
            serde_json::json!({
                "name": path.name, "about": path.about, "source": path.source, "link": path.spec,
            })
        };
        let list: serde_json::Value = all.iter().map(one).collect();
        let json = serde_json::to_string_pretty(&list).map_err(Failure::work)?;
        console.print(&(json + "\n"));
        return Ok(DONE);
    }
    let wide = all.iter().map(|path| path.name.len()).max().unwrap_or_default();
    let bold =
        if console.out.colour { anstyle::Style::new().bold() } else { anstyle::Style::new() };
    let mut text = String::new();
    for path in all {
        let shown =
            path.spec.parse::<PathSpec>().map_or_else(|_| path.spec.to_owned(), |p| p.to_spec());
        text += &format!("{bold}{:wide$}{bold:#}  {} ({})\n", path.name, path.about, path.source);
        text += &format!("{:wide$}  {shown}\n", "");
    }
    console.print(&text);
    Ok(DONE)
}
