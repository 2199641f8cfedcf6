//! The times of an object from its origin and from an edge cache in front of it.
//!
//! > direct = T(length, RTT)
//! >
//! > warm = T(length, RTT_edge)
//! >
//! > cold = RTT_edge + F + RTT_edge, F = T(bytes up to the last one, RTT_origin) + (n - 1) RTT_origin
//! >
//! > expired = warm + RTT_origin + (n - 1) max(0, RTT_origin - B / C_edge)
//!
//! T is [`transfer()`] from the SYN to the last byte: a handshake, then rounds of slow start from the
//! request on. The edge is connected to once by the client, and connects once to the origin. It
//! fetches n slices one after another, each after an RTT in which nothing arrives, and confirms each
//! by a request of its own once they have expired (RFC 9111, section 4.3), over a connection that is
//! open. Meanwhile the client gets B bytes that the edge's socket and the link's queue hold. The edge
//! passes on what it receives. The origin keeps its congestion window between slices, as one RTT is
//! shorter than the retransmission timeout (RFC 5681, section 4.1), and the queue holds a slice.
//!
//! Clients that ask while another one fetches a slice look for it every [`LOCK_POLL_S`] (nginx's
//! `ngx_http_file_cache_lock`), and share the link to the edge.

use crate::{Congestion, Transfer, transfer};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Interval in which nginx looks whether a locked slice is there.
pub const LOCK_POLL_S: f64 = 0.5;

/// Most slices of an object whose times are computed.
pub const MAX_SLICES: u64 = 1_000_000;

/// A path between two of client, edge and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeLeg {
    /// Rate of payload.
    pub rate: BitRate,
    /// The RTT.
    pub rtt: Rtt,
    /// Random loss.
    pub loss: LossRatio,
}

/// An object, or a range of its bytes, asked for through an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeFetch {
    /// Between client and edge.
    pub near: EdgeLeg,
    /// Between edge and origin.
    pub far: EdgeLeg,
    /// Size of the object.
    pub size: ByteCount,
    /// First and last byte that are asked for; `None`: all of them.
    pub range: Option<(u64, u64)>,
    /// Size of the edge's slices; `None`: it fetches objects as a whole.
    pub slice: Option<ByteCount>,
    /// Bytes to the client that the edge's socket and the queue hold while the edge waits.
    pub buffered: ByteCount,
    /// The client's receive window, if it is a limit.
    pub window: Option<ByteCount>,
    /// Payload of a full segment.
    pub mss: ByteCount,
    /// Initial window in segments.
    pub initial: u32,
    /// Congestion control of edge and origin.
    pub congestion: Congestion,
}

impl EdgeFetch {
    /// The bytes that are asked for: of a range, those that the object has.
    #[must_use]
    pub fn length(&self) -> ByteCount {
        let (first, last) = self.bounds();
        ByteCount::from_bytes((last.saturating_add(1) - first).min(self.size.bytes()))
    }

    /// First and last byte, the last of which exists. Of an object without bytes, 0 and 0.
    fn bounds(&self) -> (u64, u64) {
        let end = self.size.bytes().saturating_sub(1);
        let (first, last) = self.range.unwrap_or((0, end));
        (first.min(end), last.min(end))
    }

    /// Numbers of the first and the last slice that has a byte of it.
    fn slices(&self) -> (u64, u64) {
        let (first, last) = self.bounds();
        match self.slice.map(|slice| slice.bytes().max(1)) {
            Some(slice) => (first / slice, last / slice),
            None => (0, 0),
        }
    }

    /// The number of slices that the edge fetches, or confirms.
    #[must_use]
    pub fn slice_count(&self) -> u64 {
        let (first, last) = self.slices();
        last - first + 1
    }

    /// Bytes that the edge fetches from the origin: whole slices.
    #[must_use]
    pub fn fetched(&self) -> ByteCount {
        let (first, last) = self.slices();
        let Some(slice) = self.slice.map(|slice| slice.bytes().max(1)) else { return self.size };
        let end = (last + 1).saturating_mul(slice).min(self.size.bytes());
        ByteCount::from_bytes(end.saturating_sub(first * slice))
    }

    /// A transfer over a leg with the client's window, or with one that holds the path.
    fn over(&self, leg: &EdgeLeg, size: u64, window: Option<ByteCount>) -> Option<f64> {
        let asked = Transfer {
            size: ByteCount::from_bytes(size),
            link: leg.rate,
            rtt: leg.rtt,
            loss: leg.loss,
            mss: self.mss,
            window,
            initial: self.initial,
        };
        transfer(&asked, self.congestion).map(|course| course.seconds)
    }

