//! `longhaul completions` and `longhaul man`, for packages.

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul completions bash > /etc/bash_completion.d/longhaul
  longhaul completions zsh  > ~/.zfunc/_longhaul
  longhaul completions fish > ~/.config/fish/completions/longhaul.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

/// Print the manual page, or write one for every command
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul man | man -l -
  longhaul man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write all manual pages (longhaul.1, …) to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: Command,
    console: &mut Console,
) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "longhaul", &mut script);
    console.print(&String::from_utf8_lossy(&script));
    Ok(DONE)
}

pub(crate) fn man(args: &ManArgs, command: Command, console: &mut Console) -> Outcome {
    match &args.dir {
        Some(folder) => clap_mangen::generate_to(command, folder).map_err(|error| {
            Failure::work(format!(
                "cannot write manual pages to {}: {error}; create the directory first",
                folder.display()
            ))
        })?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(Failure::work)?;
            console.print(&String::from_utf8_lossy(&page));
        }
    }
    Ok(DONE)
}
