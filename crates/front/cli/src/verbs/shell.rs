//! `longhaul completions` and `longhaul man`, for packages.

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::output_path::OutputPath;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use host::output_file;
use std::io;
use std::path::Path;

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
    dir: Option<OutputPath>,
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
        Some(folder) => write_pages(command, folder).map_err(|error| {
            Failure::work(format!(
                "cannot write manual pages to {}: {error}; create the directory first",
                folder.display()
            ))
        })?,
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page).map_err(Failure::work)?;
            console.print(&String::from_utf8_lossy(&page));
        }
    }
    Ok(DONE)
}

/// Writes a page for the command and each of its subcommands.
fn write_pages(command: Command, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut all = vec![command];
    while let Some(command) = all.pop() {
        all.extend(command.get_subcommands().filter(|it| !it.is_hide_set()).cloned());
        let page = Man::new(command);
        page.render(&mut output_file::create_readable(&folder.join(page.get_filename()))?)?;
    }
    Ok(())
}
