//! The lines of copies.

use longhaul::server::ServerEvent;
use units::ByteCount;

pub(super) fn line(event: &ServerEvent) -> Option<String> {
    Some(match event {
        ServerEvent::CopyStarted { client, request } => format!("copy for {client}: {request}"),
        ServerEvent::CopyFinished { client, entries, bytes, error, .. } => {
            let bytes = ByteCount::from_bytes(*bytes);
            let end = error.as_deref().unwrap_or("complete");
            format!("copy for {client}: {}, {bytes}: {end}", report::entries(*entries))
        }
        ServerEvent::CopyRefused { client, reason } => {
            format!("copy for {client} refused: {reason}")
        }
        _ => return None,
    })
}
