//! `longhaul lab paths`: the named paths.

use super::{own_paths, parse_path};
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::usage_error::nearest;
use clap::{Args, ValueEnum};
use report::untrusted::clean;
use serde::Serialize;
use topology::{Emulator, EmulatorSettings, PATHS};

/// List the named paths and the source of each
///
/// With --as, prints each path for another emulator, and how the result differs:
/// netem for Linux, the Network Link Conditioner of macOS, clumsy for Windows.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PathsArgs {
    /// Only these paths
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print settings for netem, link-conditioner or clumsy
    #[arg(long = "as", value_enum, value_name = "TOOL", hide_possible_values = true)]
    tool: Option<Tool>,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// An emulator for which paths are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    Netem,
    LinkConditioner,
    Clumsy,
}

const EXAMPLES: &str = "\
Examples:
  longhaul lab paths
  longhaul lab paths geo --as netem          the same path with tc
  longhaul lab paths --as link-conditioner   profiles for macOS
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
    /// With --as.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<EmulatorSettings>,
}

fn listed() -> Result<Vec<Listed>, Failure> {
    let built_in = PATHS.iter().map(|path| Listed {
        name: path.name.to_owned(),
        about: path.about.to_owned(),
        source: path.source.to_owned(),
        link: path.spec.to_owned(),
        settings: None,
    });
    let own = own_paths().map_err(Failure::usage)?;
    let own = own.iter().map(|path| {
        let base = path.base.as_ref().map(|base| format!("{base},")).unwrap_or_default();
        Listed {
            name: path.name.clone(),
            about: path.about.clone().unwrap_or_else(|| "user-defined".to_owned()),
            source: path.source.clone().unwrap_or_else(|| "paths.toml".to_owned()),
            link: base + &path.spec(),
            settings: None,
        }
    });
    Ok(built_in.chain(own).collect())
}

/// The path of this name for another emulator.
fn settings(name: &str, tool: Tool) -> Result<EmulatorSettings, Failure> {
    let path = parse_path(name).map_err(Failure::usage)?;
    let emulator = match tool {
        Tool::Netem => Emulator::Netem,
        Tool::LinkConditioner => Emulator::LinkConditioner,
        Tool::Clumsy => Emulator::Clumsy,
    };
    Ok(topology::for_emulator(&path, emulator))
}

pub(super) fn run(args: &PathsArgs, console: &mut Console) -> Outcome {
    let mut all = listed()?;
    if let Some(unknown) = args.names.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        let meant = nearest(unknown, all.iter().map(|one| one.name.as_str()));
        let error = format!("no path is named '{unknown}'; `longhaul lab paths` lists them");
        return Err(Failure::usage(error).meaning(unknown, meant));
    }
    all.retain(|one| args.names.is_empty() || args.names.contains(&one.name));
    if let Some(tool) = args.tool {
        for one in &mut all {
            one.settings = Some(settings(&one.name, tool)?);
        }
    }
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
    for Listed { name, about, source, link, settings } in all {
        let [name, about, source, link] = [name, about, source, link].map(|text| clean(&text));
        if let Some(EmulatorSettings { lines, differs }) = settings {
            // Comments of a shell: the output can be saved as a script.
            text += &format!("{bold}# {name}{bold:#}  {about}\n");
            for line in lines {
                text += &format!("{}\n", clean(&line));
            }
            for line in differs {
                text += &format!("{dim}# differs: {}{dim:#}\n", clean(&line));
            }
            text.push('\n');
            continue;
        }
        text += &format!("{bold}{name}{bold:#}  {about}\n    {link}\n    {dim}{source}{dim:#}\n");
    }
    console.print(&text);
    Ok(DONE)
}
