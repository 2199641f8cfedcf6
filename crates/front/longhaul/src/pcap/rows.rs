//! The rows of conversations and endpoints, those with most bytes first.
//!
//! A row is made when it is shown: what is kept of all of them is their order. The tables of a view
//! have a budget of their own beside those of the reading ([`super::reading`]).

use super::reading::VIEW_BYTES;
use capture::conversations::{Conversations, EthernetKey};
use capture::dissect::FlowKey;
use capture::endpoints::{Endpoint, Endpoints};
use capture::{ChunkedList, Conversation, LeftOut, MemoryBudget, Traffic};
use report::terminal::ConversationRow;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Layer whose addresses make a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConversationLayer {
    /// TCP streams.
    #[default]
    Tcp,
    /// UDP ports.
    Udp,
    /// IP addresses of both versions.
    Ip,
    /// Ethernet addresses.
    Ethernet,
}

impl ConversationLayer {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ConversationLayer::Tcp => "TCP",
            ConversationLayer::Udp => "UDP",
            ConversationLayer::Ip => "IP",
            ConversationLayer::Ethernet => "Ethernet",
        }
    }
}

/// The conversations of the highest layer that has any.
#[must_use]
pub fn top(conversations: &Conversations) -> (ConversationLayer, ConversationRows<'_>) {
    use ConversationLayer::{Ethernet, Ip, Tcp, Udp};
    fn bytes(flows: &ChunkedList<Conversation<FlowKey>>) -> u64 {
        flows.iter().map(|flow| flow.traffic.bytes()).sum()
    }
    let (tcp, udp) = (bytes(conversations.tcp()), bytes(conversations.udp()));
    let layers = [if tcp >= udp { Tcp } else { Udp }, Ip].into_iter();
    let mut each = layers.map(|layer| (layer, ConversationRows::of(conversations, layer)));
    let found = each.find(|(_, rows)| !rows.is_empty());
    found.unwrap_or_else(|| (Ethernet, ConversationRows::of(conversations, Ethernet)))
}

/// The conversations of a layer, by bytes; of equal ones the earlier first.
pub struct ConversationRows<'a> {
    list: List<'a>,
    order: Vec<u32>,
    left_out: LeftOut,
}

enum List<'a> {
    Tcp(&'a ChunkedList<Conversation<FlowKey>>),
    Udp(&'a ChunkedList<Conversation<FlowKey>>),
    Ip(ChunkedList<Conversation<FlowKey>>),
    Ethernet(&'a ChunkedList<Conversation<EthernetKey>>),
}

/// A budget for the table of a view; the rest of it is for the order, four bytes a row.
fn budget() -> MemoryBudget {
    MemoryBudget::new(VIEW_BYTES / 16 * 15)
}

/// The places of a list of so many, by bytes and then by a second key.
fn order<K: Ord>(count: usize, key: impl Fn(usize) -> Option<(u64, K)>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    order.sort_unstable_by_key(|place| {
        key(*place as usize).map(|(bytes, second)| (Reverse(bytes), second))
    });
    order
}

impl<'a> ConversationRows<'a> {
    /// The rows of `layer`.
    #[must_use]
    pub fn of(conversations: &'a Conversations, layer: ConversationLayer) -> Self {
        let [ethernet, other_ip, tcp, udp] = conversations.left_out();
        let (list, left_out) = match layer {
            ConversationLayer::Tcp => (List::Tcp(conversations.tcp()), tcp),
            ConversationLayer::Udp => (List::Udp(conversations.udp()), udp),
            ConversationLayer::Ip => {
                let (list, left_out) = conversations.ip(&budget());
                let all = [other_ip, tcp, udp, left_out];
                (List::Ip(list), all.into_iter().fold(LeftOut::default(), LeftOut::with))
            }
            ConversationLayer::Ethernet => (List::Ethernet(conversations.ethernet()), ethernet),
        };
        let mut rows = ConversationRows { list, order: Vec::new(), left_out };
        let key = |place| rows.traffic(place).map(|(traffic, first)| (traffic.bytes(), first));
        rows.order = order(rows.count(), key);
        rows
    }

    fn count(&self) -> usize {
        match &self.list {
            List::Tcp(list) | List::Udp(list) => list.len(),
            List::Ip(list) => list.len(),
            List::Ethernet(list) => list.len(),
        }
    }

    /// The traffic of a conversation, and its first packet.
    fn traffic(&self, place: usize) -> Option<(&Traffic, u64)> {
        fn of<K>(flow: &Conversation<K>) -> (&Traffic, u64) {
            (&flow.traffic, flow.first_packet)
        }
        match &self.list {
            List::Tcp(list) | List::Udp(list) => list.get(place).map(of),
            List::Ip(list) => list.get(place).map(of),
            List::Ethernet(list) => list.get(place).map(of),
        }
    }

    fn row(&self, place: usize) -> Option<ConversationRow> {
        match &self.list {
            List::Tcp(list) => {
                list.get(place).map(|flow| ConversationRow::ports(flow, Some(place)))
            }
            List::Udp(list) => list.get(place).map(|flow| ConversationRow::ports(flow, None)),
            List::Ip(list) => list.get(place).map(ConversationRow::ip),
            List::Ethernet(list) => list.get(place).map(ConversationRow::ethernet),
        }
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The first `most` rows.
    pub fn iter(&self, most: usize) -> impl Iterator<Item = ConversationRow> + use<'_, 'a> {
        self.order.iter().take(most).filter_map(|place| self.row(*place as usize))
    }

    /// Conversations of the layer that are not listed.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }
}

/// The endpoints of a layer, by bytes; of equal ones by address.
pub struct EndpointRows {
    endpoints: Endpoints,
    order: Vec<u32>,
}

impl EndpointRows {
    /// The rows of `layer`.
    #[must_use]
    pub fn of(conversations: &Conversations, layer: ConversationLayer) -> Self {
        let budget = &budget();
        let endpoints = match layer {
            ConversationLayer::Tcp => Endpoints::of_tcp(conversations, budget),
            ConversationLayer::Udp => Endpoints::of_udp(conversations, budget),
            ConversationLayer::Ip => Endpoints::of_ip(conversations, budget),
            ConversationLayer::Ethernet => Endpoints::of_ethernet(conversations, budget),
        };
        let key = |place| endpoints.get(place).map(|it: Endpoint| (it.bytes(), it.address));
        let order = order(endpoints.len(), key);
        EndpointRows { endpoints, order }
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The first `most` rows.
    pub fn iter(&self, most: usize) -> impl Iterator<Item = Endpoint> {
        self.order.iter().take(most).filter_map(|place| self.endpoints.get(*place as usize))
    }

    /// Endpoints of listed conversations that are not listed themselves.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.endpoints.left_out()
    }
}
