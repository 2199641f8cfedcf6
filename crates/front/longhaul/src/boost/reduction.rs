//! What compression between the boxes has saved.

use ::boost::Totals;
use serde::Serialize;
use std::fmt;
use units::ByteCount;

/// What compression has saved.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reduction {
    /// Bytes of applications and targets, in both directions, per byte between the boxes.
    pub ratio: Option<f64>,
    /// Bytes from applications (near) or targets (far) that were sent compressed.
    pub in_bytes: u64,
    /// The same between the boxes, without headers.
    pub wan_sent_bytes: u64,
    /// Bytes to them that arrived compressed.
    pub out_bytes: u64,
    /// The same between the boxes, without headers.
    pub wan_received_bytes: u64,
    /// Flows that were not compressed in the direction from this box: TLS and SSH.
    pub encrypted_flows: u64,
    /// The same: data that gains under 5 %.
    pub incompressible_flows: u64,
    /// The same: the CPU would have been the limit.
    pub cpu_limited_flows: u64,
}

impl Reduction {
    pub(super) fn new(totals: &Totals) -> Self {
        let wan = totals.wan_sent + totals.wan_received;
        let own = totals.bytes_in + totals.bytes_out;
        Reduction {
            ratio: (wan > 0).then(|| own as f64 / wan as f64),
            in_bytes: totals.compressed_in,
            wan_sent_bytes: totals.compressed_sent,
            out_bytes: totals.compressed_out,
            wan_received_bytes: totals.compressed_received,
            encrypted_flows: totals.uncompressed.encrypted,
            incompressible_flows: totals.uncompressed.incompressible,
            cpu_limited_flows: totals.uncompressed.cpu_limited,
        }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ratio {
            Some(ratio) => write!(f, "{ratio:.2} bytes per byte between the boxes")?,
            None => f.write_str("nothing carried")?,
        }
        let raw = ByteCount::from_bytes(self.in_bytes + self.out_bytes);
        let wan = ByteCount::from_bytes(self.wan_sent_bytes + self.wan_received_bytes);
        write!(f, "; {raw} compressed to {wan}")?;
        let reasons = [
            (self.encrypted_flows, "encrypted"),
            (self.incompressible_flows, "incompressible"),
            (self.cpu_limited_flows, "CPU-limited"),
        ];
        let mut before = "; flows not compressed: ";
        for (count, why) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{before}{count} {why}")?;
            before = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::boost::UncompressedFlows;

    #[test]
    fn what_was_saved_and_what_was_not_compressed_are_said() {
        let uncompressed = UncompressedFlows { encrypted: 2, cpu_limited: 1, incompressible: 0 };
        let totals = Totals {
            bytes_in: 5_000_000,
            wan_sent: 2_000_000,
            compressed_in: 4_000_000,
            compressed_sent: 1_000_000,
            uncompressed,
            ..Totals::default()
        };
        assert_eq!(
            Reduction::new(&totals).to_string(),
            "2.50 bytes per byte between the boxes; 4 MB compressed to 1 MB; flows not compressed: \
             2 encrypted, 1 CPU-limited"
        );
        assert!(Reduction::new(&Totals::default()).to_string().starts_with("nothing carried"));
    }
}
