//! What one side sends on a control connection, be it that a part of it is missing.

use super::State;
use crate::sequence::after;
use capture::dissect::TcpSegment;

/// Longest JSON that is read, in bytes: the results of 256 streams have 50 kB.
const LONGEST: usize = 1 << 16;

/// Longest JSON that can be meant: a longer one is no JSON (esnet/iperf limits neither).
const LONGEST_MEANT: u32 = 1 << 24;

/// Why a part is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The snaplen cut off the packet.
    Snaplen,
    /// Its packet is not in the capture, or came out of order.
    NotCaptured,
    /// It is longer than what is read.
    TooLong,
}

/// What was read.
#[derive(Debug, PartialEq)]
pub(super) enum Item<'a> {
    State(State),
    /// iperf3's code and errno.
    Error(i32, i32),
    /// A document from its beginning to the first missing byte.
    Json {
        text: &'a [u8],
        cut: Option<Cut>,
    },
}

/// Where the next byte belongs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A state, or a length.
    #[default]
    Between,
    Length,
    ErrorCodes,
    Json {
        left: u32,
        cut: Option<Cut>,
    },
    /// After a gap: the next segment that has a state or a length alone is read again.
    Lost,
    /// No control connection.
    Foreign,
}

/// Reads one side.
#[derive(Debug, Default)]
pub(super) struct Reader {
    next: Option<u32>,
    expected: Expected,
    bytes: Vec<u8>,
    has_gap: bool,
}

impl Reader {
    /// Begins at a sequence number.
    pub(super) fn after(next: u32) -> Self {
        Reader { next: Some(next), ..Reader::default() }
    }

    pub(super) fn has_gap(&self) -> bool {
        self.has_gap
    }

    pub(super) fn add(&mut self, segment: &TcpSegment<'_>, mut found: impl FnMut(Item<'_>)) {
        if self.expected == Expected::Foreign || segment.payload_len == 0 {
            return;
        }
        let next = *self.next.get_or_insert(segment.seq);
        let (mut payload, mut length) = (segment.payload, segment.payload_len);
        if after(segment.seq, next) {
            self.lose(segment.seq.wrapping_sub(next), Cut::NotCaptured, &mut found);
        } else {
            // A retransmission, or one that begins with what was read.
            let known = next.wrapping_sub(segment.seq);
            if known >= length {
                return;
            }
            payload = payload.get(known as usize..).unwrap_or_default();
            length -= known;
        }
        self.next = Some(segment.next_seq());
        let is_alone = matches!((length, payload), (1, [_]) | (4, [0, ..]));
        if self.expected == Expected::Lost && is_alone {
            self.expected = Expected::Between;
        }
        let captured = payload.len() as u32;
        self.feed(payload, &mut found);
        self.lose(length.saturating_sub(captured), Cut::Snaplen, &mut found);
    }

    fn feed(&mut self, mut bytes: &[u8], found: &mut impl FnMut(Item<'_>)) {
        while let [first, rest @ ..] = bytes {
            match &mut self.expected {
                Expected::Lost | Expected::Foreign => return,
                Expected::Between if *first == 0 => self.expected = Expected::Length,
                Expected::Between => {
                    bytes = rest;
                    match State::from_byte(*first) {
                        Some(state) => {
                            if state == State::ServerError {
                                self.expected = Expected::ErrorCodes;
                            }
                            found(Item::State(state));
                        }
                        None => self.expected = Expected::Foreign,
                    }
                }
                Expected::Length => {
                    bytes = rest;
                    self.bytes.push(*first);
                    if let Some(length) = self.bytes.first_chunk::<4>() {
                        let left = u32::from_be_bytes(*length);
                        self.bytes.clear();
                        let is_meant = left > 0 && left <= LONGEST_MEANT;
                        self.expected = if is_meant {
                            Expected::Json { left, cut: None }
                        } else {
                            Expected::Foreign
                        };
                    }
                }
                Expected::ErrorCodes => {
                    bytes = rest;
                    self.bytes.push(*first);
                    if let ([code, errno], _) = self.bytes.as_chunks::<4>() {
                        found(Item::Error(i32::from_be_bytes(*code), i32::from_be_bytes(*errno)));
                        self.bytes.clear();
                        self.expected = Expected::Between;
                    }
                }
                Expected::Json { left, cut } => {
                    let (now, later) = bytes.split_at(bytes.len().min(*left as usize));
                    bytes = later;
                    if cut.is_none() {
                        let room = LONGEST - self.bytes.len();
                        self.bytes.extend(now.iter().take(room));
                        *cut = (now.len() > room).then_some(Cut::TooLong);
                    }
                    *left -= now.len() as u32;
                    self.end_json(found);
                }
            }
        }
    }

    /// `count` bytes are missing.
    fn lose(&mut self, count: u32, why: Cut, found: &mut impl FnMut(Item<'_>)) {
        if count == 0 || self.expected == Expected::Foreign {
            return;
        }
        self.has_gap = true;
        if let Expected::Json { left, cut } = &mut self.expected
            && count <= *left
        {
            *left -= count;
            cut.get_or_insert(why);
            self.end_json(found);
            return;
        }
        if let Expected::Json { left, cut } = &mut self.expected {
            *left = 0;
            cut.get_or_insert(why);
            self.end_json(found);
        }
        self.bytes.clear();
        self.expected = Expected::Lost;
    }

    fn end_json(&mut self, found: &mut impl FnMut(Item<'_>)) {
        if let Expected::Json { left: 0, cut } = self.expected {
            found(Item::Json { text: &self.bytes, cut });
            self.bytes = Vec::new();
            self.expected = Expected::Between;
        }
    }
}
