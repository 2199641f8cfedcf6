//! The receive window: the sender waits for the window that the receiver advertised.
//!
//! > goodput <= window / RTT (RFC 7323, section 1.1)

use crate::{
    causes::{Cause, Observed},
    next_limit::{NextLimit, Side},
    phrases,
    predict::{self, Prediction},
};
use record::{Limit, Remedy};
use units::{ByteCount, Rtt, percent};

pub(super) struct ReceiveWindow;

impl Cause for ReceiveWindow {
    fn limit(&self) -> Limit {
        Limit::ReceiveWindow
    }

    fn noun(&self) -> &'static str {
        "the receive window"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let (windows, sum) = (o.e.windows.as_ref()?, o.e.window_sum()?);
        let left = match windows.as_slice() {
            [one] => format!("window / RTT = {one}"),
            [first, rest @ ..] if rest.iter().all(|window| window == first) => {
                format!("streams x window / RTT = {} x {first}", windows.len())
            }
            _ => format!("windows / RTT = {sum} over {} streams", windows.len()),
        };
        predict::over_rtt(&left, Some(sum), o.e.rtt(), o)
    }

    fn window(&self, o: &Observed<'_>) -> Option<(ByteCount, Rtt)> {
        o.e.window_sum().zip(o.e.rtt())
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let e = o.e;
        let mut text = match o.shares {
            Some(shares) => format!("Rwnd-limited {} of the time", percent(shares.receive_window)),
            None => format!("Rwnd-limited, as seen by the receiver: {}", o.arrived()),
        };
        if let Some((sum, rtt, most)) = predict::window_rate(e.window_sum(), e.min_rtt, e) {
            text += &if e.streams > 1 {
                format!(
                    ": {} receive windows of {sum} in total over {rtt} allow at most {most}",
                    e.streams
                )
            } else {
                format!(": a receive window of {sum} over {rtt} allows at most {most}")
            };
        }
        let remedy = if o.m.spec.window_bytes.is_some() {
            "use a larger -w"
        } else {
            "raise tcp_rmem on the receiver"
        };
        match phrases::needed(o.m, e) {
            Some((rate, window)) => {
                let each = phrases::for_each(e);
                format!("{text}; the path's {rate} needs a window of {window}{each}: {remedy}.")
            }
            None => format!("{text}; {remedy}."),
        }
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let window = phrases::over_rtt(o.e.window_sum(), o.e);
        let most = phrases::at_most(self.prediction(o));
        match o.shares {
            Some(shares) => format!(
                "rwnd-limited {} of the time{window}{most}: tcp_rmem of the receiver, or a slow receiving application",
                percent(shares.receive_window),
            ),
            None => format!("rwnd-limited by this host{window}{most}: raise tcp_rmem here"),
        }
    }

    /// A larger buffer of the receiver. With `-w`, a larger one: the `net.core` limits of
    /// both hosts bound it, so nothing is promised.
    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        next.buffers(Side::Receiver, Side::Sender)
    }
}

#[cfg(test)]
mod tests {
    use super::ReceiveWindow;
    use crate::{causes::Cause, example::Example};
    use record::Shares;
    use units::ByteCount;

    fn small() -> Example {
        let mut example = Example::new(3.03, 173.0);
        example.e.windows = Some(vec![ByteCount::from_bytes(64 << 10)]);
        example.shares = Some(Shares { receive_window: 0.97, network: 0.03, ..Shares::default() });
        example
    }

    #[test]
    fn the_window_over_the_rtt_is_the_prediction() {
        let example = small();
        let p = ReceiveWindow.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps(), 3_030_566, "{}", p.equation);
        let remedies = example.on_path(100).remedies(&ReceiveWindow);
        assert!(remedies[0].command.to_string().contains("tcp_rmem"), "{remedies:?}");
    }

    #[test]
    fn unequal_windows_are_summed() {
        let mut example = small();
        example.e.windows = Some(vec![ByteCount::from_bytes(40_000), ByteCount::from_bytes(9_000)]);
        example.e.streams = 2;
        let p = ReceiveWindow.prediction(&example.observed()).unwrap();
        assert!(p.equation.starts_with("windows / RTT = 49 kB over 2 streams"), "{}", p.equation);
    }
}
