//! Compressed blocks that arrive: gathered, decompressed, delivered.

use super::engine::{Engine, Side};
use super::live::Live;
use crate::block_codec::CorruptBlock;
use mux::BlockPiece;

impl Engine {
    /// Takes a piece of a compressed block, which is delivered once it is complete. A block that
    /// nobody takes is skipped.
    ///
    /// # Errors
    /// The block is not what it was announced as, which ends its session.
    pub(super) fn take_block<S: Side>(
        &mut self,
        session: usize,
        piece: BlockPiece,
        bytes: &[u8],
        side: &mut S,
    ) -> Result<(), CorruptBlock> {
        let Some(live) = self.sessions.get(session) else { return Ok(()) };
        let Live { session, streams, block: gathered, .. } = live;
        let Some(flow_id) = streams.get(&piece.stream).copied() else {
            gathered.clear();
            return Ok(());
        };
        let Some(flow) = self.flows.get(flow_id) else { return Ok(()) };
        flow.local.to_local.wan_bytes += piece.count as u64;
        if flow.local.discards() {
            gathered.clear();
            flow.reset_if_failed(session);
        } else {
            let is_whole = piece.count == piece.block.length();
            if !is_whole {
                gathered.extend_from_slice(bytes);
            }
            if piece.left > 0 {
                return Ok(());
            }
            let whole = if is_whole { bytes } else { gathered.as_slice() };
            let payload = self.codec.decompress(piece.block, whole)?;
            self.counters.to_decompress.add(whole.len());
            self.counters.decompressed.add(payload.len());
            flow.deliver(session, payload, &self.counters, self.now);
            gathered.clear();
        }
        if flow.local.is_gone() {
            self.end_flow(flow_id, side);
        }
        Ok(())
    }
}