    /// Seconds from the client's SYN to its last byte, from the origin without an edge, whose path
    /// has the RTT of both legs, the lower rate and the loss of both. `None` without a model.
    #[must_use]
    pub fn direct(&self) -> Option<f64> {
        let rtt = self.near.rtt.nanos().saturating_add(self.far.rtt.nanos());
        let kept = (1.0 - self.near.loss.fraction()) * (1.0 - self.far.loss.fraction());
        let path = EdgeLeg {
            rate: self.near.rate.min(self.far.rate),
            rtt: Rtt::from_nanos(rtt),
            loss: crate::loss_from_fraction(1.0 - kept)?,
        };
        self.over(&path, self.length().bytes(), self.window)
    }

    /// The same from the edge, where the object is fresh.
    #[must_use]
    pub fn warm(&self) -> Option<f64> {
        self.over(&self.near, self.length().bytes(), self.window)
    }

    /// The same from the edge, which has nothing of it.
    #[must_use]
    pub fn cold(&self) -> Option<f64> {
        let (near, far) = (self.near.rtt.secs_f64(), self.far.rtt.secs_f64());
        let (first, _) = self.slices();
        // The bytes before the range's first one, in its slice, arrive before it.
        let start = self.slice.map_or(0, |slice| first * slice.bytes());
        let (_, last) = self.bounds();
        let fetch = self.fetch(last.saturating_add(1) - start, self.slice_count())?;
        // A client whose link is slower than the origin's ends later than the edge.
        let sent = 2.0 * far + self.length().as_f64() * 8.0 / self.near.rate.as_f64();
        let by_window = self.warm()? - 2.0 * near + 2.0 * far;
        Some(2.0 * near + fetch.max(sent).max(by_window))
    }

    /// The same from the edge, whose copy has expired and not changed. Without slices the edge sends
    /// it at once, and confirms it in the background.
    #[must_use]
    pub fn expired(&self) -> Option<f64> {
        let warm = self.warm()?;
        if self.slice.is_none() {
            return Some(warm);
        }
        let rtt = self.far.rtt.secs_f64();
        let hidden = self.buffered.as_f64() * 8.0 / self.near.rate.as_f64();
        let further = self.slice_count().saturating_sub(1) as f64 * (rtt - hidden).max(0.0);
        Some(warm + rtt + further)
    }

    /// Seconds from the edge's SYN to the last of the first `bytes` in `slices` slices.
    fn fetch(&self, bytes: u64, slices: u64) -> Option<f64> {
        let idle = slices.saturating_sub(1) as f64 * self.far.rtt.secs_f64();
        Some(self.over(&self.far, bytes, None)? + idle)
    }

