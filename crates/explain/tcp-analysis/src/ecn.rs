//! Explicit congestion notification: what was negotiated, and the marks that a receiver reports.
//!
//! Classic ECN (RFC 3168) repeats ECE on every ACK until CWR answers. With AccECN (RFC 9768) the
//! three flags AE, CWR and ECE are one counter, ACE, of packets with CE, and an option counts
//! their bytes: ECE alone then says nothing.

use capture::dissect::{TcpFlags, TcpSegment};
use serde::Serialize;

/// What the handshake negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcnMode {
    /// The handshake was not captured, and no later packet shows it.
    #[default]
    Unknown,
    /// No ECN.
    Off,
    /// ECE and CWR (RFC 3168).
    Classic,
    /// Accurate ECN (RFC 9768).
    Accurate,
}

impl EcnMode {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EcnMode::Unknown => "unknown",
            EcnMode::Off => "off",
            EcnMode::Classic => "classic",
            EcnMode::Accurate => "accurate",
        }
    }
}

/// Packets of one side with each mark.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct EcnCounts {
    /// CE marks that it reports by ACE, or by the option's bytes.
    pub ace: u32,
    /// An ECN-capable transport in the IP header, CE included.
    pub capable: u32,
    /// Congestion experienced in the IP header.
    pub ce: u32,
    /// CWR, after the handshake, without AccECN.
    pub cwr: u32,
    /// ECE, after the handshake, without AccECN.
    pub ece: u32,
}

/// What is kept of a side.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SideEcn {
    pub(crate) counts: EcnCounts,
    /// The last ACE; `None` before the first one.
    last_ace: Option<u8>,
    last_ce_bytes: Option<u32>,
}

/// ACE and the count of CE bytes at the start (RFC 9768, section 3.2.1).
const FIRST_ACE: u8 = 5;
const FIRST_CE_BYTES: u32 = 0;

/// Kinds of the AccECN option (RFC 9768, section 3.2.3): the count of CE bytes is the second of
/// three bytes each in both.
const OPTIONS: [u8; 2] = [172, 174];

/// The three flags as a number, AE first.
pub(crate) const fn ace(flags: TcpFlags) -> u8 {
    (flags.0 >> 6 & 7) as u8
}

/// What a SYN asks for, and then what a SYN-ACK makes of it (RFC 9768, table 2).
pub(crate) fn negotiated(mode: EcnMode, flags: TcpFlags) -> EcnMode {
    match (flags.is_first_syn(), mode, ace(flags)) {
        (true, _, 0b111) | (false, EcnMode::Accurate, 0b010 | 0b011 | 0b100 | 0b110) => {
            EcnMode::Accurate
        }
        (true, _, 0b011) | (false, EcnMode::Accurate | EcnMode::Classic, 0b001 | 0b101) => {
            EcnMode::Classic
        }
        // Only the SYN-ACK was captured.
        (false, EcnMode::Unknown, _) => EcnMode::Unknown,
        _ => EcnMode::Off,
    }
}

impl SideEcn {
    /// A packet of the side after the handshake; returns the marks that it reports and no earlier
    /// one did. `is_third` says that it may be the ACK that ends the handshake, whose flags say
    /// how the SYN-ACK arrived (RFC 9768, table 3); `is_late`, that a later ACK came before.
    pub(crate) fn add(
        &mut self,
        mode: EcnMode,
        segment: &TcpSegment<'_>,
        mss: u32,
        is_third: bool,
        is_late: bool,
    ) -> u32 {
        if mode != EcnMode::Accurate {
            let has = |flag| u32::from(segment.flags.has(flag));
            self.counts.ece = self.counts.ece.saturating_add(has(TcpFlags::ECE));
            self.counts.cwr = self.counts.cwr.saturating_add(has(TcpFlags::CWR));
            return if mode == EcnMode::Off { 0 } else { has(TcpFlags::ECE) };
        }
        let ace = ace(segment.flags);
        if is_late || !segment.flags.has(TcpFlags::ACK) || (is_third && ace != FIRST_ACE) {
            return 0;
        }
        let packets = u32::from(ace.wrapping_sub(*self.last_ace.get_or_insert(ace)) & 7);
        self.last_ace = Some(ace);
        // The counter of three bits wraps at eight; bytes tell how often.
        let bytes = ce_bytes(segment).map_or(0, |bytes| {
            let last = self.last_ce_bytes.replace(bytes).unwrap_or(FIRST_CE_BYTES);
            bytes.wrapping_sub(last) & 0x00ff_ffff
        });
        let wraps = (bytes / mss.max(1)).saturating_sub(packets) / 8;
        let marks = packets + 8 * wraps;
        self.counts.ace = self.counts.ace.saturating_add(marks);
        marks
    }

    /// The handshake was captured: counters begin at their first values.
    pub(crate) fn begin(&mut self) {
        self.last_ace = Some(FIRST_ACE);
    }
}

/// The count of CE bytes in the AccECN option.
fn ce_bytes(segment: &TcpSegment<'_>) -> Option<u32> {
    let option = segment.each_option().find(|option| OPTIONS.contains(&option.kind))?;
    let [a, b, c] = *option.data.get(3..6)?.first_chunk()?;
    Some(u32::from_be_bytes([0, a, b, c]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(ace: u16, others: TcpFlags) -> TcpFlags {
        TcpFlags(ace << 6).with(others)
    }

    #[test]
    fn the_syn_and_its_answer_decide() {
        let mode = |syn: u16, answer: u16| {
            let asked = negotiated(EcnMode::Unknown, flags(syn, TcpFlags::SYN));
            negotiated(asked, flags(answer, TcpFlags::SYN.with(TcpFlags::ACK)))
        };
        for answer in [0b010, 0b011, 0b100, 0b110] {
            assert_eq!(mode(0b111, answer), EcnMode::Accurate, "{answer:03b}");
        }
        assert_eq!(mode(0b111, 0b001), EcnMode::Classic);
        assert_eq!(mode(0b111, 0b000), EcnMode::Off);
        assert_eq!(mode(0b111, 0b111), EcnMode::Off, "a server that reflects the flags");
        assert_eq!(mode(0b011, 0b001), EcnMode::Classic);
        assert_eq!(mode(0b011, 0b000), EcnMode::Off);
        assert_eq!(mode(0b000, 0b000), EcnMode::Off);
    }
}
