//! From a link type and bytes to the layers of a packet, without allocation.
//!
//! [`dissect`] walks the headers from the outside in and records each as a [`Layer`]:
//! which protocol, where, how long. Lengths are those that the headers say, bounded by
//! the packet's original length, never by what was captured. What a consumer needs of
//! a header it then reads in place, from [`Layers::tcp`], [`Layers::conversation`] or
//! the bytes.

mod ip;
mod key;
mod link_layer;
mod not_understood;
mod options;
mod ppp;
mod protocol;
pub mod tcp;
mod tunnel;
mod wireless;

pub use key::{FlowKey, PacketDirection};
pub use not_understood::{NotUnderstood, NotUnderstoodCounts};
pub use options::{OptionIter, TcpOption, TcpOptions, mptcp_name};
pub use protocol::Protocol;
pub use tcp::{TcpFlags, TcpSegment};

use crate::link_type::LinkType;

/// Layers that are recorded of a packet; what is inside of the last one is data.
pub const MAX_LAYERS: usize = 16;

/// One header of a packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layer {
    /// Where the header begins, in bytes from the start of the packet.
    pub start: u32,
    /// Length of the header in bytes.
    pub header_len: u32,
    /// Bytes inside of it, by its own length field or that of a layer outside of it.
    pub payload_len: u32,
    /// For a transport protocol, the place of its IP header in the list of layers.
    network: u8,
}

/// The layers of a packet, outermost first. One value is used for all packets.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// The protocols by number; 0 after the last one.
    path: [u8; MAX_LAYERS],
    layers: [Layer; MAX_LAYERS],
    count: usize,
    /// Place of the innermost TCP or UDP header.
    transport: Option<u8>,
    fragment: bool,
    length_from_frame: bool,
    not_understood: Option<NotUnderstood>,
}

