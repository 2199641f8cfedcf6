//! What the keys of a path set.

/// A setting of one direction, in the order in which settings apply and are
/// printed: a queue before its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Rate,
    Burst,
    /// `delay`, and `rtt` for both directions at once.
    Delay,
    Jitter,
    Overtake,
    Loss,
    Bursts,
    Blackhole,
    Reorder,
    Duplicate,
    Corrupt,
    WindowScale,
    /// `up.mtu` and `down.mtu`; without a prefix `mtu` is that of the devices.
    Mtu,
    Police,
    UdpPolice,
    UdpBlackhole,
    TcpPolice,
    TcpBlackhole,
    Queue,
    Limit,
    Mark,
    Target,
    Interval,
    Ecn,
    Flows,
    Quantum,
    Min,
    Max,
    Probability,
    Weight,
    Update,
    MaxBurst,
    Step,
    Coupling,
    ClassicShare,
}

/// What a key sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A setting of a direction.
    Direction(Key),
    /// The delay of both, half each.
    Rtt,
    /// The MTU of both hosts' devices.
    DeviceMtu,
    Overhead,
    Seed,
    Repeat,
}
