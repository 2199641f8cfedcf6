//! Authentication: iperf3's logins and longhaul's tokens.

mod login;
mod login_slots;
mod replay;
mod token;

pub use login::{Credentials, Padding, Users};
pub use token::Tokens;

use crate::{PerfError, client::ClientConfig};
use iperf3_proto::{Cookie, Params};

/// Adds the client's login and token signature to its parameters.
pub(crate) fn sign(
    config: &ClientConfig,
    cookie: &Cookie,
    params: &mut Params,
) -> Result<(), PerfError> {
    let now = host::clock::unix_seconds();
    if let Some(credentials) = &config.credentials {
        params.authtoken = Some(credentials.sealed(now)?);
    }
    if let (Some(word), Some(longhaul)) = (&config.token, &mut params.longhaul) {
        longhaul.token = Some(token::sign(word, cookie, now));
    }
    Ok(())
}
