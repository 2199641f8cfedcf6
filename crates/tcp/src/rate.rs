//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation).

use crate::scoreboard::Transmission;
use control::RateSample;
use units::Nanos;

/// The delivery state of a connection when packets were sent (the draft's `P.delivered`,
/// `P.delivered_time`, `P.first_sent_time`, `P.is_app_limited`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_at: Nanos,
    first_sent: Nanos,
    app_limited: bool,
}

/// The estimator of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RateEstimator {
    delivered: u64,
    delivered_at: Nanos,
    first_sent: Nanos,
    /// Samples are application-limited until this many packets are delivered; zero: none.
    app_limited_until: u64,
    /// The sample in the making: the newest transmission delivered.
    newest: Option<Transmission>,
    /// The last sample that is kept for reports: packets, ns, application-limited.
    reported: Option<RateSample>,
}

impl RateEstimator {
    /// Packets delivered since the connection began.
    pub(crate) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The sample that Linux reports as `tcpi_delivery_rate`.
    pub(crate) const fn reported(&self) -> Option<RateSample> {
        self.reported
    }

    /// The state for packets sent now.
    pub(crate) fn on_send(&mut self, now: Nanos, in_flight: u64) -> Snapshot {
        if in_flight == 0 {
            // After a pause neither time counts.
            self.first_sent = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// Nothing more to send, with room for it: samples are too low until what is in
    /// flight is delivered.
    pub(crate) fn set_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Packets were delivered.
    pub(crate) fn on_delivered(&mut self, now: Nanos, transmission: &Transmission) {
        self.delivered += transmission.run.len();
        self.delivered_at = now;
        let is_newer = self.newest.is_none_or(|newest| {
            let key = |t: &Transmission| (t.snapshot.delivered, t.order, t.run.end);
            key(transmission) >= key(&newest)
        });
        if is_newer {
            self.newest = Some(*transmission);
            self.first_sent = transmission.sent;
        }
    }

    /// The sample of one acknowledgement, after all that it delivered.
    pub(crate) fn sample(&mut self, now: Nanos, min_rtt_ns: Option<u64>) -> Option<RateSample> {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = self.newest.take()?;
        let snapshot = newest.snapshot;
        let sending = newest.sent.nanos_since(snapshot.first_sent);
        let acking = now.nanos_since(snapshot.delivered_at);
        let interval = sending.max(acking);
        // Shorter than the minimum RTT: a retransmission whose original was delivered.
        let is_valid = min_rtt_ns.is_none_or(|least| interval >= least);
        let sample = RateSample {
            delivered: self.delivered - snapshot.delivered,
            prior_delivered: snapshot.delivered,
            interval_ns: if is_valid { interval } else { 0 },
            app_limited: snapshot.app_limited,
        };
        let is_reported = sample.interval_ns > 0
            && (!sample.app_limited
                || self.reported.is_none_or(|kept| {
                    u128::from(sample.delivered) * u128::from(kept.interval_ns)
                        >= u128::from(kept.delivered) * u128::from(sample.interval_ns)
                }));
        if is_reported {
            self.reported = Some(sample);
        }
        Some(sample)
    }
}
