//! Time by cause, from the sender's `TCP_INFO` timers.
//!
//! Linux counts one state at a time, with a resolution of a jiffy: `busy` runs while
//! data is unacknowledged or unsent, and includes the time limited by the receive
//! window and by the send buffer (`tcp_chrono_start` in Linux `tcp_output.c`).

use crate::{
    curve::Curve,
    statistics::{Statistic, Statistics},
};
use record::{Limit, Measurement, Sample, Shares, Stream};

/// The share of a requested rate from which it was kept, and that of the time below which the timers
/// did not show it.
const REQUESTED: f64 = 0.95;
const REQUESTED_TIME: f64 = 0.01;

/// The streams' mean shares from `from` to `to` seconds, which add up to 1;
/// `None` if a stream has no timers.
pub(crate) fn over(m: &Measurement, from: f64, to: f64) -> Option<Shares> {
    if !m.has_sender_timers() {
        return None;
    }
    let mut sum = Shares::default();
    for stream in &m.streams {
        let one = of(stream, from, to)?;
        sum.receive_window += one.receive_window;
        sum.send_buffer += one.send_buffer;
        sum.network += one.network;
    }
    let streams = m.streams.len() as f64;
    let receive_window = sum.receive_window / streams;
    let send_buffer = sum.send_buffer / streams;
    let network = sum.network / streams;
    let application = (1.0 - receive_window - send_buffer - network).max(0.0);
    Some(Shares { application, receive_window, send_buffer, network })
}

/// The shares with what the samples show of the limit beyond the timers: the kernel starts the
/// receive window's timer only where nothing else could be sent, which BBR's pacing hides, and
/// the send buffer's only when a segment is sent while the application already waits. What is
/// added is taken from the network's share, which is the rest.
pub(crate) fn attributed(shares: Shares, limit: Option<Limit>, s: &Statistics) -> Shares {
    // A timer that ran is more precise than samples.
    let seen = |statistic, timer: f64| {
        s.get(statistic).filter(|share| timer < 0.5 * share).map_or(0.0, |share| share - timer)
    };
    let mut shares = shares;
    let (place, more) = match limit {
        Some(Limit::ReceiveWindow | Limit::WindowScaling | Limit::SlowReceiver) => {
            let timer = shares.receive_window;
            let more = seen(Statistic::AtWindow, timer);
            // Of two timers Linux runs that of the send buffer.
            let hidden = (more - shares.network).clamp(0.0, shares.send_buffer);
            shares.send_buffer -= hidden;
            shares.network += hidden;
            (&mut shares.receive_window, more)
        }
        Some(Limit::SendBuffer) => {
            let timer = shares.send_buffer;
            // BBR's pacing leaves something unsent.
            let bbr = s.get(Statistic::IsBbr).is_some_and(|is| is > 0.5);
            let sent = if bbr { seen(Statistic::MostlySent, timer) } else { 0.0 };
            (&mut shares.send_buffer, seen(Statistic::Starved, timer).max(sent))
        }
        Some(Limit::Application) => {
            let timer = shares.application;
            // A sender that keeps to a requested rate waits for it, whatever else it waits for.
            if timer < REQUESTED_TIME && s.reaches(Statistic::OfRequested, REQUESTED) {
                shares.application += std::mem::take(&mut shares.network);
                return shares;
            }
            (
                &mut shares.application,
                seen(Statistic::Starved, timer).max(seen(Statistic::ActivityIdle, timer)),
            )
        }
        _ => return shares,
    };
    let more = more.min(shares.network);
    *place += more;
    shares.network -= more;
    shares
}

fn of(stream: &Stream, from: f64, to: f64) -> Option<Shares> {
    let timer = |read: fn(&Sample) -> u64| {
        let curve = Curve::new(stream.sender.iter().map(|s| (s.t_s, read(s))));
        curve.slope(from, to).map(|us_a_second| (us_a_second / 1e6).clamp(0.0, 1.0))
    };
    let receive_window = timer(|s| s.rwnd_limited_us)?;
    let send_buffer = timer(|s| s.sndbuf_limited_us)?;
    Some(of_timers(receive_window, send_buffer, timer(|s| s.busy_us)?))
}

/// From the share of a second that each timer ran, 0 to 1.
fn of_timers(receive_window: f64, send_buffer: f64, busy: f64) -> Shares {
    let send_buffer = send_buffer.min(1.0 - receive_window);
    let busy = busy.max(receive_window + send_buffer);
    let network = busy - receive_window - send_buffer;
    Shares { application: 1.0 - busy, receive_window, send_buffer, network }
}

/// The shares of the time between two samples of one connection, which add up to
/// 1; `None` if no time passed. The timers' resolution is a jiffy (1 to 10 ms).
#[must_use]
pub fn shares_between(earlier: &Sample, later: &Sample) -> Option<Shares> {
    let seconds = later.t_s - earlier.t_s;
    let timer = |read: fn(&Sample) -> u64| {
        (read(later).saturating_sub(read(earlier)) as f64 / 1e6 / seconds).clamp(0.0, 1.0)
    };
    (seconds > 0.0).then(|| {
        of_timers(
            timer(|s| s.rwnd_limited_us),
            timer(|s| s.sndbuf_limited_us),
            timer(|s| s.busy_us),
        )
    })
}