impl Layers {
    /// No layers, to be filled by [`dissect`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The layers with their protocols, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = (Protocol, &Layer)> {
        let numbers = self.path.iter().take(self.count);
        numbers.map(|number| Protocol::from_number(*number)).zip(&self.layers)
    }

    /// The layer at `place` of the list.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<(Protocol, &Layer)> {
        let layer = self.recorded().get(place)?;
        Some((Protocol::from_number(self.number(place)), layer))
    }

    /// Place of the innermost TCP or UDP header.
    #[must_use]
    pub fn transport(&self) -> Option<usize> {
        self.transport.map(usize::from)
    }

    /// Whether the innermost IP header is that of a fragment, so that its payload is
    /// not that of a whole packet.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.fragment
    }

    /// Whether the length of the innermost IP packet is that of the frame: its own
    /// length field is 0 (segmentation offload, BIG TCP) or in a jumbo option.
    #[must_use]
    pub fn is_length_from_frame(&self) -> bool {
        self.length_from_frame
    }

    /// The header at which the dissection ended although a packet may follow.
    #[must_use]
    #[inline]
    pub fn not_understood(&self) -> Option<NotUnderstood> {
        self.not_understood
    }

    /// The innermost TCP segment in `data`, the packet's bytes.
    #[must_use]
    #[inline]
    pub fn tcp<'a>(&self, data: &'a [u8]) -> Option<TcpSegment<'a>> {
        self.segment(usize::from(self.transport?), data)
    }

    /// The innermost TCP segment whose options were captured in part, which
    /// [`Layers::tcp`] leaves out as Wireshark does.
    #[must_use]
    pub fn tcp_with_cut_options<'a>(&self, data: &'a [u8]) -> Option<TcpSegment<'a>> {
        let last = self.count.checked_sub(1)?;
        let is_cut = self.number(last) == Protocol::Truncated as u8;
        let place = last.checked_sub(1).filter(|_| is_cut)?;
        self.segment(place, data)
    }

    /// The TCP segment whose header is at `place` of the list.
    #[inline]
    fn segment<'a>(&self, place: usize, data: &'a [u8]) -> Option<TcpSegment<'a>> {
        if self.path[place % MAX_LAYERS] != Protocol::Tcp as u8 {
            return None;
        }
        let layer = &self.layers[place % MAX_LAYERS];
        let network = &self.layers[usize::from(layer.network) % MAX_LAYERS];
        let header = data.get(network.start as usize..)?;
        let bytes = data.get(layer.start as usize..)?;
        let length = layer.header_len + layer.payload_len;
        let mut fields = ip::fields(header)?;
        fields.length_from_frame = self.length_from_frame;
        TcpSegment::parse(
            bytes,
            length,
            |source, destination| {
                ip::flow_key(header, source, destination, ip::TCP).unwrap_or_default()
            },
            fields,
        )
    }

    /// The flow of the TCP segment that [`Layers::tcp`] returns.
    #[must_use]
    #[inline]
    pub fn tcp_key(&self, data: &[u8]) -> Option<FlowKey> {
        let place = usize::from(self.transport?);
        if self.number(place) != Protocol::Tcp as u8 {
            return None;
        }
        self.conversation(place, data).map(|(key, _)| key)
    }

    /// The flow of the transport header at `place` of the list, by addresses and ports.
    #[must_use]
    #[inline]
    pub fn conversation(&self, place: usize, data: &[u8]) -> Option<(FlowKey, PacketDirection)> {
        let layer = self.layers.get(place)?;
        let network = self.layers.get(usize::from(layer.network))?;
        let ports: &[u8; 4] = data.get(layer.start as usize..)?.first_chunk()?;
        let protocol = match Protocol::from_number(*self.path.get(place)?) {
            Protocol::Tcp => ip::TCP,
            Protocol::Udp => ip::UDP,
            _ => return None,
        };
        let [a, b, c, d] = *ports;
        let header = data.get(network.start as usize..)?;
        ip::flow_key(header, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]), protocol)
    }

    /// The addresses of the IP header at `place` of the list.
    #[must_use]
    #[inline]
    pub fn addresses(&self, place: usize, data: &[u8]) -> Option<(FlowKey, PacketDirection)> {
        let layer = self.layers.get(place)?;
        ip::flow_key(data.get(layer.start as usize..)?, 0, 0, 0)
    }

    /// Names the data behind the innermost TCP or UDP header, which is of a protocol that takes
    /// more than this packet to tell.
    pub fn name_payload(&mut self, protocol: Protocol) {
        let place = self.transport().map(|place| place + 1).filter(|place| *place < self.count);
        if let Some(number) = place.and_then(|place| self.path.get_mut(place))
            && *number == Protocol::Data as u8
        {
            *number = protocol as u8;
        }
    }

    /// The protocols by number, as one value: equal for packets with equal layers.
    #[inline]
    pub(crate) fn path(&self) -> u128 {
        u128::from_le_bytes(self.path)
    }

    /// The layers as recorded.
    #[inline]
    pub(crate) fn recorded(&self) -> &[Layer] {
        &self.layers[..self.count.min(MAX_LAYERS)]
    }

    /// Number of the protocol at `place`.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> u8 {
        self.path.get(place).copied().unwrap_or(0)
    }
}

/// What the next bytes are.
#[derive(Debug, Clone, Copy)]
enum Next {
    Ethernet,
    EtherType(u16),
    Llc,
    Ppp,
    /// IPv4 or IPv6 by the version nibble.
    Ip,
    Ipv4,
    Ipv6,
    /// By IP protocol number; with IPv6, extension headers may follow.
    IpProtocol(u8),
    Vxlan,
    GtpU,
    Geneve,
    Teredo,
    /// An IEEE 802.11 frame.
    Wlan,
    Data,
    Stop,
}

/// Why a header could not be read.
enum Unreadable {
    /// The packet has it, and the capture does not.
    Truncated,
    /// The packet does not have it.
    Malformed,
}

/// A place in a packet.
struct Walk<'a, 'l> {
    data: &'a [u8],
    at: usize,
    /// Where the packet ends by its outer layers; may be more than was captured.
    end: usize,
    network: u8,
    /// Whether the header of an 802.11 frame is padded to four bytes.
    pads_wlan: bool,
    out: &'l mut Layers,
}

impl Walk<'_, '_> {
    /// Records what is not dissected although a packet may be in it.
    fn not_understood(&mut self, what: NotUnderstood) -> Next {
        self.out.not_understood = Some(what).filter(|what| what.may_hide_packets());
        Next::Data
    }

    /// The next `N` bytes.
    #[inline]
    fn header<const N: usize>(&self) -> Result<[u8; N], Unreadable> {
        if self.at + N > self.end {
            return Err(Unreadable::Malformed);
        }
        let bytes = self.data.get(self.at..).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or(Unreadable::Truncated)
    }

