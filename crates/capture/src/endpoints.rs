//! Endpoints: what each address sent and received, summed over its conversations.

use crate::conversations::EthernetKey;
use crate::dissect::FlowKey;
use crate::table::{Conversation, Counts};
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

/// The endpoints of a list of conversations, by address.
fn sum<K>(flows: &[Conversation<K>], sides: impl Fn(&K) -> [Address; 2]) -> Vec<Endpoint> {
    let mut parts: Vec<Endpoint> = Vec::with_capacity(flows.len() * 2);
    for flow in flows {
        let [a, b] = sides(&flow.key);
        let [from_a, from_b] = flow.traffic.each;
        parts.push(Endpoint { address: a, sent: from_a, received: from_b });
        parts.push(Endpoint { address: b, sent: from_b, received: from_a });
    }
    parts.sort_unstable_by_key(|part| part.address);
    parts.dedup_by(|later, first| {
        let is_same = later.address == first.address;
        if is_same {
            first.sent.add(later.sent);
            first.received.add(later.received);
        }
        is_same
    });
    parts
}

/// Endpoints of Ethernet conversations.
#[must_use]
pub fn of_ethernet(flows: &[Conversation<EthernetKey>]) -> Vec<Endpoint> {
    sum(flows, |key| [Address::Ethernet(key.a), Address::Ethernet(key.b)])
}

/// Endpoints of IP conversations.
#[must_use]
pub fn of_ip(flows: &[Conversation<FlowKey>]) -> Vec<Endpoint> {
    sum(flows, |key| [Address::Ip(key.a_address()), Address::Ip(key.b_address())])
}

/// Endpoints of TCP or UDP conversations.
#[must_use]
pub fn of_ports(flows: &[Conversation<FlowKey>]) -> Vec<Endpoint> {
    sum(flows, |key| {
        [Address::Port(key.a_address(), key.a_port), Address::Port(key.b_address(), key.b_port)]
    })
}
