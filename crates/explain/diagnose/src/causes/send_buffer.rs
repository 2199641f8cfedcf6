//! The send buffer: all that it holds is in flight, and the application cannot write more.
//!
//! > goodput <= bytes held / RTT
//!
//! Of what it holds, a part may be unsent, as a control that paces leaves it, and a blocked writer
//! fills it again only when a third is free: the prediction takes what was in flight.

use crate::{
    causes::{Cause, Observed},
    facts::HELD,
    next_limit::{NextLimit, Side},
    phrases,
    predict::{self, Prediction},
};
use record::{Limit, Remedy};
use units::{ByteCount, Rtt, percent};

pub(super) struct SendBuffer;

impl Cause for SendBuffer {
    fn limit(&self) -> Limit {
        Limit::SendBuffer
    }

    fn noun(&self) -> &'static str {
        "the send buffer"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let (held, sent) = (o.e.held?, sent(o));
        let left = match sent {
            Some(sent) => format!("part of the send buffer in flight / RTT = {sent}"),
            None => format!("send buffer / RTT = {held}"),
        };
        predict::over_rtt(&left, sent.or(Some(held)), o.e.rtt(), o)
    }

    fn window(&self, o: &Observed<'_>) -> Option<(ByteCount, Rtt)> {
        sent(o).or(o.e.held).zip(o.e.rtt())
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let share = o.shares.unwrap_or_default().send_buffer;
        let mut text = if share >= HELD {
            format!("Sndbuf-limited {} of the time", percent(share))
        } else {
            // The kernel's timer missed it.
            "Sndbuf-limited: all buffered data was sent, and the congestion window was not full"
                .to_owned()
        };
        if let Some((held, rtt, most)) = predict::window_rate(o.e.held, o.e.min_rtt, o.e) {
            text += &format!(": {held} of buffered data over {rtt} allows at most {most}");
        }
        let remedy = if o.m.spec.window_bytes.is_some() {
            "use a larger -w"
        } else {
            "raise tcp_wmem on the sender"
        };
        match phrases::needed(o.m, o.e) {
            Some((rate, window)) => {
                let each = phrases::for_each(o.e);
                format!("{text}; the path's {rate} needs {window} in flight{each}: {remedy}.")
            }
            None => format!("{text}; {remedy}."),
        }
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!(
            "sndbuf-limited {} of the time{}{}: tcp_wmem here, or the application's SO_SNDBUF",
            percent(o.shares.unwrap_or_default().send_buffer),
            phrases::over_rtt(o.e.held, o.e),
            phrases::at_most(self.prediction(o)),
        )
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        next.buffers(Side::Sender, Side::Receiver)
    }
}

/// The part of the send buffer in flight, where it is not all of it.
fn sent(o: &Observed<'_>) -> Option<ByteCount> {
    let held = o.e.held?;
    o.e.in_flight.filter(|sent| *sent > ByteCount::ZERO && *sent < held)
}

#[cfg(test)]
mod tests {
    use super::SendBuffer;
    use crate::{
        causes::Cause,
        example::{Example, sampled, samples},
    };
    use record::Limit;
    use units::ByteCount;

    /// 50 kB in flight over 20 ms, of a congestion window of 100 kB.
    #[test]
    fn a_buffer_that_bbr_has_mostly_sent_is_the_limit() {
        let of = |unsent: u64| {
            let mut m = sampled(samples(4.0, 20.0, |_, s| {
                (s.in_flight_bytes, s.unsent_bytes) = (50_000, unsent);
            }));
            m.streams[0].congestion = Some("bbr".to_owned());
            crate::explain(&m).limit
        };
        assert_eq!(of(5_000), Some(Limit::SendBuffer));
        assert_ne!(of(100_000), Some(Limit::SendBuffer), "it has more to send");
    }

    #[test]
    fn a_buffer_that_is_all_in_flight_is_the_limit_at_a_remote_sender() {
        let mut m = sampled(samples(20.0, 26.0, |_, s| {
            (s.in_flight_bytes, s.unsent_bytes) = (68_000, 0);
            (s.cwnd_bytes, s.delivery_app_limited) = (230_000, true);
        }));
        m.streams[0].congestion = Some("bbr".to_owned());
        m.streams[0].reverse = true;
        m.spec.direction = record::Direction::Reverse;
        let found = crate::explain(&m);
        assert_eq!(found.limit, Some(Limit::SendBuffer), "{found:?}");
    }

    #[test]
    fn the_buffer_over_the_rtt_is_the_prediction() {
        let mut example = Example::new(48.0, 173.0).on_path(100);
        example.e.held = Some(ByteCount::from_bytes(1 << 20));
        let p = SendBuffer.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps() / 1000, 48_489, "{}", p.equation);
        let remedies = example.remedies(&SendBuffer);
        assert!(remedies[0].command.to_string().contains("tcp_wmem"), "{remedies:?}");
        example.e.in_flight = Some(ByteCount::from_bytes(900_000));
        let p = SendBuffer.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps() / 1000, 41_618, "{}", p.equation);
        // With buffers fixed by -w, the sysctl would change nothing.
        example.m.spec.window_bytes = Some(ByteCount::from_bytes(1 << 20));
        assert!(SendBuffer.sentence(&example.observed()).ends_with("use a larger -w."));
        assert!(example.remedies(&SendBuffer)[0].command.to_string().starts_with("-w "));
    }
}
