//! What a client of a SOCKS5 or HTTP CONNECT proxy sends.

use lane::Target;
use socks::{Denial, Handshake, MAX_HEAD, Token};

/// The bytes that were used and the target, if there is one.
type End = Result<Option<(usize, Target)>, Denial>;

/// How a stream ends that arrives in such pieces, after the answer.
fn play(token: Option<Token>, stream: &[u8], piece: usize) -> (Vec<u8>, End) {
    let mut handshake = Handshake::new(token);
    let (mut answer, mut used) = (Vec::new(), 0);
    for end in (piece..stream.len()).step_by(piece).chain([stream.len()]) {
        let input = stream.get(used..end).unwrap_or_default();
        match handshake.advance(input, &mut answer) {
            Ok(progress) => {
                used += progress.used;
                assert!(used <= end);
                if let Some(target) = progress.target {
                    return (answer, Ok(Some((used, target))));
                }
            }
            Err(denial) => return (answer, Err(denial)),
        }
    }
    // A near box reads no more than this of one that is not whole.
    assert!(stream.len() - used <= MAX_HEAD);
    (answer, Ok(None))
}

/// A handshake. The first byte is the size of the pieces that it arrives in; how it is cut must make
/// no difference.
pub(crate) fn handshake(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    for token in [None, Some(Token::new("token"))] {
        let whole = play(token.clone(), stream, stream.len().max(1));
        assert_eq!(play(token, stream, usize::from(*piece).max(1)), whole);
        assert!(whole.0.len() < 1024);
    }
}
