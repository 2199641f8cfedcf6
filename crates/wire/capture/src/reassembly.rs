//! IP packets out of their fragments (RFC 791, section 3.2; RFC 8200, section 4.5), as
//! Wireshark reassembles them: the fragment that completes a packet has what is in it.
//!
//! Memory is bounded whatever the fragments say: [`MAX_PARTIAL`] packets of which parts are
//! missing, [`MAX_BYTES`] of memory; beyond that the oldest ones are given up. The first
//! fragment to bring a byte decides its value.

use crate::dissect::{Layer, Layers, Protocol};
use crate::table::{Hasher, Seed};
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Packets of which fragments are missing.
pub const MAX_PARTIAL: usize = 4096;

/// Bytes that such packets take: payload, ranges and what else is kept of each.
pub const MAX_BYTES: usize = 16 << 20;

/// Ranges with gaps between them, of a packet: enough for every second fragment of 64 KiB
/// over an MTU of 68 bytes, the smallest of IPv4.
const MAX_RANGES: usize = 1024;

/// Largest IP packet, header included.
const MAX_LENGTH: usize = 65_535;

/// What fragments of a packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    /// Source and destination, IPv4 addresses in the first four bytes.
    addresses: [u128; 2],
    identification: u32,
    protocol: u8,
    is_v6: bool,
}

impl Key {
    fn hash(&self, hasher: &Hasher) -> u64 {
        let [a, b] = self.addresses;
        let kind = u64::from(self.is_v6) << 8 | u64::from(self.protocol);
        let outer = hasher.two(a as u64 ^ (b as u64).rotate_left(32), (a >> 64) as u64);
        hasher.two(outer, ((b >> 64) as u64) ^ (kind << 32 | u64::from(self.identification)))
    }
}

/// A fragment in a frame.
struct Fragment<'a> {
    key: Key,
    offset: usize,
    is_last: bool,
    payload: &'a [u8],
    /// Bytes of the headers from the IP header on.
    header_len: usize,
}

/// A packet of which fragments are missing.
#[derive(Debug)]
struct Partial {
    key: Key,
    /// In the order of first fragments.
    serial: u64,
    payload: Vec<u8>,
    /// What is there: ranges in order, with gaps between them.
    ranges: Vec<(usize, usize)>,
    /// Where the last fragment ends.
    length: Option<usize>,
}

/// Keeps fragments until their packets are complete.
#[derive(Debug)]
pub struct Reassembler {
    partial: HashTable<Partial>,
    /// Hashes and serial numbers, the oldest first; some of them are complete since.
    order: VecDeque<(u64, u64)>,
    hasher: Hasher,
    serial: u64,
    bytes: usize,
}

impl Reassembler {
    /// No fragments; `seed` should be random.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Reassembler {
            partial: HashTable::new(),
            order: VecDeque::new(),
            hasher: Hasher::new(seed),
            serial: 0,
            bytes: 0,
        }
    }

    /// Adds the fragment that `layers` found in `data`, if it was captured as a whole. When
    /// it completes a packet, `data` with the whole packet in its place is returned, and
    /// `layers` are those of that.
    pub fn add(&mut self, data: &[u8], layers: &mut Layers) -> Option<Vec<u8>> {
        let (place, layer) = network(layers)?;
        let fragment = Fragment::of(data.get(layer.start as usize..)?, &layer)?;
        let payload = self.complete(&fragment)?;
        let whole = with_payload(data, &layer, &fragment, &payload)?;
        crate::dissect::dissect_reassembled(&whole, place, layers);
        Some(whole)
    }

    /// The payload of the packet, if this fragment completes it.
    fn complete(&mut self, fragment: &Fragment<'_>) -> Option<Vec<u8>> {
        let end = fragment.offset + fragment.payload.len();
        if fragment.header_len + end > MAX_LENGTH {
            return None;
        }
        let hash = fragment.key.hash(&self.hasher);
        let is_it = |it: &Partial| it.key == fragment.key;
        if self.partial.find(hash, is_it).is_none() {
            self.serial += 1;
            self.order.push_back((hash, self.serial));
            let (key, serial) = (fragment.key, self.serial);
            let new =
                Partial { key, serial, payload: Vec::new(), ranges: Vec::new(), length: None };
            self.bytes += new.bytes();
            let hasher = &self.hasher;
            self.partial.insert_unique(hash, new, |it| it.key.hash(hasher));
        }
        let entry = self.partial.find_mut(hash, is_it)?;
        self.bytes -= entry.bytes();
        entry.add(fragment, end);
        self.bytes += entry.bytes();
        if entry.is_complete() || entry.ranges.len() > MAX_RANGES {
            let (removed, _) = self.partial.find_entry(hash, is_it).ok()?.remove();
            self.bytes -= removed.bytes();
            return removed.is_complete().then_some(removed.payload);
        }
        self.give_up_oldest();
        None
    }

    /// Returns to the bounds.
    fn give_up_oldest(&mut self) {
        while self.partial.len() > MAX_PARTIAL || self.bytes > MAX_BYTES {
            let Some((hash, serial)) = self.order.pop_front() else { return };
            if let Ok(entry) = self.partial.find_entry(hash, |it| it.serial == serial) {
                let (removed, _) = entry.remove();
                self.bytes -= removed.bytes();
            }
        }
        // Those that were completed are still in the order.
        if self.order.len() > 2 * MAX_PARTIAL {
            let partial = &self.partial;
            self.order
                .retain(|(hash, serial)| partial.find(*hash, |it| it.serial == *serial).is_some());
        }
    }
}

