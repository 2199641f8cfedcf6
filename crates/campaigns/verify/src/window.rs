//! Limits a receiver to an advertised window.
//!
//! Only the receive *buffer* can be set; the share of it that the kernel advertises
//! depends on the memory overhead per byte of payload (`tcp_adv_win_scale`, and since
//! Linux 6.6 a ratio measured from received packets). So the share is measured with a
//! short transfer.

use crate::{VerifyError, transfer};
use lab::Lab;
use perf::StopFlag;
use units::ByteCount;

/// Tolerance of the window. It changes by whole segments (2 % of 64 KiB) and by
/// units of the window scale.
const TOLERANCE: f64 = 0.02;

/// Maximum number of transfers until the window is right.
const ATTEMPTS: u32 = 4;

/// Sets the server's receive buffer so that it advertises `window`; returns the
/// share of the buffer that became window.
pub(crate) fn limit(lab: &Lab, window: ByteCount, stop: &StopFlag) -> Result<f64, VerifyError> {
    let mut share = model::INITIAL_WINDOW_SHARE;
    // A dozen RTTs: handshakes, slow start up to the window, and some at it.
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
            .ok_or(VerifyError::WindowUnavailable)?;
        share = seen.as_f64() / buffer.as_f64();
        if (seen.as_f64() / window.as_f64() - 1.0).abs() <= TOLERANCE {
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
