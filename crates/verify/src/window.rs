//! Holding a receiver to a window, as it stands on the wire.
//!
//! A setting gives the receive *buffer*; how much of it the kernel advertises
//! depends on how much memory it counts for each byte of payload
//! (`tcp_adv_win_scale`, and since Linux 6.6 a ratio measured from the packets
//! that come). So the share is measured here, by a short transfer.

use crate::{VerifyError, transfer};
use lab::Lab;
use probe::StopFlag;
use units::ByteCount;

/// How far the window may be off. It moves in whole segments (2 % of 64 KiB)
/// and in steps of the window scale.
const CLOSE: f64 = 0.02;

/// Transfers at most until the window is as asked.
const ATTEMPTS: u32 = 4;

/// Sets the server's receive buffer so that it advertises `window`; tells the
/// share of the buffer that became window.
pub(crate) fn cap(lab: &Lab, window: ByteCount, stop: &StopFlag) -> Result<f64, VerifyError> {
    let mut share = model::INITIAL_WINDOW_SHARE;
    // A dozen round trips: handshakes, slow start to the window, and some at it.
    let seconds = (lab.path().rtt().secs_f64() * 12.0).max(0.5);
    let mut seen = ByteCount::ZERO;
    for _ in 0..ATTEMPTS {
        let buffer = ByteCount::from_f64(window.as_f64() / share);
        set(lab, buffer)?;
        let measurement = transfer::run(lab, seconds, &mut |_| (), stop)?;
        let samples = measurement.streams.iter().flat_map(|stream| &stream.sender);
        seen = samples
            .filter_map(|sample| sample.peer_window_bytes)
            .max()
            .map(ByteCount::from_bytes)
            .ok_or(VerifyError::Blind)?;
        share = seen.as_f64() / buffer.as_f64();
        if (seen.as_f64() / window.as_f64() - 1.0).abs() <= CLOSE {
            return Ok(share);
        }
    }
    Err(VerifyError::Window { asked: window, seen })
}

fn set(lab: &Lab, buffer: ByteCount) -> Result<(), VerifyError> {
    let value = format!("4096 {0} {0}", buffer.bytes());
    lab.server()
        .namespace
        .run(|| host::sysctl::write("net.ipv4.tcp_rmem", &value))
        .and_then(|written| written)
        .map_err(VerifyError::Settings)
}
