//! An object from its server, or through an edge from its origin.

use super::Prediction;
use crate::test::Test;
use crate::traffic::Traffic;
use crate::value::CacheState;
use model::edge::{EdgeFetch, EdgeLeg};
use model::{Congestion, Payload};
use topology::PathSpec;
use units::{BitRate, ByteCount, LossRatio};

impl Test {
    /// The bytes that are asked for over the time from the SYN to the last of them. `None` for a path
    /// without a rate, with loss, or with a congestion control without an equation.
    pub(super) fn object(&self, flow: &Traffic) -> Option<Prediction> {
        let congestion = Congestion::ALL.into_iter().find(|one| one.name() == flow.congestion())?;
        let origin = flow.program.as_ref()?.origin.as_ref();
        let near = leg(&self.spec, flow)?;
        let fetch = EdgeFetch {
            near,
            far: origin.map_or(Some(near), |origin| leg(&origin.path, flow))?,
            size: flow.object?,
            range: flow.range,
            slice: origin.map(|origin| origin.slice),
            buffered: self.spec.directions()[1].queue_bytes(),
            window: self.window,
            mss: ByteCount::from_bytes(u64::from(payload(&self.spec, flow).mss()?)),
            initial: model::INITIAL_WINDOW_SEGMENTS as u32,
            congestion,
        };
        let (seconds, what) = match (origin, flow.cache_state) {
            // Of a server without an edge the path is that to the origin.
            (None, _) => (fetch.warm()?, "handshake, request and slow start"),
            (Some(_), CacheState::Cold) if flow.streams > 1 => {
                (fetch.waiting(flow.streams)?, "the last of the clients, which look every 500 ms")
            }
            (Some(_), CacheState::Cold) => (fetch.cold()?, "handshakes and requests of both paths"),
            (Some(_), CacheState::Warm) => (fetch.warm()?, "the path to the edge"),
            (Some(_), CacheState::Expired) => {
                (fetch.expired()?, "the path to the edge, and a request for each slice")
            }
        };
        let length = fetch.length();
        let rate = BitRate::from_bps_f64(length.as_f64() * 8.0 / seconds);
        let equation = format!("{} / {seconds:.4} s ({what}) = {rate}", length.decimal());
        Some(Prediction { rate, equation })
    }
}

fn payload(path: &PathSpec, flow: &Traffic) -> Payload {
    Payload {
        mtu: path.mtu(),
        ip: flow.ip,
        timestamps: true,
        sack_blocks: 0,
        framing: path.overhead(),
    }
}

fn leg(path: &PathSpec, flow: &Traffic) -> Option<EdgeLeg> {
    let rate = payload(path, flow).goodput(path.rate()?)?;
    Some(EdgeLeg { rate, rtt: path.rtt(), loss: LossRatio::NONE })
}
