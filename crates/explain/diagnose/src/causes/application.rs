//! The sending application writes less than the network could send, or sends at a
//! requested rate.
//!
//! > goodput = rate requested with `-b`

use crate::{
    causes::{Cause, Observed},
    facts::HELD,
    next_limit::NextLimit,
    predict::Prediction,
};
use record::{Activity, Limit, Remedy};
use units::{BitRate, ByteCount, percent};

pub(super) struct Application;

impl Cause for Application {
    fn limit(&self) -> Limit {
        Limit::Application
    }

    fn noun(&self) -> &'static str {
        "the sending application"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let (each, rate) = (o.m.spec.rate_bps?, o.facts.requested_rate?);
        let equation = match o.m.streams.len() {
            0 | 1 => format!("requested rate = {rate} of TCP payload"),
            n => format!("streams x requested rate = {n} x {each} = {rate} of TCP payload"),
        };
        Some(Prediction { rate, equation })
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let idle = o.shares.unwrap_or_default().application;
        if !o.facts.reached_requested_rate(o.e)
            && let Some(sentence) = o.facts.disk_limited(o.e)
        {
            return sentence;
        }
        match o.facts.requested_rate {
            Some(requested) if o.facts.reached_requested_rate(o.e) => format!(
                "Application-limited: the test was limited to {requested} (-b), and {}; \
                 raise -b or omit it.",
                o.arrived()
            ),
            _ if o.facts.is_mostly_idle() && o.facts.activity().is_some() => format!(
                "Application-limited: {}. Network tuning will not help.",
                o.facts.activity().map(|it| activity(&it, o)).unwrap_or_default()
            ),
            _ if idle >= HELD => format!(
                "Application-limited {} of the time: the sending application wrote only {}. Use a \
                 faster source; network tuning will not help.",
                percent(idle),
                o.e.goodput
            ),
            _ => format!(
                "Application-limited: the sending application wrote only {}, with no unsent data \
                 in its buffer and the congestion window not full. Use a faster source; network \
                 tuning will not help.",
                o.e.goodput
            ),
        }
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let idle = o.shares.unwrap_or_default().application;
        if let Some(found) = o.facts.activity().filter(|_| o.facts.is_mostly_idle()) {
            format!("application-limited: {}", activity(&found, o))
        } else if idle >= HELD {
            format!("application-limited: nothing to send {} of the time", percent(idle))
        } else {
            "application-limited: the application writes less than the network could send"
                .to_owned()
        }
    }

    /// Without the requested rate, if there is one.
    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        Vec::from_iter(next.unpaced())
    }
}

/// Thinking that takes less time is not mentioned, in seconds.
const THINKS_S: f64 = 0.01;

/// A rate while sending is mentioned from this ratio to the average on.
const FASTER: f64 = 1.2;

/// The activity of the applications, as their packets show it.
fn activity(found: &Activity, o: &Observed<'_>) -> String {
    let Activity { bursts, responses, .. } = *found;
    let mut parts = vec![format!("nothing to send {} of the time", percent(found.idle_share))];
    let burst = ByteCount::from_bytes(found.burst_bytes).decimal();
    let think = |seconds: Option<f64>| seconds.filter(|s| *s >= THINKS_S).map(duration);
    if responses > 0 && 2 * responses >= bursts {
        let all =
            if responses == 1 { "1 response".to_owned() } else { format!("{responses} responses") };
        parts.push(format!("{all} of {burst}"));
        if let Some(time) = think(found.sender_think_s) {
            parts.push(format!("the sender took {time} to answer"));
        }
        if let Some(time) = think(found.receiver_think_s) {
            parts.push(format!("the receiver took {time} to ask again"));
        }
    } else if let Some(period) = found.burst_period_s {
        parts.push(format!("{bursts} bursts of {burst}, one every {}", duration(period)));
    } else if bursts > 1 {
        parts.push(format!("{bursts} bursts of {burst}"));
    }
    let sending = BitRate::from_bps_f64(found.sending_bps);
    if found.sending_bps > FASTER * o.e.average.as_f64() && sending > BitRate::ZERO {
        parts.push(format!("{sending} while it was sending"));
    }
    parts.join(", ")
}

/// `3.04 s`, `50 ms`.
fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{} ms", units::significant(seconds * 1e3, 3))
    } else {
        format!("{} s", units::significant(seconds, 3))
    }
}

#[cfg(test)]
mod tests {
    use super::Application;
    use crate::{causes::Cause, example::Example};
    use record::Sample;
    use units::BitRate;

    #[test]
    fn a_file_is_limited_by_its_disk() {
        let mut example = Example::new(19.9, 50.0).on_path(100);
        assert!(Application.sentence(&example.observed()).starts_with("Application-limited"));
        let sample = |t_s: u32| Sample {
            t_s: f64::from(t_s),
            source_bytes: Some(u64::from(t_s) * 2_500_000),
            ..Sample::default()
        };
        example.m.streams[0].sender = (0..5).map(sample).collect();
        let sentence = Application.sentence(&example.observed());
        assert!(sentence.starts_with("Disk-limited: the file was read at 20 Mbit/s"), "{sentence}");
    }

    #[test]
    fn a_requested_rate_is_the_prediction_of_all_streams() {
        let mut example = Example::new(19.9, 50.0).on_path(100);
        assert_eq!(Application.prediction(&example.observed()), None);
        assert!(example.remedies(&Application).is_empty());
        example.m.spec.rate_bps = Some(BitRate::from_bps(10_000_000));
        example.m.streams.push(example.m.streams[0].clone());
        let p = Application.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps(), 20_000_000, "{}", p.equation);
        assert_eq!(example.remedies(&Application)[0].command.to_string(), "no -b");
    }
}
