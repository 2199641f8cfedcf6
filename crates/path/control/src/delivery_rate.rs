//! Delivery-rate samples (draft-ietf-ccwg-bbr section 4.5; first
//! draft-cheng-iccrg-delivery-rate-estimation).

use crate::RateSample;
use units::Nanos;

/// The delivery state of a connection when packets were sent (the draft's `P.delivered`,
/// `P.delivered_time`, `P.first_send_time`, `P.is_app_limited`, `P.tx_in_flight`,
/// `P.lost`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliverySnapshot {
    delivered: u64,
    delivered_at: Nanos,
    first_sent: Nanos,
    app_limited: bool,
    in_flight: u64,
    lost: u64,
}

impl DeliverySnapshot {
    /// Whether the packets of `later` were sent in the same state: only their number was
    /// added to what is in flight.
    #[must_use]
    pub fn continues_in(&self, later: &DeliverySnapshot) -> bool {
        *self == DeliverySnapshot { in_flight: self.in_flight, ..*later }
    }
}

/// Packets sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentPackets {
    /// How many of them.
    pub packets: u64,
    /// When.
    pub sent: Nanos,
    /// Orders what was sent at the same time.
    pub order: (u64, u64),
    /// The delivery state when they were sent.
    pub snapshot: DeliverySnapshot,
}

/// The estimator of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryRate {
    delivered: u64,
    delivered_at: Nanos,
    lost: u64,
    first_sent: Nanos,
    /// Samples are application-limited until this many packets are delivered; zero: none.
    app_limited_until: u64,
    /// The sample in the making: the newest of what was delivered.
    newest: Option<SentPackets>,
    /// The last sample that is kept for reports: packets, ns, application-limited.
    reported: Option<RateSample>,
}

impl DeliveryRate {
    /// Packets delivered since the connection began.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The sample that Linux reports as `tcpi_delivery_rate`.
    #[must_use]
    pub const fn reported(&self) -> Option<RateSample> {
        self.reported
    }

    /// The state for packets sent now; `in_flight` without them, `packets` of them.
    pub fn on_send(&mut self, now: Nanos, in_flight: u64, packets: u64) -> DeliverySnapshot {
        if in_flight == 0 {
            // After a pause neither time counts.
            self.first_sent = now;
            self.delivered_at = now;
        }
        DeliverySnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > 0,
            in_flight: in_flight + packets,
            lost: self.lost,
        }
    }

    /// Nothing more to send, with room for it: samples are too low until what is in
    /// flight is delivered.
    pub fn set_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Packets were delivered.
    pub fn on_delivered(&mut self, now: Nanos, packets: &SentPackets) {
        self.delivered += packets.packets;
        self.delivered_at = now;
        let key = |sent: &SentPackets| (sent.snapshot.delivered, sent.order);
        if self.newest.is_none_or(|newest| key(packets) >= key(&newest)) {
            self.newest = Some(*packets);
            self.first_sent = packets.sent;
        }
    }

    /// Packets were detected as lost.
    pub const fn on_lost(&mut self, packets: u64) {
        self.lost += packets;
    }

    /// The sample of one acknowledgement, after all that it delivered and showed as lost.
    pub fn sample(&mut self, now: Nanos, min_rtt_ns: Option<u64>) -> Option<RateSample> {
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
            in_flight: snapshot.in_flight,
            lost: self.lost - snapshot.lost,
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
