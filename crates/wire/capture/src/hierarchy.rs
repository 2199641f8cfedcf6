//! The protocol hierarchy, counted in both ways: whole frames for each protocol in
//! them, as `tshark -z io,phs` does, and the bytes of each protocol's own headers, as
//! newer versions of Wireshark do.
//!
//! A packet is counted at its list of layers; the rows are made of these lists at the
//! end.

use crate::dissect::{Layers, MAX_LAYERS, Protocol};
use crate::table::{Hasher, Seed};
use hashbrown::HashTable;

/// Different lists of layers that are kept; a file with more is made up.
const MAX_PATHS: usize = 4096;

/// Packets with the same list of layers.
#[derive(Debug, Clone, Copy)]
struct PathCount {
    path: u128,
    frames: u64,
    bytes: u64,
    own_bytes: [u64; MAX_LAYERS],
}

/// Counts packets by their layers.
#[derive(Debug)]
pub struct Hierarchy {
    paths: Vec<PathCount>,
    places: HashTable<u32>,
    hasher: Hasher,
    last: usize,
    frames: u64,
    bytes: u64,
    not_counted: u64,
}

/// A protocol at its place in the hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Layers outside of it.
    pub depth: usize,
    /// Which protocol; [`Protocol::None`] for the first row, the frames.
    pub protocol: Protocol,
    /// Frames that have it there.
    pub frames: u64,
    /// Bytes of these frames, whole.
    pub bytes: u64,
    /// Bytes of its own headers; of data and what is not dissected further, all.
    pub own_bytes: u64,
    /// Frames in which it is the innermost layer.
    pub end_frames: u64,
    /// Bytes of its own in these frames.
    pub end_bytes: u64,
}

impl Hierarchy {
    /// No packets; `seed` should be random.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Hierarchy {
            paths: Vec::new(),
            places: HashTable::new(),
            hasher: Hasher::new(seed),
            last: 0,
            frames: 0,
            bytes: 0,
            not_counted: 0,
        }
    }

    /// Counts a packet of `original_len` bytes.
    #[inline]
    pub fn add(&mut self, layers: &Layers, original_len: u32) {
        let bytes = u64::from(original_len);
        self.frames += 1;
        self.bytes += bytes;
        let path = layers.path();
        if self.paths.get(self.last).is_none_or(|last| last.path != path) {
            let Some(place) = self.place(path) else {
                self.not_counted += 1;
                return;
            };
            self.last = place;
        }
        let Some(count) = self.paths.get_mut(self.last) else { return };
        count.frames += 1;
        count.bytes += bytes;
        for (own, layer) in count.own_bytes.iter_mut().zip(layers.recorded()) {
            *own += u64::from(layer.header_len);
        }
    }

    fn place(&mut self, path: u128) -> Option<usize> {
        let hash = |path: u128, hasher: &Hasher| hasher.two(path as u64, (path >> 64) as u64);
        let (paths, hasher) = (&self.paths, &self.hasher);
        let key = hash(path, hasher);
        if let Some(place) = self.places.find(key, |place| paths[*place as usize].path == path) {
            return Some(*place as usize);
        }
        if paths.len() >= MAX_PATHS {
            return None;
        }
        let place = paths.len();
        self.paths.push(PathCount { path, frames: 0, bytes: 0, own_bytes: [0; MAX_LAYERS] });
        let paths = &self.paths;
        self.places.insert_unique(key, place as u32, |it| hash(paths[*it as usize].path, hasher));
        Some(place)
    }

    /// Packets in no row but the first, because there are too many lists of layers.
    #[must_use]
    pub fn not_counted(&self) -> u64 {
        self.not_counted
    }

    /// The rows, each before the rows inside of it; siblings in the order of their first
    /// packets, as in tshark.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut root = Node {
            row: Row { own_bytes: 0, ..row(0, Protocol::None, self.frames, self.bytes) },
            inside: Vec::new(),
        };
        for count in &self.paths {
            let numbers = count.path.to_le_bytes();
            let mut node = &mut root;
            for (place, number) in numbers.into_iter().take_while(|it| *it != 0).enumerate() {
                let protocol = Protocol::from_number(number);
                let known = node.inside.iter().position(|child| child.row.protocol == protocol);
                let child = known.unwrap_or_else(|| {
                    let row = row(place + 1, protocol, 0, 0);
                    node.inside.push(Node { row, inside: Vec::new() });
                    node.inside.len() - 1
                });
                node = &mut node.inside[child];
                node.row.frames += count.frames;
                node.row.bytes += count.bytes;
                node.row.own_bytes += count.own_bytes[place];
                if numbers.get(place + 1).is_none_or(|next| *next == 0) {
                    node.row.end_frames += count.frames;
                    node.row.end_bytes += count.own_bytes[place];
                }
            }
        }
        let mut rows = Vec::new();
        root.list(&mut rows);
        rows
    }
}

fn row(depth: usize, protocol: Protocol, frames: u64, bytes: u64) -> Row {
    Row { depth, protocol, frames, bytes, own_bytes: 0, end_frames: 0, end_bytes: 0 }
}

/// A row with the rows inside of it; at most [`MAX_LAYERS`] deep.
struct Node {
    row: Row,
    inside: Vec<Node>,
}

impl Node {
    fn list(&self, rows: &mut Vec<Row>) {
        rows.push(self.row);
        for child in &self.inside {
            child.list(rows);
        }
    }
}
