//! Compressed files, recognised by their first bytes: gzip (RFC 1952), zstd (RFC 8878).
//!
//! Both are decompressed as a stream, so memory does not depend on how much a file
//! expands to: 32 KiB of window for gzip; for zstd what the frame asks for, and a frame
//! that asks for more than 100 MiB is refused.

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fmt;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

impl Compression {
    /// Its name; `None` without compression.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Compression::None => None,
            Compression::Gzip => Some("gzip"),
            Compression::Zstd => Some("zstd"),
        }
    }
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Of a skippable frame, with any low nibble in the first byte.
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The source again, from its first byte on.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// A source of plain bytes.
pub(super) enum Source<R: Read> {
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<Whole<R>>>),
    Zstd(Box<Zstd<BufReader<Whole<R>>>>),
}

impl<R: Read> Source<R> {
    /// Finds out how `source` is compressed.
    pub(super) fn detect(mut source: R) -> io::Result<Self> {
        let mut first = Vec::with_capacity(4);
        source.by_ref().take(4).read_to_end(&mut first)?;
        let is_gzip = first.starts_with(&GZIP);
        let is_zstd = first == ZSTD
            || (first.get(1..) == Some(&ZSTD_SKIPPABLE[..]) && first[0] & 0xf0 == 0x50);
        let whole = Cursor::new(first).chain(source);
        Ok(if is_gzip {
            Source::Gzip(Box::new(MultiGzDecoder::new(whole)))
        } else if is_zstd {
            Source::Zstd(Box::new(Zstd::new(BufReader::new(whole))))
        } else {
            Source::Plain(whole)
        })
    }

    pub(super) fn compression(&self) -> Compression {
        match self {
            Source::Plain(_) => Compression::None,
            Source::Gzip(_) => Compression::Gzip,
            Source::Zstd(_) => Compression::Zstd,
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::Plain(source) => source.read(to),
            Source::Gzip(source) => source.read(to).map_err(|error| corrupt("gzip", &error)),
            Source::Zstd(source) => source.read(to),
        }
    }
}

impl<R: Read> fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.compression())
    }
}

fn corrupt(format: &str, error: &dyn fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the {format} data: {error}"))
}

/// Frames one after the other.
pub(super) struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    /// Whether a frame was begun and not yet read to its end.
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> Self {
        Zstd { input, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Begins the next frame; `false` at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.input.by_ref().take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(corrupt("zstd", &error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            // A block has at most 128 KiB (RFC 8878, 3.1.1.2.4).
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.input, strategy);
                decoded.map_err(|error| corrupt("zstd", &error))?;
            }
            let count = self.decoder.read(to)?;
            if count > 0 {
                return Ok(count);
            }
            self.in_frame = false;
        }
    }
}
