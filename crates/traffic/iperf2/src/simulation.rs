//! The UDP half of a server in virtual time, without a socket: what datagrams of any sources
//! make it report and send. For tests and fuzzing.

use crate::context::{Context, TICK};
use crate::credit::Budget;
use crate::event::Event;
use crate::flows::{Bounds, FlowSocket, UdpFlows};
use crate::server::Limits;
use host::clock;
use host::lock::lock;
use host::stop::StopFlag;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

/// A datagram that arrives.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// When, since the start; not before the datagrams ahead of it.
    pub at: Duration,
    /// Its source, which may be forged.
    pub source: SocketAddr,
    /// Its payload.
    pub bytes: Vec<u8>,
}

/// What the server did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What it reported, and when.
    pub events: Vec<(Duration, Event)>,
    /// What it sent: when, the destination, and bytes of payload.
    pub sent: Vec<(Duration, SocketAddr, u64)>,
    /// The most streams for which it had state at a time.
    pub most_flows: usize,
}

struct Recorder(Mutex<(Duration, Outcome)>);

impl Recorder {
    fn sent(&self, peer: SocketAddr, bytes: u64) {
        let (now, outcome) = &mut *lock(&self.0);
        outcome.sent.push((*now, peer, bytes));
    }
}

impl FlowSocket for Recorder {
    fn send(&self, bytes: &[u8], peer: SocketAddr) {
        self.sent(peer, bytes.len() as u64);
    }

    fn local_towards(&self, _: SocketAddr) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, iperf2_proto::DEFAULT_PORT).into()
    }
}

/// Lets the datagrams arrive at a server that trusts no address. Every stream in the reverse
/// direction sends as much as its budget permits.
#[must_use]
pub fn serve_udp(limits: &Limits, interval: Option<Duration>, arrivals: &[Arrival]) -> Outcome {
    let recorder = Recorder(Mutex::default());
    let on_event = |event| {
        let (now, outcome) = &mut *lock(&recorder.0);
        outcome.events.push((*now, event));
    };
    let stop = StopFlag::new();
    let context = Context::new(&on_event, &stop, interval).limited();
    let mut flows = UdpFlows::new(&context, Bounds::of(limits));
    let start = clock::now();
    let (mut budgets, mut ticked) = (Vec::new(), Duration::ZERO);
    for arrival in arrivals {
        while ticked + TICK / 2 < arrival.at {
            ticked += TICK / 2;
            lock(&recorder.0).0 = ticked;
            flows.tick(start + ticked);
        }
        lock(&recorder.0).0 = arrival.at;
        let at = (start + arrival.at, arrival.at);
        flows.take(&arrival.bytes, arrival.source, at, &recorder, &mut |request| {
            let budget = Budget::Received { flow: request.credit, idle: limits.idle_timeout };
            budgets.push((request.peer, request.header.length.max(1), budget));
            budgets.truncate(limits.streams as usize);
        });
        for (peer, length, budget) in &budgets {
            while budget.pay(u64::from(*length)) {
                recorder.sent(*peer, u64::from(*length));
            }
        }
        let outcome = &mut lock(&recorder.0).1;
        outcome.most_flows = outcome.most_flows.max(flows.count());
    }
    flows.close(start + ticked);
    let (_, outcome) = std::mem::take(&mut *lock(&recorder.0));
    outcome
}
