//! The handshakes of a capture: SYN, SYN-ACK and the first ACK, as they were on the wire.

use capture::conversations::StreamNumber;
use capture::dissect::{FlowKey, PacketDirection, TcpFlags, TcpOption, TcpOptions, TcpSegment};

/// Streams whose handshakes are kept; further ones are only counted.
pub const MAX_HANDSHAKES: usize = 10_000;

/// A packet of a handshake.
#[derive(Debug, Clone, PartialEq)]
pub struct HandshakePacket {
    /// Its number in the capture.
    pub packet: u64,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Which side sent it.
    pub direction: PacketDirection,
    /// Raw sequence number.
    pub seq: u32,
    /// Raw acknowledgement number; `None` without ACK.
    pub ack: Option<u32>,
    /// Window as sent.
    pub window: u16,
    /// The options that matter, decoded.
    pub options: TcpOptions,
    /// Every option in order, as text.
    pub texts: Vec<String>,
}

/// What was captured of a stream's handshake.
#[derive(Debug, Clone, PartialEq)]
pub struct Handshake {
    /// The stream.
    pub stream: u32,
    /// Its addresses.
    pub key: FlowKey,
    /// The last SYN before the SYN-ACK; the last SYN-ACK; the first ACK of the client.
    pub packets: [Option<HandshakePacket>; 3],
    /// SYNs and SYN-ACKs that were retransmitted.
    pub retransmitted: u32,
}

/// Handshakes by stream.
#[derive(Debug, Default)]
pub struct Handshakes {
    all: Vec<Handshake>,
    /// Streams with a SYN beyond the most that are kept.
    pub not_kept: u64,
}

impl Handshakes {
    /// Looks at a segment; only those with SYN, and the first ACK, are kept.
    pub fn add(
        &mut self,
        stream: StreamNumber,
        packet: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
    ) {
        // Streams begin in the order of their numbers.
        let place = self.all.binary_search_by_key(&stream.number, |one| one.stream);
        let syn = segment.flags.has(TcpFlags::SYN);
        let place = match place {
            Ok(place) => place,
            Err(_) if !syn => return,
            Err(_) if self.all.len() >= MAX_HANDSHAKES => {
                self.not_kept += 1;
                return;
            }
            Err(place) => {
                let (number, key) = (stream.number, segment.key);
                let new = Handshake {
                    stream: number,
                    key,
                    packets: Default::default(),
                    retransmitted: 0,
                };
                self.all.insert(place, new);
                place
            }
        };
        let Some(handshake) = self.all.get_mut(place) else { return };
        let slot = match (syn, segment.flags.has(TcpFlags::ACK)) {
            (true, false) => 0,
            (true, true) => 1,
            (false, true) => 2,
            (false, false) => return,
        };
        let [first, second, third] = &handshake.packets;
        let is_clients = match (first, second) {
            (Some(syn), _) => syn.direction == segment.direction,
            (None, Some(syn_ack)) => syn_ack.direction != segment.direction,
            (None, None) => false,
        };
        if slot == 2 && (third.is_some() || !is_clients || (first.is_none() && second.is_none())) {
            return;
        }
        let seen = HandshakePacket {
            packet,
            time_ns,
            direction: segment.direction,
            seq: segment.seq,
            ack: segment.flags.has(TcpFlags::ACK).then_some(segment.ack),
            window: segment.window,
            options: segment.options(),
            texts: segment
                .each_option()
                .filter(|option| option.kind > 1)
                .map(|o| text(&o))
                .collect(),
        };
        if let Some(kept) = handshake.packets.get_mut(slot)
            && kept.replace(seen).is_some()
        {
            handshake.retransmitted = handshake.retransmitted.saturating_add(1);
        }
    }

    /// The handshakes in the order of their streams.
    #[must_use]
    pub fn all(&self) -> &[Handshake] {
        &self.all
    }
}

fn text(option: &TcpOption<'_>) -> String {
    let name = option.name();
    let long = |a, b, c, d| u32::from_be_bytes([a, b, c, d]);
    match (option.kind, option.data) {
        (2, [a, b]) => format!("{name} {}", u16::from_be_bytes([*a, *b])),
        (3, [shift]) => format!("{name} {shift} (x {})", 1_u32 << (*shift).min(14)),
        (8, &[a, b, c, d, e, f, g, h]) => {
            format!("{name} {}, echo {}", long(a, b, c, d), long(e, f, g, h))
        }
        (4, []) => name.to_owned(),
        (kind, data) => format!("{name} (kind {kind}, {} bytes)", data.len()),
    }
}

impl Handshake {
    /// The scale that counts for the windows of client and server; `None` if the SYN of
    /// either was not captured.
    #[must_use]
    pub fn scales(&self) -> Option<[u8; 2]> {
        let [Some(syn), Some(syn_ack), _] = &self.packets else { return None };
        let both = syn.options.window_scale.zip(syn_ack.options.window_scale);
        Some(both.map_or([0, 0], |(client, server)| [client.min(14), server.min(14)]))
    }

    /// The window of a packet in bytes: those of SYN and SYN-ACK are never scaled (RFC 7323,
    /// section 2.2).
    #[must_use]
    pub fn window_bytes(&self, slot: usize) -> Option<u64> {
        let packet = self.packets.get(slot)?.as_ref()?;
        if slot < 2 {
            return Some(u64::from(packet.window));
        }
        let [client, _] = self.scales()?;
        Some(u64::from(packet.window) << client)
    }

    /// What it shows, as sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let [syn, syn_ack, ack] = &self.packets;
        if let (Some(syn), Some(syn_ack)) = (syn, syn_ack) {
            match (syn.options.window_scale, syn_ack.options.window_scale) {
                (None, _) if is_modern(&syn.options) => notes.push(STRIPPED_SYN.to_owned()),
                (None, _) => notes.push(
                    "The client does not offer window scaling: windows are at most 64 KiB."
                        .to_owned(),
                ),
                (Some(_), None) if is_modern(&syn_ack.options) => {
                    notes.push(STRIPPED_SYN_ACK.to_owned());
                }
                (Some(_), None) => notes.push(
                    "The server does not offer window scaling: windows are at most 64 KiB."
                        .to_owned(),
                ),
                (Some(_), Some(_)) => {}
            }
        }
        if self.retransmitted > 0 {
            notes.push(format!("{} of SYN and SYN-ACK were retransmitted.", self.retransmitted));
        }
        if syn.is_some() && syn_ack.is_none() {
            notes.push("No SYN-ACK was captured.".to_owned());
        } else if syn_ack.is_some() && ack.is_none() {
            notes.push("No ACK of the client was captured.".to_owned());
        }
        notes
    }
}

/// Whether a host that sends these options would offer window scaling too: RFC 7323
/// defines it together with timestamps.
fn is_modern(options: &TcpOptions) -> bool {
    options.timestamps.is_some() && options.sack_permitted
}

const STRIPPED_SYN: &str = "The SYN has timestamps and SACK, and no window scale: a middlebox \
    between the client and this point probably removed it. Windows are at most 64 KiB.";

const STRIPPED_SYN_ACK: &str = "The SYN-ACK has timestamps and SACK, and no window scale: a \
    middlebox probably removed it here or from the SYN behind this point. Windows are at most \
    64 KiB.";
