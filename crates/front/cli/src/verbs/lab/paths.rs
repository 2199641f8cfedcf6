//! `longhaul lab paths`: the named paths.

use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::usage_error::nearest;
use clap::{Args, ValueEnum};
use longhaul::lab::{Emulator, EmulatorSettings, NamedPath};
use report::untrusted::clean;

/// List the named paths and the source of each
///
/// With --as, prints each path as settings for another emulator, and the
/// differences: netem for Linux, the Network Link Conditioner of macOS, clumsy
/// for Windows.
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

Your own file has one table per path, with the keys of --link. Paths in
~/.config/longhaul/paths.toml need no file name:
  [office]
  base = \"transatlantic\"
  rate = \"50mbit\"
  loss = \"0.1%\"";

impl Tool {
    const fn emulator(self) -> Emulator {
        match self {
            Tool::Netem => Emulator::Netem,
            Tool::LinkConditioner => Emulator::LinkConditioner,
            Tool::Clumsy => Emulator::Clumsy,
        }
    }
}

pub(super) fn run(args: &PathsArgs, console: &mut Console) -> Outcome {
    let mut all = longhaul::lab::named_paths()?;
    if let Some(unknown) = args.names.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        let meant = nearest(unknown, all.iter().map(|one| one.name.as_str()));
        let error = format!("no path is named '{unknown}'; `longhaul lab paths` lists them");
        return Err(Failure::usage(error).meaning(unknown, meant));
    }
    all.retain(|one| args.names.is_empty() || args.names.contains(&one.name));
    if let Some(tool) = args.tool {
        for one in &mut all {
            one.for_emulator(tool.emulator())?;
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
    for NamedPath { name, about, source, link, settings } in all {
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
