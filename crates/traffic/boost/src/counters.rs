//! Counters of a box, which its threads share.

use lane::{Refusal, Uncompressed};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A counter, or a gauge.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Takes back what was added.
    pub(crate) fn subtract(&self, less: usize) {
        self.0.fetch_sub(u64::try_from(less).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a connection was not boosted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotBoosted {
    /// The target refused it, or the policy of far did.
    Target(Refusal),
    /// Its request is none, or asks for what a box does not do, such as UDP.
    Request,
    /// Its request did not arrive in time.
    Slow,
    /// Too many connections had no request yet.
    HalfOpen,
    /// The box has as many flows as it may.
    MaxFlows,
    /// The application's address has as many flows as it may.
    AddressShare,
}

impl NotBoosted {
    /// All reasons.
    pub const ALL: [NotBoosted; 11] = [
        NotBoosted::Target(Refusal::Refused),
        NotBoosted::Target(Refusal::Unreachable),
        NotBoosted::Target(Refusal::TimedOut),
        NotBoosted::Target(Refusal::NameNotFound),
        NotBoosted::Target(Refusal::NotAllowed),
        NotBoosted::Target(Refusal::Busy),
        NotBoosted::Request,
        NotBoosted::Slow,
        NotBoosted::HalfOpen,
        NotBoosted::MaxFlows,
        NotBoosted::AddressShare,
    ];

    /// The name in metrics and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NotBoosted::Target(Refusal::Refused) => "target_refused",
            NotBoosted::Target(Refusal::Unreachable) => "target_unreachable",
            NotBoosted::Target(Refusal::TimedOut) => "target_timed_out",
            NotBoosted::Target(Refusal::NameNotFound) => "name_not_found",
            NotBoosted::Target(Refusal::NotAllowed) => "not_allowed",
            NotBoosted::Target(Refusal::Busy) => "far_busy",
            NotBoosted::Request => "request",
            NotBoosted::Slow => "slow",
            NotBoosted::HalfOpen => "half_open",
            NotBoosted::MaxFlows => "max_flows",
            NotBoosted::AddressShare => "address_share",
        }
    }
}

/// The counters of a box.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) flows: Counter,
    pub(crate) active_flows: Counter,
    refused: Counter,
    not_boosted: [Counter; NotBoosted::ALL.len()],
    udp_refused: AtomicU64,
    pub(crate) reset: Counter,
    pub(crate) lanes: Counter,
    pub(crate) active_lanes: Counter,
    pub(crate) reused: Counter,
    pub(crate) to_lane: Counter,
    pub(crate) to_local: Counter,
    pub(crate) wan_sent: Counter,
    pub(crate) wan_received: Counter,
    pub(crate) pipes: Counter,
    pub(crate) to_compress: Counter,
    pub(crate) compressed: Counter,
    pub(crate) to_decompress: Counter,
    pub(crate) decompressed: Counter,
    encrypted: Counter,
    incompressible: Counter,
    cpu_limited: Counter,
    /// In µs.
    saved: AtomicU64,
}

/// What a box has carried so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows that began.
    pub flows: u64,
    /// Flows that have not ended.
    pub active_flows: u64,
    /// Flows that were refused, by far or here.
    pub refused: u64,
    /// The same by reason, in the order of [`NotBoosted::ALL`].
    pub not_boosted: [u64; NotBoosted::ALL.len()],
    /// UDP datagrams of the program that its network has refused.
    pub udp_refused: u64,
    /// Flows that ended with an RST.
    pub reset: u64,
    /// Connections between the boxes that began.
    pub lanes: u64,
    /// Connections between the boxes that are open.
    pub active_lanes: u64,
    /// Flows on a lane that had carried another one.
    pub reused: u64,
    /// Bytes from applications (near) or targets (far).
    pub bytes_in: u64,
    /// Bytes to them.
    pub bytes_out: u64,
    /// Bytes sent to the other box, with headers and encryption, without those of TCP and IP.
    pub wan_sent: u64,
    /// Bytes received from the other box.
    pub wan_received: u64,
    /// Pipes in use or kept for use.
    pub pipes: u64,
    /// Bytes of applications or targets that were sent compressed.
    pub compressed_in: u64,
    /// The same on their way to the other box.
    pub compressed_sent: u64,
    /// Bytes of the other box that arrived compressed.
    pub compressed_received: u64,
    /// The same for applications or targets.
    pub compressed_out: u64,
    /// Flows whose direction from this box was not compressed at their end, though both boxes
    /// compress.
    pub uncompressed: UncompressedFlows,
    /// Near: time that flows which ended in order were spared, at least.
    pub saved: Duration,
}

/// Flows that were left uncompressed, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UncompressedFlows {
    /// TLS or SSH.
    pub encrypted: u64,
    /// Data that gains under 5 %.
    pub incompressible: u64,
    /// Flows that compressing would have slowed down.
    pub cpu_limited: u64,
}

impl Counters {
    /// Counts a connection that is not boosted.
    pub(crate) fn refuse(&self, why: NotBoosted) {
        self.refused.increment();
        let index = NotBoosted::ALL.iter().position(|reason| *reason == why);
        if let Some(counter) = index.and_then(|index| self.not_boosted.get(index)) {
            counter.increment();
        }
    }

    /// Notes how many datagrams the program's network has refused so far.
    pub(crate) fn note_udp(&self, refused: u64) {
        self.udp_refused.store(refused, Ordering::Relaxed);
    }

    /// Counts a flow that has ended.
    pub(crate) fn note_uncompressed(&self, why: Option<Uncompressed>) {
        match why {
            None => {}
            Some(Uncompressed::Encrypted) => self.encrypted.increment(),
            Some(Uncompressed::Incompressible) => self.incompressible.increment(),
            Some(Uncompressed::CpuLimited) => self.cpu_limited.increment(),
        }
    }

    /// Adds the time that a flow was spared.
    pub(crate) fn note_saved(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.saved.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            flows: self.flows.get(),
            active_flows: self.active_flows.get(),
            refused: self.refused.get(),
            not_boosted: self.not_boosted.each_ref().map(Counter::get),
            udp_refused: self.udp_refused.load(Ordering::Relaxed),
            reset: self.reset.get(),
            lanes: self.lanes.get(),
            active_lanes: self.active_lanes.get(),
            reused: self.reused.get(),
            bytes_in: self.to_lane.get(),
            bytes_out: self.to_local.get(),
            wan_sent: self.wan_sent.get(),
            wan_received: self.wan_received.get(),
            pipes: self.pipes.get(),
            compressed_in: self.to_compress.get(),
            compressed_sent: self.compressed.get(),
            compressed_received: self.to_decompress.get(),
            compressed_out: self.decompressed.get(),
            uncompressed: UncompressedFlows {
                encrypted: self.encrypted.get(),
                incompressible: self.incompressible.get(),
                cpu_limited: self.cpu_limited.get(),
            },
            saved: Duration::from_micros(self.saved.load(Ordering::Relaxed)),
        }
    }
}
