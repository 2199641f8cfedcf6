//! Compressed files, recognised by their first bytes: gzip (RFC 1952), zstd (RFC 8878), LZ4
//! (frames), xz and bzip2.
//!
//! All are decompressed as a stream, so memory does not depend on how much a file
//! expands to: 32 KiB of window for gzip, a block of at most 8 MiB for LZ4, 3.6 MB for bzip2; for
//! zstd and xz what the file asks for, and one that asks for more than 100 MiB is refused.

use super::bzip2::Bzip2;
use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Decoder;
use lzma_rust2::XzReader;
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
    /// LZ4.
    Lz4,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
}

impl Compression {
    /// Its name; `None` without compression.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Compression::None => None,
            Compression::Gzip => Some("gzip"),
            Compression::Zstd => Some("zstd"),
            Compression::Lz4 => Some("LZ4"),
            Compression::Xz => Some("xz"),
            Compression::Bzip2 => Some("bzip2"),
        }
    }

    /// The compression of a file that begins with these bytes, of which [`HEAD`] are enough.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // A skippable frame, with any low nibble.
            [first, 0x2a, 0x4d, 0x18, ..] if first & 0xf0 == 0x50 => Compression::Zstd,
            // The frame of today, and that of versions before 1.0.
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Compression::Lz4,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // A block, or the end of an empty file.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }
}

/// Bytes at the beginning of a file that tell its compression and format.
pub const HEAD: usize = 16;

/// Memory that a dictionary of xz may take, in KiB.
const XZ_MEMORY_KIB: u32 = 100 << 10;

/// The source again, from its first byte on.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// A source of plain bytes.
pub(super) enum Source<R: Read> {
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<Whole<R>>>),
    Zstd(Box<Zstd<BufReader<Whole<R>>>>),
    Lz4(Box<Lz4<BufReader<Whole<R>>>>),
    Xz(Box<XzReader<BufReader<Whole<R>>>>),
    Bzip2(Box<Bzip2<BufReader<Whole<R>>>>),
}

impl<R: Read> Source<R> {
    /// Finds out how `source` is compressed.
    pub(super) fn detect(mut source: R) -> io::Result<Self> {
        let mut first = Vec::with_capacity(HEAD);
        source.by_ref().take(HEAD as u64).read_to_end(&mut first)?;
        let compression = Compression::of(&first);
        let whole = Cursor::new(first).chain(source);
        Ok(match compression {
            Compression::None => Source::Plain(whole),
            Compression::Gzip => Source::Gzip(Box::new(MultiGzDecoder::new(whole))),
            Compression::Zstd => Source::Zstd(Box::new(Zstd::new(BufReader::new(whole)))),
            Compression::Lz4 => Source::Lz4(Box::new(Lz4::new(BufReader::new(whole)))),
            Compression::Xz => {
                let input = BufReader::new(whole);
                Source::Xz(Box::new(XzReader::new_mem_limit(input, true, XZ_MEMORY_KIB)))
            }
            Compression::Bzip2 => Source::Bzip2(Box::new(Bzip2::new(BufReader::new(whole)))),
        })
    }

    pub(super) fn compression(&self) -> Compression {
        match self {
            Source::Plain(_) => Compression::None,
            Source::Gzip(_) => Compression::Gzip,
            Source::Zstd(_) => Compression::Zstd,
            Source::Lz4(_) => Compression::Lz4,
            Source::Xz(_) => Compression::Xz,
            Source::Bzip2(_) => Compression::Bzip2,
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::Plain(source) => source.read(to),
            Source::Gzip(source) => source.read(to).map_err(|error| broken("gzip", &error)),
            Source::Zstd(source) => source.read(to),
            Source::Lz4(source) => source.read(to).map_err(|error| broken("LZ4", &error)),
            Source::Xz(source) => source.read(to).map_err(|error| broken("xz", &error)),
            Source::Bzip2(source) => source.read(to),
        }
    }
}

/// The bytes of a file, decompressed; of one that is not compressed, as they are.
#[derive(Debug)]
pub struct Decompressed<R: Read> {
    /// `None` after an error.
    source: Option<Source<R>>,
}

impl<R: Read> Decompressed<R> {
    /// Reads the beginning of `source`.
    ///
    /// # Errors
    /// What `source` reports.
    pub fn new(source: R) -> io::Result<Self> {
        Ok(Decompressed { source: Some(Source::detect(source)?) })
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let Some(source) = &mut self.source else { return Ok(0) };
        let read = source.read(to);
        if read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            self.source = None;
        }
        read
    }
}

impl<R: Read> fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.compression())
    }
}

/// An error of a decoder; that of data which ends too early stays such a one.
fn broken(format: &str, error: &io::Error) -> io::Error {
    match error.kind() {
        kind @ (io::ErrorKind::UnexpectedEof | io::ErrorKind::Interrupted) => {
            io::Error::new(kind, format!("the {format} data: {error}"))
        }
        _ => corrupt(format, error),
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

/// Frames one after the other.
pub(super) struct Lz4<R: Read> {
    /// Of the current frame; `None` while it is exchanged.
    decoder: Option<Lz4Decoder<R>>,
}

impl<R: BufRead> Lz4<R> {
    fn new(input: R) -> Self {
        Lz4 { decoder: Some(Lz4Decoder::new(input)) }
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let count = decoder.read(to)?;
            // At the end of a frame, there may be another one.
            if count > 0 || to.is_empty() || decoder.get_mut().fill_buf()?.is_empty() {
                return Ok(count);
            }
            self.decoder = self.decoder.take().map(|done| Lz4Decoder::new(done.into_inner()));
        }
    }
}
