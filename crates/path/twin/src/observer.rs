//! Who watches the packets at the hosts, as a capture does.

use std::ops::ControlFlow;
use tcp::{Acknowledgement, Segments};
use units::Nanos;

/// Which host's interface a packet passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// The host that sends the connections' data.
    Sending,
    /// The host that receives it.
    Receiving,
}

/// Sees each TCP packet at the moment at which it passes a host's interface, and the time pass.
pub trait Observer {
    /// Data of a connection; with `marked`, packets that bear a CE mark.
    fn data(&mut self, now: Nanos, host: Host, connection: u32, segments: &Segments, marked: bool);

    /// An acknowledgement.
    fn acknowledgement(&mut self, now: Nanos, host: Host, connection: u32, what: &Acknowledgement);

    /// Every 100 ms, and every 10 ms in the first two seconds: the data packets sent so far.
    /// [`ControlFlow::Break`] ends the simulation.
    fn passed(&mut self, now: Nanos, packets: u64) -> ControlFlow<()> {
        let _ = (now, packets);
        ControlFlow::Continue(())
    }
}

/// Sees nothing.
pub(crate) struct NoObserver;

impl Observer for NoObserver {
    fn data(&mut self, _: Nanos, _: Host, _: u32, _: &Segments, _: bool) {}
    fn acknowledgement(&mut self, _: Nanos, _: Host, _: u32, _: &Acknowledgement) {}
}
