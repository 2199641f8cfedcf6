//! Reads the files that hold tokens, keys and users.

use super::{ServerEvent, ServerRequest, problem};
use crate::secrets::{self, MAX_KEY, MAX_LIST};
use crate::{Fault, Problem};
use perf::server::{Padding, ServerConfig, TokenName, Tokens, Users};
use std::path::Path;
use std::sync::Arc;
use units::ByteCount;

/// Reads them into the configuration; returns the text of the tokens.
pub(super) fn read(
    request: &ServerRequest,
    config: &mut ServerConfig,
    on_event: &mut dyn FnMut(ServerEvent),
) -> Result<Option<String>, Problem> {
    let mut secret = |file: &Path, what, limit: ByteCount| -> Result<String, Problem> {
        let read = secrets::read(file, what, limit)?;
        if read.is_shared {
            on_event(ServerEvent::SharedSecret { file: file.to_owned(), what });
        }
        Ok(read.text)
    };
    let mut list = None;
    if let Some(file) = &request.tokens {
        let text = secret(file, "tokens", MAX_LIST)?;
        let tokens = Tokens::read(&text);
        if tokens.count() == 0 {
            let file = file.display();
            let message =
                format!("no token in {file}: no client could run a test; write one token per line");
            return Err(Problem::new(Fault::Request, message));
        }
        let names: Result<Vec<TokenName>, _> =
            request.token_names.iter().map(|name| name.parse()).collect();
        let names = names.map_err(|error| Problem::new(Fault::Request, error))?;
        config.tokens = Some(Arc::new(tokens.with_names(names)));
        list = Some(text);
    }
    if let (Some(key), Some(users)) = (&request.private_key, &request.users) {
        let key = secret(key, "private key", MAX_KEY)?;
        // The hashes of passwords may be read by others.
        let users = secrets::read(users, "users", MAX_LIST)?.text;
        let padding = if request.pkcs1 { Padding::Pkcs1 } else { Padding::Oaep };
        let users = Users::new(&key, &users, padding, request.time_skew).map_err(problem)?;
        config.users = Some(Arc::new(users));
    }
    Ok(list)
}
