//! A middlebox that removes the window scale option from the handshake: no window
//! exceeds its field of 16 bits, whatever the buffers.
//!
//! > goodput <= streams x 65,535 B / RTT (RFC 9293, section 3.1; RFC 7323, section 2)

use crate::{
    causes::{Cause, Observed},
    next_limit::NextLimit,
    phrases,
    predict::{self, Prediction},
};
use record::{Limit, Remedy};
use units::{ByteCount, Rtt};

/// The largest window without the option.
const LARGEST: ByteCount = ByteCount::from_bytes(65_535);

pub(super) struct WindowScaling;

impl Cause for WindowScaling {
    fn limit(&self) -> Limit {
        Limit::WindowScaling
    }

    fn noun(&self) -> &'static str {
        "an unscaled window"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let all = largest(o);
        let left = match o.e.streams {
            0 | 1 => "largest window without scaling / RTT = 65,535 B".to_owned(),
            n => format!("streams x largest window without scaling / RTT = {n} x 65,535 B"),
        };
        predict::over_rtt(&left, Some(all), o.e.min_rtt, o)
    }

    fn window(&self, o: &Observed<'_>) -> Option<(ByteCount, Rtt)> {
        Some(largest(o)).zip(o.e.min_rtt)
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let mut text =
            "Rwnd-limited without window scaling: no receive window exceeded 65,535 B".to_owned();
        if let Some(p) = self.prediction(o)
            && let Some(rtt) = o.e.min_rtt
        {
            text += &format!(", which over {rtt} allows at most {}", p.rate);
        }
        text += &format!(", and {}", o.arrived());
        let need = match phrases::needed(o.m, o.e) {
            Some((rate, window)) => {
                format!("; the path's {rate} needs {window}{}", phrases::for_each(o.e))
            }
            None => String::new(),
        };
        format!(
            "{text}{need}; check tcp_window_scaling on both hosts, then firewalls and proxies on \
             the path that strip the option (RFC 7323). Until then, use more streams (-P)."
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let most = phrases::at_most(self.prediction(o));
        format!(
            "rwnd-limited without window scaling (65,535 B){most}: a host or middlebox disables it"
        )
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let why = "each stream has a window of 65,535 B of its own";
        Vec::from_iter(next.streams_that_add_up(why))
    }
}

/// The largest windows of all streams.
fn largest(o: &Observed<'_>) -> ByteCount {
    LARGEST.times(o.e.streams.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::WindowScaling;
    use crate::{
        causes::Cause,
        example::{Example, sampled, samples},
    };
    use record::Limit;

    /// Linux chooses the scale by the buffer: one that was requested so small needs none.
    #[test]
    fn a_small_window_that_was_requested_is_no_missing_scale() {
        let mut m = sampled(samples(4.0, 20.0, |_, s| {
            (s.peer_window_bytes, s.in_flight_bytes) = (Some(50_000), 50_000);
            (s.peer_window_scale, s.rwnd_limited_us) = (Some(0), s.busy_us);
        }));
        assert_eq!(crate::explain(&m).limit, Some(Limit::WindowScaling));
        m.spec.window_bytes = Some(units::ByteCount::from_bytes(40_000));
        assert_eq!(crate::explain(&m).limit, Some(Limit::ReceiveWindow));
    }

    #[test]
    fn the_largest_unscaled_window_over_the_rtt() {
        let example = Example::new(6.5, 80.0).on_path(100);
        let p = WindowScaling.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps(), 65_535 * 8 * 1000 / 80, "{}", p.equation);
        let sentence = WindowScaling.sentence(&example.observed());
        for part in ["65,535 B", "over 80 ms allows at most 6.55 Mbit/s", "100 Mbit/s needs 1 MB"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        let remedies = example.remedies(&WindowScaling);
        assert_eq!(remedies[0].command.to_string(), "-P 8");
        assert_eq!(remedies[0].expects_bps, Some(units::BitRate::from_bps(52_000_000)));
        let unknown = Example::new(6.5, 80.0).remedies(&WindowScaling);
        assert_eq!(unknown[0].command.to_string(), "-P 8");
        assert!(unknown[0].expects_bps.is_none() && unknown[0].why.contains("rate is unknown"));
    }
}
