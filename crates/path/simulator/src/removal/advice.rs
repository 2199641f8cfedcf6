//! The action that a finding advises.

use super::{Action, Outcomes};
use crate::draws::KERNEL_CONTROLS;
use record::{Finding, Limit, Remedy, RemedyCommand, RemedyPlace};
use units::{BitRate, ByteCount};

/// A finding's advice beside what each action gained.
#[derive(Debug, Clone)]
pub struct Advised {
    /// The family of the scenario.
    pub family: &'static str,
    /// The limit of the finding.
    pub found: Limit,
    /// The limit is that of the ground truth.
    pub cause_right: bool,
    /// What the finding advises first, over a path of unknown rate.
    pub action: Action,
    /// The same for a given rate of the path.
    pub action_for_rate: Action,
    /// What each action gave, both advised ones among them.
    pub outcomes: Outcomes,
}

impl Action {
    /// The action of a finding's first remedy. A finding without remedies, as over a path of
    /// unknown rate, advises what its next command is for: the setting that is the limit.
    #[must_use]
    pub fn advised(finding: &Finding) -> Self {
        match finding.remedies.first() {
            Some(remedy) => Action::of_remedy(remedy),
            None => finding.limit.map_or(Action::Nothing, Action::of_limit),
        }
    }

    /// What a remedy changes. A buffer's size is taken to be ample: how large it has to be is the
    /// plan's question. A longer test changes no transfer, and nobody has boxes on the path.
    fn of_remedy(remedy: &Remedy) -> Self {
        match (&remedy.command, remedy.place) {
            (RemedyCommand::Sysctl { .. }, RemedyPlace::Receiver) => Action::ReceiveBuffer,
            (RemedyCommand::Sysctl { .. }, RemedyPlace::Sender) => Action::SendBuffer,
            (RemedyCommand::CongestionControl(name), _) => {
                let known = KERNEL_CONTROLS.into_iter().find(|control| control.name() == name);
                known.map_or(Action::Nothing, Action::Control)
            }
            (RemedyCommand::SocketBufferMib(mib), _) => socket_buffer(*mib, 20),
            (RemedyCommand::SocketBufferKib(kib), _) => socket_buffer(*kib, 10),
            (RemedyCommand::Streams(_), _) => Action::Flows,
            (RemedyCommand::RateLimitKbit(kbit), _) => {
                Action::RateLimit(BitRate::from_bps(kbit.saturating_mul(1_000)))
            }
            (RemedyCommand::NoRateLimit, _) => Action::UnlimitedSource,
            (RemedyCommand::NoPacingLimit, _) => Action::NoPacing,
            (
                RemedyCommand::Sysctl { .. }
                | RemedyCommand::Seconds(_)
                | RemedyCommand::BoostPlan { .. }
                | RemedyCommand::Other(_),
                _,
            ) => Action::Nothing,
        }
    }

    const fn of_limit(limit: Limit) -> Self {
        match limit {
            Limit::ReceiveWindow => Action::ReceiveBuffer,
            Limit::SendBuffer => Action::SendBuffer,
            Limit::FixedWindow => Action::Buffers,
            Limit::SlowReceiver => Action::FastReader,
            Limit::Application => Action::UnlimitedSource,
            Limit::Pacing => Action::NoPacing,
            Limit::WindowScaling
            | Limit::Cpu
            | Limit::Memory
            | Limit::PacingTimers
            | Limit::Ramp
            | Limit::CongestionAvoidance
            | Limit::PathRate
            | Limit::ShallowQueue
            | Limit::Aqm
            | Limit::SharedBottleneck
            | Limit::Policer
            | Limit::EcnMarks
            | Limit::Loss
            | Limit::ClusteredLoss
            | Limit::Reordering
            | Limit::AckPath
            | Limit::PathChange
            | Limit::Outage
            | Limit::PmtuBlackHole
            | Limit::Unknown => Action::Nothing,
        }
    }
}

fn socket_buffer(count: u64, shift: u32) -> Action {
    Action::SocketBuffer(ByteCount::from_bytes(count.saturating_mul(1 << shift)))
}
