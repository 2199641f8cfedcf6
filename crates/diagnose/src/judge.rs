//! Which cause it was: what the clocks and the program tell first, the network
//! for the rest.

use crate::{evidence::Evidence, network, predict};
use record::{Limit, Measurement, Shares};
use units::BitRate;

/// A thread that uses so much of a core has none left.
pub(crate) const CPU_FULL: f64 = 0.95;

/// A cause that held the transfer for so much of the time is its limit, if no
/// other held it for longer.
const HELD: f64 = 0.4;

/// Less than this of the send buffer's clock is noise beside a program held to
/// a rate. A full send buffer and a program that has nothing to write look
/// alike in all else. Linux starts that clock only where a segment is sent
/// while the program already waits; a blocking writer can escape it for good.
const SEND_BUFFER_SHOWS: f64 = 0.15;

/// The same of the receive window's clock, where in flight is as much as was announced.
const WINDOW_SHOWS: f64 = 0.15;
const WINDOW_FULL: f64 = 0.85;

/// Round trips that a window takes to open at least.
const SLOW_START: f64 = 8.0;

/// A rate asked with `-b` counts as reached from here.
const REACHED: f64 = 0.95;

/// The path is as full as it gets, and no window or buffer would add to it.
const FULL: f64 = 0.97;

/// A sender that keeps so little of its congestion window in flight is not held by it.
const WELL_UNDER: f64 = 0.8;

/// The limit, where the sender's clocks are at hand.
pub(crate) fn limit(m: &Measurement, e: &Evidence, shares: &Shares) -> Limit {
    if asked_for_no_more(m, e) {
        return Limit::Application;
    }
    let full = predict::path_payload(m, e)
        .is_some_and(|path| e.goodput.as_f64() >= FULL * path.goodput.as_f64());
    if !full {
        if cpu(m, e, shares) {
            return Limit::Cpu;
        }
        let largest = |share: f64| {
            let all =
                [shares.application, shares.receive_window, shares.send_buffer, shares.network];
            share >= HELD && all.into_iter().all(|other| share >= other)
        };
        if largest(shares.receive_window) && opens(e) {
            return Limit::Ramp;
        }
        if largest(shares.receive_window) || fills_the_window(shares, e) {
            return Limit::ReceiveWindow;
        }
        if largest(shares.send_buffer) || empties_the_buffer(shares, e) {
            return Limit::SendBuffer;
        }
        if shares.application >= HELD {
            return Limit::Application;
        }
        if idle_between_writes(e) {
            // Our own sender always has more to write, unless a rate was asked.
            let always_more = asked(m).is_none() && !is_watched(m);
            return if always_more || shares.send_buffer >= SEND_BUFFER_SHOWS {
                Limit::SendBuffer
            } else {
                Limit::Application
            };
        }
    }
    network::limit(m, e)
}

/// Whether what was asked with `-b` arrived.
pub(crate) fn asked_for_no_more(m: &Measurement, e: &Evidence) -> bool {
    asked(m).is_some_and(|asked| e.goodput.as_f64() >= REACHED * asked.as_f64())
}

/// The rate asked with `-b`, over all streams.
pub(crate) fn asked(m: &Measurement) -> Option<BitRate> {
    let each = m.spec.rate_bps.filter(|rate| *rate > BitRate::ZERO)?;
    Some(BitRate::from_bps(each.bps().saturating_mul(m.streams.len().max(1) as u64)))
}

/// Whether it is a connection of some program's, of which only this is known.
pub(crate) fn is_watched(m: &Measurement) -> bool {
    m.streams.iter().any(|stream| stream.watched)
}

/// A receiver whose window still grew at the end was not what it would have been.
fn opens(e: &Evidence) -> bool {
    let grew = e.window_growth.is_some_and(|growth| growth >= network::STILL_OPENING);
    let short = e.min_rtt.is_some_and(|rtt| e.steady.to_s < SLOW_START * rtt.secs_f64());
    e.retransmits == 0 && (short || (grew && !e.is_flat()))
}

/// A sender that paces itself, as BBR does, often finds the window full at the
/// moment it may send, and the clock sees it only then: a third of the time.
fn fills_the_window(shares: &Shares, e: &Evidence) -> bool {
    shares.receive_window >= WINDOW_SHOWS
        && e.window_filled.is_some_and(|filled| filled >= WINDOW_FULL)
        && e.cwnd_filled.is_some_and(|filled| filled < WELL_UNDER)
        && !e.has_standing_queue()
}

/// The same of the send buffer: what is written waits for the pace, and the clock
/// runs between that.
fn empties_the_buffer(shares: &Shares, e: &Evidence) -> bool {
    shares.send_buffer >= SEND_BUFFER_SHOWS
        && shares.send_buffer > shares.receive_window
        && e.cwnd_filled.is_some_and(|filled| filled < WELL_UNDER)
        && !e.has_standing_queue()
}

/// A thread at its core's end, unless a window or a buffer held the transfer
/// for most of the time. A receiver that falls behind closes its own window:
/// then the window is the symptom and the core the cause.
fn cpu(m: &Measurement, e: &Evidence, shares: &Shares) -> bool {
    let at_end = |share: Option<f64>| share.is_some_and(|share| share >= CPU_FULL);
    let (sends, receives) = (m.sender_core(), m.receiver_core());
    let closes = e.window_floor.is_some_and(|floor| floor < 0.5);
    let window_held = shares.receive_window > 0.5;
    let sender = at_end(sends) && !window_held && shares.send_buffer <= 0.5;
    let receiver = at_end(receives) && (!window_held || closes) && shares.application <= 0.5;
    sender || receiver
}

/// A program that writes less than the path carries still keeps data in
/// flight, and the busy clock runs: 20 of 100 Mbit/s at 50 ms reads 98 % busy.
fn idle_between_writes(e: &Evidence) -> bool {
    e.app_limited > 0.5
        && e.unsent.is_none_or(|unsent| unsent < 1.0)
        && e.cwnd_filled.is_some_and(|filled| filled < WELL_UNDER)
}