    /// Records a header of `length` bytes and moves behind it.
    #[inline]
    fn push(&mut self, protocol: Protocol, length: usize) {
        let header_len = length.min(self.end.saturating_sub(self.at));
        let place = self.out.count;
        let start = self.at;
        self.at += header_len;
        if let (Some(number), Some(layer)) =
            (self.out.path.get_mut(place), self.out.layers.get_mut(place))
        {
            *number = protocol as u8;
            *layer = Layer {
                start: start as u32,
                header_len: header_len as u32,
                payload_len: (self.end - self.at) as u32,
                network: self.network,
            };
            self.out.count = place + 1;
        }
    }

    /// Records a protocol that has all that follows.
    fn last(&mut self, protocol: Protocol) -> Next {
        self.push(protocol, self.end.saturating_sub(self.at));
        Next::Stop
    }

    /// Adds `length` bytes to the header recorded last, and moves behind them.
    fn extend(&mut self, length: usize) {
        let length = length.min(self.end.saturating_sub(self.at));
        self.at += length;
        if let Some(layer) = self.out.layers.get_mut(self.out.count.wrapping_sub(1)) {
            // Both are bounded by the packet's length.
            layer.header_len += length as u32;
            layer.payload_len -= length as u32;
        }
    }

    /// Bounds what follows to `length` bytes.
    #[inline]
    fn bound(&mut self, length: usize) {
        self.end = self.end.min(self.at + length);
    }
}

/// Dissects a packet of `original_len` bytes, of which `data` was captured.
#[inline]
pub fn dissect(link: LinkType, data: &[u8], original_len: u32, layers: &mut Layers) {
    layers.path = [0; MAX_LAYERS];
    layers.count = 0;
    layers.transport = None;
    layers.fragment = false;
    layers.length_from_frame = false;
    layers.not_understood = None;
    let end = (original_len as usize).max(data.len());
    let mut walk = Walk { data, at: 0, end, network: u8::MAX, pads_wlan: false, out: layers };
    let next = link_layer::first(link, &mut walk);
    follow(&mut walk, next);
}

/// Dissects anew from the IP header at `place` of the list: `data` has what is outside of
/// it, and then the whole packet, which fragments were made of.
pub(crate) fn dissect_reassembled(data: &[u8], place: usize, layers: &mut Layers) {
    let Some(layer) = layers.recorded().get(place).copied() else { return };
    layers.path.iter_mut().skip(place).for_each(|number| *number = 0);
    layers.count = place;
    layers.transport = None;
    layers.fragment = false;
    layers.not_understood = None;
    let at = layer.start as usize;
    let mut walk =
        Walk { data, at, end: data.len(), network: u8::MAX, pads_wlan: false, out: layers };
    follow(&mut walk, Ok(Next::Ip));
}

/// Reads headers until one is the last.
#[inline]
fn follow(walk: &mut Walk<'_, '_>, mut next: Result<Next, Unreadable>) {
    // A loop over extension headers records none, and each has bytes.
    while walk.out.count < MAX_LAYERS - 1 {
        let step = match next {
            Ok(Next::Ethernet) => link_layer::ethernet(walk),
            Ok(Next::EtherType(number)) => link_layer::ether_type(walk, number),
            Ok(Next::Llc) => link_layer::llc(walk),
            Ok(Next::Ppp) => ppp::ppp(walk),
            Ok(Next::Ip) => ip::by_version(walk),
            Ok(Next::Ipv4) => ip::v4(walk),
            Ok(Next::Ipv6) => ip::v6(walk),
            Ok(Next::IpProtocol(number)) => ip::protocol(walk, number),
            Ok(Next::Vxlan) => tunnel::vxlan(walk),
            Ok(Next::GtpU) => tunnel::gtp_u(walk),
            Ok(Next::Geneve) => tunnel::geneve(walk),
            Ok(Next::Teredo) => tunnel::teredo(walk),
            Ok(Next::Wlan) => wireless::frame(walk),
            Ok(Next::Data | Next::Stop) | Err(_) => break,
        };
        next = step;
    }
    let rest = walk.end.saturating_sub(walk.at);
    match next {
        Ok(Next::Stop) => {}
        Ok(_) if rest == 0 => {}
        Ok(_) => walk.push(Protocol::Data, rest),
        Err(Unreadable::Truncated) => walk.push(Protocol::Truncated, rest),
        Err(Unreadable::Malformed) => walk.push(Protocol::Malformed, rest),
    }
}
