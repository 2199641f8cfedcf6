//! What a connection is like now, for whoever reports it.

use super::Connection;
use crate::receiver::ReceiveCounters;
use crate::sender::{SendCounters, SendLimit};
use control::{CongestionControl, RateSample, ReceiverReport};
use units::{Nanos, Rtt};

/// What a connection is like now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// Name of the congestion control.
    pub algorithm: &'static str,
    /// Smoothed RTT, once there was a sample.
    pub rtt: Option<Rtt>,
    /// Variance of the RTT.
    pub rtt_variance: Rtt,
    /// Time between two packets sent, ns.
    pub period_ns: f64,
    /// Congestion window, packets.
    pub cwnd: u64,
    /// The receiver's free buffer, packets.
    pub flow_window: u64,
    /// Packets in flight.
    pub in_flight: u64,
    /// Packets written and not yet sent.
    pub unsent: u64,
    /// Packets acknowledged.
    pub acknowledged: u64,
    /// Arrival rate and capacity as the receiver of our data reports them.
    pub reported: ReceiverReport,
    /// What keeps the next packet from being sent.
    pub limit: Option<SendLimit>,
    /// What the sending half counts.
    pub sent: SendCounters,
    /// What the receiving half counts.
    pub received: ReceiveCounters,
    /// Delivery rate of the last sample (native mode).
    pub delivery: Option<RateSample>,
    /// One-way delay to the peer above the least (native mode).
    pub queueing: Option<Rtt>,
}

impl Statistics {
    /// Of a connection that is not open.
    pub(crate) fn before(algorithm: &'static str) -> Self {
        Statistics {
            algorithm,
            rtt: None,
            rtt_variance: Rtt::from_nanos(0),
            period_ns: 0.0,
            cwnd: 0,
            flow_window: 0,
            in_flight: 0,
            unsent: 0,
            acknowledged: 0,
            reported: ReceiverReport::default(),
            limit: None,
            sent: SendCounters::default(),
            received: ReceiveCounters::default(),
            delivery: None,
            queueing: None,
        }
    }
}

impl Connection {
    /// Its state.
    #[must_use]
    pub fn statistics(&self, now: Nanos) -> Statistics {
        Statistics {
            algorithm: self.config.algorithm.name(),
            rtt: self.rtt.sampled_ns().map(Rtt::from_nanos),
            rtt_variance: Rtt::from_nanos(self.rtt.variance_ns()),
            period_ns: self.sender.period_ns(&self.rtt),
            cwnd: self.sender.controller().cwnd(),
            flow_window: self.sender.window(),
            in_flight: self.sender.in_flight(),
            unsent: self.sender.unsent(),
            acknowledged: self.sender.acknowledged(),
            reported: self.rates.report(),
            limit: self.sender.limit(now),
            sent: self.sender.counters(),
            received: self.receiver.counters(),
            delivery: None,
            queueing: None,
        }
    }
}
