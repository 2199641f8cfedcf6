//! The same packets of one direction of a flow in both captures.
//!
//! Keys are compared from the strictest to the most lenient, and each takes only what
//! those before it left over:
//!
//! | key | what has to be equal |
//! |---|---|
//! | everything | sequence numbers, timestamps, flags, IP ID, window, options, as far as the path keeps them |
//! | header | sequence numbers, timestamps, IP ID |
//! | range | the same of ranges of payload: super-segments |
//! | payload | sequence number and length, where timestamps are not kept |
//! | damaged | sequence or acknowledgement number, or IP ID, and a delay as others have: bit errors, options that were not captured |

use crate::clock::Clock;
use crate::copies::{ExpectedDelays, align};
use crate::join;
use crate::packet::PacketIdentity;
use crate::ranges::{self, Range};
use crate::transit::Transit;
use crate::translation::{Both, Translation};

/// A packet, or a part of it, that is in both captures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Match {
    /// Places in the captures.
    pub(crate) a: u32,
    pub(crate) b: u32,
    /// Bytes of payload.
    pub(crate) bytes: u32,
}

/// What was found of a direction of a flow.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// Each two packets at most once.
    pub(crate) pairs: Vec<Match>,
    /// Places, in the capture that is passed second, of packets that are a copy of one that
    /// was matched.
    pub(crate) duplicates: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Everything,
    Header,
    Range,
    Payload,
    DamagedHeader,
    DamagedPayload,
}

type Key = [u32; 9];

/// A direction of a flow with what is known of its path.
pub(crate) struct Matcher<'a> {
    pub(crate) both: Both<'a>,
    pub(crate) translation: &'a Translation,
    pub(crate) clock: &'a Clock,
    pub(crate) transit: Transit,
    pub(crate) expected: &'a ExpectedDelays,
}

/// What is not matched yet, of both captures.
type Rest = [Vec<Range>; 2];

