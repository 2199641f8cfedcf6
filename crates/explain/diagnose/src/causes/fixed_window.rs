//! A fixed window: the bytes in flight grow to one value and stay there, without losses and
//! without a queue. A receive window or a send buffer bounds them; a file without either cannot
//! tell which.

use crate::{
    causes::{Cause, Observed},
    fixed_window::{HALF_OF_DEFAULT, NEAR},
    next_limit::{NextLimit, Side},
    phrases, predict,
};
use record::{Limit, Remedy};
use units::{ByteCount, Rtt};

pub(super) struct FixedWindow;

impl Cause for FixedWindow {
    fn limit(&self) -> Limit {
        Limit::FixedWindow
    }

    fn noun(&self) -> &'static str {
        "a fixed window"
    }

    fn window(&self, o: &Observed<'_>) -> Option<(ByteCount, Rtt)> {
        let rtt = o.e.loaded_rtt.or(o.e.min_rtt)?;
        Some((model::bdp(o.e.goodput, rtt), rtt))
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let Some((window, rtt)) = in_flight(o) else {
            return "A fixed window limits the transfer: the receive window or the send buffer; \
                    raise tcp_rmem on the receiver and tcp_wmem on the sender."
                .to_owned();
        };
        let default = (window.as_f64() / HALF_OF_DEFAULT - 1.0).abs() <= NEAR;
        let default =
            if default { ", half of Linux's default tcp_rmem maximum of 6 MiB," } else { "" };
        let needed = phrases::needed(o.m, o.e).map_or(String::new(), |(rate, window)| {
            format!("; the path's {rate} needs {window}{}", phrases::for_each(o.e))
        });
        format!(
            "A fixed window of {window}{}{default} limits the transfer: that much is in flight per \
             round trip ({rtt}), without loss or queueing delay, at {}. It is the receive window \
             or the send buffer; these figures cannot tell which{needed}: raise tcp_rmem on the \
             receiver and tcp_wmem on the sender, or -w if it was set.",
            phrases::for_each(o.e),
            o.e.goodput
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let window = in_flight(o).map_or(String::new(), |(window, _)| format!(" of {window}"));
        format!("a fixed window{window}: tcp_rmem on the receiver, or tcp_wmem on the sender")
    }

    /// Larger buffers of both hosts.
    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        next.buffers(Side::Receiver, Side::Sender)
    }
}

/// Bytes in flight of each stream, over the RTT under load.
fn in_flight(o: &Observed<'_>) -> Option<(ByteCount, Rtt)> {
    let (window, rtt) = FixedWindow.window(o)?;
    let (all, rtt, _) = predict::window_rate(Some(window), Some(rtt), o.e)?;
    Some((ByteCount::from_bytes(all.bytes() / o.e.streams.max(1) as u64), rtt))
}

#[cfg(test)]
mod tests {
    use super::FixedWindow;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn the_window_is_what_is_in_flight() {
        let sentence = FixedWindow.sentence(&Example::new(85.0, 296.0).observed());
        assert!(sentence.starts_with(
            "A fixed window of 3.15 MB, half of Linux's default tcp_rmem maximum of 6 MiB, limits"
        ), "{sentence}");
        assert!(sentence.contains("tcp_rmem on the receiver and tcp_wmem on the sender"));
        let other = FixedWindow.sentence(&Example::new(40.0, 100.0).observed());
        assert!(other.starts_with("A fixed window of 500 kB limits"), "{other}");
    }
}
