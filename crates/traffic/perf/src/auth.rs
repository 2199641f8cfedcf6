//! Authentication: iperf3's logins and longhaul's tokens.

mod login;
mod login_slots;
mod replay;
mod token;
mod token_name;

pub use login::{Credentials, Padding, Users};
pub(crate) use token::SignedParams;
pub use token::Tokens;
pub use token_name::{TokenName, TokenNameError};

use crate::{PerfError, client::ClientConfig, control::Control};
use iperf3_proto::{Cookie, Params, framing};

/// The client's parameters as a message, with its login and the proof that it knows a token.
pub(crate) fn signed_params(
    config: &ClientConfig,
    cookie: &Cookie,
    params: &mut Params,
    control: &Control,
) -> Result<Vec<u8>, PerfError> {
    let now = host::clock::unix_seconds();
    if let Some(credentials) = &config.credentials {
        params.authtoken = Some(credentials.sealed(now)?);
    }
    let message = match &config.token {
        Some(word) => {
            let host = config.server_name.as_deref().unwrap_or(&config.host);
            token::signed_params(params, word, cookie, host, control.peer(), now)
        }
        None => framing::encode(params),
    };
    message.map_err(|source| control.frame_error("parameters", source))
}