    /// The same for the last of `clients` that ask for the whole object at once, of which the edge
    /// has nothing: one fetches, the others wait. `None` for fewer than two, without a model, or with
    /// more than [`MAX_SLICES`] slices.
    #[must_use]
    pub fn waiting(&self, clients: u32) -> Option<f64> {
        let others = f64::from(clients.checked_sub(1).filter(|others| *others > 0)?);
        let whole = EdgeFetch { range: None, ..*self };
        let (size, count) = (self.size.bytes(), whole.slice_count());
        if count > MAX_SLICES {
            return None;
        }
        let slice = self.slice.map_or(size, ByteCount::bytes);
        // Since the requests arrived at the edge.
        let mut now = 0.0;
        for number in 0..count {
            let begin = number * slice;
            let end = begin.saturating_add(slice).min(size);
            let ready = self.fetch(end, number + 1)?;
            if ready > now {
                now += ((ready - now) / LOCK_POLL_S).ceil() * LOCK_POLL_S;
            }
            now += (end - begin) as f64 * 8.0 * others / self.near.rate.as_f64();
        }
        // A single one may be in slow start.
        let alone = whole.warm()? - 2.0 * self.near.rtt.secs_f64();
        let first = (self.fetch(slice.min(size), 1)? / LOCK_POLL_S).ceil() * LOCK_POLL_S;
        Some(2.0 * self.near.rtt.secs_f64() + now.max(first + alone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(rtt: &str) -> EdgeLeg {
        EdgeLeg {
            rate: "100mbit".parse().unwrap(),
            rtt: rtt.parse().unwrap(),
            loss: LossRatio::NONE,
        }
    }

    fn object(size: u64) -> EdgeFetch {
        EdgeFetch {
            near: leg("4ms"),
            far: leg("166ms"),
            size: ByteCount::from_bytes(size),
            range: None,
            slice: Some(ByteCount::from_bytes(8 << 20)),
            buffered: ByteCount::ZERO,
            window: None,
            mss: ByteCount::from_bytes(1448),
            initial: 10,
            congestion: Congestion::Cubic,
        }
    }

    fn near(value: Option<f64>, expected: f64) {
        let value = value.unwrap();
        assert!((value - expected).abs() < 1e-6, "{value} instead of {expected}");
    }

    #[test]
    fn one_window_is_a_count_of_round_trips() {
        let small = object(14_480);
        let sent = 14_480.0 * 8e-8;
        near(small.direct(), 2.0 * 0.170 + sent);
        near(small.warm(), 2.0 * 0.004 + sent);
        near(small.cold(), 2.0 * 0.004 + 2.0 * 0.166 + sent);
        near(small.expired(), 2.0 * 0.004 + 0.166 + sent);
        assert_eq!((small.slice_count(), small.fetched().bytes()), (1, 14_480));
    }

    #[test]
    fn further_slices_cost_a_round_trip_each() {
        let large = object(100_000_000);
        let whole = EdgeFetch { slice: None, ..large };
        assert_eq!(large.slice_count(), 12);
        near(large.cold().zip(whole.cold()).map(|(a, b)| a - b), 11.0 * 0.166);
        near(large.expired().zip(large.warm()).map(|(a, b)| a - b), 12.0 * 0.166);
        near(whole.expired(), whole.warm().unwrap());
        // A megabyte takes 80 ms: that much of each further round trip is hidden.
        let held = EdgeFetch { buffered: ByteCount::from_bytes(1_000_000), ..large };
        near(held.expired().zip(held.warm()).map(|(a, b)| a - b), 0.166 + 11.0 * 0.086);
    }

    #[test]
    fn a_range_waits_for_the_bytes_of_its_slice_before_it() {
        let range = EdgeFetch { range: Some((9_000_000, 9_099_999)), ..object(20_000_000) };
        assert_eq!((range.length().bytes(), range.slice_count()), (100_000, 1));
        assert_eq!(range.fetched().bytes(), 8 << 20);
        let before = 9_100_000 - (8 << 20);
        near(range.cold(), object(before).cold().unwrap());
        near(range.warm(), object(100_000).warm().unwrap());
        // Beyond the end.
        let over = EdgeFetch { range: Some((19_999_990, u64::MAX)), ..object(20_000_000) };
        assert_eq!((over.length().bytes(), over.fetched().bytes()), (10, 20_000_000 - (16 << 20)));
        let whole = EdgeFetch { slice: None, ..range };
        assert_eq!(whole.fetched().bytes(), 20_000_000);
    }

    #[test]
    fn waiting_clients_look_every_half_second() {
        // Fetched in 332 ms and 80 ms of sending: looked for at 500 ms.
        let one = object(14_480);
        near(one.waiting(2), 2.0 * 0.004 + 0.5 + 14_480.0 * 8e-8);
        near(one.waiting(101), 2.0 * 0.004 + 0.5 + 100.0 * 14_480.0 * 8e-8);
        assert_eq!((one.waiting(0), one.waiting(1)), (None, None));
        let tiny = EdgeFetch { slice: Some(ByteCount::from_bytes(1)), ..object(2_000_000) };
        assert_eq!(tiny.waiting(5), None);
        // A second slice is ready long before the first one is sent to all.
        let two = object(16_000_000);
        let sent = 99.0 * 16e6 * 8e-8;
        let first = two.fetch(8 << 20, 1).unwrap();
        near(two.waiting(100), 0.008 + (first / 0.5).ceil() * 0.5 + sent);
    }

    #[test]
    fn nothing_is_computed_of_nothing() {
        let none = object(0);
        assert_eq!(
            (none.direct(), none.warm(), none.cold(), none.waiting(9)),
            (None, None, None, None)
        );
        let slow = EdgeFetch { near: EdgeLeg { rate: BitRate::ZERO, ..leg("4ms") }, ..object(9) };
        assert_eq!((slow.warm(), slow.cold()), (None, None));
        let window = EdgeFetch { window: Some(ByteCount::from_bytes(65_536)), ..object(1_000_000) };
        assert!(window.direct().unwrap() > 2.5 && window.warm().unwrap() < 0.15);
    }
}
