//! What the other end of a test sends, of either protocol.

use iperf2_proto::datagram::Datagram;
use iperf2_proto::header::{ClientHeader, Preamble};
use iperf2_proto::report::ServerReport;
use iperf3_proto::datagram::{Counter, Header};
use iperf3_proto::framing::PARAMS_LIMIT;
use iperf3_proto::{Decoder, FrameError, Order, Params, Refusal, Results, Role, State, framing};
use serde_json::Value;

/// Decodes `stream` in pieces of at most `piece` bytes; what was decoded, and how
/// many bytes of the stream it took.
fn decoded(stream: &[u8], piece: usize) -> Result<Option<(Value, usize)>, FrameError> {
    let mut decoder = Decoder::new(PARAMS_LIMIT);
    let mut taken = 0;
    while decoder.missing() > 0 && taken < stream.len() {
        let end = stream.len().min(taken + piece);
        taken += decoder.take(&stream[taken..end])?;
    }
    assert!(taken <= 4 + PARAMS_LIMIT as usize, "more than the limit was taken");
    if decoder.missing() > 0 {
        return Ok(None);
    }
    Ok(Some((decoder.finish()?, taken)))
}

/// A stream of bytes with a framed message in front. The first byte is the size of
/// the pieces that it arrives in; how it is cut must make no difference.
pub(crate) fn iperf3_framing(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    let whole = decoded(stream, stream.len().max(1));
    let pieces = decoded(stream, usize::from(*piece).max(1));
    assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
}

/// The JSON of a message, framed as a peer would.
fn message<T: serde::de::DeserializeOwned>(json: &[u8], limit: u32) -> Option<T> {
    let length = u32::try_from(json.len()).ok()?;
    let mut decoder = Decoder::new(limit);
    decoder.take(&length.to_be_bytes()).ok()?;
    decoder.take(json).ok()?;
    decoder.finish().ok()
}

/// What a client asks for.
pub(crate) fn iperf3_params(input: &[u8]) {
    let Some(params) = message::<Params>(input, PARAMS_LIMIT) else { return };
    if params.check().is_ok() {
        assert!((1..=128).contains(&params.streams()), "{params:?}");
        assert!(params.block() > 0, "{params:?}");
    }
    let _ = params.bytes_limit();
    written_again(&params, PARAMS_LIMIT * 16);
}

/// What either end reports.
pub(crate) fn iperf3_results(input: &[u8]) {
    const LIMIT: u32 = 1 << 20;
    let Some(results) = message::<Results>(input, LIMIT) else { return };
    let _ = (results.stream(1), results.stream(u32::MAX));
    for stream in &results.streams {
        let _ = (stream.byte_count(), stream.seconds());
    }
    written_again(&results, LIMIT * 16);
}

/// A message that was read can be written, and what was written reads. The two need
/// not be equal: a real number may lose its last digit (`float_roundtrip` of serde_json).
fn written_again<T>(message: &T, limit: u32)
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let Ok(wire) = framing::encode(message) else { return };
    let mut decoder = Decoder::new(limit);
    let taken = decoder.take(&wire).map(|taken| (taken, decoder.missing()));
    assert!(matches!(taken, Ok((length, 0)) if length == wire.len()));
    let again = decoder.finish::<T>();
    assert!(again.is_ok(), "what was written does not read: {:?}", again.err());
}

/// The one-byte messages: the first byte says which end this is, each of the others
/// is received, or where it is odd and above 127, sent.
pub(crate) fn iperf3_states(input: &[u8]) {
    let Some((role, bytes)) = input.split_first() else { return };
    let role = if role & 1 == 0 { Role::Client } else { Role::Server };
    let mut order = Order::new(role);
    for byte in bytes {
        let heard = match State::from_byte(byte & 0x7f) {
            Some(state) if *byte > 127 => order.send(state).map(drop),
            _ => order.receive(*byte).map(drop),
        };
        let _ = (heard.map_err(|error| error.to_string()), order.point());
    }
    if let Some(code) = bytes.first_chunk() {
        let refusal = Refusal::from_wire(*code);
        assert_eq!(refusal.to_wire(), *code);
        let _ = refusal.to_string();
    }
}

/// A datagram of a UDP test, with a counter of either width.
pub(crate) fn iperf3_datagram(input: &[u8]) {
    let _ = (
        iperf3_proto::datagram::is_connect(input),
        iperf3_proto::datagram::is_connect_reply(input),
    );
    for counter in [Counter::Narrow, Counter::Wide] {
        let header = Header::read(counter, input);
        assert_eq!(header.is_some(), input.len() >= counter.header_len());
        if let Some(header) = header {
            let mut again = [0; 16];
            header.write(counter, &mut again);
            assert_eq!(Header::read(counter, &again).map(|it| it.number), Some(header.number));
        }
    }
}

/// The first bytes of an iperf 2 TCP connection.
pub(crate) fn iperf2_header(input: &[u8]) {
    if let Some(first) = input.first_chunk()
        && let Preamble::Header(length) = Preamble::of(*first)
    {
        assert!((4..=1024).contains(&length), "{length} bytes of header");
    }
    if let Ok(Some(header)) = ClientHeader::decode(input) {
        let again = ClientHeader::decode(&header.encode());
        assert!(matches!(again, Ok(Some(_))), "{header:?} became {again:?}");
    }
}

/// A datagram of an iperf 2 test, either way.
pub(crate) fn iperf2_datagram(input: &[u8]) {
    let _ = ClientHeader::decode_datagram(input);
    if let Some(read) = Datagram::decode(input) {
        assert!(read.number > 0, "numbers count from 1: {read:?}");
        let mut copy = input.to_vec();
        read.encode(&mut copy);
    }
    if let Some(report) = ServerReport::decode(input) {
        assert!(ServerReport::decode(&report.encode()).is_some(), "{report:?}");
    }
}
