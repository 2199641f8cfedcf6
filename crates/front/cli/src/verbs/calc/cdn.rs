//! `calc cdn`.

use super::MSS;
use crate::congestion_name::CongestionName;
use clap::Args;
use longhaul::calc::{CalcRequest, CdnQuestion};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Compute an object's time from its origin and from an edge cache
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CdnArgs {
    /// Size of the object: 1MB, 100MiB
    size: ByteCount,
    /// Bytes that are asked for: FIRST-LAST, from 0 on [default: all]
    #[arg(long, value_name = "FIRST-LAST", value_parser = range)]
    range: Option<(u64, u64)>,
    /// Rate of the path to the origin: 100mbit
    #[arg(long)]
    rate: BitRate,
    /// Round-trip time between client and origin: 170ms
    #[arg(long)]
    rtt: Rtt,
    /// Random loss between edge and origin: 0.01%
    #[arg(long, short, default_value = "0%")]
    loss: LossRatio,
    /// Round-trip time between client and edge
    #[arg(long, value_name = "RTT", default_value = "4ms")]
    edge_rtt: Rtt,
    /// Rate between client and edge [default: as to the origin]
    #[arg(long, value_name = "RATE")]
    edge_rate: Option<BitRate>,
    /// Size of the edge's slices; 0 for whole objects
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    slice: ByteCount,
    /// Clients that ask at once for the cold object
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: u32,
    /// Maximum receive window of the client: 64KiB
    #[arg(long, short, value_name = "SIZE")]
    window: Option<ByteCount>,
    /// Congestion control of edge and origin: reno, cubic, bbr
    #[arg(long, short = 'C', value_enum, value_name = "NAME", hide_possible_values = true)]
    #[arg(default_value = "cubic")]
    congestion: CongestionName,
    /// Maximum segment size, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MSS.bytes())]
    mss: u64,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc cdn 1MB --rate 100mbit --rtt 170ms --edge-rtt 4ms
  longhaul calc cdn 10MB --rate 1gbit --rtt 100ms --clients 100
  longhaul calc cdn 1GB --range 0-999999 --rate 1gbit --rtt 100ms
  longhaul calc cdn 1MB --rate 100mbit --rtt 170ms --window 64KiB --json";

fn range(text: &str) -> Result<(u64, u64), String> {
    let bounds = text.split_once('-').and_then(|(first, last)| {
        let number = |text: &str| text.parse::<u64>().ok();
        Some((number(first)?, number(last)?))
    });
    bounds.ok_or_else(|| "give FIRST-LAST in bytes, such as 0-999999".to_owned())
}

impl CdnArgs {
    pub(super) fn request(&self) -> CalcRequest {
        CalcRequest::Cdn(CdnQuestion {
            size: self.size,
            range: self.range,
            rate: self.rate,
            rtt: self.rtt,
            loss: self.loss,
            edge_rtt: self.edge_rtt,
            edge_rate: self.edge_rate,
            slice: Some(self.slice).filter(|slice| *slice != ByteCount::ZERO),
            clients: self.clients,
            window: self.window,
            mss: ByteCount::from_bytes(self.mss),
            congestion: self.congestion.into(),
        })
    }
}
