//! The flags of copies.

use crate::output_path::OutputPath;
use clap::Args;
use longhaul::copy::PORT;

#[derive(Debug, Args)]
pub(super) struct CopiesArgs {
    /// Serve files below DIR to longhaul copy; needs --tokens
    ///
    /// Clients authenticate with a token, from which both ends derive their keys; the
    /// connections are encrypted. Nothing outside DIR can be read or written, whatever
    /// symbolic links it contains.
    #[arg(long, value_name = "DIR", requires = "tokens")]
    pub(super) root: Option<OutputPath>,
    /// Let clients write below --root
    #[arg(long, requires = "root")]
    pub(super) writable: bool,
    /// TCP port for copies
    ///
    /// Each copy also uses its own UDP port.
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    pub(super) copy_port: u16,
    /// Maximum concurrent copies
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) max_copies: u32,
}
