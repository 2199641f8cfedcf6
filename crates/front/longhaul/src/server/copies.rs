//! The server's side of copies.

use super::{ServerEvent, ServerRequest};
use crate::{Fault, Problem, secrets};
use copy::{CopyServer, CopyServerConfig, Root};

/// Listens for copies, if requested.
pub(super) fn start(
    request: &ServerRequest,
    tokens: Option<&str>,
    on_event: &mut dyn FnMut(ServerEvent),
) -> Result<Option<CopyServer>, Problem> {
    let (Some(root), Some(tokens)) = (&request.root, tokens) else { return Ok(None) };
    let of_request = |error| Problem::new(Fault::Request, error);
    let config = CopyServerConfig {
        bind: request.bind,
        port: request.copy_port,
        root: Root::below(root, request.writable).map_err(of_request)?,
        tokens: secrets::tokens(tokens).map(str::to_owned).collect(),
        max_copies: usize::try_from(request.max_copies).unwrap_or(usize::MAX),
    };
    let server = CopyServer::bind(config).map_err(of_request)?;
    let address = server.local_address().map_err(|error| Problem::new(Fault::Internal, error))?;
    let (root, writable) = (root.clone(), request.writable);
    on_event(ServerEvent::CopiesListening { root, writable, address });
    Ok(Some(server))
}
