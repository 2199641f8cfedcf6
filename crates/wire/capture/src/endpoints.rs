//! Endpoints: what each address sent and received, summed over its conversations.

use crate::conversations::{Conversations, EthernetKey};
use crate::dissect::{FlowKey, PacketDirection};
use crate::memory_budget::MemoryBudget;
use crate::table::{Conversation, Counts, Hasher, Key, LeftOut, Moment, Seed, Table};
use core::net::IpAddr;

/// An address, or an address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// Of Ethernet.
    Ethernet([u8; 6]),
    /// Of IP.
    Ip(IpAddr),
    /// Of TCP or UDP.
    Port(IpAddr, u16),
}

impl Key for Address {
    fn hash(&self, hasher: &Hasher) -> u64 {
        let [high, low] = match self {
            Address::Ethernet([a, b, c, d, e, f]) => {
                [0, u64::from_le_bytes([*a, *b, *c, *d, *e, *f, 0, 0])]
            }
            Address::Ip(IpAddr::V4(ip)) | Address::Port(IpAddr::V4(ip), _) => {
                [0, u64::from(ip.to_bits())]
            }
            Address::Ip(IpAddr::V6(ip)) | Address::Port(IpAddr::V6(ip), _) => {
                [(ip.to_bits() >> 64) as u64, ip.to_bits() as u64]
            }
        };
        let port = if let Address::Port(_, port) = self { u64::from(*port) } else { 0 };
        hasher.two(hasher.two(high, low), port)
    }
}

/// What an endpoint sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Which one.
    pub address: Address,
    /// Sent by it.
    pub sent: Counts,
    /// Received by it.
    pub received: Counts,
}

impl Endpoint {
    /// Frames sent and received.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.sent.frames + self.received.frames
    }

    /// Bytes sent and received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sent.bytes + self.received.bytes
    }
}

fn ports(key: &FlowKey) -> [Address; 2] {
    [Address::Port(key.a_address(), key.a_port), Address::Port(key.b_address(), key.b_port)]
}

/// The endpoints of the conversations of a layer.
#[derive(Debug)]
pub struct Endpoints {
    table: Table<Address>,
}

impl Endpoints {
    fn sum<'a, K: 'a>(
        flows: impl Iterator<Item = &'a Conversation<K>>,
        sides: impl Fn(&K) -> [Address; 2],
        seed: Seed,
        budget: &MemoryBudget,
    ) -> Self {
        let mut table = Table::new(seed, budget);
        for flow in flows {
            let traffic = &flow.traffic;
            for (address, turned) in sides(&flow.key).into_iter().zip([false, true]) {
                let moment = Moment {
                    packet: flow.first_packet,
                    time_ns: traffic.first_ns,
                    direction: PacketDirection::AToB,
                };
                let number = table.number(&address, moment);
                match number.and_then(|number| table.flow(number)) {
                    Some(endpoint) => endpoint.traffic.merge(traffic, turned),
                    None => table.leave_out(traffic),
                }
            }
        }
        Endpoints { table }
    }

    /// Endpoints of Ethernet conversations; memory is taken from this budget.
    #[must_use]
    pub fn of_ethernet(conversations: &Conversations, budget: &MemoryBudget) -> Self {
        let sides = |key: &EthernetKey| [Address::Ethernet(key.a), Address::Ethernet(key.b)];
        Self::sum(conversations.ethernet().iter(), sides, conversations.seed(), budget)
    }

    /// Endpoints of IP conversations.
    #[must_use]
    pub fn of_ip(conversations: &Conversations, budget: &MemoryBudget) -> Self {
        let sides = |key: &FlowKey| [Address::Ip(key.a_address()), Address::Ip(key.b_address())];
        Self::sum(conversations.ip_parts(), sides, conversations.seed(), budget)
    }

    /// Endpoints of TCP conversations.
    #[must_use]
    pub fn of_tcp(conversations: &Conversations, budget: &MemoryBudget) -> Self {
        Self::sum(conversations.tcp().iter(), ports, conversations.seed(), budget)
    }

    /// Endpoints of UDP conversations.
    #[must_use]
    pub fn of_udp(conversations: &Conversations, budget: &MemoryBudget) -> Self {
        Self::sum(conversations.udp().iter(), ports, conversations.seed(), budget)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.flows().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An endpoint by its place.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Endpoint> {
        self.table.flows().get(place).map(|found| {
            let [sent, received] = found.traffic.each;
            Endpoint { address: found.key, sent, received }
        })
    }

    /// The endpoints for which the budget had no room; their traffic counts at each end.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.table.left_out()
    }
}
