//! The pairs of causes that a second test tells apart.

use super::{DecidingTest, Rule};
use record::Limit;

/// Pairs of causes: one of the first list if the rule holds, else one of the second.
pub(super) struct Row {
    pub(super) if_so: &'static [Limit],
    pub(super) otherwise: &'static [Limit],
    pub(super) test: DecidingTest,
    pub(super) rule: Rule,
    pub(super) reason: &'static str,
}

const RANDOM_LOSS: &[Limit] = &[Limit::Loss, Limit::ClusteredLoss];

/// A bottleneck that this flow saturates alone.
const OWN_BOTTLENECK: &[Limit] = &[Limit::PathRate, Limit::Aqm];

/// Pairs of [`TABLE`] that UDP tells apart, and how TCP does where a test has nothing else: in a
/// browser.
pub(super) const OVER_TCP: &[Row] = &[Row {
    if_so: RANDOM_LOSS,
    otherwise: &[Limit::ShallowQueue, Limit::Policer],
    test: DecidingTest::Paced,
    rule: Rule::RetransmitsAsMuch,
    reason: "paced below the rate of delivery, segments overflow neither a queue nor a token bucket, \
             but random loss remains",
}];

pub(super) const TABLE: &[Row] = &[
    Row {
        if_so: RANDOM_LOSS,
        otherwise: OWN_BOTTLENECK,
        test: DecidingTest::Bbr,
        rule: Rule::Gains { from: 1.5, up_to: 1.15 },
        reason: "BBR does not slow down after a single loss, but a saturated bottleneck carries no \
                 more with BBR",
    },
    Row {
        if_so: RANDOM_LOSS,
        otherwise: &[Limit::ShallowQueue, Limit::Policer, Limit::AckPath],
        test: DecidingTest::UdpBelow,
        rule: Rule::LosesAsMuch,
        reason: "at half the rate neither a queue nor a token bucket overflows, and datagrams are \
                 not acknowledged, but random loss remains",
    },
    Row {
        if_so: &[Limit::ClusteredLoss],
        otherwise: &[Limit::Loss],
        test: DecidingTest::UdpBelow,
        rule: Rule::LosesInRuns { from: 1.5, up_to: 1.2 },
        reason: "the UDP receiver counts consecutive losses",
    },
    Row {
        if_so: &[Limit::Reordering],
        otherwise: RANDOM_LOSS,
        test: DecidingTest::UdpBelow,
        rule: Rule::ReordersAsMuch,
        reason: "the UDP receiver counts late and lost datagrams separately",
    },
    Row {
        if_so: &[Limit::Policer],
        otherwise: OWN_BOTTLENECK,
        test: DecidingTest::Bbr,
        rule: Rule::Retransmits { from: 0.02, up_to: 0.005 },
        reason: "BBR probes above the bottleneck's rate: a queue holds these packets, a policer \
                 drops them",
    },
    Row {
        if_so: &[Limit::ShallowQueue],
        otherwise: OWN_BOTTLENECK,
        test: DecidingTest::Bbr,
        rule: Rule::Gains { from: 1.15, up_to: 1.05 },
        reason: "BBR keeps a link busy without a queue; a link that is already busy carries no \
                 more",
    },
    Row {
        if_so: &[
            Limit::ReceiveWindow,
            Limit::WindowScaling,
            Limit::SendBuffer,
            Limit::Pacing,
            Limit::CongestionAvoidance,
        ],
        otherwise: OWN_BOTTLENECK,
        test: DecidingTest::Streams,
        rule: Rule::Gains { from: 1.5, up_to: 1.15 },
        reason: "each stream has windows, buffers and a pacing rate of its own; a saturated \
                 bottleneck carries no more",
    },
    Row {
        if_so: &[Limit::ReceiveWindow, Limit::WindowScaling, Limit::SendBuffer, Limit::Pacing],
        otherwise: &[Limit::Policer, Limit::SlowReceiver, Limit::Application],
        test: DecidingTest::Streams,
        rule: Rule::Gains { from: 1.5, up_to: 1.15 },
        reason: "each stream has windows, buffers and a pacing rate of its own; a policer or an \
                 application limits their sum",
    },
    Row {
        if_so: &[Limit::SharedBottleneck],
        otherwise: &[Limit::PathRate, Limit::Aqm, Limit::Policer],
        test: DecidingTest::Streams,
        rule: Rule::Gains { from: 1.25, up_to: 1.1 },
        reason: "more streams take a larger share from other traffic; without such traffic they \
                 gain nothing",
    },
    Row {
        if_so: &[Limit::Cpu],
        otherwise: &[Limit::PathRate, Limit::Aqm, Limit::Policer],
        test: DecidingTest::Streams,
        rule: Rule::Gains { from: 1.25, up_to: 1.1 },
        reason: "each stream has a thread of its own; a saturated bottleneck carries no more",
    },
    Row {
        if_so: &[Limit::Memory],
        otherwise: &[Limit::Cpu, Limit::PathRate, Limit::ReceiveWindow],
        test: DecidingTest::SmallBuffers,
        rule: Rule::Gains { from: 1.2, up_to: 1.05 },
        reason: "smaller buffers keep the data in the CPU's caches; they remedy no other limit",
    },
    Row {
        if_so: &[Limit::PacingTimers],
        otherwise: &[Limit::Cpu, Limit::Memory, Limit::PathRate, Limit::CongestionAvoidance],
        test: DecidingTest::Cubic,
        rule: Rule::Gains { from: 1.2, up_to: 1.05 },
        reason: "CUBIC sends without timers; otherwise a segment costs the same",
    },
    Row {
        if_so: &[Limit::CongestionAvoidance],
        otherwise: &[
            Limit::Loss,
            Limit::ClusteredLoss,
            Limit::ShallowQueue,
            Limit::Policer,
            Limit::SharedBottleneck,
            Limit::Reordering,
            Limit::EcnMarks,
        ],
        test: DecidingTest::Longer,
        rule: Rule::Gains { from: 1.25, up_to: 1.1 },
        reason: "after a single overshoot the window grows back with time; recurring losses or \
                 marks keep it small",
    },
    Row {
        if_so: &[Limit::Ramp],
        otherwise: &[
            Limit::ReceiveWindow,
            Limit::WindowScaling,
            Limit::SlowReceiver,
            Limit::SendBuffer,
            Limit::Application,
            Limit::Pacing,
            Limit::Cpu,
            Limit::PathRate,
            Limit::ShallowQueue,
            Limit::Aqm,
            Limit::SharedBottleneck,
            Limit::Policer,
            Limit::Loss,
            Limit::ClusteredLoss,
        ],
        test: DecidingTest::Longer,
        rule: Rule::Gains { from: 1.25, up_to: 1.1 },
        reason: "a ramp-up ends with time; a limit remains",
    },
    Row {
        if_so: &[Limit::AckPath],
        otherwise: &[Limit::PathRate, Limit::Aqm, Limit::Policer, Limit::CongestionAvoidance],
        test: DecidingTest::UdpAbove,
        rule: Rule::Gains { from: 1.25, up_to: 1.1 },
        reason: "datagrams need no acknowledgements; a bottleneck in the data direction drops the \
                 excess",
    },
];
