//! The text of a file: unpacked, and from the encodings that shells and editors write.

use crate::not_a_result::{MAX_SIZE, NotAResult};
use capture::file::{Compression, Decompressed};
use std::borrow::Cow;
use std::io::{ErrorKind, Read};

/// Bytes at the beginning by which UTF-16 without a mark is recognised.
const PROBED: usize = 256;

/// The text of a file, of at most [`MAX_SIZE`].
///
/// # Errors
/// It is damaged, too large or no text.
pub(crate) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, NotAResult> {
    if Compression::of(bytes) != Compression::None {
        let unpacked = unpacked(bytes)?;
        return decoded(&unpacked).map(|text| Cow::Owned(text.into_owned()));
    }
    if bytes.len() as u64 > MAX_SIZE.bytes() {
        return Err(NotAResult::Unknown(format!("it is larger than {MAX_SIZE}")));
    }
    decoded(bytes)
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, NotAResult> {
    let what = match Compression::of(bytes) {
        Compression::Zstd => "a zstd file",
        Compression::Lz4 => "an LZ4 file",
        Compression::Xz => "an xz file",
        Compression::Bzip2 => "a bzip2 file",
        Compression::Gzip | Compression::None => "a gzip file",
    };
    let damaged = |why: &str| NotAResult::Damaged { what, why: why.to_owned() };
    let mut plain = Vec::new();
    let limit = MAX_SIZE.bytes().saturating_add(1);
    let read = Decompressed::new(bytes).and_then(|it| it.take(limit).read_to_end(&mut plain));
    if plain.len() as u64 > MAX_SIZE.bytes() {
        return Err(damaged(&format!("it unpacks to more than {MAX_SIZE}")));
    }
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(damaged("it is truncated")),
        Err(_) => Err(damaged("it is damaged")),
        Ok(_) => Ok(plain),
    }
}

/// UTF-8 or UTF-16, with or without a mark; of other encodings, what is ASCII.
fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, NotAResult> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => return utf8(rest),
        [0xff, 0xfe, rest @ ..] => return Ok(Cow::Owned(utf16(rest, u16::from_le_bytes))),
        [0xfe, 0xff, rest @ ..] => return Ok(Cow::Owned(utf16(rest, u16::from_be_bytes))),
        _ => {}
    }
    let pairs = bytes.get(..bytes.len().min(PROBED)).unwrap_or_default().as_chunks::<2>().0;
    let zeros = |place: usize| pairs.iter().filter(|pair| pair[place] == 0).count();
    // Nearly every character of a result is ASCII.
    let is_most = |count: usize| count * 10 > pairs.len() * 9;
    if !pairs.is_empty() && is_most(zeros(1)) && zeros(0) == 0 {
        return Ok(Cow::Owned(utf16(bytes, u16::from_le_bytes)));
    }
    if !pairs.is_empty() && is_most(zeros(0)) && zeros(1) == 0 {
        return Ok(Cow::Owned(utf16(bytes, u16::from_be_bytes)));
    }
    utf8(bytes)
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, NotAResult> {
    let text = String::from_utf8_lossy(bytes);
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\x1b' | '\x0c');
    // A few bytes of another encoding are names and degree signs.
    let wrong = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER || is_control(*c));
    if wrong.take(bytes.len() / 64 + 5).count() > bytes.len() / 64 + 4 || bytes.contains(&0) {
        return Err(NotAResult::Unknown("it is not text".to_owned()));
    }
    Ok(text)
}

fn utf16(bytes: &[u8], order: fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|pair| order(*pair));
    let mut text = String::with_capacity(bytes.len() / 2);
    let decoded = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.extend(decoded.filter(|c| *c != '\u{feff}'));
    text
}
