//! The files that say who may run tests.

use super::settings::AdmissionArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::verbs::test;
use probe::server::{Padding, ServerConfig, Tokens, Users};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest file of words, of users or of a key.
const LONGEST: u64 = 16 << 20;

/// Reads them into the configuration.
pub(super) fn read(
    args: &AdmissionArgs,
    config: &mut ServerConfig,
    console: &mut Console,
) -> Result<(), Failure> {
    if let Some(file) = &args.tokens {
        let tokens = Tokens::read(&text(file, "tokens", true, console)?);
        if tokens.count() == 0 {
            return Err(Failure::usage(format!(
                "no token in {}: nobody could run a test; write one word a line into it",
                file.display()
            )));
        }
        config.tokens = Some(Arc::new(tokens));
    }
    if let (Some(key), Some(list)) = (&args.private_key, &args.users) {
        let key = text(key, "private key", true, console)?;
        let list = text(list, "users", false, console)?;
        let padding = if args.pkcs1 { Padding::Pkcs1 } else { Padding::Oaep };
        let skew = Duration::from_secs(args.time_skew);
        let users = Users::new(&key, &list, padding, skew).map_err(test::failure)?;
        config.users = Some(Arc::new(users));
    }
    Ok(())
}

fn text(file: &Path, what: &str, secret: bool, console: &mut Console) -> Result<String, Failure> {
    let wrong = |reason: String| {
        let file = file.display();
        Failure::usage(format!(
            "cannot read the {what} in {file}: {reason}; check path and permissions"
        ))
    };
    let read = || -> io::Result<(String, u32)> {
        let opened = File::open(file)?;
        let mode = opened.metadata()?.permissions().mode();
        let mut text = String::new();
        opened.take(LONGEST + 1).read_to_string(&mut text)?;
        Ok((text, mode))
    };
    let (text, mode) = read().map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("it is longer than {} MiB", LONGEST >> 20)));
    }
    if secret && mode & 0o077 != 0 {
        console.say(&format!(
            "warning: others may read the {what} in {0}; chmod 600 {0}",
            file.display()
        ));
    }
    Ok(text)
}
