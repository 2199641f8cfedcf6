//! Reno's slow start and congestion avoidance (RFC 5681, RFC 6582).

use crate::Congestion;
use crate::law::Law;
use crate::window::Window;

/// One packet a round trip, half the window at a loss. Linux's `reno`: every packet
/// acknowledged counts, however many an acknowledgement covers (no limit of RFC 3465).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewReno;

impl Law for NewReno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        window.reduce_to_half();
    }
}