impl Matcher<'_> {
    pub(crate) fn run(&self) -> Matches {
        let mut found = Matches::default();
        let mut rest: Rest = [self.whole(self.both.a, false), self.whole(self.both.b, true)];
        let mut is_copy = vec![false; self.downstream().len()];
        self.level(Level::Everything, &mut rest, &mut found, &mut is_copy);
        self.level(Level::Header, &mut rest, &mut found, &mut is_copy);
        let second = self.transit.reverse().index();
        let mut duplicates: Vec<u32> = Vec::new();
        if self.tells_copies_apart() {
            // Made on the way, and not another copy of the sender's.
            rest[second].retain(|range| {
                let is_copy = is_copy[range.packet as usize];
                duplicates.extend(is_copy.then_some(range.packet));
                !is_copy
            });
        }
        if self.translation.is_tcp() && rest.iter().all(|rest| !rest.is_empty()) {
            rest = ranges::cut(&rest[0], &rest[1]);
            self.level(Level::Range, &mut rest, &mut found, &mut is_copy);
            self.level(Level::Payload, &mut rest, &mut found, &mut is_copy);
        }
        self.level(Level::DamagedPayload, &mut rest, &mut found, &mut is_copy);
        self.level(Level::DamagedHeader, &mut rest, &mut found, &mut is_copy);
        let left = rest[second].iter().filter(|range| is_copy[range.packet as usize]);
        duplicates.extend(left.map(|range| range.packet));
        duplicates.sort_unstable();
        duplicates.dedup();
        let start = self.both.starts[second] as u32;
        found.duplicates = duplicates.iter().map(|place| start + place).collect();
        // The ranges of a packet that are in one packet of the other capture are one match.
        found.pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        found.pairs.dedup_by(|next, kept| {
            let is_same = (next.a, next.b) == (kept.a, kept.b);
            kept.bytes = kept.bytes.saturating_add(if is_same { next.bytes } else { 0 });
            is_same
        });
        found
    }

    /// Whether the sender's own copies of a packet differ in what the path keeps.
    fn tells_copies_apart(&self) -> bool {
        let kept = self.translation.kept[self.both.direction & 1];
        let packets = || self.both.a.iter().chain(self.both.b);
        (kept.ip_id && packets().any(|packet| packet.ip_id != 0))
            || (kept.timestamps && packets().any(PacketIdentity::has_timestamps))
    }

    /// The packets of the capture that is passed second.
    fn downstream(&self) -> &[PacketIdentity] {
        match self.transit {
            Transit::AToB => self.both.b,
            Transit::BToA => self.both.a,
        }
    }

    fn whole(&self, packets: &[PacketIdentity], is_b: bool) -> Vec<Range> {
        let ranges = (0..).zip(packets).map(|(place, packet)| Range {
            packet: place,
            seq: self.translation.seq(packet, is_b, self.both.direction),
            length: packet.payload_len,
        });
        ranges.collect()
    }

    /// Matches what is left by the key of a level.
    fn level(&self, level: Level, rest: &mut Rest, found: &mut Matches, is_copy: &mut [bool]) {
        if rest.iter().any(Vec::is_empty) {
            return;
        }
        let [a_rest, b_rest] = &*rest;
        let mut a_keys = self.keyed(level, a_rest, self.both.a, false);
        let mut b_keys = self.keyed(level, b_rest, self.both.b, true);
        let mut used = [vec![false; a_rest.len()], vec![false; b_rest.len()]];
        let (mut a_times, mut b_times) = (Vec::new(), Vec::new());
        let is_certain = level == Level::Everything && self.tells_copies_apart();
        let damaged = matches!(level, Level::DamagedHeader | Level::DamagedPayload);
        join::equal(&mut a_keys, &mut b_keys, |of_a, of_b| {
            a_times.clear();
            b_times.clear();
            let time = |of: &[PacketIdentity], rest: &[Range], place: u32| {
                let packet = rest.get(place as usize).and_then(|it| of.get(it.packet as usize));
                packet.map_or(0, |packet| packet.time_ns)
            };
            a_times.extend(of_a.iter().map(|(_, place)| time(self.both.a, a_rest, *place)));
            b_times.extend(
                of_b.iter().map(|(_, place)| self.clock.in_a(time(self.both.b, b_rest, *place))),
            );
            let swap = self.transit == Transit::BToA;
            let (sent, came) = if swap { (&b_times, &a_times) } else { (&a_times, &b_times) };
            let mut pairs = align(sent, came, is_certain, self.expected);
            if damaged {
                pairs.retain(|(i, j)| self.expected.is_usual(came[*j].saturating_sub(sent[*i])));
            }
            for (i, j) in pairs {
                let (i, j) = if swap { (j, i) } else { (i, j) };
                let (a, b) = (of_a[i].1 as usize, of_b[j].1 as usize);
                (used[0][a], used[1][b]) = (true, true);
                found.pairs.push(Match {
                    a: self.both.starts[0] as u32 + a_rest[a].packet,
                    b: self.both.starts[1] as u32 + b_rest[b].packet,
                    bytes: a_rest[a].length,
                });
            }
            if !damaged {
                let second = self.transit.reverse().index();
                let (of, rest) = if swap { (of_a, a_rest) } else { (of_b, b_rest) };
                for (_, place) in of {
                    is_copy[rest[*place as usize].packet as usize] |=
                        !used[second][*place as usize];
                }
            }
        });
        for (rest, used) in rest.iter_mut().zip(used) {
            let mut used = used.into_iter();
            rest.retain(|_| !used.next().unwrap_or(false));
        }
    }

    fn keyed(
        &self,
        level: Level,
        rest: &[Range],
        packets: &[PacketIdentity],
        is_b: bool,
    ) -> Vec<(Key, u32)> {
        let each = (0..).zip(rest).filter_map(|(place, range)| {
            let packet = packets.get(range.packet as usize)?;
            Some((self.key(level, range, packet, is_b)?, place))
        });
        each.collect()
    }

    /// The key of a range; `None` where the level does not apply.
    fn key(&self, level: Level, range: &Range, packet: &PacketIdentity, is_b: bool) -> Option<Key> {
        let (it, direction) = (self.translation, self.both.direction);
        let kept = it.kept[direction & 1];
        let ack = it.ack(packet, is_b, direction);
        let [ts_val, ts_ecr] = it.timestamps(packet, is_b, direction);
        let payload = if it.is_tcp() { 0 } else { it.payload(packet, direction) };
        let ip_id = if kept.ip_id { u32::from(packet.ip_id) } else { 0 };
        let (seq, length) = (range.seq, range.length);
        let has_number = length > 0 || packet.control() != 0;
        match level {
            Level::Everything => {
                let window = if kept.window { u32::from(packet.window) } else { 0 };
                let options = if kept.options { packet.options } else { 0 };
                let rest = window << 3 | packet.control();
                Some([seq, length, rest, ack, ts_val, ts_ecr, ip_id, options, payload])
            }
            Level::Header => {
                let control = packet.control();
                Some([seq, length, control, ack, ts_val, ts_ecr, ip_id, 0, payload])
            }
            Level::Range => (length > 0).then_some([seq, length, 0, ack, ts_val, ts_ecr, 0, 0, 0]),
            Level::Payload => {
                (length > 0 && !kept.timestamps).then_some([seq, length, 0, 0, 0, 0, 0, 0, 0])
            }
            Level::DamagedPayload if !it.is_tcp() => None,
            Level::DamagedPayload => {
                // Options that were not captured are like damaged ones.
                let ack = if has_number { 0 } else { ack };
                Some([seq, length, packet.control(), ack, 0, 0, 0, 0, 0])
            }
            Level::DamagedHeader => (ip_id != 0).then_some([0, length, 0, 0, 0, 0, ip_id, 0, 0]),
        }
    }
}
