//! The server's side of `longhaul copy`.

use super::settings::{AdmissionArgs, ListenArgs};
use crate::console::Console;
use crate::failure::Failure;
use crate::input;
use crate::output_path::OutputPath;
use crate::verbs::copy::{PORT, secret_text, tokens};
use ::copy::{CopyServer, CopyServerConfig, Root};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct CopiesArgs {
    /// Serve files below DIR to longhaul copy; needs --tokens
    ///
    /// Clients authenticate with a token, from which both ends derive their keys; the
    /// connections are encrypted. Nothing outside DIR can be read or written, whatever
    /// symbolic links it contains.
    #[arg(long, value_name = "DIR", requires = "tokens")]
    root: Option<OutputPath>,
    /// Let clients write below --root
    #[arg(long, requires = "root")]
    writable: bool,
    /// TCP port for copies
    ///
    /// Each copy uses a UDP port of its own besides.
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    copy_port: u16,
    /// Maximum concurrent copies
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_copies: u32,
}

/// Listens for copies, if they are asked for.
pub(super) fn start(
    args: &CopiesArgs,
    admission: &AdmissionArgs,
    listen: &ListenArgs,
    console: &mut Console,
) -> Result<Option<CopyServer>, Failure> {
    let (Some(root), Some(file)) = (&args.root, &admission.tokens) else { return Ok(None) };
    let text = secret_text(file, input::LIST, console)?;
    let config = CopyServerConfig {
        bind: listen.bind,
        port: args.copy_port,
        root: Root::below(root, args.writable).map_err(Failure::usage)?,
        tokens: tokens(&text).map(str::to_owned).collect(),
        max_copies: usize::try_from(args.max_copies).unwrap_or(usize::MAX),
    };
    let server = CopyServer::bind(config).map_err(Failure::usage)?;
    let address = server.local_address().map_err(Failure::work)?;
    let access = if args.writable { "read and write" } else { "read-only" };
    console.say(&format!("copies: {} ({access}) on TCP {address}", root.display()));
    Ok(Some(server))
}