/// The innermost IP header.
fn network(layers: &Layers) -> Option<(usize, Layer)> {
    let each = layers.iter().enumerate();
    let is_ip = |protocol| matches!(protocol, Protocol::Ipv4 | Protocol::Ipv6);
    let found = each.filter(|(_, (protocol, _))| is_ip(*protocol)).last();
    found.map(|(place, (_, layer))| (place, *layer))
}

impl<'a> Fragment<'a> {
    /// The fragment whose IP header is at the start of `bytes`; `None` if it was captured in
    /// part.
    fn of(bytes: &'a [u8], layer: &Layer) -> Option<Self> {
        let header_len = layer.header_len as usize;
        let payload = bytes.get(header_len..header_len + layer.payload_len as usize)?;
        let header = bytes.get(..header_len)?;
        let word = |at: usize| {
            let two: Option<&[u8; 2]> = header.get(at..)?.first_chunk();
            two.map(|two| u16::from_be_bytes(*two))
        };
        if header.first()? >> 4 == 4 {
            let address = |at: usize| {
                let bytes: Option<&[u8; 4]> = header.get(at..)?.first_chunk();
                bytes.map(|bytes| u128::from(u32::from_be_bytes(*bytes)))
            };
            let field = word(6)?;
            let key = Key {
                addresses: [address(12)?, address(16)?],
                identification: u32::from(word(4)?),
                protocol: *header.get(9)?,
                is_v6: false,
            };
            let offset = usize::from(field & 0x1fff) * 8;
            return Some(Fragment {
                key,
                offset,
                is_last: field & 0x2000 == 0,
                payload,
                header_len,
            });
        }
        let address = |at: usize| {
            let bytes: Option<&[u8; 16]> = header.get(at..)?.first_chunk();
            bytes.map(|bytes| u128::from_be_bytes(*bytes))
        };
        // The fragment header is the last one that was read.
        let at = header_len.checked_sub(8)?;
        let field = word(at + 2)?;
        let identification: &[u8; 4] = header.get(at + 4..)?.first_chunk()?;
        let key = Key {
            addresses: [address(8)?, address(24)?],
            identification: u32::from_be_bytes(*identification),
            // The first fragment's next header counts, and others may differ.
            protocol: 0,
            is_v6: true,
        };
        let offset = usize::from(field & 0xfff8);
        Some(Fragment { key, offset, is_last: field & 1 == 0, payload, header_len })
    }
}

impl Partial {
    /// Bytes that it takes, with what the allocator adds.
    fn bytes(&self) -> usize {
        const ALLOCATIONS: usize = 2 * 16;
        let ranges = self.ranges.capacity() * size_of::<(usize, usize)>();
        size_of::<Self>() + self.payload.capacity() + ranges + ALLOCATIONS
    }

    /// Adds the bytes that are not there yet.
    fn add(&mut self, fragment: &Fragment<'_>, end: usize) {
        if fragment.is_last && self.length.is_none() {
            self.length = Some(end);
        }
        if self.payload.len() < end {
            self.payload.resize(end, 0);
        }
        let mut at = fragment.offset;
        let mut copy = |from: usize, to: usize| {
            let source = fragment.payload.get(from - fragment.offset..to - fragment.offset);
            if let (Some(target), Some(source)) = (self.payload.get_mut(from..to), source) {
                target.copy_from_slice(source);
            }
        };
        for (first, last) in &self.ranges {
            if *first >= end {
                break;
            }
            if at < *first {
                copy(at, *first);
            }
            at = at.max(*last);
        }
        if at < end {
            copy(at, end);
        }
        self.join(fragment.offset, end);
    }

    /// Notes that `from..to` is there.
    fn join(&mut self, from: usize, to: usize) {
        let first = self.ranges.partition_point(|(_, last)| *last < from);
        let after = self.ranges.partition_point(|(start, _)| *start <= to);
        let (mut start, mut last) = (from, to);
        if let Some(touched) = self.ranges.get(first..after) {
            for (a, b) in touched {
                (start, last) = (start.min(*a), last.max(*b));
            }
        }
        self.ranges.splice(first..after.max(first), [(start, last)]);
    }

    /// Whether everything up to the last fragment's end is there.
    fn is_complete(&self) -> bool {
        match (self.length, self.ranges.first()) {
            (Some(length), Some((0, last))) => *last >= length,
            _ => false,
        }
    }
}

/// The frame with the whole packet in place of its last fragment, and a header that says so.
fn with_payload(
    data: &[u8],
    layer: &Layer,
    fragment: &Fragment<'_>,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let start = layer.start as usize;
    let mut whole = data.get(..start + fragment.header_len)?.to_vec();
    whole.extend_from_slice(payload);
    let header = whole.get_mut(start..)?;
    if fragment.key.is_v6 {
        let length = (fragment.header_len - 40 + payload.len()) as u16;
        header.get_mut(4..6)?.copy_from_slice(&length.to_be_bytes());
        // Offset 0 without more fragments: whole (RFC 6946).
        header.get_mut(fragment.header_len - 6..fragment.header_len - 4)?.fill(0);
    } else {
        let length = (fragment.header_len + payload.len()) as u16;
        header.get_mut(2..4)?.copy_from_slice(&length.to_be_bytes());
        header.get_mut(6..8)?.fill(0);
    }
    Some(whole)
}
