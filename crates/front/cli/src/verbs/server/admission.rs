//! Reads the files that hold tokens, keys and users.

use super::settings::AdmissionArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::input;
use host::file::{ReadError, open_regular, read_open};
use longhaul::Problem;
use perf::server::{Padding, ServerConfig, Tokens, Users};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// Reads them into the configuration.
pub(super) fn read(
    args: &AdmissionArgs,
    config: &mut ServerConfig,
    console: &mut Console,
) -> Result<(), Failure> {
    if let Some(file) = &args.tokens {
        let tokens = Tokens::read(&text(file, "tokens", input::LIST, true, console)?);
        if tokens.count() == 0 {
            return Err(Failure::usage(format!(
                "no token in {}: no client could run a test; write one token per line",
                file.display()
            )));
        }
        config.tokens = Some(Arc::new(tokens.with_names(args.token_name.clone())));
    }
    if let (Some(key), Some(list)) = (&args.private_key, &args.users) {
        let key = text(key, "private key", input::KEY, true, console)?;
        let list = text(list, "users", input::LIST, false, console)?;
        let padding = if args.pkcs1 { Padding::Pkcs1 } else { Padding::Oaep };
        let skew = Duration::from_secs(args.time_skew);
        let users = Users::new(&key, &list, padding, skew).map_err(Problem::from)?;
        config.users = Some(Arc::new(users));
    }
    Ok(())
}

fn text(
    file: &Path,
    what: &str,
    limit: ByteCount,
    secret: bool,
    console: &mut Console,
) -> Result<String, Failure> {
    let wrong = |reason: ReadError| {
        let file = file.display();
        Failure::usage(format!(
            "cannot read the {what} in {file}: {reason}; check the path and its permissions"
        ))
    };
    let read = || -> Result<(String, u32), ReadError> {
        let opened = open_regular(file)?;
        let mode = opened.metadata()?.permissions().mode();
        let text = String::from_utf8(read_open(opened, limit)?);
        Ok((text.map_err(|_| ReadError::NotText)?, mode))
    };
    let (text, mode) = read().map_err(wrong)?;
    if secret && mode & 0o077 != 0 {
        console.say(&format!(
            "warning: other users can read the {what} in {0}; run chmod 600 {0}",
            file.display()
        ));
    }
    Ok(text)
}
