//! The token of a server that admits only clients with one.

use crate::console::Console;
use crate::failure::Failure;
use clap::Args;
use longhaul::secrets::{self, MAX_LIST, tokens};
use std::path::{Path, PathBuf};

/// For a server with `--tokens`.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct TokenArgs {
    /// Token of a server with --tokens
    ///
    /// Other users of this host can see it in the process list, unlike --token-file and the
    /// environment variable LONGHAUL_TOKEN, which is the default.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// Read that token from FILE
    ///
    /// "-" reads the token from standard input. Only its owner should be able to read the file.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// Reads the token from the file or the environment.
    ///
    /// # Errors
    /// A file that cannot be read, or has no token.
    pub(crate) fn read(&mut self, console: &mut Console) -> Result<(), Failure> {
        if let Some(file) = &self.token_file {
            self.token = Some(of_file(file, console)?);
        } else if self.token.is_none() {
            self.token = std::env::var("LONGHAUL_TOKEN").ok();
        }
        Ok(())
    }

    /// The token that was given or read.
    pub(crate) fn value(&self) -> Option<String> {
        self.token.clone()
    }
}

/// The first token of a file; of `-`, the first line of standard input.
///
/// # Errors
/// A file that cannot be read, or has no token.
pub(crate) fn of_file(file: &Path, console: &mut Console) -> Result<String, Failure> {
    let text = if file == Path::new("-") {
        let mut line = String::new();
        std::io::stdin()
            .read_line(&mut line)
            .map_err(|error| Failure::usage(format!("cannot read the token: {error}")))?;
        line
    } else {
        let read = secrets::read(file, "token", MAX_LIST)?;
        if read.is_shared {
            let file = file.display();
            console.say(&format!("warning: other users can read {file}; run chmod 600 {file}"));
        }
        read.text
    };
    tokens(&text).next().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("no token in {}; make one: openssl rand -hex 16", file.display()))
    })
}
