//! What the other end of a WebSocket, or of a WebTransport session, sends.

use websocket::{ClientKey, Event, Limits, ProtocolError, Reader, Role, Upgrade};

const LIMITS: Limits = Limits { text_bytes: 512, binary_frame_bytes: 1 << 20 };

/// What is read of a stream that arrives in such pieces; counts of bytes are added up.
fn read(role: Role, stream: &[u8], piece: usize) -> (Vec<Event>, Option<ProtocolError>) {
    let mut reader = Reader::new(role, LIMITS);
    let mut events = Vec::new();
    for mut bytes in stream.chunks(piece) {
        loop {
            match (reader.next(&mut bytes), events.last_mut()) {
                (Ok(None), _) => break,
                (Ok(Some(Event::Binary(more))), Some(Event::Binary(sum))) => *sum += more,
                (Ok(Some(event)), _) => events.push(event),
                (Err(error), _) => return (events, Some(error)),
            }
        }
        assert!(bytes.is_empty());
    }
    (events, None)
}

/// A stream of frames. The first byte is the size of the pieces that it arrives in; how it is cut
/// must make no difference.
pub(crate) fn frames(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    for role in [Role::Server, Role::Client] {
        let whole = read(role, stream, stream.len().max(1));
        assert_eq!(whole, read(role, stream, usize::from(*piece).max(1)));
        for event in whole.0 {
            if let Event::Text(text) = event {
                assert!(text.len() <= LIMITS.text_bytes);
            }
        }
    }
}

/// The head of a request, and of a response.
pub(crate) fn upgrade(input: &[u8]) {
    let lines = input.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((std::str::from_utf8(line.get(..colon)?).ok()?, line.get(colon + 1..)?))
    });
    if let Ok(upgrade) = Upgrade::of(lines) {
        assert_eq!(upgrade.accept.len(), 28);
    }
    let key = ClientKey::new([0; 16]);
    if let Ok(Some(length)) = key.check_response(input, "net.measurementlab.ndt.v7") {
        assert!(length <= input.len());
    }
}

/// The head of a session's request or response. The first byte is the size of the pieces that it
/// arrives in; how it is cut must make no difference.
pub(crate) fn session_head(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    let read = |piece: usize| {
        let mut reader = webtransport::HeadReader::default();
        let mut parts = stream.chunks(piece);
        parts.find_map(|part| reader.push(part).transpose())
    };
    let cut = read(usize::from(*piece).max(1));
    if stream.len() < webtransport::MAX_HEAD {
        assert_eq!(read(stream.len().max(1)), cut);
    }
    let _ = webtransport::datagram_payload(4 * u64::from(*piece), stream);
}
