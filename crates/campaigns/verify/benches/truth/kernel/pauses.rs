//! The pauses of a lab's hosts, from the records of its packets.
//!
//! A thread that is preempted while it holds the socket delays what the kernel would do at
//! once: acknowledgements wait, then one covers what arrived meanwhile, and the sender's
//! answer overflows a queue of a few packets. The lab's own lateness does not show it.

use control::Algorithm;
use lab::{LinkDirection, PacketRecord};
use link::FateKind;
use simulator::Scenario;
use std::sync::Arc;
use twin::{HostPauses, Pause};
use units::Nanos;

/// IP packets of at least this length carry bulk data, bytes.
const DATA: u32 = 1_000;
/// Longer than SACK compression holds an acknowledgement back, ns.
const LEAST_NS: u64 = 1_250_000;
/// Data packets that are acknowledged at once.
const ACKNOWLEDGED: usize = 2;
/// Acknowledgements after which a sender without pacing has sent something.
const ANSWERED: usize = 3;

/// Both hosts' pauses, on the time axis of the simulation: from the first data packet on.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) sending: HostPauses,
    pub(crate) receiving: HostPauses,
}

impl Measured {
    /// Of a bulk transfer without cross traffic.
    pub(crate) fn of(case: &Scenario, records: &[PacketRecord]) -> Self {
        let is_forward =
            |record: &&PacketRecord| (record.direction == LinkDirection::Down) == case.reverse;
        let data: Vec<_> =
            records.iter().filter(is_forward).filter(|record| record.length >= DATA).collect();
        let acks: Vec<_> = records.iter().filter(|record| !is_forward(record)).collect();
        let began = data.iter().map(|record| record.arrived).min().unwrap_or_default();
        let receiving = unanswered(&delivered(&data), &entered(&acks), ACKNOWLEDGED);
        let unpaced = matches!(case.congestion, Algorithm::Cubic | Algorithm::NewReno);
        let sending = match unpaced && case.pacing.is_none() {
            true => unanswered(&delivered(&acks), &entered(&data), ANSWERED),
            false => Vec::new(),
        };
        let since = |pauses: Vec<Pause>| {
            let shifted = |Pause { from, to }: Pause| Pause {
                from: Nanos(from.nanos_since(began)),
                to: Nanos(to.nanos_since(began)),
            };
            HostPauses::Listed(pauses.into_iter().map(shifted).collect::<Arc<[_]>>())
        };
        Measured { sending: since(sending), receiving: since(receiving) }
    }

    /// Total length of the pauses of both hosts, ns.
    pub(crate) fn total_ns(&self) -> u64 {
        let listed = |pauses: &HostPauses| match pauses {
            HostPauses::Listed(all) => all.iter().map(|one| one.to.nanos_since(one.from)).sum(),
            HostPauses::Random { .. } => 0,
        };
        listed(&self.sending) + listed(&self.receiving)
    }
}

/// When packets reached the far host.
fn delivered(records: &[&PacketRecord]) -> Vec<Nanos> {
    let due = |record: &&PacketRecord| match record.kind {
        FateKind::Delivered { due, .. } => Some(due),
        FateKind::Dropped(_) => None,
    };
    sorted(records.iter().filter_map(due).collect())
}

/// When packets left the near host.
fn entered(records: &[&PacketRecord]) -> Vec<Nanos> {
    sorted(records.iter().map(|record| record.arrived).collect())
}

fn sorted(mut times: Vec<Nanos>) -> Vec<Nanos> {
    times.sort_unstable();
    times
}

/// Where a host received `most` packets or more and did not answer for long.
fn unanswered(received: &[Nanos], sent: &[Nanos], most: usize) -> Vec<Pause> {
    let mut first = 0;
    let mut pauses = Vec::new();
    for &to in sent {
        let end = received.partition_point(|at| *at <= to);
        let waiting = &received[first..end];
        first = end;
        let [Some(&oldest), Some(&due)] = [waiting.first(), waiting.get(most - 1)] else {
            continue;
        };
        if to.nanos_since(due) > LEAST_NS {
            // An older one may have needed no answer.
            let from = oldest.max(Nanos(due.0.saturating_sub(LEAST_NS)));
            pauses.push(Pause { from, to });
        }
    }
    pauses
}
