//! Who may run a test: iperf3's logins, and longhaul's own tokens.

mod login;
mod token;

pub use login::{Credentials, Padding, Users};
pub use token::Tokens;

use crate::{ProbeError, client::ClientConfig};
use iperf3::{Cookie, Params};

/// Puts what the client knows into its parameters.
pub(crate) fn sign(
    config: &ClientConfig,
    cookie: &Cookie,
    params: &mut Params,
) -> Result<(), ProbeError> {
    let now = host::clock::unix_seconds();
    if let Some(credentials) = &config.credentials {
        params.authtoken = Some(credentials.sealed(now)?);
    }
    if let (Some(word), Some(longhaul)) = (&config.token, &mut params.longhaul) {
        longhaul["token"] = token::sign(word, cookie, now);
    }
    Ok(())
}
