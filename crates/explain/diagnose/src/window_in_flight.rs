//! The window that a finding names as the limit, with its RTT.

use crate::{
    causes::{self, Observed},
    evidence::Evidence,
    facts::Facts,
    predict,
};
use model::WindowInFlight;
use record::{Finding, Measurement, Protocol};

/// The least share of window / RTT that arrives: below it, something else takes time as well.
const MIN_SHARE: f64 = 0.5;

/// The window, or the part of a buffer, that bounds the data in flight of all streams, and the RTT of
/// the finding's prediction.
///
/// `None` if the limit is no window, if the window or the RTT is unknown, and where the goodput is
/// far from window / RTT. `m` has one direction, and the finding is its own.
#[must_use]
pub fn window_in_flight(m: &Measurement, finding: &Finding) -> Option<WindowInFlight> {
    let cause = causes::of(finding.limit.filter(|_| m.spec.protocol == Protocol::Tcp)?);
    let facts = Facts::of(m);
    let e = Evidence::over(&facts, finding.steady.from_s, finding.steady.to_s);
    let o = Observed { m, facts, e: &e, shares: finding.shares };
    let (window, rtt) = cause.window(&o)?;
    let (window, rtt, rate) = predict::window_rate(Some(window), Some(rtt), &e)?;
    let is_all = finding.throughput_bps.as_f64() >= MIN_SHARE * rate.as_f64();
    is_all.then_some(WindowInFlight { window, rtt })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        explain,
    };
    use record::Limit;
    use units::{ByteCount, Rtt};

    /// 3.03 Mbit/s through a window of 64 KiB over 173 ms.
    fn limited() -> (Measurement, Finding) {
        let m = sampled(samples(10.0, 3.03, |_, s| {
            s.peer_window_bytes = Some(65_536);
            (s.rtt_us, s.min_rtt_us) = (173_000, Some(173_000));
            s.in_flight_bytes = 65_536;
        }));
        let finding = Finding { limit: Some(Limit::ReceiveWindow), ..explain(&m) };
        (m, finding)
    }

    #[test]
    fn it_is_the_window_of_the_prediction() {
        let (m, finding) = limited();
        let found = window_in_flight(&m, &finding).unwrap();
        assert_eq!(found.window, ByteCount::from_bytes(65_536));
        assert_eq!(found.rtt, Rtt::from_micros(173_000));
        let fixed = Finding { limit: Some(Limit::FixedWindow), ..finding.clone() };
        let window = window_in_flight(&m, &fixed).unwrap().window.as_f64();
        assert!((window / 65_536.0 - 1.0).abs() < 0.02, "{window}");
        let unscaled = Finding { limit: Some(Limit::WindowScaling), ..finding };
        assert_eq!(window_in_flight(&m, &unscaled).unwrap().window.bytes(), 65_535);
    }

    #[test]
    fn what_is_unknown_or_no_window_has_none() {
        let (m, finding) = limited();
        let with = |change: fn(&mut record::Sample)| {
            let mut m = m.clone();
            m.streams[0].sender.iter_mut().for_each(change);
            window_in_flight(&m, &finding)
        };
        assert!(with(|_| {}).is_some());
        assert_eq!(with(|s| (s.rtt_us, s.min_rtt_us) = (0, None)), None);
        assert_eq!(with(|s| s.peer_window_bytes = None), None);
        // Windows far above the data in flight are not the limit.
        assert_eq!(with(|s| s.peer_window_bytes = Some(1 << 20)), None);
        let mut udp = m.clone();
        udp.spec.protocol = Protocol::Udp;
        assert_eq!(window_in_flight(&udp, &finding), None);
        for limit in [None, Some(Limit::Loss), Some(Limit::SlowReceiver), Some(Limit::PathRate)] {
            assert_eq!(window_in_flight(&m, &Finding { limit, ..finding.clone() }), None);
        }
    }
}
