//! Blocks compressed by zstd (RFC 8878): each is a frame of its own, so that a thread needs one
//! context for all of its flows, and a lane that ends leaves nothing behind.

use host::clock;
use lane::reduction::{Effort, MAX_PERCENT};
use lane::{Block, MAX_BLOCK, Reduction};
use std::time::{Duration, Instant};
use zstd_safe::{CCtx, DCtx, get_frame_content_size};

/// Of zstd's levels the fastest with a ratio near that of its default.
const LEVEL: i32 = 1;

/// A block of the other box that is not what it was announced as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other box sent a corrupt compressed block")]
pub(crate) struct CorruptBlock;

/// The contexts of a thread: about 400 KiB once both are in use.
pub(crate) struct BlockCodec {
    encoder: Option<CCtx<'static>>,
    decoder: Option<DCtx<'static>>,
    output: Vec<u8>,
    /// Time spent compressing.
    compressing: Duration,
    began: Instant,
}

impl BlockCodec {
    pub(crate) fn new() -> Self {
        BlockCodec {
            encoder: None,
            decoder: None,
            output: Vec::new(),
            compressing: Duration::ZERO,
            began: clock::now(),
        }
    }

    fn prepare_output(&mut self) {
        if self.output.is_empty() {
            self.output = vec![0; MAX_BLOCK];
        }
    }

    /// Compresses a block of a flow, if that is worth it; `None`: it is to be sent as it is.
    pub(crate) fn compress(
        &mut self,
        reduction: &mut Reduction,
        input: &[u8],
    ) -> Option<(Block, &[u8])> {
        if input.len() > MAX_BLOCK || !reduction.accepts(input) {
            return None;
        }
        self.prepare_output();
        if self.encoder.is_none() {
            self.encoder = CCtx::try_create();
        }
        // zstd gives up once the output is too long.
        let output = self.output.get_mut(..input.len() * MAX_PERCENT / 100)?;
        let began = clock::now();
        let length = self.encoder.as_mut()?.compress(output, input, LEVEL).ok();
        let now = clock::now();
        self.compressing += now.saturating_duration_since(began);
        let Some((length, block)) =
            length.and_then(|length| Some((length, Block::new(length, input.len())?)))
        else {
            reduction.gains_nothing();
            return None;
        };
        let now = now.saturating_duration_since(self.began);
        reduction.gains(input.len(), Effort { compressing: self.compressing, now });
        Some((block, self.output.get(..length)?))
    }

    /// Decompresses a block, which is never larger than announced.
    pub(crate) fn decompress(&mut self, block: Block, input: &[u8]) -> Result<&[u8], CorruptBlock> {
        self.prepare_output();
        if self.decoder.is_none() {
            self.decoder = DCtx::try_create();
        }
        let declared = get_frame_content_size(input).ok().flatten();
        if declared != u64::try_from(block.size()).ok() {
            return Err(CorruptBlock);
        }
        let output = self.output.get_mut(..block.size()).ok_or(CorruptBlock)?;
        let decoder = self.decoder.as_mut().ok_or(CorruptBlock)?;
        match decoder.decompress(output, input) {
            Ok(size) if size == block.size() => self.output.get(..size).ok_or(CorruptBlock),
            _ => Err(CorruptBlock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that zstd halves at least.
    fn text(length: usize) -> Vec<u8> {
        let line =
            |number: usize| format!("flow {number} of the near box: {} bytes\n", number * 7919);
        (0..).flat_map(|number| line(number).into_bytes()).take(length).collect()
    }

    #[test]
    fn blocks_are_restored() {
        let mut codec = BlockCodec::new();
        for length in [128, 1000, MAX_BLOCK] {
            let text = text(length);
            let (block, compressed) = codec.compress(&mut Reduction::default(), &text).unwrap();
            let compressed = compressed.to_vec();
            assert_eq!((block.length(), block.size()), (compressed.len(), length));
            assert_eq!(codec.decompress(block, &compressed).unwrap(), text);
        }
        let mut reduction = Reduction::default();
        let random = host::random::incompressible(MAX_BLOCK);
        assert!(codec.compress(&mut reduction, &random).is_none() && !reduction.is_trying());
        assert!(codec.compress(&mut Reduction::default(), &text(MAX_BLOCK + 1)).is_none());
    }

    #[test]
    fn corrupt_blocks_and_bombs_are_refused() {
        let mut codec = BlockCodec::new();
        let text = text(10_000);
        let (block, compressed) = codec.compress(&mut Reduction::default(), &text).unwrap();
        let compressed = compressed.to_vec();
        let announced = |size| Block::new(compressed.len(), size).unwrap();
        for wrong in [announced(9_999), announced(10_001), announced(MAX_BLOCK)] {
            assert_eq!(codec.decompress(wrong, &compressed), Err(CorruptBlock));
        }
        for cut in 0..compressed.len() {
            assert_eq!(codec.decompress(block, &compressed[..cut]), Err(CorruptBlock), "{cut}");
        }
        let two = [&compressed[..], &compressed].concat();
        assert_eq!(codec.decompress(block, &two), Err(CorruptBlock));
        // A frame that holds 1 GiB of zeros, by its own word: RLE blocks of 128 KiB each.
        let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40];
        for _ in 0..8192 {
            bomb.extend_from_slice(&[0x02, 0, 0x10, 0]);
        }
        let honest = Block::new(bomb.len(), MAX_BLOCK).unwrap();
        assert_eq!(codec.decompress(honest, &bomb), Err(CorruptBlock));
        // The same that declares 64 KiB.
        bomb.splice(4..9, [0xa0, 0, 0, 1, 0]);
        assert_eq!(codec.decompress(honest, &bomb), Err(CorruptBlock));
        // The context is of use for the next block.
        assert_eq!(codec.decompress(block, &compressed).unwrap(), text);
    }
}
